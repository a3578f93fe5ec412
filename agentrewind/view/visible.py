r"""Makes what agents and tools said safe to look at in a page: nothing hides, nothing turns the line round.

Escaping for HTML is the templates' business; this is about characters that a browser would obey or not show.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass

from agentrewind.display_text import one_line
from agentrewind.records import Json, JsonObject

_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Text that can be shown, and how many colour codes of a terminal were left out of it."""

    text: str
    colours: int = 0


def visible(text: str) -> Shown:
    r"""The text with every invisible character as a mark; colour codes alone are dropped, and counted.

    Line feeds and tabs stay. Escapes of a terminal become `⟨ESC⟩`, whatever else would hide or turn text
    round becomes `⟨U+202E⟩`.

    >>> visible("\x1b[1mbold\x1b[0m\a \u202etxt.exe")
    Shown(text='bold⟨U+0007⟩ ⟨U+202E⟩txt.exe', colours=2)
    """
    bare, colours = _COLOURS.subn("", text.replace("\r\n", "\n"))
    return Shown(text=bare.translate(_MARKS), colours=colours)


def title(text: str, width: int = 240) -> str:
    """One line of at most `width` characters, for a row or a heading."""
    # only the beginning can be shown, and a result may hold megabytes on one line
    line = one_line(text[: 8 * width])
    return line if len(line) <= width else line[: width - 1] + "…"


def value_text(value: Json) -> str:
    """A recorded value as people read it: text as such, a tool's output before its other fields."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, dict) and isinstance(output := value.get("output"), str):
        rest: JsonObject = {
            key: each for key, each in value.items() if key != "output" and each not in ("", None)
        }
        return f"{output}\n{_dumped(rest)}" if rest else output
    if isinstance(value, list) and (texts := _parts(value)) is not None:
        return texts
    return _dumped(value)


def _parts(value: list[Json]) -> str | None:
    """The texts of a message's parts; None where they are no such list."""
    found: list[str] = []
    for part in value:
        if not isinstance(part, dict) or "type" not in part:
            return None
        text = part.get("text")
        found.append(text if isinstance(text, str) else _dumped(part))
    return "\n\n".join(found) if found else None


def _dumped(value: Json) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=value_text)


class _Marks(dict[int, str]):
    """What stands for a character, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if unicodedata.category(character) in _INVISIBLE:
            character = _mark(code)
        self[code] = character
        return character


def _mark(code: int) -> str:
    if code in (0x09, 0x0A):
        return chr(code)
    if code == 0x1B:
        return "⟨ESC⟩"
    if 0xDC80 <= code <= 0xDCFF:
        return f"⟨byte {code - 0xDC00:02X}⟩"
    return f"⟨U+{code:04X}⟩"


_MARKS = _Marks()
