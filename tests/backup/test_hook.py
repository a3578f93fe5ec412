"""What happens around a call: when it is looked at, what is written down, and what the agent is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentrewind.backup.briefing import BRIEFING, TAG, is_tagged
from agentrewind.backup.entries import State
from agentrewind.backup.hook import shown
from agentrewind.backup.policy import BackupPolicy, Mode, OnFailure, OnUnknown, Trigger
from agentrewind.backup.values import ToolCall
from tests.backup.bench import Bench


def test_a_marked_call_is_never_passed_over(bench: Bench) -> None:
    call = bench.call("ls -la")
    assert bench.backups.before(call, "rec_000001").entries == ()
    guarded = bench.backups.before(replace(call, tagged=True), "rec_000001")
    assert [entry.state for entry in guarded.entries] == [State.NOT_COVERED]
    assert "marked" in guarded.entries[0].detail[0]


def test_the_mark_stands_in_the_field_for_a_reason_and_not_in_the_command() -> None:
    assert is_tagged({"command": "./deploy.sh", "reason": f"the old release. {TAG}"})
    assert not is_tagged({"command": f"echo '{TAG}'"})
    assert not is_tagged({"command": "ls", "reason": "looking"})
    assert not is_tagged(TAG)
    assert TAG in BRIEFING


def test_outside_alone_leaves_what_nobody_understands_without_an_entry(bench: Bench) -> None:
    bench.write("one.txt", "one\n")
    bench.policy = BackupPolicy(trigger=Trigger.OUTSIDE)
    assert bench.do("./unknown").entries == ()
    assert len(bench.do("rm one.txt").entries) == 1


def test_what_is_covered_is_kept_beside_what_is_not(bench: Bench) -> None:
    path = bench.write("one.txt", "one\n")
    bench.do("rm one.txt; ./unknown")
    assert [entry.state for entry in bench.entries()] == [State.PRESERVED, State.NOT_COVERED]
    bench.take_back()
    assert path.read_text() == "one\n"


def test_a_node_says_what_changed_and_whether_it_can_come_back(bench: Bench) -> None:
    bench.write("one.txt", "one\n")
    backups = bench.backups
    guarded = backups.before(bench.call("rm one.txt; rm -f nothing; ./unknown"), "rec_000001")
    bench.run("rm one.txt")
    external = backups.after(guarded)
    assert [(each["kind"], each["restorable"], each["state"]) for each in external] == [
        ("files", True, "preserved"),
        ("", False, "not covered"),
    ]
    assert backups.of_node("rec_000001") == external
    assert backups.of_node("rec_000002") == ()


def test_a_native_tool_is_preserved_for_by_its_path(bench: Bench) -> None:
    path = bench.write("one.txt", "one\n")
    call = ToolCall(name="write_file", arguments={"path": str(path), "content": "two"})
    (entry,) = bench.backups.before(call, None).entries
    path.write_text("two")
    assert entry.name == str(path)
    bench.take_back()
    assert path.read_text() == "one\n"


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("psql postgres://ann:s3cr3t@db/shop -c 'DELETE FROM x'", "psql postgres://[redacted]@db/shop -c"),
        ("PGPASSWORD=s3cr3t psql", "PGPASSWORD=[redacted] psql"),
        ("mysql --password=s3cr3t shop", "--password=[redacted] shop"),
        ("tool --token s3cr3t", "--token [redacted]"),
        ("curl 'https://x.invalid/?api_key=s3cr3t&n=1'", "api_key=[redacted]&n=1"),
    ],
)
def test_no_credential_of_a_command_is_in_its_entry(command: str, kept: str) -> None:
    text = shown({"command": command})
    assert "s3cr3t" not in text
    assert kept in text


def test_no_credential_of_a_call_is_in_its_entry_and_all_else_is() -> None:
    text = shown({"command": ["tool", "--token", "s3cr3t", "x"], "password": "s3cr3t", "n": 1})
    assert text == '{"command":["tool","--token","[redacted]","x"],"n":1,"password":"[redacted]"}'
    assert shown({"a": "tool --token", "b": "c", "d": "e"}) == '{"a":"tool --token","b":"c","d":"e"}'


def test_policies_are_inverted_by_their_json() -> None:
    for policy in (
        BackupPolicy(),
        BackupPolicy(
            mode=Mode.FULL,
            trigger=Trigger.OUTSIDE,
            on_failure=OnFailure.WARN,
            on_unknown=OnUnknown.BLOCK,
        ),
    ):
        assert BackupPolicy.from_json(policy.to_json()) == policy
