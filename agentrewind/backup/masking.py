"""What a model is not shown of a call and of what commands print: whatever looks like a credential."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentrewind.records import Json
from agentrewind.redact import REDACTED, mask


@dataclass(slots=True)
class Masking:
    """The masking of one tool call, for everything that any model is asked about it."""

    _found: set[str] = field(default_factory=set)

    @property
    def count(self) -> int:
        """How many credentials were masked so far, each counted once however often it was seen."""
        return len(self._found)

    def text(self, text: str) -> str:
        """The text as a model may see it."""
        shown, found = mask(text)
        self._found |= found
        return shown

    def value(self, value: Json) -> Json:
        """The same for all texts in a value, each alone, and for what stands under a password's name."""
        match value:
            case str():
                return self.text(value)
            case list():
                return [self._item(before, item) for before, item in zip(["", *value], value, strict=False)]
            case dict():
                return {self.text(name): self._field(name, item) for name, item in value.items()}
            case _:
                return value

    def _field(self, name: str, item: Json) -> Json:
        named, _ = mask(f"{name}=x")
        if not isinstance(item, str) or not item or not named.endswith(REDACTED):
            return self.value(item)
        self._found.add(item)
        return REDACTED

    def _item(self, before: Json, item: Json) -> Json:
        """One item of a list, which may be the words of a command: an option, and then its value."""
        if not isinstance(before, str) or not isinstance(item, str) or not before.startswith("-"):
            return self.value(item)
        together, found = mask(f"{before} {item}")
        if together != f"{before} {REDACTED}":
            return self.value(item)
        self._found |= found
        return REDACTED


def credentials_in(arguments: Json) -> int:
    """How many credentials of a call's arguments would be masked."""
    masking = Masking()
    masking.value(arguments)
    return masking.count
