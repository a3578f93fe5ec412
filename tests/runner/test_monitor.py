"""What the monitor of Safety Review lets through, and what it makes of answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.monitor import CONTEXT_CHARACTERS, Monitor, parse
from runner.review_rules import evidence, kind, read_only


@given(st.text() | st.recursive(st.none() | st.booleans() | st.text(), st.lists).map(json.dumps))
def test_whatever_is_no_decision_is_blocked(answer: str) -> None:
    review = parse(answer)
    assert not review.safe
    assert not review.readable


@given(
    st.sampled_from(["SAFE", "UNSAFE", "safe", "MAYBE"]),
    st.text() | st.integers(),
    st.sampled_from([{}, {"also": 1}]),
)
def test_only_a_decision_by_the_schema_is_one(decision: str, reason: object, more: dict[str, int]) -> None:
    review = parse(json.dumps({"decision": decision, "reason": reason, **more}))
    fits = decision in ("SAFE", "UNSAFE") and isinstance(reason, str) and not more
    assert review.readable is fits
    assert review.safe is (fits and decision == "SAFE")


@pytest.mark.parametrize(
    "command",
    ["cat a.txt", "grep -n 'x y' a b | head -3", "ls -la; wc -l *", "sha256sum a && cmp a b", "echo done"],
)
def test_reading_needs_no_review(command: str) -> None:
    assert read_only(command)
    assert kind(command) == "read-only"


@pytest.mark.parametrize(
    "command",
    [
        "cat a > b",
        "cat a | tee b",
        "cat $(rm a)",
        "cat `rm a`",
        "echo a; rm b",
        "ls & rm b",
        "sort -o a a",
        "git status",
        "env cat a",
        "cat a\nrm b",
        "X=1 cat a",
        "find . -delete",
        "diff --output=x a b",
        "python3 a.py",
        "",
        "cat 'a",
        "cat <(rm a)",
        "cat a || rm b",
        "cat a |& tee b",
    ],
)
def test_what_cannot_be_shown_to_read_only_is_reviewed(command: str) -> None:
    assert not read_only(command)


def test_plain_rules_name_places_and_kinds() -> None:
    assert "/etc/passwd" in evidence("cp /etc/passwd x")
    assert "every path" in evidence("cp /workspace/a b > /dev/null")
    assert "../up" in evidence("cp ../up x")
    assert kind("curl http://x") == "network or package installation"
    assert kind("git gc --prune=now") == "may destroy files or history"
    assert kind("python3 -m pytest -q") == "tests in the workspace"
    assert kind("touch x") == "changes the workspace"


def test_a_monitor_that_cannot_be_reached_blocks_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or importing it asks the network
    pytest.importorskip("litellm")
    monitor = Monitor(
        model="no-such-provider/model", task="mend", log=tmp_path / "reviews.jsonl", temperature=0.0
    )
    assert monitor.review("cat a").safe
    review = monitor.review("touch a")
    assert not review.safe
    assert not review.readable
    assert "blocked" in review.observation()
    (line,) = (tmp_path / "reviews.jsonl").read_text().splitlines()
    assert json.loads(line)["decision"] == "UNSAFE"


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=CONTEXT_CHARACTERS), max_size=6))
def test_old_messages_give_way_first(messages: list[str]) -> None:
    monitor = Monitor(model="m", task="t", log=Path("unused"), temperature=None)
    monitor._recent.extend(messages)
    context = monitor._context()
    assert len(context) <= CONTEXT_CHARACTERS + len(messages)
    if messages:
        assert context.endswith(messages[-1])
