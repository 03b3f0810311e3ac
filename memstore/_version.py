"""The version: the build reads it here, as what runs from a clone has no metadata of its own."""

__version__ = "0.2.0"
