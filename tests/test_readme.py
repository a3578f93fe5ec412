"""README and docs/debugging.md say what is so: what they show is printed, their commands and names exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import agentrewind
from agentrewind.adapters import ADAPTERS
from agentrewind.cli import COMMANDS
from tests.cli.test_replay import needs_namespaces

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
WALK = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8").partition("\n## Keep it from")[0]

RUN_ID = r"\d{8}-\d{6}-[0-9a-f]{6}"
VARYING = (RUN_ID, r"\d{4}-\d\d-\d\dT[\d:.]+Z", r"\d+(?:\.\d+)? (?:s|ms|kB|min|h|d)\b", r"\d+\.\dk/\d+\.\dk")
"""Ids, moments, durations and sizes, counts of tokens: not the same the next time."""


@dataclass(frozen=True)
class Demos:
    """Both ways in which the demo ends, in one store: the runs, and what the one with rewind printed."""

    base: Path
    failed: str
    accepted: str
    printed: str

    @property
    def home(self) -> Path:
        return self.base / "home"


def call(base: Path, arguments: list[str], *, typed: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"AGENTREWIND_HOME": str(base / "home"), "TMPDIR": "/tmp", "COLUMNS": "110"}
    return subprocess.run(
        [sys.executable, "-m", "agentrewind.cli", *arguments],
        cwd=base,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Demos:
    pytest.importorskip("minisweagent")
    base = tmp_path_factory.mktemp("demos")
    done = call(base, ["demo", "--strategy", "continue", "--workspace", "orders", "--json"])
    assert done.returncode == 1, done.stderr
    failed = json.loads(done.stdout)
    assert (failed["state"], failed["accepted"], failed["rewinds"]) == ("rejected", False, 0)
    assert (failed["submissions"], failed["scripted"]) == (5, True)
    done = call(base, ["demo"])
    assert done.returncode == 0, done.stderr
    accepted = re.search(RUN_ID, done.stdout)
    assert accepted is not None
    return Demos(base=base, failed=failed["run_id"], accepted=accepted[0], printed=done.stdout)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def normal(line: str) -> str:
    line = re.sub(RUN_ID, "RUN", line)
    return re.sub(r"/tmp/agentrewind-demo-\w+", "/tmp/agentrewind-demo", line)


def test_the_demo_prints_what_the_readme_shows(demos: Demos) -> None:
    printed = [
        normal(line).replace(str(demos.home), "~/.local/state/agentrewind")
        for line in demos.printed.splitlines()
    ]
    at = 0
    (block,) = blocks("text")
    for line in block.splitlines():
        wanted = line.rstrip("…")
        if not wanted.strip():
            continue
        place = next((index for index in range(at, len(printed)) if printed[index].startswith(wanted)), None)
        assert place is not None, f"the demo does not print, after line {at}: {wanted}"
        at = place + 1


def shown() -> Iterator[tuple[str, str]]:
    """The commands of the walk and what it shows of their output."""
    for block in re.findall(r"```console\n(.*?)```", WALK, re.DOTALL):
        for part in re.split(r"^\$ agentrewind ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def pattern(output: str, ids: Mapping[str, str]) -> str:
    """What matches the output: an ellipsis stands for a part of a line, or alone for any lines."""
    lines = []
    for line in output.splitlines():
        if line.strip() == "…":
            lines.append(r"[\s\S]*?")
        else:
            pieces = re.split(rf"({'|'.join(VARYING)}|\s+)", line)
            lines.append("".join(piece_pattern(piece, ids) for piece in pieces))
    # long lines are wrapped in the document
    return r"\s*".join(lines)


def piece_pattern(piece: str, ids: Mapping[str, str]) -> str:
    if piece.isspace():
        return r"\s+"
    if piece in ids:
        return ids[piece]
    for varying in VARYING:
        if re.fullmatch(varying, piece):
            return varying
    return r"[^\n]*".join(map(re.escape, piece.split("…")))


def compare(demos: Demos, *, replays: bool) -> int:
    """Compare what the walk shows with what is printed; how many commands that were."""
    ids: dict[str, str] = {}
    compared = 0
    for command, output in shown():
        for found in re.findall(RUN_ID, command + output):
            # the first run that it names is the one that failed
            ids.setdefault(found, demos.accepted if ids else demos.failed)
        name = command.split()[0]
        if name == "demo" or (name == "replay") != replays:
            continue
        # both demos have ended by now: `last` is the failed one until the other is compared with it
        last = demos.accepted if name == "diff" else demos.failed
        words = [last if word == "last" else ids.get(word, word) for word in shlex.split(command)]
        done = call(demos.base, words, typed="quit\n" if "--pdb" in words else "")
        assert re.search(pattern(output, ids), done.stdout), (command, done.stdout, done.stderr)
        compared += 1
    return compared


@needs_namespaces
def test_the_walk_shows_what_the_commands_print(demos: Demos) -> None:
    assert compare(demos, replays=False) == 8


@needs_namespaces
def test_the_walk_shows_what_replays_print(demos: Demos) -> None:
    assert compare(demos, replays=True) == 2


def test_the_commands_that_it_names_exist() -> None:
    named = set(re.findall(r"^\$ agentrewind (\w+)", "\n".join(blocks("console")), re.MULTILINE))
    assert len(named) >= 9
    assert named <= set(COMMANDS)


def test_the_harnesses_that_it_names_exist() -> None:
    named = set(re.findall(r"`--harness ([a-z-]+)`", README))
    assert named == set(ADAPTERS)


def test_the_functions_that_it_names_are_public() -> None:
    named = set(re.findall(r"agentrewind\.(\w+)\(", "\n".join(blocks("python"))))
    assert named == {"rewind_tools", "rewind_guidance", "call_tool"}
    assert named <= set(agentrewind.__all__)
    for name in agentrewind.__all__:
        assert getattr(agentrewind, name) is not None


def test_the_files_that_it_links_to_exist() -> None:
    for link in re.findall(r"\]\(((?!http)[^)#]+)\)", README):
        assert (ROOT / link).exists(), link
