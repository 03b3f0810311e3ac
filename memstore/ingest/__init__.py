"""Messages in: validated, redacted, counted and stored, one by one or from a file of another program."""
