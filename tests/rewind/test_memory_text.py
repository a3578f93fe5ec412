"""What the memory message says."""

from __future__ import annotations

from agentrewind.rewind.memory import Memory, compose
from tests.records import asked


def test_all_notes_stand_in_it_oldest_first_and_numbered() -> None:
    text = compose([asked(1, 3, memory=" first lesson\n"), asked(2, 5, memory="second lesson")], [])
    assert text.index("[1] first lesson") < text.index("[2] second lesson")
    assert text.count("lesson") == 2
    assert "About the state" not in text


def test_what_a_rewind_left_as_it_was_follows_the_notes() -> None:
    text = compose([asked(1, 3, memory="lesson")], ["3 path(s) were put back.", "Still running: 17 (serve)."])
    lines = text.splitlines()
    assert lines[-2:] == ["- 3 path(s) were put back.", "- Still running: 17 (serve)."]
    assert text.index("[1] lesson") < text.index("About the state")


def test_reasons_and_record_uids_of_the_abandoned_branch_are_no_part_of_it() -> None:
    text = compose([asked(1, 3, memory="lesson")], [])
    assert "rec_000003" not in text
    assert asked(1, 3).reason not in text


def test_its_role_is_the_chosen_one() -> None:
    memory = Memory(text="lesson", role="user", conversation="main", index=0, anchor=None)
    assert memory.message() == {"role": "user", "content": "lesson"}


def test_characters_that_cannot_be_sent_are_escaped() -> None:
    assert "[1] half a \\ud83d pair" in compose([asked(1, 3, memory="half a \ud83d pair")], [])
