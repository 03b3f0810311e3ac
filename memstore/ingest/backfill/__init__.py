"""Backfill: a long history derived under a plan. PLAN → begin → workers → verify."""
