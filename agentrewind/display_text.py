"""Makes text of agents and tools safe for a terminal, and cuts it to a width."""

from __future__ import annotations

import re
import unicodedata

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"  # operating system commands: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b\x9c]*(?:\x1b\\|\x9c|$)"  # device control and other strings
    r"|[\x90\x98\x9d-\x9f][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"  # the same, begun by one character
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*(?:[@-~]|$)"  # colours, cursor, screen
    r"|\x1b[ -/]*(?:[0-~]|$)"  # every other escape
)
_KEPT = "\n\t"
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    r"""The text without anything that a terminal would obey or that would hide what stands there.

    Escape sequences, control characters, direction overrides and invisible format characters are left out;
    line feeds and tabs stay, a carriage return with a line feed counts as one line feed.

    >>> printable("\x1b[31mred\x1b[0m \x1b]0;title\x07and\x08 plain")
    'red and plain'
    """
    bare = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if bare.isascii() and bare.isprintable():
        return bare
    return "".join(_shown(character) for character in bare)


def one_line(text: str) -> str:
    """The printable text on one line, runs of white space as one blank."""
    return " ".join(printable(text).split())


def file_name(path: bytes | str) -> str:
    r"""A path on one line; what would break or turn the line is written as an escape.

    >>> file_name(b"a\nb\xff.txt"), file_name("\u202etxt.exe")
    ('a\\nb\\xff.txt', '\\u202etxt.exe')
    """
    text = path.decode("utf-8", "backslashreplace") if isinstance(path, bytes) else path
    return text if text.isprintable() and text.isascii() else "".join(map(_escape, text))


def shorten(text: str, width: int) -> str:
    """One line of at most `width` columns, the end marked where something was cut off.

    >>> shorten("a long way home", 8)
    'a long …'
    """
    line = one_line(text)
    if columns(line) <= width:
        return line
    kept: list[str] = []
    left = max(0, width - 1)
    for character in line:
        left -= _width(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept) + "…" if width > 0 else ""


def columns(text: str) -> int:
    """How many columns a terminal gives to a printable text."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _escape(character: str) -> str:
    """An invisible character as programmers write it; it would break the line, hide, or turn it round."""
    if unicodedata.category(character) not in _INVISIBLE | {"Co"}:
        return character
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if 0xDC80 <= code <= 0xDCFF:  # how Python spells a byte that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _shown(character: str) -> str:
    if character in _KEPT:
        return character
    category = unicodedata.category(character)
    if category == "Cs":
        byte = ord(character) - 0xDC00  # how Python spells a byte that is no UTF-8
        return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else "\N{REPLACEMENT CHARACTER}"
    return "" if category in _INVISIBLE else character


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
