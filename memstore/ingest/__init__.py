"""Message in → counted → stored → embedded → summarized → facts."""
