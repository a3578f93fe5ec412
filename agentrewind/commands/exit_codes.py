"""Exit codes of the command line that belong to no error of this package, but to how it was called."""

INTERRUPTED = 130
"""Ctrl-C."""

CLOSED_PIPE = 141
"""Whoever read the output closed it."""
