"""How an agent framework writes a tool call down in a conversation, for the demo's script to speak and read.

The script knows calls only: a name, arguments, a result. A form says them in its harness's own way and finds
them again. Another harness adds its form to `FORMS`; the first one that fits a request is taken.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness_adapters.demo.steps import BASH, SUBMIT
from harness_adapters.instructions import FINISH
from harness_adapters.scripted_answer import ScriptedAnswer
from harness_adapters.scripted_request import JsonMap, ScriptedRequest, calls_of, text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A tool call that stands in the conversation. `result` is None where none was told."""

    name: str
    arguments: JsonMap
    result: str | None


SUBMITTED = Called(name=BASH, arguments={"command": SUBMIT.command}, result=None)
"""What an answer that submits is to the script: the call of its last step."""


class Form(Protocol):
    """One way to write tool calls down."""

    def fits(self, request: ScriptedRequest) -> bool:
        """The request is written in this form."""
        ...

    def offers(self, request: ScriptedRequest) -> frozenset[str]:
        """Names of the tools that the agent may call."""
        ...

    def calls(self, request: ScriptedRequest) -> Sequence[Called]:
        """Every call of the conversation, in order."""
        ...

    def say(self, text: str, tool: str, arguments: Mapping[str, str]) -> ScriptedAnswer:
        """An answer with one call. The call of the demo's last step is the harness's way to submit."""
        ...


class ToolCalls:
    """The tool calls of chat completions."""

    def fits(self, request: ScriptedRequest) -> bool:
        return True

    def offers(self, request: ScriptedRequest) -> frozenset[str]:
        return frozenset(request.tool_names)

    def calls(self, request: ScriptedRequest) -> Sequence[Called]:
        return [
            Called(name=call.name, arguments=call.parsed(), result=request.result(call.call_id))
            for call in request.calls
        ]

    def say(self, text: str, tool: str, arguments: Mapping[str, str]) -> ScriptedAnswer:
        return ScriptedAnswer(text, tool_calls=[(tool, arguments)])


class FinalText(ToolCalls):
    """The same, of an agent that submits by an answer without any call."""

    def fits(self, request: ScriptedRequest) -> bool:
        return bool(request.tools) and request.told(FINISH)

    def calls(self, request: ScriptedRequest) -> Sequence[Called]:
        found: list[Called] = []
        for message in request.messages:
            if message.get("role") == "assistant":
                found += [
                    Called(name=call.name, arguments=call.parsed(), result=request.result(call.call_id))
                    for call in calls_of(message)
                ] or [SUBMITTED]
        return found

    def say(self, text: str, tool: str, arguments: Mapping[str, str]) -> ScriptedAnswer:
        if _submits(tool, arguments):
            return ScriptedAnswer(text)
        return super().say(text, tool, arguments)


_TAG, _END = "<tool_call>", "</tool_call>"
_TAGGED = re.compile(rf"{_TAG}\n(.*?)\n{_END}", re.DOTALL)
_TOOLS = re.compile(r"<tools>\n(.*?)\n</tools>", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>\n(.*?)\n</tool_response>", re.DOTALL)


class TaggedText:
    """The calls that Qwen-Agent has written into the text of an answer; the tools stand in the prompt."""

    def fits(self, request: ScriptedRequest) -> bool:
        system = text_of(request.messages[0]) if request.messages else ""
        return not request.tools and f"{_TAG}{_END}" in system

    def offers(self, request: ScriptedRequest) -> frozenset[str]:
        offered = _TOOLS.search(text_of(request.messages[0]))
        lines = offered[1].splitlines() if offered else []
        return frozenset(json.loads(line)["function"]["name"] for line in lines)

    def calls(self, request: ScriptedRequest) -> Sequence[Called]:
        found: list[Called] = []
        for index, message in enumerate(request.messages):
            if message.get("role") != "assistant":
                continue
            call = _TAGGED.search(text_of(message))
            if call is None:
                found.append(SUBMITTED)
                continue
            said = json.loads(call[1])
            found.append(
                Called(
                    name=said["name"],
                    arguments=said["arguments"],
                    result=_responded(request.messages[index + 1 :]),
                )
            )
        return found

    def say(self, text: str, tool: str, arguments: Mapping[str, str]) -> ScriptedAnswer:
        if _submits(tool, arguments):
            return ScriptedAnswer(text)
        call = json.dumps({"name": tool, "arguments": dict(arguments)}, ensure_ascii=False)
        return ScriptedAnswer(f"{text}\n{_TAG}\n{call}\n{_END}")


def _submits(tool: str, arguments: Mapping[str, str]) -> bool:
    return (tool, arguments.get("command")) == (BASH, SUBMIT.command)


def _responded(after: Sequence[JsonMap]) -> str | None:
    """The first response before the next answer."""
    for message in after:
        if message.get("role") == "assistant":
            return None
        if message.get("role") == "user" and (response := _RESPONSE.search(text_of(message))):
            return response[1]
    return None


_OPEN, _CLOSE = "<code>", "</code>"
_CODE = re.compile(rf"{_OPEN}\n(.*?)\n{_CLOSE}", re.DOTALL)
_OFFER = re.compile(r"^\s*def (\w+)\(", re.MULTILINE)
_LOGS = "Execution logs:\n"
_LAST = "\nLast output from code snippet:"
_FINAL = "final_answer"
_SHELL_PRINTED = "print({call}['output'])"


class PythonCode:
    """The code that smolagents' CodeAgent writes: tools are functions, what is printed is their result."""

    def fits(self, request: ScriptedRequest) -> bool:
        system = text_of(request.messages[0]) if request.messages else ""
        return not request.tools and f"def {_FINAL}(" in system and _CLOSE in system

    def offers(self, request: ScriptedRequest) -> frozenset[str]:
        return frozenset(_OFFER.findall(text_of(request.messages[0])))

    def calls(self, request: ScriptedRequest) -> Sequence[Called]:
        found: list[Called] = []
        for index, message in enumerate(request.messages):
            code = _CODE.search(text_of(message)) if message.get("role") == "assistant" else None
            if code is not None:
                name, arguments = _call_in(code[1])
                found.append(
                    Called(name=name, arguments=arguments, result=_printed(request.messages[index + 1 :]))
                )
        return found

    def say(self, text: str, tool: str, arguments: Mapping[str, str]) -> ScriptedAnswer:
        if _submits(tool, arguments):
            code = f"{_FINAL}({text!r})"
        else:
            given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
            call = f"{tool}({given})"
            code = _SHELL_PRINTED.format(call=call) if tool == BASH else f"print({call})"
        return ScriptedAnswer(f"{text}\n{_OPEN}\n{code}\n{_CLOSE}")


def _call_in(code: str) -> tuple[str, JsonMap]:
    """The one tool call of a code action that `say` wrote."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id != "print":
            if node.func.id == _FINAL:
                return BASH, {"command": SUBMIT.command}
            return node.func.id, {
                keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg
            }
    return "", {}


def _printed(after: Sequence[JsonMap]) -> str | None:
    """What the code before these messages printed."""
    for message in after:
        if message.get("role") == "assistant":
            return None
        text = text_of(message)
        if message.get("role") == "user" and _LOGS in text:
            return text.partition(_LOGS)[2].partition(_LAST)[0].strip()
        if message.get("role") == "user" and text.startswith("Call id:"):
            return text
    return None


FORMS: tuple[Form, ...] = (PythonCode(), TaggedText(), FinalText(), ToolCalls())


def form_of(request: ScriptedRequest) -> Form:
    """The form in which a request is written."""
    return next(form for form in FORMS if form.fits(request))
