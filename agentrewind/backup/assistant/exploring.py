"""Tries a tool once in a scratch directory and notes what its operations change and how that is saved."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from agentrewind.backup.assistant.model import MaskedModel, Model, opening
from agentrewind.backup.assistant.working import finish_tool, finishes
from agentrewind.backup.enclosure import SCRATCH, Enclosure
from agentrewind.backup.kind import CaptureError
from agentrewind.backup.masking import Masking
from agentrewind.backup.values import Context
from agentrewind.durable import make_directory, write_file

OWN = ("backup", "experiences.toml")
"""Where a user's experiences are, below the store."""

STEPS = 20
SECONDS = 60.0

_PROMPT = """\
Find out what the operations of a tool change, and how that state is saved and put back. Try the tool in\
 $BACKUP_DIR, the only place you can write to; everything else of the machine is read-only. Read its \
help first, make a small state, change it, and see what saving and restoring it takes: what depends on \
what, what a plain copy misses, which command loses something on the way.

Then call `finish` once: `text` is what somebody needs to know who has to save the tool's state before a\
 call that they cannot stop to study, in at most 120 words, facts and commands only; `words` are parts \
of a call's text by which such calls are known. You have %d steps."""

_FINISH = finish_tool(
    "Give what was found out. Ends your work.",
    {"text": {"type": "string"}, "words": {"type": "array", "items": {"type": "string"}}},
    ["text", "words"],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """What was found out, and the parts of calls for which it holds."""

    text: str
    words: tuple[str, ...]


def explore(tool: str, model: Model, *, directory: Path, context: Context) -> Experience:
    """Let the model try the tool. Raises CaptureError where it does not come to an end."""
    (directory / SCRATCH).mkdir(parents=True, exist_ok=True)
    enclosure = Enclosure(directory, context)
    messages = opening(_PROMPT % STEPS, {"tool": tool})
    shown = MaskedModel(model, Masking())
    for told in finishes(shown, messages, enclosure, finish=_FINISH, steps=STEPS, seconds=lambda: SECONDS):
        text, words = told.get("text"), told.get("words")
        if isinstance(text, str) and text.strip():
            known = [str(each) for each in words if str(each).strip()] if isinstance(words, list) else []
            return Experience(text=text.strip(), words=tuple(known) or (tool,))
    raise CaptureError(f"the model did not come to an end within {STEPS} steps")


def keep(home: Path, experience: Experience) -> Path:
    """Add it to the user's experiences; returns the file."""
    path = home.joinpath(*OWN)
    make_directory(path.parent)
    before = path.read_text("utf-8").rstrip() + "\n\n" if path.exists() else ""
    words = json.dumps(list(experience.words))
    block = f"[[experience]]\ntools = []\nwords = {words}\ntext = {json.dumps(experience.text)}\n"
    write_file(path, (before + block).encode())
    return path
