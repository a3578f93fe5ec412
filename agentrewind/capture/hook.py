"""Runs a callback right after a module is imported, or at once if it already is."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType

Callback = Callable[[ModuleType], None]


def when_imported(name: str, callback: Callback) -> None:
    """Call `callback(module)` once `name` has been imported, before its importer can bind its names."""
    if (module := sys.modules.get(name)) is not None:
        callback(module)
        return
    sys.meta_path.insert(0, _Finder(name, callback))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, callback: Callback) -> None:
        self._name = name
        self._callback = callback
        self._searching = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name or getattr(self._searching, "on", False):
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
        self._callback(module)


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
