"""Reads a TOML file whose every complaint names file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn

from mettlebench.errors import TaskFormatError
from mettlebench.task import WordT

_SYNTAX_LINE = re.compile(r"at line (\d+)")


class TomlFile:
    """A parsed file. `tables` below it complain through it, so that each error carries a line."""

    def __init__(self, path: Path) -> None:
        """Raises TaskFormatError where the file is missing, no UTF-8, or no TOML."""
        self.path = path
        try:
            self._lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            raise TaskFormatError(path, None, "the file is missing; every task has one") from None
        except (OSError, UnicodeDecodeError) as error:
            raise TaskFormatError(path, None, f"cannot be read as UTF-8 text: {error}") from error
        try:
            data = tomllib.loads("\n".join(self._lines))
        except tomllib.TOMLDecodeError as error:
            found = _SYNTAX_LINE.search(str(error))
            line = int(found.group(1)) if found else len(self._lines)
            raise TaskFormatError(path, line, f"this is no TOML: {error}") from error
        self.root = Table(self, data, header=None, ordinal=0)

    def line(self, header: str | None, ordinal: int, key: str | None) -> int | None:
        """The line of a key below the `ordinal`-th `[header]` or `[[header]]`, or of the header itself."""
        start = 0
        if header is not None:
            heads = [n for n, text in enumerate(self._lines) if _is_header(text, header)]
            if ordinal >= len(heads):
                return None
            start = heads[ordinal]
        if key is None:
            return start + 1
        wanted = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
        for number in range(start + (header is not None), len(self._lines)):
            text = self._lines[number]
            if wanted.match(text):
                return number + 1
            if text.lstrip().startswith("[") and not text.startswith((" ", "\t")):
                break
        return start + 1


def _is_header(text: str, header: str) -> bool:
    return re.fullmatch(rf"\[{{1,2}}\s*{re.escape(header)}\s*\]{{1,2}}\s*(#.*)?", text.strip()) is not None


class Table:
    """One table of the file, read key by key; what is wrong is said with its line."""

    def __init__(self, file: TomlFile, data: Mapping[str, Any], *, header: str | None, ordinal: int) -> None:
        self._file = file
        self._data = data
        self._header = header
        self._ordinal = ordinal

    def refuse(self, message: str, key: str | None = None) -> NoReturn:
        """Raise a TaskFormatError at `key`, or at the table's own line."""
        raise TaskFormatError(self._file.path, self._file.line(self._header, self._ordinal, key), message)

    def only(self, known: Collection[str]) -> None:
        """Refuse any key that is not known."""
        for key in self._data:
            if key not in known:
                self.refuse(f"unknown key {key!r}; known here: {', '.join(sorted(known))}", key)

    def has(self, key: str) -> bool:
        return key in self._data

    def value(self, key: str) -> object:
        """What stands there, whatever it is; None where the key is absent."""
        return self._data.get(key)

    def text(self, key: str) -> str:
        """A string that is not blank."""
        value = self._need(key)
        if not isinstance(value, str) or not value.strip():
            self.refuse(f"{key} must be a text that is not empty, not {value!r}", key)
        return value.strip()

    def number(self, key: str, *, least: int, default: int | None = None) -> int:
        if default is not None and key not in self._data:
            return default
        value = self._need(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.refuse(f"{key} must be a whole number of at least {least}, not {value!r}", key)
        return value

    def real(self, key: str, *, least: float) -> float:
        """A number, whole or not."""
        value = self._need(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            self.refuse(f"{key} must be a number of at least {least:g}, not {value!r}", key)
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._data.get(key, default)
        if not isinstance(value, bool):
            self.refuse(f"{key} must be true or false, not {value!r}", key)
        return value

    def word(self, key: str, words: type[WordT]) -> WordT:
        """One of a closed set of words."""
        value = self.text(key)
        if value not in words.words():
            self.refuse(f"{key} must be one of {', '.join(words.words())}, not {value!r}", key)
        return words.of(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty where the key is absent."""
        value = self._data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            self.refuse(f"{key} must be a list of texts, not {value!r}", key)
        return tuple(value)

    def table(self, key: str) -> Table:
        value = self._need(key)
        if not isinstance(value, dict):
            self.refuse(f"{key} must be a table: write [{self._name(key)}]", key)
        return Table(self._file, value, header=self._name(key), ordinal=0)

    def tables(self, key: str) -> tuple[Table, ...]:
        """An array of tables; empty where the key is absent."""
        value = self._data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.refuse(f"{key} must be a list of tables: write [[{self._name(key)}]]", key)
        return tuple(
            Table(self._file, item, header=self._name(key), ordinal=number)
            for number, item in enumerate(value)
        )

    def _name(self, key: str) -> str:
        return f"{self._header}.{key}" if self._header else key

    def _need(self, key: str) -> Any:
        if key not in self._data:
            where = f"[{self._header}]" if self._header else "the file"
            self.refuse(f"{where} lacks {key!r}")
        return self._data[key]
