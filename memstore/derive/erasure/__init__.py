"""Erasing: everything that stands in a store because of a message, a fact, a conversation or a user."""
