"""A user's memory as lines of a file, and back.

out: rows → writer → lines (schema)        in: lines → reader → entries (checked, redacted) → restore → rows
"""
