"""Parses shell text into shfmt's syntax tree: by tree-sitter where the text is plain, else by shfmt."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson

from agentrewind.errors import AgentRewindError

Node = dict[str, Any]
"""A node as `shfmt --to-json` writes it."""

_LONGEST = 200_000
_DEADLINE = 10.0


class SyntaxUnclearError(AgentRewindError):
    """The text cannot be parsed as shell; the message says why."""


@lru_cache(maxsize=64)
def parse(text: str) -> tuple[Node, ...]:
    """The statements of `text`. Raises SyntaxUnclearError."""
    from agentrewind.backup.understanding import syntax_quick

    if len(text) > _LONGEST:
        raise SyntaxUnclearError(f"it is longer than {_LONGEST} characters")
    quick = syntax_quick.parse(text)
    return parse_whole(text) if quick is None else quick


def parse_whole(text: str) -> tuple[Node, ...]:
    """The same by shfmt alone. Raises SyntaxUnclearError."""
    try:
        done = subprocess.run(
            [_shfmt(), "--to-json"],
            input=text.encode(),
            capture_output=True,
            timeout=_DEADLINE,
            check=False,
        )
    except UnicodeEncodeError as error:
        raise SyntaxUnclearError("it is not text") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SyntaxUnclearError(f"shfmt failed: {error}") from error
    if done.returncode != 0:
        raise SyntaxUnclearError(done.stderr.decode("utf-8", "replace").strip()[:200] or "it does not parse")
    try:
        return tuple(orjson.loads(done.stdout).get("Stmts", []))
    except orjson.JSONDecodeError as error:
        raise SyntaxUnclearError("shfmt's answer cannot be read") from error


@lru_cache(maxsize=1)
def _shfmt() -> str:
    found = shutil.which("shfmt", path=sysconfig.get_path("scripts")) or shutil.which("shfmt")
    if found is None:
        raise SyntaxUnclearError("shfmt is not installed (pip install 'agentrewind[backup]')")
    return found


def substitutions(node: Any) -> Iterator[Node]:
    """Command and process substitutions under `node`, outermost first, those inside them left out."""
    if isinstance(node, list):
        for each in node:
            yield from substitutions(each)
    elif isinstance(node, dict):
        if node.get("Type") in ("CmdSubst", "ProcSubst"):
            yield node
        else:
            for each in node.values():
                yield from substitutions(each)
