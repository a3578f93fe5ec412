"""Reads and writes plate files. See docs/format.md."""

from plates.header import Malformed
from plates.image import Plate, read, write

__all__ = ["Malformed", "Plate", "read", "write"]
