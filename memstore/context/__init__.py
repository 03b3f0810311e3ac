"""Ranked → packed → rendered."""
