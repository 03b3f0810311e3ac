"""The store that users open, and the scopes of a user and of a conversation."""
