"""A user's memory as lines of a file, and back.

export: rows → shapes, units → output            restore: source (lines, checked) → judged → rows
"""
