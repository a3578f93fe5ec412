"""Agents without an adapter: the examples run as they are, recorded, replayed, and going back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentrewind.processes import marked
from harness_adapters.scripted import ScriptedModel
from harness_adapters.scripted_answer import ScriptedAnswer
from harness_adapters.scripted_policy import from_steps
from harness_adapters.scripted_request import ScriptedRequest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
NOTE = "leave the file alone"


def go_back(request: ScriptedRequest) -> ScriptedAnswer:
    listed = json.loads(request.messages[-1]["content"])["candidates"]
    target = next(entry for entry in listed if "rm kept" in str(entry["tools"]))
    return ScriptedAnswer(
        tool_calls=[("backtrack_commit", {"record_uid": target["record_uid"], "memory_summary": NOTE})]
    )


def bash(command: str) -> ScriptedAnswer:
    return ScriptedAnswer(tool_calls=[("bash", {"command": command})])


@dataclass(frozen=True)
class Desk:
    root: Path
    model: ScriptedModel

    @property
    def effects(self) -> list[str]:
        path = self.root / "effects"
        return path.read_text().split() if path.exists() else []

    def command(self, *words: str, expect: int = 0) -> Any:
        environment = {
            **os.environ,
            "AGENTREWIND_HOME": str(self.root / "home"),
            "OPENAI_BASE_URL": self.model.base_url,
            "OPENAI_API_KEY": "sk-scripted-0000",
        }
        done = subprocess.run(
            [sys.executable, "-m", "agentrewind.cli", *words],
            env=environment,
            capture_output=True,
            text=True,
            cwd=EXAMPLES.parent,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def run(self, example: str, *, expect: int = 0, check: str = "true") -> Any:
        (self.root / "ws").mkdir(exist_ok=True)
        script = ["--", sys.executable, f"examples/{example}", "do the work"]
        workspace = ["--workspace", str(self.root / "ws")]
        return self.command("run", "--json", "--check", check, *workspace, *script, expect=expect)


@pytest.fixture
def outside(request: pytest.FixtureRequest) -> str:
    """Where each command also writes, outside the workspace; nowhere where empty."""
    return getattr(request, "param", " >> ../effects")


@pytest.fixture
def desk(tmp_path: Path, outside: str) -> Iterator[Desk]:
    steps = [
        bash("echo 1 > kept" + (f"; echo made{outside}" if outside else "")),
        bash("rm kept" + (f"; echo removed{outside}" if outside else "")),
    ]
    rewinding = [ScriptedAnswer(tool_calls=[("backtrack_candidates", {"reason": "gone"})]), go_back]

    def after_that(request: ScriptedRequest) -> ScriptedAnswer:
        offers = "backtrack_commit" in request.tool_names
        plan = [*steps, *(rewinding if offers else [ScriptedAnswer(content="Done.")])]
        return from_steps(plan, when={NOTE: [bash("cat kept"), ScriptedAnswer(content="Done.")]})(request)

    with ScriptedModel(after_that) as model:
        yield Desk(tmp_path, model)


def test_a_plain_loop_with_three_lines_goes_back(desk: Desk) -> None:
    result = desk.run("openai_loop_rewind.py", check="test -f kept")
    assert (result["state"], result["rewinds"], result["nodes"]) == ("accepted", 1, 11)
    assert desk.effects == ["made", "removed"]
    roles = [message["role"] for message in desk.model.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "system", "assistant", "tool"]
    assert len(desk.model.requests) == 6
    assert (desk.root / "ws" / "kept").read_text() == "1\n"
    [row] = desk.command("list", "--json")
    # no harness, and no model that anybody has named: the command, and the models that it has asked
    assert (row["harness"], row["model"]) == (None, "gpt-5.4-mini")
    assert row["agent"].endswith("openai_loop_rewind.py 'do the work'")
    replayed = desk.command("replay", result["run_id"], "--json")
    assert (replayed["served"], replayed["live"], replayed["divergence"]) == (5, 0, None)
    assert len(desk.model.requests) == 6
    assert desk.effects == ["made", "removed"]


@pytest.mark.parametrize("outside", [""], indirect=True)
def test_the_same_loop_as_it_was_written_is_recorded_replayed_and_restored(desk: Desk) -> None:
    result = desk.run("openai_loop.py")
    assert (result["state"], result["rewinds"], result["nodes"]) == ("accepted", 0, 3)
    assert not (desk.root / "ws" / "kept").exists()
    replayed = desk.command("replay", result["run_id"], "--json")
    assert (replayed["served"], replayed["live"], replayed["divergence"]) == (3, 0, None)
    assert len(desk.model.requests) == 3
    assert not (desk.root / "ws" / "kept").exists()
    (row,) = desk.command("list", "--json")
    assert (row["harness"], row["model"]) == (None, desk.model.requests[0].model)
    assert row["agent"].endswith("examples/openai_loop.py 'do the work'")
    into = desk.root / "again"
    desk.command("restore", result["run_id"], "rec_000002", "--into", str(into), "--json")
    assert (into / "kept").read_text() == "1\n"


def test_snapshots_that_can_no_longer_be_read_end_a_command_as_damage(desk: Desk) -> None:
    """Whatever the command's own exit code is."""
    script, once = desk.root / "script.py", desk.root / "once"
    script.write_text(
        "import pathlib, sys\n"
        "import agentrewind\n"
        "def write(name): return pathlib.Path(name).write_text(name)\n"
        "agentrewind.call_tool('write', {'name': 'a'}, lambda: write('a'))\n"
        "once = pathlib.Path(sys.argv[1])\n"
        "if not once.exists():\n"
        "    sys.exit(once.write_text('') or 1)\n"
        "write('b')\n"
    )
    (desk.root / "ws").mkdir()
    words = ["--workspace", str(desk.root / "ws"), "--", sys.executable, str(script), str(once)]
    failed = desk.command("run", "--json", *words, expect=1)
    for pack in (desk.root / "home").rglob("snapshots.git/**/*.*"):
        if pack.suffix in (".pack", ".idx"):
            pack.chmod(0o600)
            pack.write_bytes(b"")
    result = desk.command("run", "--resume", failed["run_id"], "--json", expect=4)
    assert result["state"] == "error"


def test_tools_that_pass_the_layer_by_reach_nothing_but_the_copy_in_a_replay(desk: Desk) -> None:
    result = desk.run("openai_loop.py")
    replayed = desk.command("replay", result["run_id"], "--json", expect=3)
    assert replayed["divergence"]["record_uid"] == "rec_000002"
    assert desk.effects == ["made", "removed"]
    assert len(desk.model.requests) == 3


def test_a_script_whose_tools_pass_the_layer_by_is_not_started_again(desk: Desk) -> None:
    result = desk.run("openai_loop.py", check="false", expect=1)
    assert result["state"] == "rejected"
    broken = desk.root / "home" / "runs" / result["run_id"] / "segment-0000.jsonl"
    lines = [line for line in broken.read_bytes().splitlines(keepends=True) if b'"finished"' not in line]
    broken.write_bytes(b"".join(lines))
    refused = desk.command("run", "--resume", result["run_id"], "--json", expect=5)
    assert "call_tool" in refused["error"]["message"]
    assert desk.effects == ["made", "removed"]


def test_a_command_that_cannot_be_joined_is_an_error(desk: Desk) -> None:
    (desk.root / "ws").mkdir()
    words = ["run", "--json", "--workspace", str(desk.root / "ws"), "--", "true"]
    result = desk.command(*words, expect=1)
    assert result["state"] == "error"
    assert "no Python process" in result["detail"]
    missing = ["run", "--json", "--workspace", str(desk.root / "ws"), "--", "no-such-program"]
    assert "cannot be started" in desk.command(*missing, expect=2)["error"]["message"]


def test_a_script_behind_a_shell_that_outlives_its_supervisor_is_ended_on_resume(desk: Desk) -> None:
    (desk.root / "ws").mkdir()
    script = desk.root / "agent.py"
    script.write_text(
        "import os, signal, time\n"
        "import agentrewind\n"
        "from agentrewind.current import current_layer\n"
        f"marks = {str(desk.root / 'effects')!r}\n"
        "def mark(text):\n"
        "    with open(marks, 'a') as file: file.write(text + '\\n')\n"
        "agentrewind.call_tool('first', {}, lambda: mark('first'))\n"
        f"if not os.path.exists({str(desk.root / 'killed')!r}):\n"
        f"    open({str(desk.root / 'killed')!r}, 'w').close()\n"
        "    shell = os.getppid()\n"
        "    supervisor = int(open(f'/proc/{shell}/stat').read().rsplit(')', 1)[1].split()[1])\n"
        "    os.kill(supervisor, signal.SIGKILL)\n"
        "    time.sleep(60)\n"
        "    mark('ghost')\n"
        "mark('end')\n"
    )
    words = ["run", "--json", "--workspace", str(desk.root / "ws"), "--"]
    environment = {**os.environ, "AGENTREWIND_HOME": str(desk.root / "home")}
    killed = subprocess.run(
        [sys.executable, "-m", "agentrewind.cli", *words, "sh", "-c", f"{sys.executable} {script}; exit $?"],
        env=environment,
        capture_output=True,
        check=False,
        cwd=EXAMPLES.parent,
    )
    assert killed.returncode == -9
    result = desk.command("run", "--resume", "last", "--json")
    assert result["state"] == "accepted", result
    assert desk.effects == ["first", "end"]
    assert marked(result["run_id"]) == []
