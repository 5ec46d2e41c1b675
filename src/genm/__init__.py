"""genm: learn how to blend your rankers."""

__version__ = "0.1.0"
