"""`export` and `import`: a run in one file, verified; and the forms that others read."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import stat
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.desk import Desk, tree
from tests.cli.test_replay import needs_namespaces


@pytest.fixture
def there(tmp_path: Path) -> Desk:
    """Another machine: a store of its own."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    return Desk(place)


def run_id(desk: Desk) -> str:
    return str(desk.json("list")[0]["run_id"])


def test_a_run_comes_through_whole(told: Desk, there: Desk, tmp_path: Path) -> None:
    file = tmp_path / "run.tar.gz"
    sent = told.json("export", "last", str(file))

    came = there.json("import", str(file))

    assert came["run_id"] == run_id(told)
    assert came["digest"] == sent["digest"]
    assert there.json("log", "last")["nodes"] == told.json("log", "last")["nodes"]
    there.json("verify")
    for place, folder in ((told, "one"), (there, "other")):
        place.json("restore", "last", "rec_000002", "--into", str(tmp_path / folder))
    assert tree(tmp_path / "one") == tree(tmp_path / "other")


@needs_namespaces
def test_an_imported_run_replays(told: Desk, there: Desk, tmp_path: Path) -> None:
    file = tmp_path / "run.tar.gz"
    told.json("export", "last", str(file))
    there.json("import", str(file))
    assert there.json("replay", "last")["divergence"] is None


def test_a_new_store_is_the_owners_alone(told: Desk, there: Desk, tmp_path: Path) -> None:
    file = tmp_path / "run.tar.gz"
    told.json("export", "last", str(file))
    there.json("import", str(file))
    for home in (told.home, there.home):
        folders = [home, *(path for path in home.rglob("*") if path.is_dir())]
        assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


def test_a_run_is_never_imported_over_another(told: Desk, tmp_path: Path) -> None:
    file = tmp_path / "run.tar.gz"
    told.json("export", "last", str(file))
    before = tree(told.home / "runs")
    assert "already" in told.json("import", str(file), code=5)["error"]["message"]
    assert tree(told.home / "runs") == before


def test_a_file_is_only_replaced_when_told_so(told: Desk, tmp_path: Path) -> None:
    file = tmp_path / "mine.tar.gz"
    file.write_text("something of mine")
    assert "--force" in told.json("export", "last", str(file), code=5)["error"]["message"]
    assert file.read_text() == "something of mine"
    told.json("export", "last", str(file), "--force")


Members = list[tuple[tarfile.TarInfo, bytes]]


def _rewrite(file: Path, change: Callable[[Members], Members]) -> None:
    with tarfile.open(file) as archive:
        members = [(info, archive.extractfile(info).read()) for info in archive]  # type: ignore[union-attr]
    with tarfile.open(file, "w:gz") as archive:
        for info, data in change(members):
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def _named(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = "/etc/passwd"
    return info


def _listed(members: Members, name: str) -> Members:
    """The archive with one more member that its contents name, as a forger would write it."""
    contents = json.loads(members[0][1])
    contents["files"][name] = ["e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 0]
    return [(members[0][0], json.dumps(contents).encode()), *members[1:], (_named(name), b"")]


def _with(members: Members, **changed: Any) -> Members:
    contents = {**json.loads(members[0][1]), **changed}
    return [(members[0][0], json.dumps(contents).encode()), *members[1:]]


def _without(members: Members, *names: str) -> Members:
    """The archive without these members, and contents that do not name them."""
    contents = json.loads(members[0][1])
    contents["files"] = {name: of for name, of in contents["files"].items() if name not in names}
    kept = [each for each in members[1:] if each[0].name not in names]
    return [(members[0][0], json.dumps(contents).encode()), *kept]


def _altered(members: Members, name: str, data: bytes) -> Members:
    """The archive with other bytes in one member, which its contents agree with."""
    contents = json.loads(members[0][1])
    contents["files"][name] = [hashlib.sha256(data).hexdigest(), len(data)]
    rest = [(info, data if info.name == name else old) for info, old in members[1:]]
    return [(members[0][0], json.dumps(contents).encode()), *rest]


STRANGERS = (
    "hooks/post-checkout",
    "objects/info/alternates",
    "objects/ab/" + "c" * 38,
    "objects/pack/pack-x.idx",
    "info/grafts",
    "packed-refs",
    "commondir",
    "refs/heads/main",
    "config.worktree",
)
IDS: tuple[Any, ...] = ("--upload-pack=touch planted", "HEAD", "", "A" * 40, "0" * 39, 7, None, ["0" * 40])

SPOILED: dict[str, tuple[Callable[[Members], Members], int]] = {
    "a member out of the store": (lambda members: _listed(members, "run/../../../planted"), 5),
    "an absolute member": (lambda members: _listed(members, "/tmp/planted"), 5),
    "another file in the run": (lambda members: _listed(members, "run/agent.log"), 5),
    "a link": (lambda members: [*members, (_named("run/blobs/" + "0" * 64, tarfile.SYMTYPE), b"")], 5),
    "a member too many": (lambda members: [*members, (_named("run/segment-0009.jsonl"), b"")], 4),
    "a member too few": (lambda members: members[:-1], 4),
    "an altered member": (
        lambda members: [*members[:-1], (members[-1][0], members[-1][1][:-1] + b"!")],
        4,
    ),
    "a newer format": (lambda members: _with(members, format=99), 4),
    "another run's id": (lambda members: _with(members, run_id="20200101-000000-ffffff"), 4),
    "no last segment": (lambda members: _without(members, "run/segment-0001.jsonl"), 4),
    "no first segment": (lambda members: _without(members, "run/segment-0000.jsonl"), 4),
    "a run's id that leads out": (lambda members: _with(members, run_id="../../planted"), 4),
    "no list of snapshots": (lambda members: _with(members, snapshots="0" * 40), 4),
    "a snapshot that is not there": (lambda members: _with(members, snapshots=["0" * 40]), 4),
    **{f"snapshot {each!r}": (partial(_with, snapshots=[each]), 4) for each in IDS},
    **{f"{name} in git": (partial(_listed, name=f"snapshots.git/{name}"), 5) for name in STRANGERS},
    **{
        f"an altered {name}": (partial(_altered, name=f"snapshots.git/{name}", data=b"[core]\n"), 5)
        for name in ("config", "HEAD", "info/attributes")
    },
    "no contents": (lambda members: members[1:], 2),
}


@pytest.mark.parametrize("spoiled", SPOILED)
def test_a_spoiled_archive_brings_nothing(spoiled: str, told: Desk, there: Desk, tmp_path: Path) -> None:
    file = tmp_path / "run.tar.gz"
    told.json("export", "last", str(file))
    change, code = SPOILED[spoiled]
    _rewrite(file, change)
    failed = there.json("import", str(file), code=code)
    assert failed["error"]["message"]
    assert there.json("list") == []
    assert [path.name for path in there.home.rglob("*") if path.is_file()] == []
    assert not (tmp_path / "planted").exists()


def _cut(members: Members, *, listed: bool) -> Members:
    """The log without its last node and all after it; with `listed` the contents agree with that."""
    name = "run/segment-0001.jsonl"
    data = next(data for info, data in members if info.name == name)
    lines = data.splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if b'"kind":"tool"' in line)
    shorter = b"".join(lines[:last])
    if listed:
        return _altered(members, name, shorter)
    return [(info, shorter if info.name == name else old) for info, old in members]


def test_a_log_that_was_cut_is_refused_or_has_another_digest(told: Desk, there: Desk, tmp_path: Path) -> None:
    file = tmp_path / "run.tar.gz"
    exported = told.json("export", "last", str(file))
    _rewrite(file, partial(_cut, listed=False))
    assert "run/segment-0001.jsonl" in there.json("import", str(file), code=4)["error"]["message"]

    told.json("export", "last", str(file), "--force")
    _rewrite(file, partial(_cut, listed=True))
    # a forger who writes the hashes as well has made the archive of a shorter run
    came = there.json("import", str(file))
    assert came["nodes"] < exported["nodes"]
    assert came["digest"] != exported["digest"]


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b garbage", b"PK\x03\x04", b"{}"])
def test_what_is_no_archive_is_said(content: bytes, told: Desk, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert str(file) in told.json("import", str(file), code=4)["error"]["message"]


def test_a_redacted_archive_holds_no_credential_and_no_file(desk: Desk, there: Desk, tmp_path: Path) -> None:
    secret = "sk-abcdefghijklmnopqrstuvwxyz123456"
    desk.json(*desk.run_arguments([f"sh echo {secret} | tee key.txt", "say done"]), code=1)
    file = tmp_path / "run.tar.gz"
    desk.json("export", "last", str(file), "--redact")
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path / "out", filter="data")
    assert all(secret.encode() not in data for data in tree(tmp_path / "out").values())
    assert there.json("import", str(file))["redacted"] is True
    assert there.json("log", "last")["nodes"]


def test_full_lines_hold_every_message(told: Desk, tmp_path: Path) -> None:
    file = tmp_path / "full.jsonl"
    told.json("export", "last", str(file), "--full")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["record_uid"] for line in lines] == [
        node["record_uid"] for node in told.json("log", "last")["nodes"]
    ]
    answers = [line for line in lines if line["kind"] == "llm"]
    assert all(isinstance(line["input"]["messages"], list) for line in answers)


def test_spans_name_their_parents(told: Desk, tmp_path: Path) -> None:
    file = tmp_path / "spans.json"
    told.json("export", "last", str(file), "--format", "otel")
    [scope] = json.loads(file.read_text())["resourceSpans"][0]["scopeSpans"]
    spans = scope["spans"]
    ids = {span["spanId"] for span in spans}
    assert len(ids) == len(spans) == 1 + len(told.json("log", "last")["nodes"])
    assert all(span["parentSpanId"] in ids for span in spans[1:])
    assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in spans)
    assert {span["name"].split()[0] for span in spans} == {"invoke_agent", "chat", "execute_tool"}


def test_trajectories_are_linked_a_document_a_segment(told: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "trajectories"
    told.json("export", "last", str(folder), "--format", "atif")
    documents = [json.loads(path.read_text()) for path in sorted(folder.iterdir())]
    names = [path.name for path in sorted(folder.iterdir())]
    assert [each.get("continued_trajectory_ref") for each in documents] == [*names[1:], None]
    for document in documents:
        assert document["schema_version"].startswith("ATIF-v1.")
        assert [step["step_id"] for step in document["steps"]] == list(range(1, len(document["steps"]) + 1))
        for step in document["steps"]:
            calls = {call["tool_call_id"] for call in step.get("tool_calls", [])}
            results = step.get("observation", {}).get("results", [])
            assert {each["source_call_id"] for each in results if "source_call_id" in each} <= calls


def test_a_shell_sees_the_files_of_a_node(told: Desk) -> None:
    before = tree(told.workspace)
    nodes = told.json("log", "last")["nodes"]
    done = told.call("shell", "last", nodes[-1]["record_uid"], "-c", "ls; touch scratch; exit 7")
    assert done.returncode == 7
    assert done.stdout
    assert tree(told.workspace) == before


def test_doctor_tells_what_is_here_and_what_to_install(desk: Desk) -> None:
    found = {each["what"]: each for each in desk.json("doctor")}
    assert found["store"]["state"] == "good"
    assert found["mini-swe-agent"]["state"] in ("good", "note")
    assert all(each["advice"] for each in found.values() if each["found"] == "not installed")
    assert {"shfmt-py", "sqlglot", "starlette"} <= set(found)
    assert not {"ruff", "mypy"} & set(found), "who develops this needs more than who uses it"


def test_doctor_says_when_the_store_cannot_be_written(desk: Desk) -> None:
    (desk.base / "file").write_text("no folder")
    environment = desk.environment(AGENTREWIND_HOME=str(desk.base / "file"))
    done = desk.call("doctor", environment=environment)
    assert done.returncode == 1
    assert "AGENTREWIND_HOME" in done.stdout
    assert shutil.which("git") is None or "git" in done.stdout
