"""`replay`: everything from the log, in a copy, and clear words where that is not possible."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from agentrewind.codec import encode
from agentrewind.copy_enclosure import enclosed, obstacle
from agentrewind.run_store import Run
from tests.cli.desk import PROGRAM, Desk, tree

needs_namespaces = pytest.mark.skipif(
    bool(obstacle(Path("/tmp"))), reason="mount namespaces are not allowed here"
)


def _edit_task(run: Run, old: bytes, new: bytes) -> None:
    """Another task in every header: what a changed harness or prompt looks like to the log."""
    for number in run.segment_numbers():
        header = run.timeline().header_of(number)
        assert header is not None
        options = {**header.options, "task": str(header.options["task"]).replace(old.decode(), new.decode())}
        path = run.segment_path(number)
        rest = path.read_bytes().partition(b"\n")[2]
        path.write_bytes(encode(replace(header, options=options), put_blob=run.blobs.put) + rest)


@needs_namespaces
def test_a_replay_serves_all_and_touches_nothing(told: Desk) -> None:
    before = (tree(told.workspace), tree(told.home), told.live_calls())
    document = told.json("replay", "last")
    assert (document["served"], document["live"], document["divergence"]) == (6, 0, None)
    assert document["state"] == "accepted"
    after = (tree(told.workspace), tree(told.home), told.live_calls())
    assert after == before
    assert "6 calls served" in told.call("replay", "last").stdout


@needs_namespaces
@pytest.mark.parametrize(("until", "served"), [("rec_000002", 1), ("rec_000011", 2), ("rec_000014", 5)])
def test_a_replay_stops_before_a_node(told: Desk, until: str, served: int) -> None:
    document = told.json("replay", "last", "--until", until)
    assert (document["served"], document["divergence"], document["until"]) == (served, None, until)


def test_a_node_off_the_path_cannot_be_replayed_to(told: Desk) -> None:
    assert "abandoned" in told.json("replay", "last", "--until", "rec_000004", code=2)["error"]["message"]
    assert told.call("replay", "last", "--until", "rec_9").returncode == 2


@needs_namespaces
def test_the_run_that_was_stopped_is_replayed_as_far_as_it_goes(desk: Desk) -> None:
    down = desk.base / "down"
    down.touch()
    desk.json(*desk.run_arguments(["sh echo one > a.txt", f"fail {down}"]), code=1)
    document = desk.json("replay", "last")
    assert (document["served"], document["divergence"]) == (2, None)


@needs_namespaces
def test_the_harness_sees_the_copy_at_the_recorded_path(desk: Desk) -> None:
    """What is recorded names the path; a harness that looks for itself finds the first state there."""
    (desk.base / "workspace").mkdir()
    (desk.workspace / "start").write_text("start")
    desk.json(*desk.run_arguments(["sh rm start; pwd", "say done"]), code=1)
    assert not (desk.workspace / "start").exists()
    scratch = desk.base / "scratch"
    desk.json("restore", "last", "rec_000001", "--into", str(scratch))
    look = f"ls {desk.workspace}; touch {desk.workspace}/new; cat /proc/net/dev | grep -c eth0"
    found = subprocess.run(
        enclosed(scratch, desk.workspace, ["/bin/sh", "-c", look]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.split() == ["start", "0"]
    assert (scratch / "new").exists()
    assert not (desk.workspace / "new").exists()


@needs_namespaces
def test_a_harness_that_asks_something_else_diverges(rewound: Desk) -> None:
    _edit_task(rewound.only_run(), b'"counter"', b'"system": "You are huge.", "counter"')
    document = rewound.json("replay", "last", code=3)
    assert document["divergence"]["record_uid"] == "rec_000001"
    assert "huge" in document["divergence"]["difference"]
    done = rewound.call("replay", "last")
    assert done.returncode == 3
    assert "rec_000001" in done.stdout
    by_position = rewound.json("replay", "last", "--on-divergence", "position")
    assert (by_position["served"], by_position["divergence"]) == (6, None)
    assert by_position["warnings"]


@needs_namespaces
def test_a_path_that_is_gone_is_made_for_the_replay_alone(rewound: Desk) -> None:
    shutil.rmtree(rewound.workspace)
    assert rewound.json("replay", "last")["divergence"] is None
    assert not rewound.workspace.exists()
    assert {path.name for path in rewound.base.iterdir()} == {"home", "counter"}


def _in_user_namespace() -> bool:
    return subprocess.run(["unshare", "-U", "-r", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _in_user_namespace(), reason="user namespaces are not allowed here")
@pytest.mark.parametrize(
    ("around", "codes"),
    [
        # no further mount namespace may be made at all
        (["sh", "-c", 'echo 0 > /proc/sys/user/max_mnt_namespaces; exec "$@"', "sh"], (5,)),
        # an ordinary user: served in a user namespace of his own, or refused where the machine forbids it
        (["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"], (0, 5)),
    ],
)
def test_without_the_rights_of_root(rewound: Desk, around: list[str], codes: tuple[int, ...]) -> None:
    before = rewound.files()
    done = subprocess.run(
        ["unshare", "-U", "-r", *around, *PROGRAM, "replay", "last"],
        env=rewound.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in codes, (done.stdout, done.stderr)
    assert done.returncode == 0 or "never used for a replay" in done.stderr
    assert rewound.files() == before


@needs_namespaces
def test_credentials_do_not_reach_the_replay(desk: Desk, tmp_path: Path) -> None:
    desk.json(*desk.run_arguments(["sh true", "say done"]), code=1)
    environment = desk.environment(SOME_API_KEY="sk-real-and-secret", PYTHONPATH=None)
    environment["PYTHONPATH"] = str(tmp_path) + os.pathsep + desk.environment()["PYTHONPATH"]
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'agentrewind.attempt' in sys.orig_argv:\n"
        f"    open({str(tmp_path / 'seen')!r}, 'w').write(os.environ.get('SOME_API_KEY', ''))\n"
    )
    done = desk.call("replay", "last", "--json", environment=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "seen").read_text() == "not-needed-in-a-replay"


# --- what is told, and the debugger ---


@needs_namespaces
def test_the_report_names_what_was_served_and_what_was_not(rewound: Desk) -> None:
    document = rewound.json("replay", "last")
    assert document["nodes"] == [f"rec_{number:06d}" for number in (1, 2, 11, 12, 13, 14)]
    assert (document["unserved"], document["left"]) == ([], None)
    assert "rec_000001 and rec_000002, rec_000011 to rec_000014" in rewound.call("replay", "last").stdout
    _edit_task(rewound.only_run(), b"I am done", b"I am lost")  # nothing that is asked: all the same
    assert rewound.json("replay", "last")["unserved"] == []
    _edit_task(rewound.only_run(), b'"counter"', b'"system": "You are huge.", "counter"')
    document = rewound.json("replay", "last", code=3)
    assert document["nodes"] == []
    assert document["unserved"] == [f"rec_{number:06d}" for number in (1, 2, 11, 12, 13, 14)]
    text = rewound.call("replay", "last").stdout
    assert "never asked for: rec_000001 and rec_000002, rec_000011 to rec_000014" in text
    assert "agentrewind show" in text


def _on_a_terminal(desk: Desk, keys: str, *arguments: str) -> tuple[str, int]:
    """What a person sees who types these lines, each at a prompt, and the exit code."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, "replay", "last", *arguments],
        env=desk.environment(TERM="dumb"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    lines, shown = keys.splitlines(keepends=True), b""
    try:
        while chunk := _read(ours):
            shown += chunk
            while lines and shown.count(b"(agentrewind) ") > len(keys.splitlines()) - len(lines):
                os.write(ours, lines.pop(0).encode())
        return shown.decode(), process.wait(60)
    finally:
        process.kill()
        os.close(ours)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536) if select.select([terminal], [], [], 60)[0] else b""
    except OSError:
        return b""  # nobody has the other end any more


@needs_namespaces
@pytest.mark.parametrize(
    ("node", "waits", "seen"),
    [
        ("rec_000011", "the answer", "p len(messages)"),
        ("rec_000012", "the result of bash", "p name"),
    ],
)
def test_the_debugger_opens_in_the_harness(told: Desk, node: str, waits: str, seen: str) -> None:
    before = (tree(told.workspace), tree(told.home), told.live_calls())
    shown, code = _on_a_terminal(told, f"{seen}\nnext\nwhere\nquit\n", "--pdb", node)
    assert f"{node}: the harness waits for {waits}" in shown
    assert "tiny.py" in shown.partition("(agentrewind)")[0]
    assert ("4" if "answer" in waits else "'bash'") in shown.partition(seen)[2].partition("next")[0]
    assert f"left in the debugger at {node}" in shown
    assert code == 0
    assert (tree(told.workspace), tree(told.home), told.live_calls()) == before


@needs_namespaces
def test_after_the_debugger_the_replay_goes_on(told: Desk) -> None:
    shown, code = _on_a_terminal(told, "continue\n", "--pdb", "rec_000011")
    assert "6 calls served from the log, none made" in shown
    assert code == 0
    stepped, code = _on_a_terminal(told, "step\nstep\nnext\ncontinue\n", "--pdb", "rec_000011")
    assert "agentrewind/layer.py" not in stepped
    assert "agentrewind/capture" not in stepped
    assert "6 calls served from the log, none made" in stepped
    assert code == 0


@needs_namespaces
def test_without_a_terminal_the_debugger_reads_what_it_is_given(told: Desk) -> None:
    done = subprocess.run(
        [*PROGRAM, "replay", "last", "--pdb", "rec_000002", "--json"],
        env=told.environment(),
        input="p 6 * 7\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["left"], document["nodes"]) == ("rec_000002", ["rec_000001", "rec_000002"])
    assert "42" in done.stderr


def test_no_debugger_opens_off_the_path(told: Desk) -> None:
    assert "not replayed" in told.json("replay", "last", "--pdb", "rec_000004", code=2)["error"]["message"]
    assert "no node" in told.json("replay", "last", "--pdb", "rec_99", code=2)["error"]["message"]
    late = told.call("replay", "last", "--until", "rec_000002", "--pdb", "rec_000012")
    assert late.returncode == 2
