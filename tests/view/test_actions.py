"""Restores and forks from the page: shown first, done once, and only what was shown."""

from __future__ import annotations

from pathlib import Path

from tests.cli.desk import Desk, tree
from tests.view.served import Answer, Read, Served, viewer


def plan(served: Served, run: str, **fields: str) -> Answer:
    """What a restore before the clean-up would do."""
    given = {"form_token": served.form_token(run, "rec_000029"), "node": "rec_000029", "where": "in-place"}
    return served.post(f"r/{run}/restore", given | fields)


def confirm(served: Served, run: str, shown: Answer) -> Answer:
    """Pressing the button below it."""
    inputs = Read.of(shown.text).inputs
    return served.post(f"r/{run}/restore/now", inputs)


def test_looking_changes_nothing_and_doing_it_does_what_was_shown(told: tuple[Desk, str]) -> None:
    desk, run = told
    before = desk.files()
    with viewer(desk) as served:
        shown = plan(served, run)
        assert shown.status == 200
        assert "not done yet" in shown.text
        assert "report.txt" in Read.of(shown.text).text
        assert desk.files() == before
        done = confirm(served, run, shown)
        assert "verified" in Read.of(done.text).text
        after = desk.files()
        assert "report.txt" not in after
        again = confirm(served, run, shown)
        assert (again.status, "done already" in again.text) == (400, True)
        assert desk.files() == after
        assert "restore by a person" in Read.of(served.get(f"r/{run}").text).text
    desk.json("undo", run)
    assert desk.files()["report.txt"] == before["report.txt"]


def test_what_has_changed_since_it_was_shown_stops_it(told: tuple[Desk, str]) -> None:
    desk, run = told
    with viewer(desk) as served:
        shown = plan(served, run)
        (desk.workspace / "mine.txt").write_text("mine")
        (desk.workspace / "prices.py").write_text("mine too")
        found = confirm(served, run, shown)
        assert (found.status, "have changed since" in found.text) == (409, True)
        assert (desk.workspace / "mine.txt").read_text() == "mine"
        assert (desk.workspace / "report.txt").exists()


def test_changes_from_outside_ask_for_a_decision(told: tuple[Desk, str]) -> None:
    desk, run = told
    (desk.workspace / "prices.py").write_text("mine")
    with viewer(desk) as served:
        stopped = plan(served, run)
        assert "choose whether to keep or to revert" in Read.of(stopped.text).text
        assert "ticket" not in Read.of(stopped.text).inputs
        done = confirm(served, run, plan(served, run, outside="keep"))
        assert "Restored" in done.text
    assert (desk.workspace / "prices.py").read_text() == "mine"
    assert not (desk.workspace / "report.txt").exists()


def test_into_a_folder(told: tuple[Desk, str], tmp_path: Path) -> None:
    desk, run = told
    before = desk.files()
    with viewer(desk) as served:
        shown = plan(served, run, where="into", into=str(tmp_path / "then"), moment="after")
        assert not (tmp_path / "then").exists()
        assert confirm(served, run, shown).status == 200
        assert "prices.py" in tree(tmp_path / "then")
        assert desk.files() == before
        assert plan(served, run, where="into", into=str(tmp_path / "then")).status == 409
        assert plan(served, run, where="into", into="").status == 400
        assert plan(served, run, where="elsewhere").status == 400
        assert plan(served, run, node="rec_999999").status == 404


def test_a_fork_is_shown_and_then_made_once_and_not_started(told: tuple[Desk, str]) -> None:
    desk, run = told
    before = desk.files()
    with viewer(desk) as served:
        fields = {"form_token": served.form_token(run, "rec_000005"), "node": "rec_000005"}
        shown = served.post(f"r/{run}/fork", fields | {"memory": "Use Decimal."})
        assert "not made yet" in Read.of(shown.text).text
        assert len(desk.json("list")) == 1
        made = served.post(f"r/{run}/fork/now", Read.of(shown.text).inputs)
        assert "A fork is ready" in Read.of(made.text).text
        (fork,) = [each["run_id"] for each in desk.json("list") if each["run_id"] != run]
        assert f"agentrewind run --resume {fork}" in Read.of(made.text).text
        about = Read.of(served.get(f"r/{fork}").text).text
        assert "Use Decimal." in about
        assert f"{run}/rec_000005" in about
        assert served.post(f"r/{run}/fork/now", Read.of(shown.text).inputs).status == 400
        assert len(desk.json("list")) == 2
        wrong = served.post(f"r/{run}/fork", fields | {"answer": "{broken"})
        assert served.post(f"r/{run}/fork/now", Read.of(wrong.text).inputs).status == 400
        assert served.post(f"r/{run}/fork", fields | {"node": "rec_000006"}).status == 400
    assert len(desk.json("list")) == 2
    assert desk.files() == before


def test_the_command_for_a_fork_is_shown_ready_to_run(told: tuple[Desk, str]) -> None:
    desk, run = told
    with viewer(desk) as served:
        fields = {"form_token": served.form_token(run, "rec_000005"), "node": "rec_000005"}
        found = served.post(f"r/{run}/fork", fields | {"memory": "it's <b>here</b>\nand there"})
        text = Read.of(found.text).text
        assert f"agentrewind fork {run} --at rec_000005 --memory " in text
        assert "'it'\"'\"'s <b>here</b>" in text
        assert served.post(f"r/{run}/fork", fields | {"node": "rec_9"}).status == 404
