"""BackUpper's own calls to a model, through litellm; none of them is recorded as the agent's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from agentrewind.backup.kind import CaptureError
from agentrewind.backup.masking import Masking
from agentrewind.capture.nesting import inside
from agentrewind.records import JsonObject

REQUEST_SECONDS = 120

Message = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model said: text, and the calls of tools as (id, name, arguments as text)."""

    text: str
    calls: tuple[tuple[str, str, str], ...]
    message: Message
    tokens: int


class Model(Protocol):
    """Something that answers."""

    def ask(self, messages: Sequence[Message], tools: Sequence[JsonObject] = ()) -> Answer:
        """One answer. Raises CaptureError where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class LitellmModel:
    """Any model of any provider, by litellm's name for it; its keys come from the usual variables."""

    name: str

    def ask(self, messages: Sequence[Message], tools: Sequence[JsonObject] = ()) -> Answer:
        """One answer. Raises CaptureError where litellm is missing or the provider fails."""
        try:
            import litellm
        except ImportError as error:
            raise CaptureError("backups by a model need litellm: pip install litellm") from error
        more: dict[str, Any] = {"tools": list(tools)} if tools else {}
        try:
            with inside():
                response = litellm.completion(
                    model=self.name,
                    messages=[_sent(message) for message in messages],
                    temperature=0,
                    timeout=REQUEST_SECONDS,
                    num_retries=2,
                    drop_params=True,
                    **more,
                )
            return _answer(response)
        except Exception as error:
            raise CaptureError(
                f"the backup model {self.name} gave no answer: {type(error).__name__}: {error}"
            ) from error


@dataclass(frozen=True, slots=True)
class MaskedModel:
    """Another model, which is shown no credential: neither of the call nor of what a command printed."""

    model: Model
    masking: Masking

    def ask(self, messages: Sequence[Message], tools: Sequence[JsonObject] = ()) -> Answer:
        """One answer. Raises CaptureError where there is none."""
        return self.model.ask([self._shown(message) for message in messages], tools)

    def _shown(self, message: Message) -> Message:
        match message["role"]:
            case "user":
                return {**message, "content": self.masking.value(message["content"])}
            case "tool":
                return {**message, "content": self.masking.text(message["content"])}
            case _:
                return message  # our own prompt, or what the model said itself


def opening(prompt: str, facts: JsonObject) -> list[Message]:
    """The beginning of a conversation about these facts, which are values until they are sent."""
    return [{"role": "system", "content": prompt}, {"role": "user", "content": facts}]


def _sent(message: Message) -> Message:
    content = message["content"]
    if isinstance(content, str):
        return message
    return {**message, "content": orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()}


def _answer(response: Any) -> Answer:
    message = response.choices[0].message
    calls = tuple(
        (str(call.id), str(call.function.name), str(call.function.arguments or ""))
        for call in message.tool_calls or ()
    )
    shown: Message = {"role": "assistant", "content": message.content or ""}
    if calls:
        shown["tool_calls"] = [
            {"id": uid, "type": "function", "function": {"name": name, "arguments": arguments}}
            for uid, name, arguments in calls
        ]
    usage = getattr(response, "usage", None)
    return Answer(
        text=message.content or "",
        calls=calls,
        message=shown,
        tokens=int(getattr(usage, "total_tokens", 0) or 0),
    )


def first_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a text, which may be fenced or have words around it; None where there is none."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        found = orjson.loads(text[start : end + 1])
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
