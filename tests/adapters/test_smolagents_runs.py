"""Whole runs of smolagents under the supervisor: fresh processes, real shells, a scripted model over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrewind.records import LlmNode, RewindDone, ToolNode
from harness_adapters.scripted import ScriptedAnswer, ScriptedRequest
from tests.adapters.code_steps import back, candidates, code, final, look, shell, story, told, work
from tests.e2e.laws import check_laws
from tests.e2e.stage import Stage
from tests.e2e.steps import look as look_by_call
from tests.e2e.steps import marked
from tests.e2e.steps import shell as shell_call
from tests.e2e.steps import work as work_by_call

pytestmark = pytest.mark.slow


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(base=tmp_path, policy=story()) as made:
        yield made


def last_told(stage: Stage) -> str:
    return told(stage.server.requests[-1])[-1]


def said(stage: Stage, mark: str) -> str:
    """The newest answer that says `say-<mark>`."""
    return [
        node.record_uid
        for node in stage.timeline.path()
        if isinstance(node, LlmNode) and str((node.output or {}).get("content")).startswith(f"say-{mark}\n")
    ][-1]


def test_code_goes_back_with_its_variables_and_without_its_effects(stage: Stage) -> None:
    stage.policy = story(
        code("one", "import random\nchance = random.random()\ndef twice(n):\n    return 2 * n + len(word)\n"
             "word = 'abc'\nprint(chance)"),
        work("two", "echo two > two.txt"),
        code("three", f"r = {shell('three', 'echo bad > two.txt; exit 3')}\nprint(r)\n"
             "for name in ['left', 'right']:\n    bash(f'echo {name} >> $SIDE')"),
        look(),
        back("three", "NOTE_A"),
        NOTE_A=[
            code("four", f"print('F', twice(10), chance)\nprint({shell('better', 'cat two.txt')}['output'])"),
            work("five"),
            lambda request: code(
                "again",
                f"backtrack_commit(record_uid={said(stage, 'five')!r}, memory_summary='NOTE_B')",
            ),
        ],
        NOTE_B=[final("f'{twice(1)} {chance}'")],
    )  # fmt: skip
    ended = stage.start(harness="smolagents")
    assert (ended.code, ended.result["state"], ended.result["rewinds"]) == (0, "accepted", 2)
    assert stage.marks == ["two", "three", "left", "right", "better", "five"]
    assert stage.read("two.txt") == "two\n"
    check_laws(stage)
    chance = told(stage.server.requests[1])[-1].split("\n")[2]
    assert f"F 23 {chance}\ntwo" in "".join(told(stage.server.requests[-1]))
    answer = [node for node in stage.timeline.path() if isinstance(node, ToolNode)][-1]
    assert (answer.tool_name, answer.output) == ("final_answer", f"5 {chance}")


def test_code_with_further_imports_never_runs_again(stage: Stage) -> None:
    side = repr(str(stage.side))
    stage.policy = story(
        code("one", f"import pathlib\nside = pathlib.Path({side})\n"
             "def mark(text):\n    side.write_text(side.read_text() + text + '\\n')\n"
             "mark('one')\nstream = (n for n in [1, 2])\nkept = [1]\nboth = kept\nprint(next(stream))"),
        code("two", "mark('two')\nboth.append(2)\nbash('echo nested >> $SIDE')"),
        code("bad", "kept.clear()\nmark('bad')"),
        look(),
        back("bad", "NOTE_A"),
        NOTE_A=[
            code("three", "both.append(3)\nmark('three')\nprint(kept, side.name)"),
            code("four", "print(next(stream))"),
            final("str(kept)"),
        ],
    )  # fmt: skip
    ended = stage.start(harness="smolagents", settings={"imports": ["pathlib"]})
    assert (ended.code, ended.result["state"], ended.result["rewinds"]) == (0, "accepted", 1)
    assert stage.marks == ["one", "two", "nested", "bad", "three"]
    texts = told(stage.server.requests[-1])
    assert "[1, 2, 3] side.txt" in texts[-2]
    assert "stream could not be brought back (generator: " in texts[-1]
    memory = [each for each in stage.server.requests[-1].messages[1:] if each["role"] == "system"]
    assert "could not be brought back: stream (generator: " in str(memory)
    names = [node.tool_name for node in stage.timeline.path() if isinstance(node, ToolNode)]
    assert names.count("python_interpreter") == 5
    assert names.count("bash") == 1


def test_a_rejected_answer_goes_back_into_the_same_loop(stage: Stage) -> None:
    stage.policy = story(
        code("one", "tries = 1"),
        final("'first'"),
        code("two", f"tries += 1\nprint({shell('two', 'touch ready')})"),
        final("str(tries)"),
    )
    ended = stage.start(
        harness="smolagents", check="test -e ready && exit 0; echo 'criterion: ready'; echo no file; exit 1"
    )
    assert (ended.code, ended.result["state"], ended.result["submissions"]) == (0, "accepted", 2)
    assert "no file" in told(stage.server.requests[2])[-1]
    check_laws(stage)


def test_a_call_that_was_killed_is_told_and_not_repeated(stage: Stage) -> None:
    stage.policy = story(
        code("one", "seen = []\nseen.append('a')\nprint(seen)"),
        code(
            "two", f"{shell('first')}\nseen.append('b')\n{shell('killed', 'kill -9 $PPID')}\n{shell('after')}"
        ),
        code("three", f"seen.append('c')\nprint(seen, {shell('third')})"),
        final("str(seen)"),
    )
    first = stage.start(harness="smolagents")
    assert (first.result["state"], stage.marks) == ("error", ["first", "killed"])
    again = stage.resume()
    assert (again.code, again.result["state"]) == (0, "accepted")
    assert stage.marks == ["first", "killed", "third"]
    assert "interrupted: the process died while this call ran" in told(stage.server.requests[2])[-1]
    assert "['a', 'b', 'c']" in last_told(stage)
    assert len(stage.server.requests) == 4


def test_code_that_was_killed_is_told_and_never_runs_again(stage: Stage) -> None:
    stage.policy = story(
        code("one", "import pathlib\ndef f(x):\n    return x * n\nn = 2\nprint(f(3))"),
        code("two", f"n = 5\npathlib.Path('half').write_text('x')\n{shell('in', 'kill -9 $PPID')}\nn = 7"),
        code("three", "n += 1\nprint(f(3), pathlib.Path('half').read_text())"),
        final("str(f(10))"),
    )
    first = stage.start(harness="smolagents", settings={"imports": ["pathlib"]})
    assert first.result["state"] == "error"
    again = stage.resume()
    assert (again.code, again.result["state"]) == (0, "accepted")
    assert stage.marks == ["in"]
    texts = told(stage.server.requests[-1])
    assert "interrupted: the process died while this call ran" in texts[-2]
    assert "Variables are as they were before this code." in texts[-2]
    assert "9 x" in texts[-1]


def test_tool_calls_in_parallel_end_at_the_commit(stage: Stage) -> None:
    def several(request: ScriptedRequest) -> ScriptedAnswer:
        uid = next(entry["record_uid"] for entry in candidates(request) if str(entry["summary"]) == "say-two")
        commit = ("backtrack_commit", {"record_uid": uid, "memory_summary": "NOTE_A"})
        return ScriptedAnswer(
            "say-several",
            [shell_call(marked("before")), commit, shell_call(marked("never"))],
        )

    stage.policy = story(
        work_by_call("one", "echo one > one.txt"),
        ScriptedAnswer("say-two", [shell_call(marked("left")), shell_call(marked("right"))]),
        look_by_call(),
        several,
        NOTE_A=[
            work_by_call("better"),
            ScriptedAnswer('{"name": "bash", "arguments": {"command": "echo plain >> $SIDE"}}'),
            ScriptedAnswer("say-end", [("final_answer", {"answer": "done"})]),
        ],
    )
    ended = stage.start(harness="harness_adapters.smolagents:ToolCallingAdapter")
    assert (ended.code, ended.result["state"], ended.result["rewinds"]) == (0, "accepted", 1)
    assert stage.marks[0] == "one"
    assert sorted(stage.marks[1:3]) == ["left", "right"]
    assert stage.marks[3:] == ["before", "better", "plain"]
    check_laws(stage)
    timeline = stage.timeline
    (done,) = [e for n in timeline.segments for e in timeline.events(n) if isinstance(e, RewindDone)]
    assert isinstance(timeline.nodes[done.target], LlmNode)
