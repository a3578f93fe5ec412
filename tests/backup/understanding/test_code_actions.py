"""Code actions: what computes and calls tools passes; what could reach anything else does not."""

from __future__ import annotations

import pytest

from agentrewind.backup.understanding.code_actions import only_calls_tools
from agentrewind.backup.values import ToolCall


def call(code: object) -> ToolCall:
    return ToolCall(name="python_interpreter", arguments={"code": code})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "code",
    [
        "print(bash(command='rm -rf /'))",
        "import math, re\nfrom datetime import date\nx = [math.sqrt(n) for n in range(9)]",
        "for line in bash(command='ls').split():\n    if re.match('a', line):\n        final_answer(line)",
        "def f(a, *, b=1):\n    return {**a, 'b': b}",
    ],
)
def test_what_computes_and_calls_tools(code: str) -> None:
    assert only_calls_tools(call(code))


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/hosts', 'w').write('')",
        "import os\nos.remove('/x')",
        "from shutil import rmtree",
        "import collections.abc as c, subprocess",
        "from . import x",
        "__import__('os')",
        "().__class__.__base__.__subclasses__()",
        "getattr(x, 'y')()",
        "import random\nrandom._os.remove('/x')",
        "import json\njson.codecs.builtins.open('/x', 'w')",
        "import statistics\nstatistics.sys.modules['os'].remove('/x')",
        "eval('1')",
        "import json\njson.codecs.open('/x', 'w')",
        "this is no python",
        None,
        7,
    ],
)
def test_what_could_reach_elsewhere(code: object) -> None:
    assert not only_calls_tools(call(code))


def test_another_tool_is_not_judged_here() -> None:
    assert not only_calls_tools(ToolCall(name="run_python", arguments={"code": "1"}))
