"""What the viewer shows of runs: whole, damaged, being written, unknown."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agentrewind.records import JsonObject
from agentrewind.run_store import RunStore
from agentrewind.workspace.lock import WorkspaceLock
from tests import records
from tests.browser.runs import answer, call, changed, write_run
from tests.cli.desk import PROGRAM, Desk
from tests.cli.test_reading import _damage_line
from tests.view.served import Read, Served, viewer


def rows_of(served: Served, run: str, **query: str) -> list[str]:
    """The keys of the rows in the page, in order."""
    read = Read.of(served.get(f"r/{run}", query).text)
    return [given["data-key"] for tag, given in read.tags if tag == "a" and given.get("role") == "option"]


def test_the_list_names_every_run_and_how_it_stands(served: Served, shown: tuple[Desk, str]) -> None:
    read = Read.of(served.get("runs").text)
    assert next(given["data-run"] for _, given in read.tags if "data-run" in given) == shown[1]
    for word in ("accepted", "error", "↶ 3", str(shown[0].workspace)):
        assert word in read.text


def test_every_node_has_its_row_and_its_address(served: Served, shown: tuple[Desk, str]) -> None:
    desk, run = shown
    document = desk.json("log", run)
    rows = rows_of(served, run)
    assert [key for key in rows if key.startswith("rec_")] == [
        each["record_uid"] for each in document["nodes"]
    ]
    for node in document["nodes"]:
        found = served.get(f"r/{run}", node=node["record_uid"])
        assert found.status == 200
        assert ("abandoned" in Read.of(found.text).text) is not node["on_path"]


def test_a_node_after_a_rewind_shows_the_memory_that_it_was_sent(
    served: Served, shown: tuple[Desk, str]
) -> None:
    text = Read.of(served.get(f"r/{shown[1]}/pane", node="rec_000027").text).text
    assert "✎ rewind memory" in text
    assert "[2] ROUND_DOWN loses a cent" in text
    assert "checkpoint" in text
    assert "rewind memory" not in Read.of(served.get(f"r/{shown[1]}/pane", node="rec_000003").text).text


def test_the_feedback_of_a_submission_stands_below_its_call(served: Served, shown: tuple[Desk, str]) -> None:
    text = Read.of(served.get(f"r/{shown[1]}/pane", node="rec_000012").text).text
    assert "submission rejected at history" in text
    assert "data/history.csv is gone" in text
    whole = served.get(f"r/{shown[1]}/part", node="rec_000012", part="feedback")
    assert "data/history.csv is gone" in Read.of(whole.text).text


@pytest.mark.parametrize(
    ("query", "some", "none"),
    [
        ({"q": "ROUND_half_up"}, "rec_000028", "rec_000018"),
        ({"path": "prices"}, "rec_000006", "rec_000008"),
        ({"path": "data/*.csv"}, "rec_000008", "rec_000006"),
        ({"tool": "submit"}, "rec_000012", "rec_000010"),
        ({"failed": "1"}, "rec_000004", "rec_000006"),
        ({"failed": "1", "tool": "bash"}, "rec_000004", "rec_000012"),
    ],
)
def test_search_and_filters(
    served: Served, shown: tuple[Desk, str], query: dict[str, str], some: str, none: str
) -> None:
    rows = rows_of(served, shown[1], **query)
    assert some in rows
    assert none not in rows


def test_files_differ_as_the_command_says(served: Served, shown: tuple[Desk, str]) -> None:
    desk, run = shown
    pane = Read.of(served.get(f"r/{run}/pane", node="rec_000018").text)
    (address,) = [given["data-src"] for tag, given in pane.tags if tag == "details" and "data-src" in given]
    read = Read.of(served.raw("GET", address).text)
    assert "return sum(round(float(price) * 100) * int(count) for price, count in lines)" in read.text
    classes = [given.get("class") for tag, given in read.tags if tag == "tr"]
    (told,) = desk.json("show", run, "rec_000018")["files"]
    assert (classes.count("new"), classes.count("gone")) == (told["added"], told["removed"]) == (8, 1)


def test_two_nodes_and_two_runs_are_compared(served: Served, shown: tuple[Desk, str]) -> None:
    run = shown[1]
    nodes = Read.of(served.get("compare", a=f"{run}/rec_000005", b=f"{run}/rec_000029").text).text
    assert "[rewind memory]" in nodes
    assert "1 path differs" in nodes
    same = Read.of(served.get("compare", a=run, b=run).text).text
    assert "do not part" in same
    other = served.get("compare", a=run, b="20260131-090000-10e900")
    assert "0 nodes the same" in Read.of(other.text).text
    assert served.get("compare", a=run, b=f"{run}/rec_000001").status == 400
    assert served.get("compare", a="", b="").status == 400


def test_what_is_unknown_is_said_with_what_is_near(served: Served, shown: tuple[Desk, str]) -> None:
    found = served.get("r/20261299-nothing")
    assert (found.status, "no run is called" in found.text) == (404, True)
    found = served.get(f"r/{shown[1]}", node="rec_0000017")
    assert (found.status, "rec_000017" in found.text) == (404, True)


def test_a_damaged_run_is_shown_up_to_the_gap_and_beyond(told: tuple[Desk, str]) -> None:
    desk, run = told
    path = RunStore(desk.home).open(run).segment_path(0)
    lines = path.read_text().splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith('{"record_uid":"rec_000006"'))
    _damage_line(path, place)
    with viewer(desk) as served:
        rows = rows_of(served, run)
        assert "rec_000005" in rows
        assert "rec_000008" in rows
        text = Read.of(served.get(f"r/{run}").text).text
        assert "gap in the log" in text
        assert "1 damage" in text
        # what builds on the lost node says so instead of showing half of it
        for key in rows:
            assert served.get(f"r/{run}/pane", node=key).status == 200
        path.write_text("nothing of a log\n")
        assert served.get(f"r/{run}").status == 200
        for segment in path.parent.glob("segment-*"):
            segment.write_text("")
        assert served.get(f"r/{run}").status in (200, 422)
        shutil.rmtree(path.parent)
        assert served.get(f"r/{run}").status == 404


def test_a_run_that_is_being_written_is_no_damaged_one(desk_of_one: tuple[Desk, str]) -> None:
    desk, run_id = desk_of_one
    run = RunStore(desk.home).open(run_id)
    with viewer(desk) as served, run.writer(0) as writer:
        assert rows_of(served, run_id) == ["rec_000001"]
        with run.segment_path(0).open("ab") as file:
            file.write(b'{"record_uid":"rec_000002","ki')
        assert "damage" in Read.of(served.get(f"r/{run_id}").text).text  # nobody is at work on it
        writer.append(call(2, "true", "done", second=2), durable=False)
        assert "rec_000002" in rows_of(served, run_id)


def test_a_run_under_way_is_followed_line_by_line(desk_of_one: tuple[Desk, str]) -> None:
    desk, run_id = desk_of_one
    run = RunStore(desk.home).open(run_id)
    with viewer(desk) as served:
        with WorkspaceLock.acquire(desk.home, Path("/somewhere"), owner={"run": run_id}):
            with run.writer(0) as writer:
                writer.append(call(2, "true", "done", second=2), durable=False)
                assert "running" in Read.of(served.get(f"r/{run_id}").text).text
                writer.append(call(3, "true", "done", second=3), durable=False)
                assert rows_of(served, run_id) == ["rec_000001", "rec_000002", "rec_000003"]
            with run.segment_path(0).open("ab") as file:
                file.write(b'{"record_uid":"rec_000004","ki')
            text = Read.of(served.get(f"r/{run_id}").text).text
            assert "damage" not in text
            assert "gap" not in text
            assert rows_of(served, run_id) == ["rec_000001", "rec_000002", "rec_000003"]
        # now nobody is at work any more, and the half line is what a death left
        deadline = time.monotonic() + 20
        while "1 damage" not in Read.of(served.get(f"r/{run_id}").text).text:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert "interrupted" in Read.of(served.get(f"r/{run_id}").text).text


@pytest.fixture
def desk_of_one(tmp_path: Path) -> tuple[Desk, str]:
    """A desk with a run of a single node."""
    desk = Desk(base=tmp_path)
    write_run(desk.home, "20260131-110000-aaaaaa", [[answer(1, "I begin.", second=1)]])
    return desk, "20260131-110000-aaaaaa"


def test_changes_are_told_as_they_come(desk_of_one: tuple[Desk, str]) -> None:
    desk, run_id = desk_of_one
    with viewer(desk) as served, RunStore(desk.home).open(run_id).writer(0) as writer:
        connection = http.client.HTTPConnection(served.host, timeout=30)
        connection.request("GET", f"{served.path}r/{run_id}/live")
        stream = connection.getresponse()
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.readline() == b": begun\n"
        first = _next(stream)
        writer.append(call(2, "true", "done", second=2), durable=False)
        assert _next(stream) != first
        connection.close()


def _next(stream: http.client.HTTPResponse) -> bytes:
    while not (line := stream.readline()).startswith(b"data: "):
        assert line, "the stream ended"
    return line


def test_outside_state_is_shown_whatever_it_is(tmp_path: Path) -> None:
    desk = Desk(base=tmp_path)
    external: tuple[JsonObject, ...] = (
        {"id": "b1", "what": "table orders", "kind": "postgresql", "restorable": True, "state": "preserved"},
        {"anything": {"deep": [1, 2]}, "state": "not covered"},
    )
    node = call(2, "psql", "done", second=2, external=external)
    write_run(desk.home, "r1", [[answer(1, "I begin.", second=1), node, changed(2, second=3)]])
    with viewer(desk) as served:
        text = Read.of(served.get("r/r1/pane", node="rec_000002").text).text
        for word in ("table orders", "postgresql", "preserved", "not covered", '"deep"'):
            assert word in text
        assert "⛁2" in served.get("r/r1").text


# --- the command ---


def test_a_port_in_use(shown: tuple[Desk, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = shown[0].call("view", "--no-browser", "--port", port)
    assert done.returncode == 2
    assert f"port {port} is in use" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nothing"], 2),
        (["last", "--node", "rec_9"], 2),
        (["--html", "x.html"], 2),
        (["--node", "rec_000001"], 2),
        (["last", "--html", "/"], 2),
        (["last", "--html", "/nowhere/x.html"], 2),
        (["last", "--html", "x.html", "--port", "80"], 2),
    ],
)
def test_calls_that_cannot_be_carried_out(shown: tuple[Desk, str], arguments: list[str], code: int) -> None:
    done = shown[0].call("view", *arguments)
    assert done.returncode == code, done.stderr
    assert done.stderr.count("error:") == 1
    assert not (shown[0].base / "x.html").exists()


def test_an_extra_that_is_missing_is_named_with_what_installs_it(shown: tuple[Desk, str]) -> None:
    # as where it was never installed: the finder does not know the module
    hidden = shown[0].base / "without"
    hidden.mkdir(exist_ok=True)
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'uvicorn': raise ModuleNotFoundError(name)\n"
        "import importlib.util as util\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'uvicorn' else found(name, package)\n"
        "sys.meta_path.insert(0, Without())\n"
    )
    environment = shown[0].environment()
    environment["PYTHONPATH"] = f"{hidden}:{environment['PYTHONPATH']}"
    done = shown[0].call("view", "--no-browser", environment=environment)
    assert done.returncode == 2
    assert "uvicorn" in done.stderr
    assert "pip install 'agentrewind[view]'" in done.stderr


def test_without_a_browser_the_address_is_printed(shown: tuple[Desk, str]) -> None:
    with viewer(shown[0], "--port", "0") as served:
        assert served.get().status == 200
    assert urlsplit(served.url).hostname == "127.0.0.1"


# --- the page that is a file ---


def test_the_file_holds_the_run_without_credentials(tmp_path: Path) -> None:
    desk = Desk(base=tmp_path)
    key = "sk-" + "a1B2" * 8
    answered = replace(
        answer(
            1,
            f"I use {key}.",
            second=1,
            append=({"role": "user", "content": f"Authorization: Bearer {key}"},),
        ),
        parameters={"extra": {"api_key": "hunter22hunter22"}},
    )
    output: JsonObject = {"output": f"https://me:{key}@host/", "password": "hunter22"}
    node = call(2, f"curl -H 'x-api-key: {key}'", output, second=2)
    write_run(
        desk.home, "r1", [[answered, node, changed(2, b"a.txt", second=3), records.finished("stopped")]]
    )
    file = tmp_path / "page.html"
    file.write_text("what was there before")
    done = desk.json("view", "r1", "--html", str(file))
    text = file.read_text(encoding="utf-8")
    assert (done["nodes"], done["bytes"], done["file"]) == (2, len(text.encode()), str(file))
    assert key not in text
    assert "hunter22" not in text
    assert "[redacted]" in text
    assert "I use" in Read.of(text).text
    assert "a.txt" in Read.of(text).text
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".page")] == []


def test_a_file_that_cannot_be_written_leaves_the_old_one(shown: tuple[Desk, str], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("what was there before")
    limited = ["bash", "-c", 'ulimit -f 8; exec "$@"', "-"]

    done = subprocess.run(
        [*limited, *PROGRAM, "view", shown[1], "--html", str(file)],
        env=shown[0].environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode not in (0, 2), done.stderr
    assert file.read_text() == "what was there before"


def test_the_file_of_a_damaged_run_marks_the_gap(told: tuple[Desk, str], tmp_path: Path) -> None:
    desk, run = told
    path = RunStore(desk.home).open(run).segment_path(0)
    lines = path.read_text().splitlines()
    _damage_line(
        path, next(n for n, line in enumerate(lines) if line.startswith('{"record_uid":"rec_000006"'))
    )
    desk.json("view", run, "--html", str(tmp_path / "x.html"))
    text = Read.of((tmp_path / "x.html").read_text()).text
    assert "gap in the log" in text
    assert "1 damage in the log" in text
    assert json.loads(lines[0])["run_id"] in text
