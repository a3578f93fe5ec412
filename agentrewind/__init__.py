"""A runtime layer around a coding agent that lets it go back."""

__version__ = "0.1.0"
