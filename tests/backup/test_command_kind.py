"""Rules of a user's own: programs that print a state and take it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrewind.backup.kind import CaptureError, UnclearError
from agentrewind.backup.kinds.table import kind_of
from agentrewind.backup.rules.loading import parse_rules
from agentrewind.backup.store import BackupStore
from agentrewind.backup.values import Command, Context
from agentrewind.records import Json
from tests.backup.trial import command, perform, preserve

TOOL = """#!/bin/sh
# a registry that keeps values by name: get NAME, set NAME VALUE, load NAME (from stdin or a file)
set -e
case $1 in
get) cat "$STATE/$2" ;;
set) printf '%s\\n' "$3" > "$STATE/$2" ;;
load) if [ -n "$3" ]; then cat "$3"; else cat; fi > "$STATE/$2" ;;
esac
"""
PARAMETERS: dict[str, Json] = {
    "state": "value {2}",
    "capture": ["registry", "get", "{2}"],
    "restore": ["registry", "load", "{2}"],
}


@pytest.fixture
def context(tmp_path: Path, clean_env: dict[str, str]) -> Context:
    (tmp_path / "state").mkdir()
    tool = tmp_path / "bin" / "registry"
    tool.parent.mkdir()
    tool.write_text(TOOL)
    tool.chmod(0o755)
    env = {**clean_env, "PATH": f"{tool.parent}:{clean_env['PATH']}", "STATE": str(tmp_path / "state")}
    context = Context(cwd=tmp_path, env=env, home=tmp_path)
    perform(_call("registry set colour blue", context), context)
    return context


@pytest.mark.parametrize("restore", [["registry", "load", "{2}"], ["registry", "load", "{2}", "{file}"]])
def test_a_state_that_a_program_prints_comes_back(
    restore: list[Json], store: BackupStore, context: Context
) -> None:
    call = _call("registry set colour red", context)
    kept = preserve("command", call, store, context, **{**PARAMETERS, "restore": restore})
    perform(call, context)
    assert _value(context) == "red\n"

    [outcome] = kept.restore()

    assert outcome.restored == ("value colour",)
    assert outcome.missing == ()
    assert _value(context) == "blue\n"


def test_without_a_way_back_nothing_is_called_restored(store: BackupStore, context: Context) -> None:
    call = _call("registry set colour red", context)
    kept = preserve("command", call, store, context, **{**PARAMETERS, "restore": []})
    perform(call, context)
    [outcome] = kept.restore()
    assert outcome.restored == ()
    assert outcome.missing
    assert _value(context) == "red\n"


def test_a_program_that_fails_or_prints_nothing_is_no_capture(store: BackupStore, context: Context) -> None:
    with pytest.raises(CaptureError, match="registry"):
        preserve("command", _call("registry set other 1", context), store, context, **PARAMETERS)
    (context.cwd / "state" / "empty").write_text("")
    with pytest.raises(CaptureError, match="nothing"):
        preserve("command", _call("registry set empty 1", context), store, context, **PARAMETERS)


def test_a_call_without_the_operand_is_unclear(context: Context) -> None:
    with pytest.raises(UnclearError, match="operand 2"):
        kind_of("command").targets(_call("registry set", context), PARAMETERS, context)


def _call(text: str, context: Context) -> Command:
    return command(text, context.cwd)


def _value(context: Context) -> str:
    return (context.cwd / "state" / "colour").read_text()


def test_an_option_that_the_rule_says_takes_a_value_hands_on_no_operand(context: Context) -> None:
    text = """[[rule]]
id = "registry.set"
kind = "command"
tier = "pair"
program = ["registry"]
subcommand = ["set"]
values = ["-n"]
parameters = { state = "value {2}", capture = ["registry", "get", "{2}"], restore = [] }
captures = "the value"
restore = "by a person"
"""
    [rule] = parse_rules(text, "rules.toml")
    call = _call("registry set -n place colour red", context)
    [target] = kind_of(rule.kind).targets(call, rule.parameters, context)
    assert target.name == "value colour"
