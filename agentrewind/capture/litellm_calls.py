"""One call of litellm on its way through the gate, by a route for each API that litellm speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from agentrewind.capture import chat_form, responses_form
from agentrewind.capture.call import Call, Pending
from agentrewind.capture.gate import Gate
from agentrewind.capture.litellm_streams import served_chunks, served_events, tapped
from agentrewind.capture.streams import SWITCHES, Joiner, Watch, failure_itself, part_read
from agentrewind.errors import UsageError
from agentrewind.jsonform import to_json
from agentrewind.records import ErrorRecord, Json, JsonObject
from agentrewind.rewind.memory_forms import Place, place_items, place_messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What litellm's functions for one API have in common.

    Attributes:
        client: the name of the sync function; the async one's has an `a` in front.
        flag: the argument by which the sync function stands for the async one.
        conversation: arguments that are no parameters of the record.
        compared, with_sent: the conversation out of the arguments, and the arguments with another one.
        encode, decode: an answer as JSON, and back, given litellm.
        event_of: an item of a stream as JSON.
        events: a recorded answer as the JSON of a stream's items, given the arguments.
    """

    client: str
    flag: str
    conversation: frozenset[str]
    compared: Callable[[dict[str, Any]], list[Any]]
    with_sent: Callable[[dict[str, Any], list[Any]], dict[str, Any]]
    place: Place
    refusal: Callable[[dict[str, Any]], str | None]
    encode: Callable[[Any], JsonObject]
    decode: Callable[[ModuleType, JsonObject], Any]
    joiner: Callable[[dict[str, Any]], Joiner]
    lift: Callable[[JsonObject], JsonObject]
    event_of: Callable[[Any], JsonObject]
    events: Callable[[JsonObject, dict[str, Any]], list[JsonObject]]


@dataclass(slots=True, kw_only=True)
class LitellmCall:
    """A call as it was made; `bound` holds its arguments by name."""

    gate: Gate
    route: Route
    package: ModuleType
    bound: dict[str, Any]
    asynchronous: bool = False

    @property
    def stream(self) -> bool:
        """Whether the harness wants a stream."""
        return bool(self.bound.get("stream"))

    def for_gate(self) -> Call[Any]:
        """The call as the gate decides on it. One that cannot be recorded stops the process."""
        route, bound = self.route, self.bound
        with self.gate.stopping():
            reason = route.refusal(bound)
            if reason is not None:
                raise UsageError(f"{self._client} cannot be recorded: {reason}")
            left_out = route.conversation | SWITCHES | {route.flag}
            return Call(
                client=self._client,
                model=str(bound.get("model", "")),
                messages=route.compared(bound),
                tools=bound.get("tools"),
                parameters={name: value for name, value in bound.items() if name not in left_out},
                place=route.place,
                encode=route.encode,
                decode=self._decoded,
                refail=self._refailed,
            )

    def with_sent(self, sent: list[Any]) -> dict[str, Any]:
        """The arguments with this conversation; as they came where it is theirs."""
        if sent == self.route.compared(self.bound):
            return self.bound
        return self.route.with_sent(self.bound, sent)

    def tapped(self, stream: Any, pending: Pending) -> Any:
        """The stream that litellm opened, read along. An answer that came whole is recorded at once."""
        with self.gate.stopping():
            if not hasattr(stream, "__next__") and not hasattr(stream, "__anext__"):
                pending.finished(self.route.encode(stream))
                return stream
            watch = Watch(
                gate=self.gate,
                pending=pending,
                joiner=self.route.joiner(self.bound),
                lift=self.route.lift,
            )
            return tapped(stream, watch, self.route.event_of)

    @property
    def _client(self) -> str:
        name = self.route.client
        return f"litellm.a{name}" if self.asynchronous else f"litellm.{name}"

    def _decoded(self, output: JsonObject) -> Any:
        if not self.stream:
            return self.route.decode(self.package, output)
        return self._served(self.route.events(output, self.bound), lambda: None)

    def _refailed(self, record: ErrorRecord) -> Any:
        read = part_read(record, self.gate)
        if read is not None and self.stream:
            return self._served([*read.events], read.end)
        raise failure_itself(record)

    def _served(self, events: list[JsonObject], end: Callable[[], None]) -> Any:
        if self.route is CHAT:
            return served_chunks(self.package, events, end, arguments=self.bound)
        return served_events(self.package, events, end, arguments=self.bound, asynchronous=self.asynchronous)


# --- chat completions ---


def encode_answer(response: Any) -> JsonObject:
    """A chat completion as JSON, with content, tool calls and usage of its only choice lifted to the top."""
    return chat_form.lift(_dumped(response))


def decode_answer(output: JsonObject) -> JsonObject:
    """The inverse of `encode_answer`."""
    return chat_form.lower(output)


def _completion(package: ModuleType, output: JsonObject) -> Any:
    dump = decode_answer(output)
    response = package.ModelResponse(**dump)
    _make_like(response, dump, to_json(response.model_dump(mode="json")))
    return response


def _make_like(model: Any, dump: Json, shown: Json) -> None:
    """Take away what litellm's constructors add, and put back what they drop: some nulls, for one.

    `shown` is the rebuilt answer's dump as a whole: a part dumped by itself shows more than within it.
    """
    match dump, shown:
        case list(), list() if isinstance(model, list):
            for each, dumped, now in zip(model, dump, shown, strict=False):
                _make_like(each, dumped, now)
        case dict(), dict() if hasattr(model, "model_dump"):
            for name in shown.keys() - dump.keys():
                with suppress(AttributeError):
                    delattr(model, name)
            for name, value in dump.items():
                if name in shown:
                    _make_like(getattr(model, name, None), value, shown[name])
                else:
                    setattr(model, name, value)
        case _:
            return


def _chunk(chunk: Any) -> JsonObject:
    dump = _dumped(chunk, exclude_none=True)
    usage = (getattr(chunk, "_hidden_params", None) or {}).get("usage")
    if getattr(usage, "total_tokens", 0) and "usage" not in dump:
        # not asked for, so litellm keeps it from the harness; the record of a whole answer has it
        dump["usage"] = _dumped(usage)
    return dump


def _usage_asked(bound: Mapping[str, Any]) -> bool:
    options = bound.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


CHAT = Route(
    client="completion",
    flag="acompletion",
    conversation=frozenset({"model", "messages", "tools"}),
    compared=lambda bound: list(bound.get("messages") or ()),
    with_sent=lambda bound, sent: {**bound, "messages": sent},
    place=place_messages,
    refusal=lambda bound: None,
    encode=encode_answer,
    decode=_completion,
    joiner=lambda bound: chat_form.ChatJoiner(choices=bound.get("n") or 1, usage=_usage_asked(bound)),
    lift=chat_form.lift,
    event_of=_chunk,
    events=lambda output, bound: chat_form.chunks(chat_form.lower(output), usage=_usage_asked(bound)),
)


# --- responses ---


def _plain(bound: dict[str, Any]) -> dict[str, Json]:
    """The arguments as the pure functions take them: items stay what they are."""
    return {name: bound.get(name) for name in ("input", "instructions")}


RESPONSES = Route(
    client="responses",
    flag="aresponses",
    conversation=frozenset({"model", "input", "instructions", "tools"}),
    compared=lambda bound: responses_form.items(_plain(bound)),
    with_sent=lambda bound, sent: {**bound, **responses_form.with_items(_plain(bound), sent)},
    place=place_items,
    refusal=responses_form.refusal,
    encode=lambda response: responses_form.lift(_dumped(response, warnings=False)),
    decode=lambda package, output: package.ResponsesAPIResponse(**responses_form.lower(output)),
    joiner=lambda bound: responses_form.ResponsesJoiner(),
    lift=responses_form.lift,
    event_of=lambda event: _dumped(event, warnings=False),
    events=lambda output, bound: responses_form.events(responses_form.lower(output)),
)


def _dumped(value: Any, **options: bool) -> JsonObject:
    dump = to_json(value.model_dump(mode="json", **options))
    if not isinstance(dump, dict):
        raise UsageError(f"litellm answered with {type(value).__name__}, which is no object")
    return dump
