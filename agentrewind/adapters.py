"""The table of harnesses, and what an adapter has to be."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agentrewind.errors import UnknownHarnessError
from agentrewind.layer import Layer
from agentrewind.records import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What the agent is to do, and where."""

    task: str
    model: str
    workspace: Path
    settings: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOutcome:
    """How the agent ended: `accepted`, `rejected` (too many identical failures) or `stopped`, and why."""

    state: str
    detail: str


class Adapter(Protocol):
    """Joins one harness to the layer: builds the agent, routes its calls, runs it to its end."""

    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        """Run the agent. Signals pass through; the harness's own failures are raised as they are."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an adapter is, the module that its harness needs, and the extra that installs it.

    `warm` names what an agent process imports anyway: a warm parent does it once for all attempts.
    """

    path: str
    needs: str
    extra: str
    warm: tuple[str, ...] = ()


ADAPTERS = {
    "mini-swe-agent": Entry(
        "harness_adapters.mini_swe_agent:MiniSweAgent",
        "minisweagent",
        "mini",
        warm=(
            "harness_adapters.mini_swe_agent",
            "minisweagent.agents.default",
            "minisweagent.environments.local",
            "minisweagent.models.litellm_model",
            "minisweagent.models.litellm_response_model",
            "minisweagent.models.litellm_textbased_model",
            "harness_adapters.litellm_first_call",
        ),
    ),
    "smolagents": Entry("harness_adapters.smolagents:SmolagentsAdapter", "smolagents", "smolagents"),
    "qwen-agent": Entry(
        "harness_adapters.qwen_agent:QwenAgentAdapter",
        "qwen_agent",
        "qwen",
        warm=("harness_adapters.qwen_agent",),
    ),
    "langchain": Entry(
        "harness_adapters.langchain:LangChainAdapter",
        "langchain",
        "langchain",
        warm=("harness_adapters.langchain", "langchain_openai"),
    ),
}


def check_harness(name: str) -> None:
    """Raise UnknownHarnessError if `name` cannot be loaded here, saying what to install."""
    entry = ADAPTERS.get(name)
    if entry is not None:
        if not _exists(entry.needs):
            raise UnknownHarnessError(
                name,
                sorted(ADAPTERS),
                f"its package is not installed: pip install 'agentrewind[{entry.extra}]'",
            )
        return
    module, separator, attribute = name.partition(":")
    if not separator or not attribute:
        raise UnknownHarnessError(name, sorted(ADAPTERS))
    if not _exists(module):
        raise UnknownHarnessError(name, sorted(ADAPTERS), f"there is no module {module}")


def warm_modules(name: str) -> tuple[str, ...]:
    """What a warm parent imports for this harness."""
    return ADAPTERS[name].warm if name in ADAPTERS else (name.partition(":")[0],)


def load_adapter(name: str) -> Adapter:
    """The adapter of a short name or of a path `package.module:Class`. Raises UnknownHarnessError."""
    path = ADAPTERS[name].path if name in ADAPTERS else name
    try:
        found = resolve(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownHarnessError(name, sorted(ADAPTERS), str(error)) from error
    if not isinstance(found, type):
        raise UnknownHarnessError(name, sorted(ADAPTERS), f"{path} is no class")
    adapter: Adapter = found()
    return adapter


def resolve(path: str) -> object:
    """The object that `package.module:name` names. Raises ImportError or AttributeError."""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
