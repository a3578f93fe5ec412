"""What a scripted model answers, rendered as one chat-completion body or as a stream of chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CREATED = 1_700_000_000
"""The `created` of every answer: the same script gives the same bytes on any day."""

PIECE = 24
"""Characters per streamed delta."""


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """An answer, or, with a `status` other than 200, an HTTP error with `body`.

    With status 200 a `body` is sent as it is, in place of all that would be made of the other fields.
    Arguments of a tool call are a mapping, or a string that is sent as it is (so that broken JSON can be
    sent). Without `usage` the tokens are estimated from the number of characters. `delay` seconds pass
    before the first byte leaves, `gap` seconds between the events of a stream.

    With `cut_after` a stream ends after so many events: the connection breaks, or, with `cut_cleanly`, the
    body just ends.
    """

    content: str | None = ""
    tool_calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    usage: Mapping[str, int] | None = None
    status: int = 200
    body: Mapping[str, Any] | str | None = None
    delay: float = 0.0
    gap: float = 0.0
    cut_after: int | None = None
    cut_cleanly: bool = False

    @property
    def finish_reason(self) -> str:
        return "tool_calls" if self.tool_calls else "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """An answer to a certain request: with the ids of the completion and of its tool calls."""

    completion_id: str
    model: str
    answer: ScriptedAnswer
    call_ids: tuple[str, ...]
    prompt_characters: int

    def whole(self) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        message: dict[str, Any] = {"role": "assistant", "content": self.answer.content}
        if self.answer.tool_calls:
            message["tool_calls"] = self._tool_calls()
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": self.answer.finish_reason,
        }
        return {**self._envelope("chat.completion"), "choices": [choice], "usage": self.usage()}

    def chunks(self, *, include_usage: bool) -> Iterator[dict[str, Any]]:
        """The same answer in pieces; a last chunk without choices carries the usage if it was asked for."""
        envelope = self._envelope("chat.completion.chunk")
        for delta in self._deltas():
            yield {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        reason = self.answer.finish_reason
        yield {**envelope, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
        if include_usage:
            yield {**envelope, "choices": [], "usage": self.usage()}

    def _envelope(self, kind: str) -> dict[str, Any]:
        return {"id": self.completion_id, "object": kind, "created": CREATED, "model": self.model}

    def _tool_calls(self) -> list[dict[str, Any]]:
        return [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": text_of_arguments(arguments)},
            }
            for call_id, (name, arguments) in zip(self.call_ids, self.answer.tool_calls, strict=True)
        ]

    def _deltas(self) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": None if self.answer.content is None else ""}
        for piece in pieces(self.answer.content or ""):
            yield {"content": piece}
        for index, call in enumerate(self._tool_calls()):
            function = call["function"]
            opening = {**call, "index": index, "function": {**function, "arguments": ""}}
            yield {"tool_calls": [opening]}
            for piece in pieces(function["arguments"]):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def usage(self) -> dict[str, int]:
        """The tokens, as told by the answer or estimated."""
        if self.answer.usage is not None:
            return dict(self.answer.usage)
        said = len(self.answer.content or "") + sum(
            len(text_of_arguments(a)) for _, a in self.answer.tool_calls
        )
        prompt, completion = max(1, self.prompt_characters // 4), max(1, said // 4)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def error_body(
    message: str, *, kind: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """An error in the form in which OpenAI-compatible servers report one."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def event_stream(chunks: Iterator[dict[str, Any]]) -> tuple[bytes, ...]:
    """Server-sent events, ended by the word `[DONE]`."""
    lines = [json.dumps(chunk) for chunk in chunks]
    return tuple(f"data: {line}\n\n".encode() for line in [*lines, "[DONE]"])


def named_event_stream(events: Iterator[dict[str, Any]]) -> tuple[bytes, ...]:
    """Server-sent events, each with its type as its name."""
    return tuple(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def text_of_arguments(arguments: Mapping[str, Any] | str) -> str:
    """The arguments of a tool call as they are sent."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def pieces(text: str) -> Iterator[str]:
    """The text as streamed deltas."""
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]
