"""Reads texts in old encodings so that nothing about them is forgotten; see docs/encodings.md."""

from recode.document import Document, decode, encode
from recode.guess import detect

__all__ = ["Document", "decode", "detect", "encode"]
