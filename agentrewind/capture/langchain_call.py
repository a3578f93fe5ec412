"""One call of a LangChain chat model on its way through the gate: messages and answers as JSON, and back."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agentrewind.capture.call import Call
from agentrewind.capture.gate import Gate
from agentrewind.capture.streams import failure_itself, part_read
from agentrewind.errors import DamagedError
from agentrewind.jsonform import to_json
from agentrewind.records import ErrorRecord, Json, JsonObject

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
_SAID = ("content", "name", "tool_calls", "invalid_tool_calls", "tool_call_id", "additional_kwargs")


@dataclass(frozen=True, slots=True, kw_only=True)
class LangchainCall:
    """A call of one of the methods that a subclass of `BaseChatModel` writes."""

    gate: Gate
    model: Any
    messages: Any
    stop: Any
    kwargs: dict[str, Any]

    def whole(self) -> Call[Any]:
        """The call where a whole answer is wanted."""
        return self._call(encode=_encoded, decode=_result, refail=_raise)

    def streamed(self) -> Call[Any]:
        """The call where chunks are wanted."""
        return self._call(
            encode=lambda chunks: {},
            decode=lambda output: _given(_chunks(output), lambda: None),
            refail=self._refailed,
        )

    def astreamed(self) -> Call[Any]:
        """The same for a reader that awaits them."""
        return self._call(
            encode=lambda chunks: {},
            decode=lambda output: _agiven(_given(_chunks(output), lambda: None)),
            refail=lambda record: _agiven(self._refailed(record)),
        )

    def own(self, sent: list[Any]) -> list[Any]:
        """What goes to the model: LangChain's messages, the rewind memory as one of them."""
        messages = sys.modules["langchain_core.messages"]
        kinds = {"system": messages.SystemMessage, "user": messages.HumanMessage}
        return [
            kinds[each["role"]](content=each["content"]) if isinstance(each, dict) else each for each in sent
        ]

    def lift(self, answer: JsonObject) -> JsonObject:
        """A joined stream as the record of a whole answer."""
        return _encoded(_joined(answer))

    def _call(
        self,
        *,
        encode: Callable[[Any], JsonObject],
        decode: Callable[[JsonObject], Any],
        refail: Callable[[ErrorRecord], Any],
    ) -> Call[Any]:
        with self.gate.stopping():
            name = getattr(self.model, "model_name", None) or getattr(self.model, "model", None)
            kind = type(self.model).__name__
            return Call(
                client=f"langchain.{kind}",
                model=name if isinstance(name, str) else kind,
                messages=[_compared(message) for message in self.messages],
                sent=list(self.messages),
                tools=self.kwargs.get("tools"),
                parameters={
                    **{key: value for key, value in self.kwargs.items() if key != "tools"},
                    **({"stop": self.stop} if self.stop is not None else {}),
                },
                encode=encode,
                decode=decode,
                refail=refail,
            )

    def _refailed(self, record: ErrorRecord) -> Iterator[Any]:
        read = part_read(record, self.gate)
        if read is None:
            raise failure_itself(record)
        return _given([_chunk(event) for event in read.events], read.end)


class StreamJoiner:
    """Keeps the chunks of one answer; the model's own end is the only one there is."""

    def __init__(self) -> None:
        self._events: list[Json] = []

    def add(self, event: JsonObject) -> None:
        """Take one chunk in."""
        self._events.append(event)

    @property
    def whole(self) -> bool:
        """Something was said."""
        return bool(self._events)

    @property
    def complete(self) -> bool:
        """More may always follow."""
        return False

    def answer(self) -> JsonObject:
        """All chunks; LangChain itself adds them up."""
        return {"chunks": self._events}


def event_of(chunk: Any) -> JsonObject:
    """A chunk of a stream as JSON."""
    return {"message": _dumped(chunk.message), "generation_info": to_json(chunk.generation_info)}


def _compared(message: Any) -> JsonObject:
    """A message as far as a model sees it: ids and what an earlier answer was measured at are left out."""
    found: JsonObject = {"role": _ROLES.get(message.type, message.type)}
    for name in _SAID:
        value = getattr(message, name, None)
        if value:
            found[name] = to_json(value, where=name)
    return found


def _dumped(message: Any) -> JsonObject:
    return {"type": message.type, "data": to_json(message.model_dump(), where="message")}


def _rebuilt(message: Json) -> Any:
    if not isinstance(message, dict):
        raise DamagedError("a recorded answer of a LangChain model has no message")
    (found,) = sys.modules["langchain_core.messages"].messages_from_dict([copy.deepcopy(message)])
    return found


def _encoded(result: Any) -> JsonObject:
    generations: list[Json] = [
        {"message": _dumped(each.message), "generation_info": to_json(each.generation_info)}
        for each in result.generations
    ]
    message = result.generations[0].message if result.generations else None
    calls: list[Json] = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(to_json(call["args"]))},
        }
        for call in getattr(message, "tool_calls", None) or ()
    ]
    return {
        "content": str(message.text) if message is not None else None,
        "tool_calls": calls,
        "usage": to_json(getattr(message, "usage_metadata", None)),
        "response": {"generations": generations, "llm_output": to_json(result.llm_output)},
    }


def _generations(output: JsonObject) -> list[JsonObject]:
    response = output.get("response")
    found = response.get("generations") if isinstance(response, dict) else None
    if not isinstance(found, list):
        raise DamagedError("a recorded answer of a LangChain model has no generations")
    return [each for each in found if isinstance(each, dict)]


def _result(output: JsonObject) -> Any:
    outputs = sys.modules["langchain_core.outputs"]
    response = output.get("response")
    return outputs.ChatResult(
        generations=[
            outputs.ChatGeneration(
                message=_rebuilt(each.get("message")), generation_info=each.get("generation_info")
            )
            for each in _generations(output)
        ],
        llm_output=response.get("llm_output") if isinstance(response, dict) else None,
    )


def _chunks(output: JsonObject) -> list[Any]:
    """The answer as a stream of one chunk."""
    outputs, messages = sys.modules["langchain_core.outputs"], sys.modules["langchain_core.messages"]
    found = []
    for each in _generations(output)[:1]:
        message = _rebuilt(each.get("message"))
        fields = message.model_dump(exclude={"type", "tool_calls", "invalid_tool_calls"})
        calls = [
            {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": index}
            for index, call in enumerate(message.tool_calls)
        ]
        broken = [
            {"name": call["name"], "args": call["args"], "id": call["id"], "index": index}
            for index, call in enumerate(message.invalid_tool_calls, start=len(calls))
        ]
        last = {"chunk_position": "last"} if "chunk_position" in messages.AIMessageChunk.model_fields else {}
        chunk = messages.AIMessageChunk(**{**fields, **last, "tool_call_chunks": [*calls, *broken]})
        found.append(outputs.ChatGenerationChunk(message=chunk, generation_info=each.get("generation_info")))
    return found


def _chunk(event: JsonObject) -> Any:
    return sys.modules["langchain_core.outputs"].ChatGenerationChunk(
        message=_rebuilt(event.get("message")), generation_info=event.get("generation_info")
    )


def _joined(answer: JsonObject) -> Any:
    outputs, messages = sys.modules["langchain_core.outputs"], sys.modules["langchain_core.messages"]
    events = answer.get("chunks")
    total: Any = None
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict):
            total = _chunk(event) if total is None else total + _chunk(event)
    message = messages.message_chunk_to_message(total.message)
    generation = outputs.ChatGeneration(message=message, generation_info=total.generation_info)
    return outputs.ChatResult(generations=[generation])


def _given(chunks: list[Any], end: Callable[[], None]) -> Iterator[Any]:
    yield from chunks
    end()


async def _agiven(chunks: Iterator[Any]) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk


def _raise(record: ErrorRecord) -> Any:
    raise failure_itself(record)
