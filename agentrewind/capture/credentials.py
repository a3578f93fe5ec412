"""Finds the credentials among the parameters of a call, so that they can be blotted out of error texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentrewind.redact import HARMLESS

_TELLING = re.compile(r"key|token|secret|passw|auth|cookie|credential|header", re.IGNORECASE)


def credentials_in(parameters: Mapping[str, object]) -> frozenset[str]:
    """Every text under a name that sounds of authentication, headers included, at any depth.

    Of a text like `Bearer abc` the last word alone as well, since errors quote it so.
    """
    found: set[str] = set()
    for text in _texts(
        {name: value for name, value in parameters.items() if name not in HARMLESS}, telling=False
    ):
        found.update((text, text.split()[-1] if text.split() else text))
    return frozenset(found)


def _texts(value: object, *, telling: bool) -> Iterator[str]:
    match value:
        case str() if telling:
            yield value
        case Mapping():
            for name, each in value.items():
                yield from _texts(each, telling=telling or bool(_TELLING.search(str(name))))
        case list() | tuple():
            for each in value:
                yield from _texts(each, telling=telling)
        case _:
            return
