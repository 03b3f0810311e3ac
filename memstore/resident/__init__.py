"""The resident encoder from inside: a process that holds an embedder, and the stores that it was asked about."""
