"""Reads messages without a chat model: which of their words are worth keeping, and what they say."""
