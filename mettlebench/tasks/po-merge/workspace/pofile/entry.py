"""One entry of a catalogue."""

from dataclasses import dataclass, field


@dataclass
class Entry:
    msgid: str = ""
    context: "str | None" = None
    plural: "str | None" = None
    strings: list = field(default_factory=list)
    comments: list = field(default_factory=list)
    extracted: list = field(default_factory=list)
    references: list = field(default_factory=list)
    flags: list = field(default_factory=list)
    obsolete: bool = False
