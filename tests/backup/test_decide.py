"""Which tier deals with a call, what is preserved and what nobody can tell."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentrewind.backup.decide import decide
from agentrewind.backup.rules.loading import load_rules
from agentrewind.backup.rules.matching import Rules
from agentrewind.backup.values import Context, Decision, Tier, ToolCall

RULES = load_rules(None)
PATCH = "*** Begin Patch\n*** Update File: @/a.txt\n@@\n-x\n*** Delete File: b.log\n*** End Patch"


class Desk:
    """A workspace and a place outside it."""

    def __init__(self, base: Path) -> None:
        self.inside = base / "workspace"
        self.outside = base / "outside"
        for place in (self.inside, self.outside):
            (place / "sub").mkdir(parents=True)
            for name in ("a.txt", "b.log", "sub/c.log"):
                (place / name).write_text(name, encoding="utf-8")
        self.context = Context(
            cwd=self.inside, env={"PATH": os.environ["PATH"], "OUT": str(self.outside)}, home=base,
            workspace=self.inside,
        )  # fmt: skip

    def shell(self, text: str, *, rules: Rules = RULES, tagged: bool = False) -> Decision:
        text = text.replace("@", str(self.outside))
        return decide(ToolCall(name="bash", arguments={"command": text}, tagged=tagged), self.context, rules)

    def names(self, decision: Decision) -> list[str]:
        return [each.name.replace(str(self.outside), "@") for each in decision.targets]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path.resolve())


@pytest.mark.parametrize(
    "text", ["ls -la @", "cat @/a.txt | wc -l", "cd @ && git log | head", "echo a >&2", ""]
)
def test_what_reads_makes_no_entry(desk: Desk, text: str) -> None:
    decision = desk.shell(text)
    assert (decision.read_only, decision.tier, decision.targets) == (True, Tier.NONE, ())


@pytest.mark.parametrize(
    "text", ["rm a.txt", "echo x > a.txt", "cd sub && rm c.log", "sed -i s/a/b/ a.txt", "mv a.txt d"]
)
def test_what_stays_inside_the_workspace_is_the_snapshots_business(desk: Desk, text: str) -> None:
    decision = desk.shell(text)
    assert (decision.read_only, decision.tier, decision.targets, decision.uncovered) == (
        False,
        Tier.NONE,
        (),
        (),
    )
    assert "workspace" in decision.reason


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("rm @/a.txt", ["@/a.txt"]),
        ("rm $OUT/a.txt", ["@/a.txt"]),
        ("rm ../outside/a.txt", ["@/a.txt"]),
        ("cd @ && rm a.txt", ["@/a.txt"]),
        ("cd @; rm a.txt", ["@/a.txt"]),
        ("bash -c 'cd @ && rm a.txt'", ["@/a.txt"]),
        ("rm a.txt @/a.txt", ["@/a.txt"]),
        ("rm @/*.txt", ["@/a.txt"]),
        ("for f in a.txt b.log; do rm @/$f; done", ["@/a.txt", "@/b.log"]),
        ("echo x > @/new", ["@/new"]),
        ("ls | tee @/a.txt", ["@/a.txt"]),
        ("{ ls; date; } > @/a.txt", ["@/a.txt"]),
        ("cp a.txt @/a.txt", ["@/a.txt"]),
        ("sed -i s/a/b/ @/a.txt", ["@/a.txt"]),
        ("find @ -name '*.log' -exec rm {} +", ["@/b.log", "@/sub/c.log"]),
        ("find @ -name '*.log' | xargs rm", ["@/b.log", "@/sub/c.log"]),
        ("find @ -name '*.log' -delete", ["@/b.log", "@/sub/c.log"]),
        ("ls; rm @/a.txt; ls", ["@/a.txt"]),
        ("rm @/a.txt; rm @/a.txt", ["@/a.txt"]),
        ("python3 --version && rm @/a.txt", ["@/a.txt"]),
    ],
)
def test_what_lies_outside_is_preserved_by_a_rule(desk: Desk, text: str, names: list[str]) -> None:
    decision = desk.shell(text)
    assert sorted(desk.names(decision)) == names
    assert decision.tier is Tier.PAIR
    assert decision.uncovered == ()
    assert len(decision.restore) == len(decision.targets)
    assert decision.rules


@pytest.mark.parametrize(
    "text",
    ["make", "python3 x.py", "bash run.sh", "curl -X POST http://x", "$CMD", "echo $(", "rm $UNKNOWN/x",
     "ssh host rm x", "find . -exec ./tool {} +", "ls | xargs rm", "PATH=/tmp/x:$PATH ls", "rm 'a"],
)  # fmt: skip
def test_what_nobody_can_tell_is_left_to_the_subagent(desk: Desk, text: str) -> None:
    decision = desk.shell(text)
    assert not decision.read_only
    assert decision.tier is Tier.SUBAGENT
    assert decision.uncovered


def test_a_part_that_nobody_can_tell_is_named_beside_what_is_preserved(desk: Desk) -> None:
    decision = desk.shell("make && rm @/a.txt && rm a.txt")
    assert desk.names(decision) == ["@/a.txt"]
    assert decision.tier is Tier.PAIR
    assert len(decision.uncovered) == 1
    assert decision.uncovered[0].startswith("make: ")


_PARTS = [
    "ls",
    "rm a.txt",
    "rm @/a.txt",
    "echo x > @/new",
    "cp a.txt @/b.log",
    "make",
    "./tool",
    "cat @/a.txt",
    "touch b.log",
]


@given(
    parts=st.lists(st.sampled_from(_PARTS), min_size=1, max_size=4),
    joint=st.sampled_from(["; ", " && ", " | ", "\n", " & "]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_compound_command_is_judged_by_its_parts(desk: Desk, parts: list[str], joint: str) -> None:
    whole = desk.shell(joint.join(parts))
    alone = [desk.shell(part) for part in parts]
    assert whole.read_only == all(each.read_only for each in alone)
    assert {each.name for each in whole.targets} == {each.name for part in alone for each in part.targets}
    assert set(whole.uncovered) == {each for part in alone for each in part.uncovered}
    assert set(whole.rules) == {each for part in alone for each in part.rules}


def test_what_the_agent_marked_is_not_let_by_as_reading(desk: Desk) -> None:
    assert desk.shell("ls", tagged=True).tier is Tier.SUBAGENT
    assert desk.shell("rm @/a.txt", tagged=True).tier is Tier.PAIR


def test_without_rules_nothing_that_changes_is_let_by(desk: Desk) -> None:
    for text in ("rm a.txt", "echo x > a.txt", "ls > @/x"):
        assert desk.shell(text, rules=Rules(())).tier is Tier.SUBAGENT
    assert desk.shell("ls", rules=Rules(())).read_only


@pytest.mark.parametrize(
    ("name", "arguments", "tier", "names"),
    [
        ("Read", {"file_path": "@/a.txt"}, Tier.NONE, []),
        ("Write", {"file_path": "@/a.txt", "content": "x"}, Tier.SNAPSHOT, ["@/a.txt"]),
        ("Edit", {"file_path": "a.txt"}, Tier.NONE, []),
        ("Bash", {"command": "rm @/a.txt", "description": "x"}, Tier.PAIR, ["@/a.txt"]),
        ("shell", {"command": ["bash", "-lc", "rm @/a.txt"], "workdir": "/"}, Tier.PAIR, ["@/a.txt"]),
        ("shell", {"command": ["rm", "a.txt"], "workdir": "@"}, Tier.PAIR, ["@/a.txt"]),
        (
            "apply_patch",
            {"input": PATCH},
            Tier.PAIR,
            ["@/a.txt"],
        ),
        ("apply_patch", {"input": "nothing that is a patch"}, Tier.SUBAGENT, []),
        ("never_heard_of", {"x": 1}, Tier.SUBAGENT, []),
        ("mcp__never__heard_of", {}, Tier.SUBAGENT, []),
        ("mcp__filesystem__read_file", {"path": "@/a.txt"}, Tier.NONE, []),
        ("mcp__k8s__pods_list", {}, Tier.NONE, []),
        ("mcp__k8s__kubectl_get", {"resourceType": "pods"}, Tier.NONE, []),
        ("mcp__postgres__query", {"sql": "select 1"}, Tier.NONE, []),
        ("mcp__postgres__query", {"sql": "COMMIT; DELETE FROM z; SELECT 1"}, Tier.SUBAGENT, []),
        ("mcp__postgres__query", {}, Tier.SUBAGENT, []),
        ("mcp__playwright__browser_click", {"ref": "x"}, Tier.SUBAGENT, []),
        ("mcp__playwright__browser_snapshot", {}, Tier.NONE, []),
    ],
)
def test_tools_by_name(
    desk: Desk, name: str, arguments: dict[str, object], tier: Tier, names: list[str]
) -> None:
    given_arguments = json.loads(json.dumps(arguments).replace("@", str(desk.outside)))
    decision = decide(ToolCall(name=name, arguments=given_arguments), desk.context, RULES)
    assert (decision.tier, desk.names(decision)) == (tier, names)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["command", "path", "sql", "x"]), inner)
    ),
    max_leaves=6,
)


@given(st.sampled_from(["bash", "Write", "mcp__postgres__query", "mcp__x", "x", ""]), _JSON)
@settings(max_examples=150, deadline=None)
def test_no_arguments_make_it_fail_or_read(name: str, arguments: object) -> None:
    context = Context(cwd=Path("/"), env={"PATH": "/usr/bin"}, home=Path("/root"))
    decision = decide(ToolCall(name=name, arguments=arguments), context, Rules(()))  # type: ignore[arg-type]
    assert decision.reason
