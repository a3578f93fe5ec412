"""`blame`: who wrote each line, and clear words where there are no lines."""

from __future__ import annotations

import pytest

from tests.cli.desk import Desk

PLAN = [
    "sh printf 'first\\nmine\\nlast\\n' > text; printf 'a\\0b' > data; ln -s text link; echo x > gone",
    "sh sed -i '2s/.*/changed/' text; rm gone",
    "sh mv text renamed; echo more >> renamed; echo new > $(printf 'odd\\nname')",
    "say done",
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = Desk(base=tmp_path_factory.mktemp("written"))
    desk.workspace.mkdir()
    (desk.workspace / "text").write_text("first\nlast\n")
    desk.json(*desk.run_arguments(PLAN), code=1)
    return desk


def test_each_line_has_its_node_and_the_answer_behind_it(written: Desk) -> None:
    found = written.json("blame", "last", "renamed")
    assert [(each["text"], each["record_uid"]) for each in found["lines"]] == [
        ("first", None),
        ("changed", "rec_000004"),
        ("last", None),
        ("more", "rec_000006"),
    ]
    assert found["renames"] == [{"record_uid": "rec_000006", "before": "text", "after": "renamed"}]
    assert found["written"] == "rec_000006"
    assert found["nodes"]["rec_000004"]["parent"] == "rec_000003"
    assert found["nodes"]["rec_000004"]["answer"].startswith("I run sed")
    text = written.call("blame", "last", "renamed").stdout
    assert "renamed from text to renamed, after rec_000006" in text
    assert "rec_000004  2  changed" in text
    assert "–           1  first" in text
    assert "rec_000003: I run sed" in text


def test_an_earlier_moment(written: Desk) -> None:
    found = written.json("blame", "last", "text", "--until", "rec_000002")
    assert [each["record_uid"] for each in found["lines"]] == [None, "rec_000002", None]
    absolute = written.json("blame", "last", str(written.workspace / "text"), "--until", "rec_000002")
    assert absolute["lines"] == found["lines"]


@pytest.mark.parametrize(("path", "form"), [("data", "binary"), ("link", "link"), (".", None)])
def test_what_has_no_lines(written: Desk, path: str, form: str | None) -> None:
    if form is None:
        assert written.call("blame", "last", path).returncode == 2
        return
    found = written.json("blame", "last", path)
    assert (found["form"], found["lines"], found["written"]) == (form, [], "rec_000002")
    assert f"no lines to tell apart ({form})" in written.call("blame", "last", path).stdout


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("renamd", "did you mean renamed"),
        ("zzz/qqq", "no state of this path has a file"),
        ("gone", "rec_000004 deleted it; `--until rec_000003` shows it"),
        ("text", "rec_000006 deleted it"),
        ("../outside", "no file below the workspace"),
        ("/etc/passwd", "no file below the workspace"),
    ],
)
def test_a_file_that_is_not_there(written: Desk, path: str, words: str) -> None:
    done = written.call("blame", "last", path)
    assert done.returncode == 2
    assert words in done.stderr
    assert written.json("blame", "last", path, code=2)["error"]["type"] == "UsageError"


def test_the_way_back_that_is_named_leads_there(written: Desk) -> None:
    found = written.json("blame", "last", "gone", "--until", "rec_000003")
    assert [each["record_uid"] for each in found["lines"]] == ["rec_000002"]


def test_names_that_play_with_the_terminal(written: Desk) -> None:
    assert written.json("blame", "last", "odd\nname")["lines"][0]["record_uid"] == "rec_000006"


def test_an_abandoned_branch(told: Desk) -> None:
    assert told.call("blame", "last", "a.txt", "--until", "rec_000004").returncode == 2
    assert told.json("blame", "last", "a.txt")["lines"] == [
        {"text": "one", "record_uid": "rec_000002", "outside": False}
    ]
    found = told.json("blame", "last", "b.txt", "--until", "rec_000006")
    assert [each["record_uid"] for each in found["lines"]] == ["rec_000004"]
