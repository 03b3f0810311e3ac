"""Servers: memstore asked over a network. Thin over memory, and async only."""
