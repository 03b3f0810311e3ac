"""How a conversation is compressed for a context: strategies, which make views of it. Pure, with no model."""
