"""`list`, `log`, `show`, `candidates`: what they print, and what they say when there is nothing to print."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import orjson
import pytest

from agentrewind.clock import SystemClock
from agentrewind.records import FORMAT, Header, Record, RunId, WorkspaceDeclaration
from agentrewind.run_store import Run, RunStore
from agentrewind.sealed_line import seal, unseal
from tests.cli.desk import PROGRAM, Desk


def test_list_has_the_promised_fields(told: Desk) -> None:
    (row,) = told.json("list")
    assert {"run_id", "state", "harness", "model", "nodes", "rewinds", "bytes"} <= row.keys()
    assert (row["state"], row["model"], row["rewinds"], row["nodes"]) == ("accepted", "tiny-1", 1, 14)
    assert row["bytes"] > 1000
    assert row["run_id"] in told.call("list").stdout


def test_an_empty_home_is_no_error(desk: Desk) -> None:
    assert desk.json("list") == []
    assert "no runs" in desk.call("list").stdout


def test_log_gives_every_node_whole_with_its_place(told: Desk) -> None:
    document = told.json("log", "last")
    assert [each["segment"] for each in document["segments"]] == [0, 1]
    assert document["segments"][1]["forked_from"]["record_uid"] == "rec_000003"
    nodes = document["nodes"]
    assert [node["record_uid"] for node in nodes] == [f"rec_{number:06d}" for number in range(1, 15)]
    abandoned = [node["record_uid"] for node in nodes if not node["on_path"]]
    assert abandoned == [f"rec_{number:06d}" for number in range(3, 11)]
    answers = [node for node in nodes if node["kind"] == "llm"]
    assert all(isinstance(node["input"]["messages"], list) for node in answers)
    span = nodes[1]["metadata"]["filesystem"]["workspaces"]["ws0"]
    assert span["changed"] is True
    assert span["diff_summary"] == [{"status": "A", "path": "a.txt"}]


def test_log_shows_the_rewind_as_a_branch(told: Desk) -> None:
    lines = told.call("log", "last").stdout.splitlines()
    text = "\n".join(lines)
    assert next(line for line in lines if "abandoned" in line).startswith("│ ╭─")
    assert next(line for line in lines if "rec_000003" in line and "rm a.txt" in line).startswith("│ ├─")
    after = next(line for line in lines if "↶ rewind to rec_000003" in line)
    assert after.startswith("├─")
    assert text.index("rec_000010") < text.index(after) < text.index("rec_000011")
    assert "Keep a.txt." in text
    assert "accepted: 14 nodes, 1 rewind, 2 segments" in text


def test_a_run_is_found_by_the_beginning_of_its_id(told: Desk) -> None:
    run_id = told.only_run().run_id
    assert told.json("log", run_id[:-3])["run_id"] == run_id


def test_unknown_runs_and_nodes_name_the_nearest(told: Desk) -> None:
    run_id = told.only_run().run_id
    wrong = told.call("log", run_id[:-1] + "x")
    assert wrong.returncode == 2
    assert run_id in wrong.stderr
    node = told.call("show", "last", "rec_00003")
    assert node.returncode == 2
    assert "rec_000003" in node.stderr
    error = told.json("show", "last", "nothing", code=2)["error"]
    assert error["type"] == "UnknownNodeError"
    assert "nothing" in error["message"]


def test_last_of_no_run_is_unknown(desk: Desk) -> None:
    assert desk.json("log", "last", code=2)["error"]["type"] == "UnknownRunError"


def test_show_gives_an_answer_with_its_messages(told: Desk) -> None:
    document = told.json("show", "last", "rec_000003")
    assert document["kind"] == "llm"
    assert [message["role"] for message in document["input"]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert (document["segment"], document["on_path"]) == (0, False)
    assert len(document["commit"]) == 40
    text = told.call("show", "last", "rec_000003").stdout
    assert "abandoned" in text
    assert "I run echo two" in text
    assert "You are tiny." not in text
    assert "You are tiny." in told.call("show", "last", "rec_000003", "--full").stdout


def test_show_gives_a_tool_call_with_its_files(told: Desk) -> None:
    text = told.call("show", "last", "rec_000004").stdout
    assert "$ echo two > b.txt; rm a.txt" in text
    assert "D a.txt" in text
    assert "A b.txt" in text
    before, after = (told.json("show", "last", "rec_000004", *more)["commit"] for more in ([], ["--after"]))
    assert before != after


def test_candidates_are_what_the_agent_would_see(told: Desk) -> None:
    found = told.json("candidates", "last")
    assert [each["record_uid"] for each in found] == ["rec_000013", "rec_000011", "rec_000001"]
    assert {"record_uid", "step", "summary", "tools", "files", "memories", "external"} <= found[0].keys()
    assert found[1]["memories"] == ["Keep a.txt."]
    assert "Keep a.txt." in told.call("candidates", "last").stdout


def test_text_of_the_agent_cannot_play_with_the_terminal(desk: Desk) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\x1b[31m[bold]rot[/bold]\u202e\r\x9b1A"
    desk.json(*desk.run_arguments([f"sh printf '%s' '{evil}'", f"say {evil}"]), code=1)
    shown = [
        desk.call(*command).stdout
        for command in (
            ("log", "last"),
            ("show", "last", "rec_000001"),
            ("show", "last", "rec_000002", "--full"),
            ("show", "last", "rec_000003"),
            ("candidates", "last"),
        )
    ]
    for text in shown:
        assert "rot" in text
        assert not set(text) & set("\x1b\x07\u202e\r\x9b")
    assert "[bold]rot[/bold]" in shown[0]


def _record(desk: Desk, *made: Record) -> Run:
    """A run with these records in its first segment."""
    run = RunStore(desk.home).create(
        Header(
            format=FORMAT,
            run_id=RunId("by-hand"),
            segment=0,
            forked_from=None,
            created_at=SystemClock().now(),
            workspaces={"ws0": WorkspaceDeclaration(root=str(desk.base / "gone"), policy={})},
            harness="mini-swe-agent",
            model="m",
            versions={},
            options={"task": "t"},
        )
    )
    with run.writer(0) as writer:
        for record in made:
            writer.append(record, durable=False)
    return run


def _damage_line(path: Path, number: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b"0", b"1", 1)
    path.write_bytes(b"".join(lines))


def test_nodes_after_a_gap_are_listed_and_the_gap_is_marked(rewound: Desk) -> None:
    run = rewound.only_run()
    lines = run.segment_path(0).read_bytes().splitlines()
    place = next(
        index for index, line in enumerate(lines) if b'"rec_000002"' in line[:30] and b'"kind":"tool"' in line
    )
    _damage_line(run.segment_path(0), place)
    text = rewound.call("log", "last").stdout
    gap = text.index("gap in the log")
    assert text.index("rec_000001") < gap < text.index("rec_000003")
    assert "agentrewind verify" in text
    document = rewound.json("log", "last")
    assert document["damages"]
    assert "rec_000003" in [node["record_uid"] for node in document["nodes"]]
    assert rewound.json("list")[0]["damages"] >= 1
    assert rewound.json("replay", "last", code=4)["error"]["type"] == "DamagedError"
    assert rewound.json("run", "--resume", "last", code=2)["error"]["type"] == "UsageError"


def test_a_log_that_cannot_be_opened_is_listed_as_damaged(told: Desk, desk: Desk) -> None:
    run = _record(desk)
    run.segment_path(0).write_bytes(b"\0" * 100)
    assert desk.json("list")[0]["state"] == "damaged"
    assert desk.json("log", "last", code=4)["error"]["type"] == "DamagedError"
    assert desk.json("verify", code=4)["runs"][0]["sound"] is False


def test_a_run_of_a_newer_format_is_refused_by_number(desk: Desk) -> None:
    run = _record(desk)
    path = run.segment_path(0)
    header = unseal(path.read_bytes().splitlines()[0])
    header.pop("sum", None)
    path.write_bytes(seal(orjson.dumps({**header, "format": 99})))
    error = desk.json("log", "last", code=4)["error"]
    assert "99" in error["message"]
    assert desk.json("list")[0]["state"] == "damaged"


# --- surroundings ---


def test_a_closed_pipe_ends_without_a_word(told: Desk) -> None:
    command = f"{' '.join(PROGRAM)} log last --json | head -c 10"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=told.environment(),
        capture_output=True,
        check=False,
    )
    assert done.stdout == b'{"run_id":'
    assert done.stderr == b""
    assert done.returncode in (0, 1, 141)


def test_a_closed_output_ends_without_a_word(told: Desk) -> None:
    command = f"{' '.join(PROGRAM)} log last >&-"
    done = subprocess.run(["bash", "-c", command], env=told.environment(), capture_output=True, check=False)
    assert b"Traceback" not in done.stderr


def test_a_locale_that_knows_ascii_only(told: Desk) -> None:
    ascii_only = told.environment(LANG=None, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    done = told.call("log", "last", environment=ascii_only)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "+- " in done.stdout
    json.loads(told.call("log", "last", "--json", environment=ascii_only).stdout)


def test_without_a_home_somebody_has_to_say_where(told: Desk) -> None:
    homeless = told.environment(HOME=None, AGENTREWIND_HOME=None)
    done = told.call("list", environment=homeless)
    assert done.returncode == 2
    assert "AGENTREWIND_HOME" in done.stderr
    named = told.environment(HOME=None)
    assert json.loads(told.call("list", "--json", environment=named).stdout)
    state = told.environment(HOME=None, AGENTREWIND_HOME=None, XDG_STATE_HOME=str(told.base / "state"))
    assert json.loads(told.call("list", "--json", environment=state).stdout) == []


def test_the_default_home_lies_below_the_users(desk: Desk) -> None:
    done = desk.call("list", environment=desk.environment(AGENTREWIND_HOME=None))
    assert f"{desk.base}/user/.local/state/agentrewind" in done.stdout


def test_a_relative_home_is_taken_from_the_present_folder(told: Desk) -> None:
    relative = told.environment(AGENTREWIND_HOME="home")
    assert len(json.loads(told.call("list", "--json", environment=relative).stdout)) == 1


@pytest.mark.parametrize("home", ["/dev/null", "/proc/self/nowhere"])
def test_a_home_that_cannot_be_written(desk: Desk, home: str) -> None:
    unwritable = desk.environment(AGENTREWIND_HOME=home)
    done = desk.call(*desk.run_arguments(["submit"]), "--json", environment=unwritable)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["error"]["type"] == "StorageError"
    assert home in done.stderr
    assert done.stderr.startswith("error: ")
    assert desk.live_calls() == 0
    listed = desk.call("list", environment=unwritable)
    assert (listed.returncode, home in listed.stdout + listed.stderr) in ((0, True), (4, True))
    assert "Traceback" not in listed.stderr


@pytest.mark.parametrize("command", ["list", "log last", "log last --json", "show last rec_000001"])
def test_a_full_disk_behind_the_output_is_told(told: Desk, command: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{' '.join(PROGRAM)} {command} > /dev/full"],
        env=told.environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == b"error: the output cannot be written: No space left on device\n"


def test_an_unknown_command_and_option_are_usage_errors(told: Desk) -> None:
    assert told.call("no-such").returncode == 2
    assert told.call("list", "--no-such").returncode == 2
    assert told.json("log", code=2)["error"]["type"] == "MissingParameter"


@pytest.mark.parametrize("no_color", ["1", None])
def test_colour_only_for_a_terminal_that_wants_it(told: Desk, no_color: str | None) -> None:
    environment = told.environment(TERM="xterm-256color", NO_COLOR=no_color, LINES="500")
    command = f"{' '.join(PROGRAM)} log last"
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert b"rec_000001" in done.stdout
    assert (b"\x1b[" in done.stdout) is (no_color is None)
