"""What is known of tools: which state their operations change, and how it is best saved. Data, not code."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path

from agentrewind.backup.values import ToolCall
from agentrewind.errors import UsageError

_SHELLS = ("bash", "shell", "execute", "terminal", "run_command", "execute_bash")


def experiences_for(call: ToolCall, own: Path | None = None) -> str:
    """The texts whose tools match the call, the user's own first; empty where none does."""
    text = f"{call.name} {call.arguments!r}"
    found = [
        str(each["text"]).strip()
        for each in (*_read(own), *_shipped())
        if any(fnmatchcase(call.name, str(name)) for name in each["tools"])
        or any(str(word) in text for word in each.get("words", ()))
    ]
    return "\n\n".join(found)


def _shipped() -> Iterable[dict[str, list[str]]]:
    yield from _parse(resources.files(__package__).joinpath("experiences.toml").read_text("utf-8"), "shipped")


def _read(path: Path | None) -> Iterable[dict[str, list[str]]]:
    if path is not None and path.exists():
        yield from _parse(path.read_text("utf-8"), str(path))


def _parse(text: str, name: str) -> list[dict[str, list[str]]]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: {error}") from error
    found = document.get("experience", [])
    for index, each in enumerate(found):
        if not isinstance(each.get("tools"), list) or not isinstance(each.get("text"), str):
            raise UsageError(f"{name}: experience {index + 1} needs `tools`, a list, and `text`")
    return list(found)
