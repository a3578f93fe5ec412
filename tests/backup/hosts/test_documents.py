"""Documents of every harness and what is answered, exactly: golden files that are read in review."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from agentrewind.backup.hosts.handling import answer
from agentrewind.backup.hosts.request import Request
from agentrewind.backup.hosts.table import HOSTS
from agentrewind.clock import SystemClock
from tests.backup.hosts.conftest import Place

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "hooks"

_CLAUDE = {"session_id": "s", "transcript_path": "/t", "cwd": "@HOME", "permission_mode": "default"}
_BASH = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "$"}}
_PLUGIN = {"when": "before", "arguments": {"command": "$"}, "call_id": "c", "session": "s", "cwd": "@HOME"}

FORMS: dict[str, dict[str, Any]] = {
    "claude-code": {**_CLAUDE, **_BASH, "tool_use_id": "toolu_1"},
    "codex": {**_CLAUDE, **_BASH, "model": "m", "tool_use_id": "call_1", "transcript_path": None},
    "hermes": {
        "hook_event_name": "pre_tool_call",
        "tool_name": "terminal",
        "tool_input": {"command": "$"},
        "session_id": "s",
        "cwd": "@HOME",
        "extra": {"tool_call_id": "call_1"},
    },
    "gemini-cli": {
        "session_id": "s",
        "transcript_path": "/t",
        "cwd": "@HOME",
        "hook_event_name": "BeforeTool",
        "timestamp": "2026-01-01T00:00:00Z",
        "tool_name": "run_shell_command",
        "tool_input": {"command": "$"},
    },
    "openhands": {
        "event_type": "PreToolUse",
        "tool_name": "terminal",
        "tool_input": {"command": "$"},
        "session_id": "s",
        "working_dir": "@HOME",
        "metadata": {},
    },
    "opencode": {**_PLUGIN, "tool": "bash"},
    "openclaw": {**_PLUGIN, "tool": "exec"},
}

COMMANDS = {"reads": "ls -la | grep x", "preserved": "rm @HOME/notes.txt", "not covered": "make install"}

RAW = {
    "nothing": "",
    "no JSON": "{",
    "no object": "[1]",
    "null": "null",
    "another event": '{"hook_event_name":"SessionStart","event_type":"SessionStart","when":"never"}',
    "no event": '{"tool_name":"Bash","tool":"Bash","tool_input":{"command":"rm x"}}',
    "an unknown event of a tool": '{"hook_event_name":"Nope","when":"nope","tool_name":"Bash","tool":"Bash"}',
    "not UTF-8": "\udcff",
    "deep": "[" * 500,
}


def _cases(harness: str) -> dict[str, tuple[tuple[str, ...], str]]:
    form = orjson.dumps(FORMS[harness]).decode()
    found: dict[str, tuple[tuple[str, ...], str]] = {}
    for name, command in COMMANDS.items():
        found[name] = ((), form.replace("$", command))
    found["not covered, refused"] = (("--on-unknown", "block"), form.replace("$", "make install"))
    found["not covered, outside alone"] = (
        ("--on-unknown", "block", "--trigger", "outside"),
        form.replace("$", "make install"),
    )
    found["a workspace that is covered"] = (("--workspace", "@HOME"), form.replace("$", "rm @HOME/notes.txt"))
    found["an option that is not known"] = (("--quietly", "yes"), form)
    document = dict(FORMS[harness])
    arguments = "arguments" if "arguments" in document else "tool_input"
    tool = "tool" if "tool" in document else "tool_name"
    found["no arguments"] = ((), orjson.dumps({**document, arguments: None}).decode())
    found["no arguments, warned"] = (
        ("--on-failure", "warn"),
        orjson.dumps({**document, arguments: None}).decode(),
    )
    found["no tool"] = ((), orjson.dumps({**document, tool: ""}).decode())
    folder = "working_dir" if "working_dir" in document else "cwd"
    found["a folder from elsewhere"] = ((), orjson.dumps({**document, folder: "relative"}).decode())
    for name, text in RAW.items():
        found[name] = ((), text)
    return found


@pytest.mark.parametrize("harness", HOSTS)
def test_answers_are_as_reviewed(harness: str, tmp_path: Path, *, update_golden: bool) -> None:
    found: dict[str, Mapping[str, object]] = {}
    for number, (name, (options, text)) in enumerate(_cases(harness).items()):
        (tmp_path / str(number)).mkdir()
        place = Place(tmp_path / str(number))
        place.run.rmdir()
        home = str(place.base / "home")
        reply = answer(
            Request(
                words=(harness, *(option.replace("@HOME", home) for option in options)),
                directory=home,
                environment=place.environment,
                document=text.replace("@HOME", home).encode("utf-8", "surrogateescape"),
            ),
            SystemClock(),
        )
        found[name] = {
            "options": list(options),
            "document": text.encode("utf-8", "replace").decode(),
            "stdout": reply.stdout.replace(home, "@HOME"),
            "stderr": reply.stderr.replace(home, "@HOME"),
            "code": reply.code,
            "entries": [list(each) for each in place.states()],
        }
    text = orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n"
    path = GOLDEN / f"{harness}.json"
    if update_golden:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path} differs; review, then --update-golden"


@pytest.mark.parametrize("harness", HOSTS)
def test_what_passes_never_allows_past_the_users_permissions(harness: str) -> None:
    cases = orjson.loads((GOLDEN / f"{harness}.json").read_bytes())
    for name in ("reads", "preserved", "not covered"):
        assert "allow" not in cases[name]["stdout"]
        assert cases[name]["code"] == 0
    assert cases["preserved"]["entries"] == [["@HOME/notes.txt", "preserved"]]
    assert cases["not covered"]["entries"][0][1] == "not covered"


@pytest.mark.parametrize(
    "name",
    [
        "no arguments",
        "no tool",
        "nothing",
        "no JSON",
        "no object",
        "null",
        "no event",
        "an unknown event of a tool",
        "a folder from elsewhere",
        "not UTF-8",
        "deep",
    ],
)
@pytest.mark.parametrize("harness", HOSTS)
def test_what_cannot_be_read_is_refused(harness: str, name: str) -> None:
    case = orjson.loads((GOLDEN / f"{harness}.json").read_bytes())[name]
    assert "blocked: the backup hook failed" in case["stdout"]


@pytest.mark.parametrize("harness", HOSTS)
def test_a_warning_is_said_aloud(harness: str) -> None:
    case = orjson.loads((GOLDEN / f"{harness}.json").read_bytes())["no arguments, warned"]
    assert "the call runs without a backup" in case["stdout"] + case["stderr"]
    assert case["code"] == 0
