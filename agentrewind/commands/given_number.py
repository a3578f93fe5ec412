"""The type of options that take a number, whole or not."""

from __future__ import annotations

import math
from typing import Any

import click


class GivenNumber(click.FloatRange):
    """A number in a range; `nan` and `inf`, with which a limit would never be met, are none."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is no number that a limit can be", param, ctx)
        return found
