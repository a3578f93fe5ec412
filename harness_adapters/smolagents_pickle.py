"""Pickles what a CodeAgent's interpreter holds; what belongs to this process is named instead of carried."""

from __future__ import annotations

import importlib
import io
import math
import re
import subprocess
import threading
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any

import dill  # type: ignore[import-untyped]
from smolagents.local_python_executor import FinalAnswerException, get_safe_module, safer_func

_LIVE = (io.IOBase, subprocess.Popen, threading.Thread)
"""Things that another process cannot take over, even where a pickle could be had."""

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


class NotCarriedError(Exception):
    """The agent's code used a value that did not come through a rewind."""


class NotCarried:
    """Stands for a value that could not be carried; whatever is done with it says so."""

    def __init__(self, name: str, reason: str, text: str | None = None) -> None:
        self.__dict__.update(_name=name, _reason=reason, _text=text)

    @property
    def reason(self) -> str:
        return str(self.__dict__["_reason"])

    def __reduce__(self) -> tuple[Any, ...]:
        return NotCarried, (self.__dict__["_name"], self.__dict__["_reason"], self.__dict__["_text"])

    def __repr__(self) -> str:
        text = self.__dict__["_text"]
        return text if text is not None else f"<{self._sentence()}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotCarriedError(self._sentence())

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotCarriedError(self._sentence())

    def _sentence(self) -> str:
        values = self.__dict__
        return f"{values['_name']} could not be brought back ({values['_reason']}); make it anew"

    __call__ = __iter__ = __next__ = __len__ = __getitem__ = __setitem__ = __contains__ = _refuse
    __enter__ = __exit__ = __bool__ = __add__ = __radd__ = __sub__ = __mul__ = __truediv__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = __setattr__ = _refuse


def dumps(value: object, executor: Any, named: Mapping[str, object]) -> bytes:
    """The value as bytes; `named` are objects that are found by name again. Raises what pickling raises."""
    buffer = io.BytesIO()
    _Pickler(buffer, executor=executor, named=named).dump(value)
    return buffer.getvalue()


def loads(
    data: bytes,
    executor: Any,
    named: Mapping[str, object],
    *,
    state: dict[str, Any],
    functions: dict[str, Any],
) -> Any:
    """The value of such bytes, which must be this machine's own; `state` and `functions` become its tables.

    Raises what unpickling raises.
    """
    loader = _Unpickler(io.BytesIO(data), executor=executor, named=named, state=state, functions=functions)
    return loader.load()


def without_addresses(text: str) -> str:
    """The text without the places in memory that a repr shows, which differ from process to process."""
    return _ADDRESS.sub("0x…", text)


def kind_of(value: object) -> str:
    """The value's type, as a person would name it."""
    cls = type(value)
    plain = cls.__module__ in ("builtins", "__main__")
    return cls.__qualname__ if plain else f"{cls.__module__}.{cls.__qualname__}"


def reason_of(value: object, error: Exception) -> str:
    """Why the value cannot be pickled, in a few words."""
    return f"{kind_of(value)}: {without_addresses(str(error)) or type(error).__name__}"[:300]


class _Pickler(dill.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, *, executor: Any, named: Mapping[str, object]) -> None:
        super().__init__(file, protocol=5, recurse=False)
        self._executor = executor
        self._names: dict[int | None, str] = {id(value): name for name, value in named.items()}

    def persistent_id(self, obj: Any) -> tuple[str, str] | None:
        if isinstance(obj, _LIVE):
            raise TypeError("it belongs to the process that opened it")
        if isinstance(obj, ModuleType):
            importlib.import_module(obj.__name__)
            return "module", obj.__name__
        if id(obj) in self._names:
            return "tool", self._names[id(obj)]
        wrapped = id(getattr(obj, "__wrapped__", None)) if isinstance(obj, FunctionType) else None
        if wrapped in self._names:
            # `other = tool` in agent code gives a guarded function, which drags the whole tool along
            return "guarded", self._names[wrapped]
        if self._executor is not None and isinstance(obj, dict):
            return _table(obj, self._executor)
        return None


def _table(obj: dict[Any, Any], executor: Any) -> tuple[str, str] | None:
    """The interpreter's own tables, which every function of the agent holds."""
    if obj is executor.state:
        return "table", "state"
    if obj is executor.custom_tools:
        return "table", "functions"
    if obj.get("ceil") is math.ceil and "isinstance" in obj:
        return "table", "tools"
    return None


class _Unpickler(dill.Unpickler):  # type: ignore[misc]
    def __init__(
        self,
        file: io.BytesIO,
        *,
        executor: Any,
        named: Mapping[str, object],
        state: dict[str, Any],
        functions: dict[str, Any],
    ) -> None:
        super().__init__(file)
        self._executor = executor
        self._named = named
        self._tables = {"state": state, "functions": functions}

    def persistent_load(self, pid: tuple[str, str]) -> Any:
        kind, name = pid
        if kind == "module":
            imports = self._executor.authorized_imports if self._executor is not None else []
            return get_safe_module(importlib.import_module(name), imports)
        if kind == "guarded" and name in self._named:
            return safer_func(
                self._named[name], _tools_within(self._executor), self._executor.authorized_imports
            )
        if kind in ("tool", "guarded"):
            return self._named.get(name) or NotCarried(name, "the agent has no such tool now")
        if name == "tools":
            self._tables.setdefault("tools", _tools_within(self._executor))
        return self._tables[name]


def _tools_within(executor: Any) -> dict[str, Any]:
    """The tools as functions of the agent see them: `final_answer` ends the task there."""
    tools = dict(executor.static_tools or {})
    answer = tools.get("final_answer")
    if answer is not None:

        def final_answer(*args: Any, **kwargs: Any) -> Any:
            raise FinalAnswerException(answer(*args, **kwargs))

        tools["final_answer"] = final_answer
    return tools
