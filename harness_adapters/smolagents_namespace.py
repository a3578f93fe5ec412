"""Carries the variables of a CodeAgent's interpreter, and the functions it defined, as bytes.

Both dictionaries go into one dump, so that what two variables share they share afterwards. What cannot be
carried becomes a placeholder that says so when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness_adapters.smolagents_pickle import NotCarried, dumps, loads, reason_of

OWN = frozenset({"__name__", "_print_outputs", "_operations_count"})
"""What the interpreter itself keeps among the variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """The bytes, and what is not in them: variable by reason."""

    data: bytes
    names: tuple[str, ...]
    lost: dict[str, str]


def dump_namespace(executor: Any, named: Mapping[str, object]) -> Dump:
    """Everything that the agent's code defined so far. `named` are its tools, by name; never fails."""
    state = {name: value for name, value in executor.state.items() if name not in OWN}
    functions = dict(executor.custom_tools)
    lost = {name: value.reason for name, value in state.items() if isinstance(value, NotCarried)}

    def dumped() -> bytes:
        return dumps({"state": state, "functions": functions}, executor, named)

    try:
        data = dumped()
    except Exception:  # noqa: BLE001 - pickling runs code of any class; which one it was is found out below
        for table in (state, functions):
            for name, value in table.items():
                reason = _hindrance(value, executor, named)
                if reason is not None:
                    lost[name] = reason
                    table[name] = NotCarried(name, reason)
        data = dumped()
    return Dump(data=data, names=(*state, *functions), lost=lost)


def load_namespace(data: bytes, executor: Any, named: Mapping[str, object]) -> None:
    """Put what a dump holds in the place of the executor's. Raises what unpickling raises."""
    state = {name: value for name, value in executor.state.items() if name in OWN}
    functions: dict[str, Any] = {}
    found = loads(data, executor, named, state=state, functions=functions)
    state.update(found["state"])
    functions.update(found["functions"])
    executor.state = state
    executor.custom_tools = functions


def empty_namespace(executor: Any, names: Iterable[str], reason: str) -> None:
    """Where a dump must not or cannot be loaded: a placeholder for every name."""
    executor.state = {name: value for name, value in executor.state.items() if name in OWN}
    executor.state.update({name: NotCarried(name, reason) for name in names})
    executor.custom_tools = {}


def _hindrance(value: object, executor: Any, named: Mapping[str, object]) -> str | None:
    try:
        dumps(value, executor, named)
    except Exception as error:  # noqa: BLE001 - pickling runs code of any class
        return reason_of(value, error)
    return None
