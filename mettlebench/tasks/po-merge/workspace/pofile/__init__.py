"""Reads, writes and merges translation catalogues."""

from pofile.entry import Entry
from pofile.parse import parse
from pofile.write import write

__all__ = ["Entry", "parse", "write"]
