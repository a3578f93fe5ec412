"""Takes a conversation, as mini-SWE-agent saves it, apart into answers and commands. Pure.

Sources: what version 2 of mini-SWE-agent saves (format `mini-swe-agent-1.1`: chat completions, Responses,
commands in text) and what version 1 saved (`mini-swe-agent-1`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentrewind.capture.responses_form import lift
from agentrewind.errors import DamagedError
from agentrewind.fields import Fields
from agentrewind.records import Json, JsonObject

OLD, CURRENT = "mini-swe-agent-1", "mini-swe-agent-1.1"
FORMATS = (OLD, CURRENT)
"""The values of `trajectory_format` that are understood."""

SUBMITTED = "Submitted"
_SUBMITS = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_EXIT = "exit"
_NO_RESULT = frozenset({"interrupt_type", "actions"})
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", _EXIT})
_OLD_ACTION = re.compile(r"```bash\s*\n(.*?)\n```", re.DOTALL)
_OLD_CODE = re.compile(r"<returncode>(-?\d{1,10})</returncode>")
_LAST_SECOND = 253_402_300_800.0  # the year 10000, which no moment can name


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the agent. `output` is None where the file does not hold what came of it.

    Attributes:
        at: when the file says that it had ended (seconds since 1970), None where it does not say.
    """

    text: str
    call_id: str | None
    output: JsonObject | None
    at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An answer of the model and the commands in it; `answer` is None where a person gave the commands.

    Attributes:
        sent: how many messages of the conversation the request held.
        model: as the provider named it, None where the file does not tell.
        at: when the answer had come (seconds since 1970), None where the file does not say.
    """

    sent: int
    answer: JsonObject | None
    model: str | None
    at: float | None
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """All of it: the messages as they were sent, without what the program notes beside them, and the turns.

    Attributes:
        end: the message with which the program ended it, None where there is none.
    """

    messages: tuple[JsonObject, ...]
    turns: tuple[Turn, ...]
    end: JsonObject | None


def conversation_of(document: Fields, form: str) -> Conversation:
    """Take the document's messages apart. Raises DamagedError that names the message that is none."""
    document.value("messages")
    given = tuple(
        _message(Fields(each, f"messages[{index}]"), each)
        for index, each in enumerate(document.items("messages"))
    )
    status = document.fields("info").get("exit_status") if form == OLD else None
    reader = _Reader(given, old=form == OLD, submitted=status == SUBMITTED)
    turns = tuple(reader.turns())
    return Conversation(messages=tuple(reader.sent), turns=turns, end=reader.end)


def exit_of(message: JsonObject) -> tuple[str, bool]:
    """The exit status of an ending message, and whether an error ended the program."""
    extra = _extra(message)
    return str(extra.get("exit_status") or ""), bool(extra.get("traceback") or extra.get("exception_str"))


def seconds_of(value: Json) -> float | None:
    """A time as seconds since 1970, None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value < _LAST_SECOND else None


def _message(fields: Fields, value: Json) -> JsonObject:
    """The message, checked as far as it is looked into below."""
    assert isinstance(value, dict)
    fields.mapping("extra")
    if not _is_item(value) and fields.text("role") not in _ROLES:
        raise DamagedError(f"the field {fields.place('role')} is {value['role']!r}, no role that is known")
    if not isinstance(value.get("content"), str | list | None):
        raise DamagedError(f"the field {fields.place('content')} is neither text nor a list of parts")
    return value


def _is_item(message: JsonObject) -> bool:
    """Whether it is written as the Responses API writes: a whole response, or an item of one."""
    return message.get("object") == "response" or isinstance(message.get("type"), str)


class _Reader:
    """Walks over the messages once."""

    def __init__(self, given: Sequence[JsonObject], *, old: bool, submitted: bool) -> None:
        self._given = given
        self._old = old
        self._submitted = submitted
        self.sent: list[JsonObject] = []
        self.end: JsonObject | None = None

    def turns(self) -> Iterator[Turn]:
        for index, message in enumerate(self._given):
            if message.get("role") == _EXIT:
                self.end = message
                continue
            yield from self._turn(index, message)
            self.sent += _as_sent(message)

    def _turn(self, index: int, message: JsonObject) -> Iterator[Turn]:
        extra = _extra(message)
        if _is_answer(message):
            answer, response = _answer_of(message), extra.get("response", message)
        elif extra.get("interrupt_type") == "FormatError":
            # an answer that could not be read is no message; it is kept beside the complaint
            answer, response = _unread_answer(extra), extra.get("response")
        elif extra.get("actions"):
            answer, response = None, None
        else:
            return
        yield Turn(
            sent=len(self.sent),
            answer=answer,
            model=_model_of(response),
            at=_at(message),
            commands=tuple(self._commands(index, message)),
        )

    def _commands(self, index: int, message: JsonObject) -> Iterator[Command]:
        actions = self._actions(index, message)
        results = self._results(index, actions)
        for place, (text, call_id) in enumerate(actions):
            result = results[place]
            output = None if result is None else self._output(result)
            if output is None and self._is_submission(place, actions, index):
                output = self._submission()
            yield Command(
                text=text, call_id=call_id, output=output, at=None if result is None else _at(result)
            )

    def _actions(self, index: int, message: JsonObject) -> list[tuple[str, str | None]]:
        if self._old:
            content = message.get("content")
            found = _OLD_ACTION.findall(content) if isinstance(content, str) and _is_answer(message) else []
            return [(found[0].strip(), None)] if len(found) == 1 else []
        place = Fields(_extra(message), f"messages[{index}].extra")
        actions = [Fields(each, place.place("actions")) for each in place.items("actions")]
        return [(each.text("command"), each.text_or_none("tool_call_id")) for each in actions]

    def _results(self, index: int, actions: Sequence[tuple[str, str | None]]) -> list[JsonObject | None]:
        """The message with the result of each action, among those before the next answer."""
        following: list[JsonObject] = []
        for message in self._given[index + 1 :]:
            extra = _extra(message)
            if message.get("role") == _EXIT or _is_answer(message) or extra.keys() & _NO_RESULT:
                break
            following.append(message)
        if self._old:
            told = following[:1]
            if self._submitted and index + 2 == len(self._given):
                told = []  # what stands there is no result but what was submitted
            return [told[place] if place < len(told) else None for place in range(len(actions))]
        waiting = [each for each in following if "returncode" in _extra(each)]
        return [_taken(waiting, call_id) for _, call_id in actions]

    def _output(self, result: JsonObject) -> JsonObject:
        extra, text = _extra(result), _text(result.get("content"))
        if not self._old:
            output: JsonObject = {"output": _text(extra.get("raw_output", text))}
            return output | {name: extra[name] for name in ("returncode", "exception_info") if name in extra}
        code = _OLD_CODE.match(text)
        return {"output": text, **({"returncode": int(code[1])} if code else {})}

    def _is_submission(self, place: int, actions: Sequence[tuple[str, str | None]], index: int) -> bool:
        last = index + 2 == len(self._given)
        submitted = self._submitted or exit_of(self._given[-1])[0] == SUBMITTED
        named = [number for number, (text, _) in enumerate(actions) if _SUBMITS in text]
        return last and submitted and place == (named[0] if named else len(actions) - 1)

    def _submission(self) -> JsonObject:
        """What is known of a command that ended the agent: it went well, and what it submitted."""
        return {"returncode": 0, "submitted": _text(self._given[-1].get("content"))}


def _taken(waiting: list[JsonObject], call_id: str | None) -> JsonObject | None:
    """The result of a call, by its id, or the next one where calls have none; it is no other call's then."""
    for place, message in enumerate(waiting):
        if message.get("tool_call_id", message.get("call_id")) == call_id:
            return waiting.pop(place)
    return None


def _is_answer(message: JsonObject) -> bool:
    return message.get("object") == "response" or message.get("role") == "assistant"


def _answer_of(message: JsonObject) -> JsonObject:
    own: JsonObject = {name: each for name, each in _bare(message).items() if each is not None}
    if message.get("object") == "response":
        return lift(own)
    response = _extra(message).get("response")
    usage = response.get("usage") if isinstance(response, dict) else None
    return {"content": None, **own, "usage": usage}


def _unread_answer(extra: JsonObject) -> JsonObject:
    response = extra.get("response")
    if isinstance(response, dict):
        if response.get("object") == "response":
            return lift(response)
        choices = response.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if isinstance(message, dict):
            return _answer_of({**message, "extra": {"response": response}})
    told = extra.get("model_response", response)
    return {"content": told if isinstance(told, str) else None}


def _model_of(response: Json) -> str | None:
    model = response.get("model") if isinstance(response, dict) else None
    return model if isinstance(model, str) else None


def _as_sent(message: JsonObject) -> list[JsonObject]:
    """The message as the program sends it."""
    if message.get("object") == "response":
        items = message.get("output")
        return [_bare(each) for each in items if isinstance(each, dict)] if isinstance(items, list) else []
    return [_bare(message)]


def _bare(message: JsonObject) -> JsonObject:
    return {name: each for name, each in message.items() if name not in ("extra", "timestamp")}


def _extra(message: JsonObject) -> JsonObject:
    extra = message.get("extra")
    return extra if isinstance(extra, dict) else {}


def _at(message: JsonObject) -> float | None:
    return seconds_of(_extra(message).get("timestamp", message.get("timestamp")))


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(str(part.get("text", "")) for part in value if isinstance(part, dict))
    return "" if value is None else json.dumps(value)
