"""Putting the hook into settings and taking it out: nothing else changes, and what was there is kept."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.backup.hosts.installing import COPY, apply, install_changes, uninstall_changes
from agentrewind.backup.hosts.table import HOSTS
from agentrewind.errors import ProtectedError
from tests.backup.hosts.conftest import Place, claude
from tests.cli.desk import Desk

SETTINGS = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini-cli": ".gemini/settings.json",
    "openhands": ".openhands/hooks.json",
}


def _tree(home: Path) -> dict[str, bytes]:
    return {str(each.relative_to(home)): each.read_bytes() for each in home.rglob("*") if each.is_file()}


@pytest.mark.parametrize("harness", HOSTS)
def test_installing_twice_is_installing_once_and_uninstalling_leaves_nothing(
    harness: str, tmp_path: Path
) -> None:
    apply(install_changes(harness, tmp_path, ("--on-failure", "warn")))
    once = _tree(tmp_path)
    assert once
    assert all(change.empty for change in install_changes(harness, tmp_path, ("--on-failure", "warn")))
    apply(install_changes(harness, tmp_path, ("--on-failure", "block")))
    assert _tree(tmp_path) != once
    apply(uninstall_changes(harness, tmp_path))
    assert _tree(tmp_path) == {}
    assert all(change.empty for change in uninstall_changes(harness, tmp_path))


_LEAF = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5)
_JSON = st.recursive(
    _LEAF, lambda each: st.lists(each, max_size=2) | st.dictionaries(st.text(max_size=4), each, max_size=2)
)
_GROUP = st.fixed_dictionaries({"matcher": st.text(max_size=3), "hooks": st.lists(_JSON, max_size=2)}) | _JSON
_HOOKS = st.dictionaries(
    st.sampled_from(["PreToolUse", "PostToolUse", "Stop"]), st.lists(_GROUP, min_size=1, max_size=2)
)


@given(st.dictionaries(st.sampled_from(["model", "permissions", "x"]), _JSON, max_size=2), _HOOKS)
def test_what_else_stands_in_the_settings_stays(
    tmp_path_factory: pytest.TempPathFactory, others: dict[str, object], hooks: dict[str, object]
) -> None:
    home = tmp_path_factory.mktemp("home")
    document = {**others, **({"hooks": hooks} if hooks else {})}
    path = home / SETTINGS["claude-code"]
    path.parent.mkdir()
    path.write_text(json.dumps(document), encoding="utf-8")
    apply(install_changes("claude-code", home, ()))
    installed = json.loads(path.read_text("utf-8"))
    for event, groups in hooks.items():
        assert isinstance(groups, list)
        assert installed["hooks"][event][: len(groups)] == groups
    assert {key: value for key, value in installed.items() if key != "hooks"} == others
    apply(uninstall_changes("claude-code", home))
    original = json.dumps(document)
    assert path.read_text("utf-8") == original
    assert path.with_name(path.name + COPY).read_text("utf-8") == original
    assert path.with_name(path.name + COPY).read_text("utf-8") == json.dumps(document)


@pytest.mark.parametrize(
    "text", ["{", "[]", "// comment\n{}", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', "\udcff"]
)
def test_settings_that_are_not_understood_are_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / SETTINGS["claude-code"]
    path.parent.mkdir()
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ProtectedError, match="by hand"):
        install_changes("claude-code", tmp_path, ())
    assert _tree(tmp_path) == {SETTINGS["claude-code"]: text.encode("utf-8", "surrogateescape")}


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    changes = install_changes("claude-code", tmp_path, ())
    path = tmp_path / SETTINGS["claude-code"]
    path.parent.mkdir()
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ProtectedError, match="meanwhile"):
        apply(changes)
    assert path.read_text("utf-8") == "{}"


def test_mode_and_link_of_a_settings_file_stay(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}", encoding="utf-8")
    real.chmod(0o640)
    path = tmp_path / SETTINGS["codex"]
    path.parent.mkdir()
    path.symlink_to(real)
    apply(install_changes("codex", tmp_path, ()))
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "hooks" in json.loads(real.read_text("utf-8"))


def test_hooks_of_ones_own_in_yaml_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / ".hermes" / "config.yaml"
    path.parent.mkdir()
    path.write_text("model: x\nhooks:\n  pre_tool_call: []\n", encoding="utf-8")
    with pytest.raises(ProtectedError, match="by hand") as caught:
        install_changes("hermes", tmp_path, ())
    assert "fail_closed: true" in str(caught.value)


def test_yaml_without_hooks_gets_a_block_that_goes_again(tmp_path: Path) -> None:
    path = tmp_path / ".hermes" / "config.yaml"
    path.parent.mkdir()
    path.write_text("model: x  # mine", encoding="utf-8")
    apply(install_changes("hermes", tmp_path, ()))
    assert path.read_text("utf-8").startswith("model: x  # mine\n# begin of")
    apply(uninstall_changes("hermes", tmp_path))
    assert path.read_text("utf-8") == "model: x  # mine\n"


@pytest.mark.parametrize("harness", SETTINGS)
def test_the_installed_command_preserves(harness: str, place: Place) -> None:
    home = place.base / "home"
    apply(install_changes(harness, home, ("--on-failure", "block")))
    hooks = json.loads((home / SETTINGS[harness]).read_text("utf-8"))["hooks"]
    command = next(iter(hooks.values()))[0]["hooks"][0]["command"]
    document = dict(claude("rm @HOME/notes.txt"))
    if harness == "gemini-cli":
        document |= {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command"}
    text = orjson.dumps(document).decode().replace("@HOME", str(home))
    done = subprocess.run(
        ["sh", "-c", command], input=text.encode(), env=place.environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert place.states() == [("@HOME/notes.txt", "preserved")]


def test_the_plugin_for_opencode_asks_and_stops(place: Place, tmp_path: Path) -> None:
    home = place.base / "home"
    apply(install_changes("opencode", home, ("--on-unknown", "block")))
    script = f"""
        import {{ AgentRewind }} from "{home}/.config/opencode/plugins/agentrewind.js";
        const hooks = await AgentRewind({{ directory: "{home}" }});
        const call = (command, callID) => hooks["tool.execute.before"](
            {{ tool: "bash", sessionID: "s", callID }}, {{ args: {{ command }} }});
        await call("rm {home}/notes.txt", "a");
        await hooks["tool.execute.after"]({{ tool: "bash", sessionID: "s", callID: "a" }});
        await call("make", "b").then(() => console.log("ran"), (error) => console.log(error.message));
    """
    done = _node(script, place)
    assert "blocked: nothing was run" in done
    assert [state for _, state in place.states()] == ["unchanged", "blocked"]


def test_the_plugin_for_openclaw_asks_and_stops(place: Place) -> None:
    home = place.base / "home"
    apply(install_changes("openclaw", home, ("--on-unknown", "block")))
    script = f"""
        import plugin from "{home}/.openclaw/extensions/agentrewind/index.js";
        const on = {{}};
        plugin.register({{ on: (name, handler) => {{ on[name] = handler; }} }});
        const call = (command) => on["before_tool_call"](
            {{ toolName: "exec", params: {{ command }} }}, {{ workspaceDir: "{home}" }});
        console.log(JSON.stringify([await call("ls") ?? null, await call("make")]));
    """
    passed, blocked = json.loads(_node(script, place))
    assert passed is None
    assert blocked["block"] is True
    assert "blocked: nothing was run" in blocked["blockReason"]


def _node(script: str, place: Place) -> str:
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        env={**place.environment, "PATH": os.environ["PATH"], "NODE_NO_WARNINGS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_shows_before_it_does(tmp_path: Path) -> None:
    desk = Desk(base=tmp_path)
    environment = desk.environment(HOME=str(tmp_path))
    dry = desk.call("backup", "install", "claude-code", "--dry-run", environment=environment)
    assert "+++" in dry.stdout
    assert not (tmp_path / ".claude").exists()
    done = desk.call("backup", "install", "claude-code", "--json", environment=environment)
    document = json.loads(done.stdout.splitlines()[-1])
    assert document["done"] is True
    command = json.loads((tmp_path / SETTINGS["claude-code"]).read_text("utf-8"))["hooks"]["PreToolUse"][0][
        "hooks"
    ][0]
    assert shlex.split(command["command"])[-2:] == ["--deadline", "540"]
    assert command["timeout"] == 600
    unknown = desk.call("backup", "install", "nobody", environment=environment)
    assert unknown.returncode == 2
