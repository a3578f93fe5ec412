"""The README says what is so: its demo output is the demo's, its commands and names exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import agentrewind
from agentrewind.adapters import ADAPTERS
from agentrewind.cli import COMMANDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def normal(line: str) -> str:
    line = re.sub(r"\d{8}-\d{6}-[0-9a-f]{6}", "RUN", line)
    return re.sub(r"/tmp/agentrewind-demo-\w+", "/tmp/agentrewind-demo", line)


def test_the_demo_prints_what_the_readme_shows(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-m", "agentrewind.cli", "demo"],
        env={**os.environ, "AGENTREWIND_HOME": str(home), "TMPDIR": "/tmp", "COLUMNS": "110"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = [
        normal(line).replace(str(home), "~/.local/state/agentrewind") for line in done.stdout.splitlines()
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
