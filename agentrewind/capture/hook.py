"""Runs a callback right after a module is imported, or at once if it already is."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType

Callback = Callable[[ModuleType], None]


def when_imported(name: str, callback: Callback) -> None:
    """Call `callback(module)` once `name` has been imported, before its importer can bind its names.

    The same callback for the same name, asked for again before the import, is called once.
    """
    if (module := sys.modules.get(name)) is not None:
        callback(module)
        return
    for finder in sys.meta_path:
        if isinstance(finder, _Finder) and finder.name == name:
            finder.add(callback)
            return
    sys.meta_path.insert(0, _Finder(name, callback))


def _identity(callback: Callback) -> object:
    """What makes a callback the same as another: partial objects are equal to themselves alone."""
    if isinstance(callback, functools.partial):
        return callback.func, callback.args, callback.keywords
    return callback


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, callback: Callback) -> None:
        self.name = name
        self._callbacks = [callback]
        self._searching = threading.local()

    def add(self, callback: Callback) -> None:
        """One finder a name: each would ask the next, and a process that records often would have many."""
        if all(_identity(callback) != _identity(known) for known in self._callbacks):
            self._callbacks.append(callback)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name or getattr(self._searching, "on", False):
            return None
        self._searching.on = True  # the search below asks this finder again
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching.on = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self)
        return spec

    def imported(self, module: ModuleType) -> None:
        """Only now the finder has done its work: many look for a module without importing it."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for callback in self._callbacks:
            callback(module)


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: importlib.abc.Loader, finder: _Finder) -> None:
        self._inner = inner
        self._finder = finder

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        self._finder.imported(module)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def replace_everywhere(original: object, replacement: object) -> int:
    """Rebind every module-level name that holds `original`; returns how many there were."""
    count = 0
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if not isinstance(names, dict):
            continue
        for name, value in list(names.items()):
            if value is original:
                names[name] = replacement
                count += 1
    return count
