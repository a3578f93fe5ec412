"""State outside the workspace in the viewer: what was recorded, and how it stands in the backup log now."""

from __future__ import annotations

from pathlib import Path

from agentrewind.backup.entries import Entry, RestoreBegun, RestoreEnded, State
from agentrewind.backup.entry_lines import as_external
from agentrewind.backup.kind import Captured
from agentrewind.backup.log import BackupLog
from agentrewind.backup.places import directory_of
from agentrewind.backup.values import Target, Tier
from agentrewind.clock import SystemClock
from agentrewind.view.elsewhere import elsewhere
from tests.records import AT


def entry(identity: str, name: str) -> Entry:
    return Entry(
        id=identity,
        at=AT,
        run_id="r1",
        node="rec_000002",
        tool="bash",
        call="rm /etc/hosts",
        tier=Tier.SNAPSHOT,
        rule="rm",
        target=Target(kind="files", name=name, detail={}),
        captured=Captured(manifest={}),
        cwd="/",
        home="/root",
    )


def test_what_became_of_a_backup_since_is_told(tmp_path: Path) -> None:
    log = BackupLog(directory_of(tmp_path), SystemClock())
    kept, taken_back, unknown = (entry(f"b{number}", f"/etc/{number}") for number in range(3))
    log.append(kept, taken_back, unknown)
    log.append(RestoreBegun(id="b1", by="rewind", safety=None, at=AT))
    log.append(RestoreEnded(id="b1", by="rewind", state=State.RESTORED, detail=(), at=AT))
    log.append(RestoreBegun(id="b2", by="rewind", safety=None, at=AT))
    found = elsewhere(tmp_path, [as_external(each) for each in (kept, taken_back, unknown)])
    assert [each.what for each in found] == ["/etc/0", "/etc/1", "/etc/2"]
    assert {each.state for each in found} == {"preserved"}
    assert [each.now for each in found] == ["", "restored", "unknown"]
    assert ("kind", "files") in found[0].fields


def test_a_log_that_cannot_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    path = directory_of(tmp_path) / "log.jsonl"
    path.mkdir(parents=True)
    (found,) = elsewhere(tmp_path, [as_external(entry("b1", "/etc/hosts"))])
    assert found.now.startswith("not known: ")
    assert elsewhere(tmp_path, []) == ()


def test_an_entry_of_another_making_is_shown_as_it_is(tmp_path: Path) -> None:
    (found,) = elsewhere(tmp_path, [{"service": "shop", "deep": {"a": [1]}, "state": 3, "id": 7}])
    assert (found.what, found.state, found.now) == ("", "3", "")
    assert dict(found.fields)["service"] == "shop"
