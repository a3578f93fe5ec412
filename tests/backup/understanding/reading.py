"""What is left of a command when all that only reads is taken away, as text."""

from __future__ import annotations

from pathlib import Path

from agentrewind.backup.understanding.reading import reads, writing_redirects
from agentrewind.backup.understanding.shell import read_shell
from agentrewind.backup.values import Command, Context, Word

CONTEXT = Context(cwd=Path("/tmp"), env={"PATH": "/usr/bin:/bin", "USER": "u"}, home=Path("/home/u"))


def verdict(text: str) -> str:
    """`reads`, or the parts that do not."""
    reading = read_shell(text, CONTEXT)
    parts = dict.fromkeys(_shown(command) for command in reading.commands if not reads(command))
    if reading.unclear:
        parts["??"] = None
    return " ; ".join(parts).replace("\n", "\\n") or "reads"


def _shown(command: Command) -> str:
    words = [_word(word) for word in command.argv]
    words += [f"{each.operator}{each.target.text}" for each in writing_redirects(command)]
    text = ("?" if command.unclear else "") + " ".join(words)
    if command.host:
        text += f" @{command.host}"
    elif command.cwd != CONTEXT.cwd:
        text += f" @{command.cwd or '?'}"
    text += f" as {command.user}" if command.user else ""
    return text + (" …" if command.open_ended else "")


def _word(word: Word) -> str:
    return word.text + ("" if word.literal else "?") + ("*" if word.glob else "")
