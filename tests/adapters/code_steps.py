"""What a scripted CodeAgent answers: Python code in the harness's own form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harness_adapters.scripted import NoAnswerError, Policy, ScriptedAnswer, ScriptedRequest, Step
from harness_adapters.scripted_request import text_of


def story(*steps: Step, **after: Sequence[Step]) -> Policy:
    """The n-th step for a conversation with n answers; behind a memory with a name of `after`, its steps."""

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        chosen, start = steps, 0
        for index, message in enumerate(request.messages[1:], start=1):
            text = text_of(message) if message["role"] == "system" else ""
            notes = sorted((note for note in after if note in text), key=text.rfind)
            if notes:
                chosen, start = tuple(after[notes[-1]]), index
        turn = sum(message["role"] == "assistant" for message in request.messages[start:])
        if turn >= len(chosen):
            raise NoAnswerError(f"the story has {len(chosen)} steps and was asked for number {turn + 1}")
        step = chosen[turn]
        return step if isinstance(step, ScriptedAnswer) else step(request)

    return policy


def code(say: str, text: str) -> ScriptedAnswer:
    """An answer that is code."""
    return ScriptedAnswer(f"say-{say}\n<code>\n{text}\n</code>")


def shell(mark: str, command: str = "true") -> str:
    """An expression that runs a command and leaves `mark` outside the workspace."""
    return f"bash({f'echo {mark} >> $SIDE; {command}'!r})"


def work(mark: str, command: str = "true") -> ScriptedAnswer:
    return code(mark, f"print({shell(mark, command)}['output'])")


def look(mark: str = "look") -> ScriptedAnswer:
    return code(mark, "found = backtrack_candidates(reason='why')\nprint(found)")


def back(to: str, note: str) -> Step:
    """Go back to the answer that said `say-<to>`, by the newest list of candidates."""

    def step(request: ScriptedRequest) -> ScriptedAnswer:
        uid = uid_of(request, to)
        return code(f"back-{note}", f"backtrack_commit(record_uid={uid!r}, memory_summary={note!r})")

    return step


def final(value: str = "'done'") -> ScriptedAnswer:
    return code("final", f"final_answer({value})")


def uid_of(request: ScriptedRequest, mark: str) -> str:
    for entry in candidates(request):
        if str(entry["summary"]).startswith(f"say-{mark}\n"):
            return str(entry["record_uid"])
    raise NoAnswerError(f"no candidate was marked {mark}")


def candidates(request: ScriptedRequest) -> list[dict[str, Any]]:
    """The newest list of candidates that was printed."""
    for text in reversed(told(request)):
        start = text.find('{"candidates"')
        if start >= 0:
            found, _ = json.JSONDecoder().raw_decode(text[start:])
            entries: list[dict[str, Any]] = found["candidates"]
            return entries
    raise NoAnswerError("the conversation holds no candidates")


def told(request: ScriptedRequest) -> list[str]:
    """What the harness told the model, message by message."""
    return [text_of(message) for message in request.messages if message["role"] == "user"]
