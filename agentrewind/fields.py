"""Typed reading of a decoded object: a wrong or missing field is a DamagedError that names it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NoReturn, TypeVar

from agentrewind.errors import DamagedError
from agentrewind.records import Json, JsonObject

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


def choice(data: Mapping[str, Json], name: str, choices: type[E], default: E) -> E:
    """An option that is one of a closed set; its default where it is missing."""
    found = data.get(name, default.value)
    if found not in list(choices):
        raise DamagedError(f"the option {name} cannot be read: it is {found!r}, not {' or '.join(choices)}")
    return choices(found)


class Fields:
    """One object of a record; `where` is its place in the record, for messages."""

    __slots__ = ("_object", "_where")

    def __init__(self, value: Json, where: str = "") -> None:
        if not isinstance(value, dict):
            raise DamagedError(f"{where or 'the record'} is no object")
        self._object = value
        self._where = where

    def place(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name

    def value(self, name: str) -> Json:
        """The field as it is; it must be there."""
        try:
            return self._object[name]
        except KeyError:
            raise DamagedError(f"the field {self.place(name)} is missing") from None

    def get(self, name: str) -> Json:
        """The field as it is, or None."""
        return self._object.get(name)

    def text(self, name: str, default: str | None = None) -> str:
        found = self._object.get(name, default)
        return found if isinstance(found, str) else self._wrong(name, "text")

    def text_or_none(self, name: str) -> str | None:
        found = self._object.get(name)
        return found if found is None or isinstance(found, str) else self._wrong(name, "text")

    def integer(self, name: str, default: int | None = None) -> int:
        found = self._object.get(name, default)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
        return self._wrong(name, "an integer")

    def integer_or_none(self, name: str) -> int | None:
        return None if self._object.get(name) is None else self.integer(name)

    def flag(self, name: str, default: bool | None = None) -> bool:  # noqa: FBT001 (a field's default)
        found = self._object.get(name, default)
        return found if isinstance(found, bool) else self._wrong(name, "true or false")

    def flag_or_none(self, name: str) -> bool | None:
        return None if self._object.get(name) is None else self.flag(name)

    def mapping(self, name: str) -> JsonObject:
        """An object; empty where the field is missing."""
        found = self._object.get(name)
        if found is None:
            return {}
        return found if isinstance(found, dict) else self._wrong(name, "an object")

    def mapping_or_none(self, name: str) -> JsonObject | None:
        return None if self._object.get(name) is None else self.mapping(name)

    def fields(self, name: str) -> Fields:
        return Fields(self.value(name), self.place(name))

    def items(self, name: str) -> list[Json]:
        """A list; empty where the field is missing."""
        found = self._object.get(name)
        if found is None:
            return []
        return found if isinstance(found, list) else self._wrong(name, "a list")

    def texts(self, name: str) -> tuple[str, ...]:
        found = self.items(name)
        return tuple(item if isinstance(item, str) else self._wrong(name, "a list of text") for item in found)

    def objects(self, name: str) -> tuple[JsonObject, ...]:
        found = self.items(name)
        return tuple(
            item if isinstance(item, dict) else self._wrong(name, "a list of objects") for item in found
        )

    def optional(self, name: str, read: Callable[[Fields], T]) -> T | None:
        """What `read` makes of the object, or None where it is null or missing."""
        found = self._object.get(name)
        return None if found is None else read(Fields(found, self.place(name)))

    def each(self, name: str, read: Callable[[Fields], T]) -> dict[str, T]:
        """An object of objects, each read by `read`."""
        place = self.place(name)
        return {key: read(Fields(item, f"{place}.{key}")) for key, item in self.mapping(name).items()}

    def rest(self, *known: str) -> JsonObject:
        """The fields that are none of the known ones."""
        return {key: item for key, item in self._object.items() if key not in known}

    def _wrong(self, name: str, expected: str) -> NoReturn:
        if name not in self._object:
            raise DamagedError(f"the field {self.place(name)} is missing")
        raise DamagedError(f"the field {self.place(name)} is not {expected}")
