"""How a scripted model chooses an answer: from the conversation alone, so that a rewind needs no reset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from agentrewind.errors import HarnessError
from harness_adapters.scripted_answer import ScriptedAnswer
from harness_adapters.scripted_request import ScriptedRequest, text_of

Policy: TypeAlias = Callable[[ScriptedRequest], ScriptedAnswer]
Step: TypeAlias = ScriptedAnswer | Policy


class NoAnswerError(HarnessError):
    """The script has no answer for this request; the server says so with a 404, which no client retries."""


def from_steps(steps: Sequence[Step], *, when: Mapping[str, Sequence[Step]] | None = None) -> Policy:
    """A policy that gives the n-th step to a conversation with n answers in it.

    A key of `when` is a text to be told in a message that is no answer (a rewind memory, a tool result, a
    feedback). Once it is there, its steps take the place of the others, counted from the message that told
    it; of several told texts the last one counts. A step that is a callable gets the request.

    Raises:
        NoAnswerError: (by the policy) the conversation is longer than the steps.
    """
    told_steps = dict(when or {})

    def policy(request: ScriptedRequest) -> ScriptedAnswer:
        told = _last_told(request, told_steps)
        chosen = steps if told is None else told_steps[told[1]]
        turn = _answers_after(request, -1 if told is None else told[0])
        if turn >= len(chosen):
            part = "the script" if told is None else f"the part for {told[1]!r}"
            raise NoAnswerError(
                f"{part} has {len(chosen)} steps and was asked for number {turn + 1} "
                f"(request {request.number}); add a step or end the agent earlier"
            )
        step = chosen[turn]
        return step if isinstance(step, ScriptedAnswer) else step(request)

    return policy


def _last_told(request: ScriptedRequest, texts: Mapping[str, object]) -> tuple[int, str] | None:
    found = [
        (index, text_of(message).rfind(text), text)
        for index, message in enumerate(request.messages)
        if message.get("role") != "assistant"
        for text in texts
        if text in text_of(message)
    ]
    return (max(found)[0], max(found)[2]) if found else None


def _answers_after(request: ScriptedRequest, index: int) -> int:
    return sum(message.get("role") == "assistant" for message in request.messages[index + 1 :])
