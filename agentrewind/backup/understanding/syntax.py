"""Parses shell text into shfmt's syntax tree."""

from __future__ import annotations

import re
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


class TooMuchError(SyntaxUnclearError):
    """The text would be read for too long."""


_BARE = re.compile(r"[\w./:,@%+-]+(?: [\w./:,@%+=-]+)*", re.ASCII)
_RESERVED = frozenset(
    [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "select",
        "function",
        "time",
        "coproc",
        "in",
        "declare",
        "typeset",
        "local",
        "export",
        "readonly",
        "nameref",
        "let",
    ]
)


@lru_cache(maxsize=64)
def parse(text: str) -> tuple[Node, ...]:
    """The statements of `text`. Raises SyntaxUnclearError.

    A command of bare words is taken apart here, which saves starting shfmt for every other command.
    """
    if len(text) > _LONGEST:
        raise SyntaxUnclearError(f"it is longer than {_LONGEST} characters")
    words = text.split(" ")
    if not _BARE.fullmatch(text) or words[0] in _RESERVED:
        return parse_whole(text)
    args = [{"Parts": [{"Type": "Lit", "Value": word}]} for word in words]
    return ({"Cmd": {"Type": "CallExpr", "Args": args}},)


def parse_whole(text: str) -> tuple[Node, ...]:
    """The same for any text, by shfmt. Raises SyntaxUnclearError."""
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
