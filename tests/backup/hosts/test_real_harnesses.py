"""Claude Code, Codex and Gemini CLI themselves with the hook, against a scripted model; where installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agentrewind.backup.hosts.installing import apply, install_changes
from tests.backup.hosts.conftest import Place
from tests.backup.hosts.scripted_models import scripted

_CODEX = """
model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""


def _claude_code(place: Place, url: str) -> tuple[list[str], dict[str, str]]:
    words = ["claude", "-p", "go", "--allowedTools", "Bash", "--output-format", "json"]
    quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return words, {**quiet, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-none"}


def _codex(place: Place, url: str) -> tuple[list[str], dict[str, str]]:
    settings = place.base / "home" / ".codex"
    settings.mkdir(exist_ok=True)
    (settings / "config.toml").write_text(_CODEX.format(url=url), encoding="utf-8")
    words = ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return [*words, "--dangerously-bypass-hook-trust", "go"], {"SCRIPTED_KEY": "none"}


def _gemini_cli(place: Place, url: str) -> tuple[list[str], dict[str, str]]:
    settings = place.base / "home" / ".gemini" / "settings.json"
    document = json.loads(settings.read_text("utf-8"))
    document["security"] = {"auth": {"selectedType": "gemini-api-key"}}
    settings.write_text(json.dumps(document), encoding="utf-8")
    words = ["gemini", "--yolo", "-m", "gemini-2.5-flash", "-p", "go"]
    return words, {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "none",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harness", "program", "started"),
    [
        ("claude-code", "claude", _claude_code),
        ("codex", "codex", _codex),
        ("gemini-cli", "gemini", _gemini_cli),
    ],
)
def test_a_real_harness_preserves_stops_and_passes(
    harness: str, program: str, started: object, place: Place, tmp_path: Path
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    assert callable(started)
    home = place.base / "home"
    ran = place.base / "ran"
    (place.base / "ws").mkdir()
    apply(install_changes(harness, home, ("--on-unknown", "block")))
    commands = [f"rm {place.file}", f"touch {ran} && ./unknown-tool", "echo read-it"]
    with scripted(commands) as script:
        words, more = started(place, script.url)
        done = subprocess.run(
            words,
            env={**place.environment, **more, "PATH": os.environ["PATH"]},
            cwd=place.base / "ws",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=180,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(script.results) == 3, script.results
    assert "blocked: nothing was run" in script.results[1]
    assert "read-it" in script.results[2]
    assert not ran.exists()
    assert not place.file.exists()
    entries = list(place.log.read().entries.values())
    assert [each.state for each in entries] == ["preserved", "blocked"]
    assert entries[0].after == ""  # the hook was asked after the call as well


@pytest.mark.slow
def test_hermes_takes_the_settings_and_the_answers(place: Place) -> None:
    if shutil.which("hermes") is None:
        pytest.skip("hermes is not installed")
    home = place.base / "home"
    apply(install_changes("hermes", home, ("--on-unknown", "block")))
    said = []
    for command in ("./unknown-tool", "ls"):
        payload = {"tool_name": "terminal", "tool_input": {"command": command}, "session_id": "s"}
        payload["args"] = payload["tool_input"]
        (place.base / "payload.json").write_text(json.dumps(payload), encoding="utf-8")
        words = ["hermes", "hooks", "test", "pre_tool_call", "--for-tool", "terminal", "--payload-file"]
        done = subprocess.run(
            [*words, str(place.base / "payload.json")],
            env={**place.environment, "HERMES_HOME": str(home / ".hermes"), "PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        said.append(next((line for line in done.stdout.splitlines() if "parsed" in line), ""))
    assert '"action": "block"' in said[0]
    assert "block" not in said[1]
