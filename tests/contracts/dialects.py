"""How the agent of each harness speaks: what a contract test has it say, and what it reads in a request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from harness_adapters.scripted_request import text_of
from tests.adapters import code_steps
from tests.e2e import steps

Call = tuple[str, dict[str, str]]


class Dialect(Protocol):
    """One harness's way to write calls down. `several`: an answer can hold more calls than one."""

    @property
    def several(self) -> bool: ...

    def say(self, mark: str, calls: Sequence[Call]) -> ScriptedAnswer:
        """An answer that says `say-<mark>` and makes these calls, in this order."""
        ...

    def submit(self, mark: str) -> ScriptedAnswer:
        """An answer that submits."""
        ...

    def uid_of(self, request: ScriptedRequest, mark: str) -> str:
        """The id that the newest list of candidates gives to the answer `say-<mark>`."""
        ...

    def told(self, request: ScriptedRequest) -> str:
        """All that tools have answered."""
        ...

    def nonsense(self) -> list[ScriptedAnswer]:
        """Answers that call what is not there, or cannot be read; none of them runs anything."""
        ...


@dataclass(frozen=True, slots=True)
class ByCalls:
    """Tool calls of chat completions. `by_text`: a plain answer submits, and no command does."""

    by_text: bool
    several: bool = True

    def say(self, mark: str, calls: Sequence[Call]) -> ScriptedAnswer:
        return ScriptedAnswer(f"say-{mark}", calls)

    def submit(self, mark: str) -> ScriptedAnswer:
        return ScriptedAnswer(f"say-{mark}") if self.by_text else steps.submit(mark)

    def uid_of(self, request: ScriptedRequest, mark: str) -> str:
        return steps.uid_of(request, mark)

    def told(self, request: ScriptedRequest) -> str:
        return "\n".join(steps.results(request))

    def nonsense(self) -> list[ScriptedAnswer]:
        return [
            ScriptedAnswer("say-unknown", [("browser", {"url": "x"})]),
            ScriptedAnswer("say-cut", [("bash", '{"command": "echo never >> $SIDE')]),
        ]


@dataclass(frozen=True, slots=True)
class ByCode:
    """Code: tools are functions, and what is printed is read."""

    several: bool = True

    def say(self, mark: str, calls: Sequence[Call]) -> ScriptedAnswer:
        return code_steps.code(mark, "\n".join(map(self._line, calls)))

    def submit(self, mark: str) -> ScriptedAnswer:
        return code_steps.code(mark, "final_answer('done')")

    def uid_of(self, request: ScriptedRequest, mark: str) -> str:
        return code_steps.uid_of(request, mark)

    def told(self, request: ScriptedRequest) -> str:
        return "\n".join(text_of(message) for message in request.messages if message["role"] == "user")

    def nonsense(self) -> list[ScriptedAnswer]:
        return [
            code_steps.code("unknown", "browser(url='x')"),
            code_steps.code("cut", "bash('echo never >> $SIDE"),
            ScriptedAnswer("no code at all"),
        ]

    @staticmethod
    def _line(call: Call) -> str:
        name, arguments = call
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        return f"print({name}({given}))"


@dataclass(frozen=True, slots=True)
class ByBlock:
    """One command in a block of the text; the layer's tools stand where the command would."""

    several: bool = False

    def say(self, mark: str, calls: Sequence[Call]) -> ScriptedAnswer:
        ((name, arguments),) = calls
        action = arguments["command"] if name == "bash" else f"{name} {json.dumps(arguments)}"
        return ScriptedAnswer(f"say-{mark}\n\n```mswea_bash_command\n{action}\n```")

    def submit(self, mark: str) -> ScriptedAnswer:
        return self.say(mark, [steps.shell(steps.SUBMIT)])

    def uid_of(self, request: ScriptedRequest, mark: str) -> str:
        return code_steps.uid_of(request, mark)

    def told(self, request: ScriptedRequest) -> str:
        return "\n".join(code_steps.told(request))

    def nonsense(self) -> list[ScriptedAnswer]:
        block = "```mswea_bash_command\necho never >> $SIDE\n```"
        return [ScriptedAnswer("no block"), ScriptedAnswer(f"{block}\n{block}")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A harness as it is set up, and how its agent then speaks."""

    harness: str
    dialect: Dialect
    settings: dict[str, Any] = field(default_factory=dict)


def _class(name: str) -> dict[str, Any]:
    return {"config": [f"model.model_class={name}"]}


VARIANTS = {
    "mini-swe-agent": Variant(harness="mini-swe-agent", dialect=ByCalls(by_text=False)),
    "mini-swe-agent, Responses API": Variant(
        harness="mini-swe-agent", dialect=ByCalls(by_text=False), settings=_class("litellm_response")
    ),
    "mini-swe-agent, text": Variant(
        harness="mini-swe-agent", dialect=ByBlock(), settings=_class("litellm_textbased")
    ),
    "smolagents": Variant(harness="smolagents", dialect=ByCode()),
    "qwen-agent": Variant(harness="qwen-agent", dialect=ByCalls(by_text=True)),
    "langchain": Variant(harness="langchain", dialect=ByCalls(by_text=True)),
}
"""At least one for each entry of the table of harnesses."""
