"""`verify`: every damage has a name, and what still serves is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agentrewind.records import Note
from tests.cli.desk import Desk


def test_a_sound_store(told: Desk) -> None:
    document = told.json("verify")
    assert document["sound"] is True
    (finding,) = document["runs"]
    assert (finding["log"], finding["snapshots"], finding["replayable"]) == ([], [], True)
    assert finding["nodes"] == finding["restorable"] == 14
    assert "all sound" in told.call("verify", "last").stdout


def test_no_runs_are_sound(desk: Desk) -> None:
    assert desk.json("verify") == {"sound": True, "runs": []}


def _store(desk: Desk) -> Path:
    (store,) = desk.home.glob("workspaces/*/snapshots.git")
    return store


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_a_changed_byte_in_a_line_is_named(rewound: Desk, place: float) -> None:
    path = rewound.only_run().segment_path(0)
    data = bytearray(path.read_bytes())
    index = int(len(data) * place)
    data[index] ^= 1
    path.write_bytes(bytes(data))
    (finding,) = rewound.json("verify", code=4)["runs"]
    assert any("segment 0" in each for each in finding["log"])
    assert 0 < finding["restorable"] <= finding["nodes"] <= 14


def test_a_missing_segment_is_named(rewound: Desk) -> None:
    rewound.only_run().segment_path(0).unlink()
    (finding,) = rewound.json("verify", "last", code=4)["runs"]
    assert any("missing" in each for each in finding["log"])
    assert finding["replayable"] is False
    done = rewound.call("verify", "last")
    assert done.returncode == 4
    assert "cannot be replayed across the gap" in done.stdout


def test_a_torn_tail_is_harmless(rewound: Desk) -> None:
    path = rewound.only_run().segment_path(1)
    with path.open("ab") as file:
        file.write(b'{"kind":"event","event":"no')
    document = rewound.json("verify")
    assert document["sound"] is True
    assert document["runs"][0]["harmless"]


def test_what_audits_found_is_counted(rewound: Desk) -> None:
    with rewound.only_run().writer(1) as writer:
        for found in (2, 3):
            note = Note(topic="audit", text="", at="2026-01-01T00:00:00.000Z", data={"disagreements": found})
            writer.append(note, durable=False)
    document = rewound.json("verify")
    assert document["sound"] is True
    assert document["runs"][0]["harmless"] == ["5 change(s) were missed by the watcher and found by an audit"]


def test_a_damaged_rewind_file_is_named(rewound: Desk) -> None:
    path = rewound.only_run().rewind_path(1)
    path.write_bytes(path.read_bytes()[:-20])
    (finding,) = rewound.json("verify", code=4)["runs"]
    assert any("rewind-0001.json" in each for each in finding["log"])


def test_a_damaged_snapshot_is_named_with_the_nodes_that_use_it(rewound: Desk) -> None:
    for pack in _store(rewound).glob("objects/pack/*.pack"):
        data = bytearray(pack.read_bytes())
        pack.chmod(0o600)
        data[len(data) // 2] ^= 0xFF
        pack.write_bytes(bytes(data))
    (finding,) = rewound.json("verify", code=4)["runs"]
    assert finding["snapshots"]
    assert all(each["reason"] and each["named_by"] for each in finding["snapshots"])
    assert finding["restorable"] < 14
    assert finding["replayable"] is True


def test_a_store_that_is_gone_is_named(rewound: Desk) -> None:
    shutil.rmtree(_store(rewound))
    (finding,) = rewound.json("verify", code=4)["runs"]
    assert finding["restorable"] == 0
    assert "there is no" in finding["snapshots"][0]["reason"]
