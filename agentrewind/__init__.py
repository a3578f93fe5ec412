"""A runtime layer around a coding agent that lets it go back."""
