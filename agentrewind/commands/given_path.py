"""The type of options and arguments that take a path."""

from __future__ import annotations

import os
from typing import Any

import click


class GivenPath(click.Path):
    """A path as `click.Path` reads it; the empty text, which a variable without a value leaves, is none."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        if os.fspath(value) == "":
            self.fail("the path is empty; write . for the current folder", param, ctx)
        return super().convert(value, param, ctx)
