"""What scripted agents do, in short words: shell commands that leave marks, looks back, rewinds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harness_adapters.scripted import NoAnswerError, Policy, ScriptedAnswer, ScriptedRequest, Step
from harness_adapters.scripted_request import text_of

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
CANDIDATES = "backtrack_candidates"
COMMIT = "backtrack_commit"


def story(*steps: Step, **after: Sequence[Step]) -> Policy:
    """A policy that gives the n-th step to a conversation with n answers.

    Behind a rewind memory, whose newest note is the last of the names in `after` that stands in it, that
    name's steps are counted from the memory on.
    """

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        chosen, start = steps, 0
        for index, message in enumerate(request.messages):
            notes = _notes(message, after)
            if notes:
                chosen, start = tuple(after[notes[-1]]), index
        turn = sum(_is_turn(message) for message in request.messages[start:])
        if turn >= len(chosen):
            raise NoAnswerError(f"the story has {len(chosen)} steps and was asked for number {turn + 1}")
        step = chosen[turn]
        return step if isinstance(step, ScriptedAnswer) else step(request)

    return policy


def _is_turn(message: Any) -> bool:
    """An answer, or what mini-SWE-agent puts in the place of one that it could not read."""
    return message["role"] == "assistant" or text_of(message).startswith("Tool call error")


def _notes(message: Any, after: dict[str, Sequence[Step]]) -> list[str]:
    text = text_of(message) if message["role"] in ("system", "user") else ""
    return sorted((note for note in after if note in text), key=text.rfind)


def marked(mark: str, command: str = "true") -> str:
    """A command that first leaves `mark` outside the workspace, and says it at the end."""
    return f"echo {mark} >> $SIDE; {command}; echo did-{mark}"


def work(mark: str, command: str = "true") -> ScriptedAnswer:
    """An answer with one command; its text and its output carry the mark."""
    return ScriptedAnswer(f"say-{mark}", [shell(marked(mark, command))])


def shell(command: str) -> tuple[str, dict[str, str]]:
    return "bash", {"command": command}


def submit(mark: str = "submit") -> ScriptedAnswer:
    return ScriptedAnswer(f"say-{mark}", [shell(SUBMIT)])


def look(mark: str = "look") -> ScriptedAnswer:
    """Ask for the candidates."""
    return ScriptedAnswer(f"say-{mark}", [(CANDIDATES, {"reason": f"why-{mark}"})])


def back(to: str, note: str) -> Step:
    """Go back to the answer that was marked `to`, as the candidates named it last."""

    def step(request: ScriptedRequest) -> ScriptedAnswer:
        return ScriptedAnswer(f"say-back-{note}", [commit(uid_of(request, to), note)])

    return step


def commit(uid: str, note: str) -> tuple[str, dict[str, str]]:
    return COMMIT, {"record_uid": uid, "memory_summary": note, "reason": "told to"}


def uid_of(request: ScriptedRequest, mark: str) -> str:
    """The id that the newest list of candidates gives to the answer `say-<mark>`."""
    for entry in newest_candidates(request):
        if f"say-{mark}" in str(entry["summary"]).split():
            return str(entry["record_uid"])
    raise NoAnswerError(f"no candidate was marked {mark}")


def newest_candidates(request: ScriptedRequest) -> list[dict[str, Any]]:
    """The newest answer of `backtrack_candidates` in a conversation."""
    asked = [call.call_id for call in request.calls if call.name == CANDIDATES]
    for call_id in reversed(asked):
        found = request.result(call_id)
        if found is not None and found.startswith("{"):
            entries: list[dict[str, Any]] = json.loads(found)["candidates"]
            return entries
    raise NoAnswerError("the conversation holds no candidates")


def results(request: ScriptedRequest) -> list[str]:
    """The texts of all tool results of a conversation, in order."""
    return [text_of(message) for message in request.messages if message["role"] == "tool"]
