"""Doors to frameworks that their users know: each module needs its framework, an extra of its name installs it."""
