"""One command whose paths are asked for: its words, read, and the parameters of its rule."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.kind import Parameters, UnclearError
from agentrewind.backup.kinds.words import Given, paths_of
from agentrewind.backup.values import Command, Context, Word


@dataclass(frozen=True, slots=True)
class Written:
    """One command with its words read and the parameters of its rule."""

    command: Command
    context: Context
    given: Given
    parameters: Parameters

    def paths(self, word: Word) -> list[Path]:
        return paths_of(word, self.command, self.context)

    def all_paths(self, words: Collection[Word]) -> list[Path]:
        return [path for word in words for path in self.paths(word)]

    def one(self, word: Word) -> Path:
        """The only path that a word names. Raises UnclearError."""
        found = self.paths(word)
        if len(found) != 1:
            raise UnclearError(f"{word.text!r} stands for {len(found)} paths")
        return found[0]

    def listed(self, name: str) -> tuple[str, ...]:
        """A parameter that is a list of text."""
        return listed(self.parameters, name)

    def closed(self) -> None:
        """Raises UnclearError where more operands come from elsewhere."""
        if self.command.open_ended and "find" not in self.command.wrappers:
            raise UnclearError("its operands come from another command's output")


def listed(parameters: Parameters, name: str) -> tuple[str, ...]:
    """A parameter that is a list of text, empty where there is none."""
    found = parameters.get(name, [])
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()
