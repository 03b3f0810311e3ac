"""Query → candidates → ranked."""
