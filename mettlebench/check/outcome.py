"""How a criterion says that it is not met: anything else that it raises is the evaluator's own fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

_T = TypeVar("_T")


class Unmet(Exception):  # noqa: N818 -- an answer, not an error
    """The criterion is not met; the text says what was seen."""


def fail(detail: str) -> NoReturn:
    """The criterion is not met."""
    raise Unmet(detail)


def require(condition: object, detail: str) -> None:
    """The criterion is met only if this holds."""
    if not condition:
        fail(detail)


def need(document: object, key: str, kind: type[_T]) -> _T:
    """The value of a key in what an agent wrote; unmet where it is absent or of another type.

    >>> need({"rows": 3}, "rows", int)
    3
    """
    if not isinstance(document, Mapping):
        fail(f"expected an object that has {key!r}")
    value: Any = document.get(key)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        fail(f"{key!r} is missing or is no {kind.__name__}")
    return value
