"""Every command that looks at a run, given what it cannot use: clear words and the right exit code."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest

from agentrewind.sealed_line import seal, unseal
from tests.cli.desk import PROGRAM, REPOSITORY, Desk

COMMANDS: dict[str, list[str]] = {
    "log": ["RUN"],
    "show": ["RUN", "rec_000001"],
    "diff": ["RUN", "rec_000001", "rec_000003"],
    "bisect": ["RUN", "--check", "true"],
    "blame": ["RUN", "a.txt"],
    "candidates": ["RUN"],
    "replay": ["RUN"],
    "keep": ["RUN", "kept"],
    "restore": ["RUN", "rec_000001", "--into", "restored"],
}
WITH_NODES = {
    "show": ["RUN", "NODE"],
    "diff": ["RUN", "rec_000001", "NODE"],
    "bisect": ["RUN", "--check", "true", "--until", "NODE"],
    "blame": ["RUN", "a.txt", "--until", "NODE"],
    "replay": ["RUN", "--until", "NODE"],
    "restore": ["RUN", "NODE", "--into", "restored"],
}
PIPED = ("list", "log", "show", "diff", "blame", "candidates")


def _call(desk: Desk, name: str, given: list[str], run: str, node: str = "") -> Any:
    done = desk.call(name, *(each.replace("RUN", run).replace("NODE", node) for each in given))
    assert "Traceback" not in done.stderr
    return done


ALL = {**COMMANDS, "undo": ["RUN"], "verify": ["RUN"], "run": ["--resume", "RUN"]}


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_run_names_the_nearest(told: Desk, name: str) -> None:
    run_id = told.only_run().run_id
    for wrong in (run_id[:-1] + "x", run_id.replace("-", "_")):
        done = _call(told, name, ALL[name], wrong)
        assert done.returncode == 2
        assert run_id in done.stderr
        assert done.stderr.count("\n") == 1
    for odd in ("", "../runs", "/", "\x1b[31m"):
        done = _call(told, name, ALL[name], odd)
        assert done.returncode == 2
        assert "\x1b" not in done.stderr


@pytest.mark.parametrize("name", WITH_NODES)
def test_an_unknown_node_names_the_nearest(told: Desk, name: str) -> None:
    done = _call(told, name, WITH_NODES[name], "last", "rec_00003")
    assert done.returncode == 2
    assert "rec_000003" in done.stderr
    assert not (told.base / "restored").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_newer_format_is_refused_by_number(rewound: Desk, name: str) -> None:
    path = rewound.only_run().segment_path(0)
    first, _, rest = path.read_bytes().partition(b"\n")
    header = unseal(first)
    header.pop("sum", None)
    path.write_bytes(seal(orjson.dumps({**header, "format": 77})) + rest)
    done = _call(rewound, name, COMMANDS[name], "last")
    assert done.returncode == 4
    assert "format 77" in done.stderr


def _cut_short(desk: Desk) -> str:
    """As if the process had been killed in the middle of a line; returns the last node that is whole."""
    path = desk.only_run().segment_path(1)
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith(b'{"record_uid":"rec_000012"'))
    path.write_bytes(b"".join(lines[:place]) + lines[place][:50])
    return "rec_000011"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_run_that_is_being_written_is_shown_up_to_its_last_whole_line(rewound: Desk, name: str) -> None:
    last = _cut_short(rewound)
    done = _call(rewound, name, COMMANDS[name], "last")
    # b.txt was never committed, a.txt was; a check that never fails finds nothing
    assert done.returncode == (1 if name == "bisect" else 0), done.stderr
    if name == "log":
        assert last in done.stdout
        assert "interrupted: 11 nodes" in done.stdout
        assert "unfinished" in done.stdout
    if name == "replay":
        assert "3 calls served" in done.stdout


@pytest.mark.parametrize("name", PIPED)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_closed_pipe_ends_without_a_word(told: Desk, name: str, as_json: bool) -> None:
    given = [each.replace("RUN", "last") for each in COMMANDS.get(name, [])]
    words = [*PROGRAM, name, *given, *(["--json"] if as_json else [])]
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{' '.join(words)} | head -c 5"],
        env=told.environment(),
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    assert len(done.stdout) == 5
    assert done.returncode in (0, 141)


@pytest.mark.parametrize("name", PIPED)
def test_colours_are_for_terminals_that_want_them(told: Desk, name: str) -> None:
    given = [each.replace("RUN", "last") for each in COMMANDS.get(name, [])]
    coloured = {"PAGER": "cat", "LINES": "500", "TERM": "xterm-256color"}
    plain = told.call(name, *given, environment=told.environment(**coloured))
    assert "\x1b" not in plain.stdout
    for no_color in ("", "1"):
        done = subprocess.run(
            ["script", "-qec", " ".join([*PROGRAM, name, *given]), "/dev/null"],
            env=told.environment(**coloured, NO_COLOR=no_color),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0
        # a list of sound runs, and candidates without notes, may have nothing to colour but titles
        assert (b"\x1b[" in done.stdout) is (no_color == "")


@pytest.mark.parametrize("name", ["diff", "bisect", "blame", "keep"])
def test_wrong_usage_is_told_with_the_usage(told: Desk, name: str) -> None:
    done = told.call(name)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: agentrewind ")
    error = told.json(name, code=2)["error"]
    assert error["type"] == "MissingParameter"


# --- documents, which are read in review ---

GOLDEN = REPOSITORY / "tests" / "golden"
DOCUMENTS = {
    "list": ["list"],
    "log": ["log", "last"],
    "log-failed": ["log", "last", "--failed"],
    "show-llm": ["show", "last", "rec_000003"],
    "show-tool": ["show", "last", "rec_000002"],
    "diff": ["diff", "last", "rec_000001", "rec_000003"],
    "diff-runs": ["diff", "last", "last"],
    "candidates": ["candidates", "last"],
    "error": ["show", "last", "rec_999999"],
}


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk with the run of format 1 that is never written again; its snapshots are gone."""
    desk = Desk(base=tmp_path_factory.mktemp("golden"))
    shutil.copytree(GOLDEN / "format-1" / "three-segments", desk.home / "runs" / "three-segments")
    return desk


def _cut(value: Any) -> Any:
    """The same with long texts cut short: it is the fields that are read here."""
    match value:
        case str() if len(value) > 200:
            return f"{value[:40]} … {len(value)} characters"
        case list():
            return [_cut(item) for item in value]
        case dict():
            return {key: _cut(item) for key, item in value.items()}
        case _:
            return value


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_are_as_reviewed(golden: Desk, name: str, update_golden: bool) -> None:
    done = golden.call(*DOCUMENTS[name], "--json")
    text = json.dumps(_cut(json.loads(done.stdout)), indent=1, ensure_ascii=False) + "\n"
    text = text.replace(str(golden.base), "BASE")
    path = GOLDEN / "cli" / f"{name}.json"
    if update_golden:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path} differs; review, then --update-golden"


def test_every_document_has_its_place_here() -> None:
    kept = {path.stem for path in Path(GOLDEN / "cli").glob("*.json")}
    assert set(DOCUMENTS) <= kept
