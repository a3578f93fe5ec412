"""A CodeAgent's variables as bytes: what went in comes out, shared things stay shared, the rest says so."""

from __future__ import annotations

import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.errors import DamagedError
from agentrewind.jsonform import to_json
from agentrewind.records import JsonObject

pytest.importorskip("smolagents")

from smolagents.local_python_executor import InterpreterError, LocalPythonExecutor

from harness_adapters.smolagents_namespace import (
    dump_namespace,
    empty_namespace,
    load_namespace,
)
from harness_adapters.smolagents_pickle import NotCarried, NotCarriedError, without_addresses
from harness_adapters.smolagents_values import decode_value, describe, encode_value, is_inert

SIMPLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
INERT = st.recursive(
    SIMPLE | st.complex_numbers(allow_nan=False) | st.datetimes() | st.decimals(allow_nan=False),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.frozensets(SIMPLE)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=12,
)
NAMES = st.from_regex(r"[a-z]{2,6}", fullmatch=True)


class Say:
    """A tool that is bound to this process."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")

    def __call__(self, word: str) -> str:
        return f"say {word}"


def executor(imports: list[str] | None = None) -> Any:
    made = LocalPythonExecutor(imports or [], timeout_seconds=None)
    made.send_tools({"say": Say(), "final_answer": lambda answer: answer})
    return made


def carried(before: Any, after: Any | None = None) -> tuple[Any, dict[str, str]]:
    """The namespace in another interpreter, and what was lost."""
    dump = dump_namespace(before, before.static_tools)
    after = after or executor(before.additional_authorized_imports)
    load_namespace(dump.data, after, after.static_tools)
    return after, dump.lost


@given(variables=st.dictionaries(NAMES, INERT))
def test_data_comes_out_as_it_went_in(variables: dict[str, Any]) -> None:
    before = executor()
    before.state.update(variables)
    after, lost = carried(before)
    assert lost == {}
    found = {name: value for name, value in after.state.items() if name in variables}
    assert found == variables
    assert [type(found[name]) for name in variables] == [type(value) for value in variables.values()]


def test_what_code_defined_works_on(tmp_path: Path) -> None:
    before = executor(["json", "xml.dom.minidom"])
    before(
        "import json\nimport xml.dom.minidom as p\nfrom json import dumps as text\nfactor = 3\n"
        "def times(x):\n    return x * factor\n"
        "def outer(n):\n    def inner(m):\n        return n + m\n    return inner\n"
        "add = outer(10)\nsquare = lambda x: x ** 2\n"
        "class Point:\n    kind = 'point'\n    def __init__(self, x):\n        self.x = x\n"
        "    def far(self):\n        return self.x * factor\n"
        "point = Point(4)\nshared = [1]\nboth = [shared, shared]\nspeak = say\n"
        "def answer():\n    final_answer('from within')\n"
    )
    after, lost = carried(before)
    assert lost == {}
    out = after("factor = 5\nshared.append(2)\n[times(2), add(1), square(3), point.far(), both]").output
    assert out == [10, 11, 9, 20, [[1, 2], [1, 2]]]
    assert after(
        "[json.dumps([1]), text({}), p.parseString('<a/>').firstChild.tagName, Point(1).kind]"
    ).output == [
        "[1]",
        "{}",
        "a",
        "point",
    ]
    assert after("[say('a'), speak('b')]").output == ["say a", "say b"]
    ended = after("answer()")
    assert (ended.output, ended.is_final_answer) == ("from within", True)


def test_what_cannot_be_carried_is_named_and_says_so(tmp_path: Path) -> None:
    before = executor()
    with (tmp_path / "file").open("w") as file, subprocess.Popen(["true"]) as process:
        before.state.update(
            kept=[1],
            base=sqlite3.connect(":memory:"),
            many=(n for n in range(3)),
            file=file,
            process=process,
            inside={"deep": [file]},
        )
        after, lost = carried(before)
        before.state["base"].close()
    assert set(lost) == {"base", "many", "file", "process", "inside"}
    assert "generator" in lost["many"]
    assert after.state["kept"] == [1]
    for use in ("base.execute('x')", "next(many)", "len(inside)", "file.read()", "process + 1", "file()"):
        with pytest.raises(InterpreterError, match="could not be brought back"):
            after(use)
    assert "could not be brought back" in after("print(many)").logs
    again, still = carried(after)
    assert set(still) == set(lost)
    assert isinstance(again.state["base"], NotCarried)


def test_where_nothing_may_be_loaded_every_name_says_so() -> None:
    after = executor()
    empty_namespace(after, ["one", "two"], "it came from elsewhere")
    with pytest.raises(InterpreterError, match=r"two could not be brought back \(it came from elsewhere\)"):
        after("two + 1")


@given(value=INERT)
def test_a_tool_s_result_comes_back_as_it_was(value: Any) -> None:
    kept: list[bytes] = []

    def keep(data: bytes) -> JsonObject:
        kept.append(data)
        return {"place": len(kept) - 1}

    encoded = encode_value(value, keep)
    assert to_json(encoded) == encoded
    found = decode_value(encoded, lambda reference: kept[int(str(reference["place"]))], inert_only=True)
    assert found == value
    assert type(found) is type(value)
    assert is_inert(value)


def test_an_object_that_could_act_is_not_handed_out_twice() -> None:
    encoded = encode_value(Path("there"), lambda data: {"place": 0})
    found = decode_value(encoded, lambda reference: b"", inert_only=True)
    assert str(found) == "there"
    with pytest.raises(NotCarriedError, match="could act a second time"):
        found.unlink()


def test_a_pickle_that_is_refused_becomes_a_placeholder() -> None:
    def refuse(reference: JsonObject) -> bytes:
        raise DamagedError("it was written elsewhere")

    found = decode_value(encode_value((1, 2), lambda data: {"place": 0}), refuse, inert_only=False)
    assert str(found) == "(1, 2)"
    with pytest.raises(NotCarriedError, match="written elsewhere"):
        found[0]


def test_arguments_are_described_without_addresses() -> None:
    described = describe({"given": object()})
    assert isinstance(described, dict)
    assert "0x…" in str(described["text"])
    assert without_addresses("<a at 0x7f00aa00bb00>") == "<a at 0x…>"
    assert describe({"a": [1, None]}) == {"a": [1, None]}
