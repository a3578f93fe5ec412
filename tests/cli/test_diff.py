"""`diff` and the differences in `show`: what was asked, what came back, and files."""

from __future__ import annotations

import pytest

from tests.cli.desk import Desk


def test_two_nodes_of_a_run(told: Desk) -> None:
    document = told.json("diff", "last", "rec_000003", "rec_000011")
    assert document["parting"] is None
    assert [each["record_uid"] for each in document["nodes"]] == ["rec_000003", "rec_000011"]
    assert set(document["difference"]["fields"]) == {"answer", "tool_calls"}
    assert document["difference"]["messages"]["left"] == []
    assert document["workspace"] == {"files": [], "more": 0, "repositories": 0, "missing": None}
    after = told.json("diff", "last", "rec_000004", "rec_000012", "--after")["workspace"]["files"]
    assert [(each["status"], each["path"], each["lines"]) for each in after] == [
        ("A", "a.txt", ["@@ -0,0 +1 @@", "+one"])
    ]
    text = told.call("diff", "last", "rec_000004", "rec_000012", "--after").stdout
    assert "A a.txt  (+1 -0)" in text
    assert "  +one" in text
    assert '-  "command": "echo two > b.txt; rm a.txt"' in text


def test_nodes_of_two_runs(told: Desk) -> None:
    across = told.json("diff", "last", "rec_000003", "last", "rec_000011")
    assert across == told.json("diff", "last", "rec_000003", "rec_000011")


def test_where_two_runs_part(desk: Desk) -> None:
    desk.json(*desk.run_arguments(["sh echo one > a", "sh echo two > b", "say done"]), code=1)
    (first,) = (each["run_id"] for each in desk.json("list"))
    moved = Desk(base=desk.base / "elsewhere")
    moved.base.mkdir()
    arguments = moved.run_arguments(["sh echo one > a", "sh echo 2 > b", "say done"])
    environment = desk.environment()
    assert desk.call(*arguments, environment=environment).returncode == 1
    document = desk.json("diff", first, "last")
    # both prompts hold the same text; the runs differ in what the model answered second
    assert document["parting"]["common"] == 2
    assert document["parting"]["what"] == "answered"
    assert (document["parting"]["left"], document["parting"]["right"]) == ("rec_000003", "rec_000003")
    text = desk.call("diff", first, "last").stdout
    assert "2 nodes the same, then they got another outcome at rec_000003 and rec_000003" in text
    files = desk.json("diff", first, "rec_000004", "last", "rec_000004", "--after")["workspace"]["files"]
    assert [(each["path"], each["lines"][1:]) for each in files] == [("b", ["-two", "+2"])]
    assert desk.json("diff", first, first)["parting"] is None
    assert "do not part: 5 nodes" in desk.call("diff", first, first).stdout


def test_runs_that_were_asked_otherwise_and_answered_alike(desk: Desk) -> None:
    for system in ("You are tiny.", "You are small."):
        desk.json(*desk.run_arguments(["sh date +%N", "say done"], system=system), code=1)
    runs = [each["run_id"] for each in desk.json("list")]
    assert desk.json("diff", *runs)["parting"]["what"] == "asked"
    assert desk.json("diff", *runs, "--answers")["parting"] is None


def test_a_run_that_ends_earlier(desk: Desk) -> None:
    for plan in (["sh true", "say done"], ["sh true", "say done"]):
        desk.json(*desk.run_arguments(plan), code=1)
    runs = [each["run_id"] for each in desk.json("list")]
    assert desk.json("diff", *runs)["parting"] is None
    path = next((desk.home / "runs" / runs[0]).glob("segment-*"))
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith(b'{"record_uid":"rec_000003"'))
    path.write_bytes(b"".join(lines[:place]))
    found = desk.json("diff", *runs)
    assert found["parting"]["what"] == "length"
    assert (found["parting"]["left"], found["parting"]["right"]) == (None, "rec_000003")
    assert found["difference"] is None


@pytest.mark.parametrize("places", [["last"], ["last"] * 5])
def test_a_wrong_number_of_places(told: Desk, places: list[str]) -> None:
    assert told.json("diff", *places, code=2)["error"]["type"] == "UsageError"


def test_files_of_every_kind(desk: Desk) -> None:
    script = (
        "printf 'a\\0b' > binary; ln -s a.txt link; mkdir empty; printf 'x\\r\\n' > dos; "
        "head -c 2000000 /dev/zero > large; printf x > run; git init -q repo; echo a > $(printf 'odd\\nname')"
    )
    desk.json(
        *desk.run_arguments([f"sh {script}", "sh printf 'x\\n' > dos; chmod 755 run", "say done"]), code=1
    )
    files = {each["path"]: each for each in desk.json("show", "last", "rec_000002")["files"]}
    assert {path: each["form"] for path, each in files.items()} == {
        "binary": "binary",
        "link": "link",
        "empty": "directory",
        "dos": "text",
        "large": "long",
        "run": "text",
        "odd\nname": "text",
    }
    assert (files["large"]["size_after"], files["binary"]["size_after"]) == (2_000_000, 3)
    assert files["run"]["lines"] == ["@@ -0,0 +1 @@", "+x", "\\ No newline at end of file"]
    text = desk.call("show", "last", "rec_000002").stdout
    assert "A large  (too long to compare by lines, 2000000 bytes)" in text
    assert "inside .git folders" in text
    assert "repo/.git/HEAD" in desk.call("show", "last", "rec_000002", "--full").stdout
    second = desk.call("show", "last", "rec_000004").stdout
    assert "  -x^M" in second
    assert "M run  (mode 0644 to 0755; +0 -0)" in second


def test_of_very_many_files_the_first_are_compared(desk: Desk) -> None:
    desk.json(
        *desk.run_arguments(["sh for i in $(seq 1000 1250); do echo $i > f$i; done", "say done"]), code=1
    )
    some = desk.json("show", "last", "rec_000002")
    assert (len(some["files"]), some["files_more"]) == (200, 51)
    assert "and 51 more files (--full shows them)" in desk.call("show", "last", "rec_000002").stdout
    assert len(desk.json("show", "last", "rec_000002", "--full")["files"]) == 251
    between = desk.json("diff", "last", "rec_000001", "rec_000003")["workspace"]
    assert (len(between["files"]), between["more"]) == (200, 51)


def test_snapshots_that_are_gone_are_told(rewound: Desk) -> None:
    (rewound.home / "workspaces").rename(rewound.base / "away")
    text = rewound.call("show", "last", "rec_000004").stdout
    assert "cannot be told: the snapshots of workspace" in text
    assert "D a.txt" in text
    document = rewound.json("diff", "last", "rec_000003", "rec_000011")
    assert document["workspace"]["files"] is None
    assert "are gone" in document["workspace"]["missing"]
    assert not list((rewound.home).glob("workspaces/*"))


def test_the_state_after_the_last_call_of_a_killed_run_is_told_as_unknown(rewound: Desk) -> None:
    path = rewound.only_run().segment_path(1)
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith(b'{"record_uid":"rec_000012"'))
    path.write_bytes(b"".join(lines[: place + 1]) + lines[place + 1][:40])
    document = rewound.json("show", "last", "rec_000012")
    assert document["files"] is None
    assert "no snapshot after rec_000012" in document["files_missing"]


def test_an_answer_behind_a_gap_is_shown_with_what_is_new_in_it(rewound: Desk) -> None:
    path = rewound.only_run().segment_path(0)
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith(b'{"record_uid":"rec_000003"'))
    lines[place] = lines[place].replace(b"echo", b"evil")
    path.write_bytes(b"".join(lines))
    done = rewound.call("show", "last", "rec_000005")
    assert done.returncode == 0, done.stderr
    assert "gap in the log" in done.stdout
    assert "I submit." in done.stdout
    document = rewound.json("show", "last", "rec_000005")
    assert "rec_000003" in document["messages_missing"]
    assert document["input"]["messages"]["append"]


def test_show_gives_only_what_is_new(told: Desk) -> None:
    text = told.call("show", "last", "rec_000005").stdout
    assert "… 4 messages as rec_000003 had them" in text
    assert told.json("show", "last", "rec_000005")["new_from"] == 4
    rejected = told.call("show", "last", "rec_000006").stdout
    assert "submission rejected at both" in rejected
    assert "a.txt or b.txt is missing" in rejected
