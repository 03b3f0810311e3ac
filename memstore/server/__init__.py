"""Servers: memstore for programs in other processes, thin over `memory`. Async only."""
