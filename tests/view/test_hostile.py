"""What agents and tools said is hostile: in the viewer, in the page that is a file, and on a terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.runs import HOSTILE, HOSTILE_PATHS, LONG_LINE, ODD_ID
from tests.cli.desk import Desk
from tests.view.served import Read, Served

RUN = "20260131-100000-ba0bab"
ODD_QUERIES = (
    "node=~9.9",
    "node=rec_0",
    "node=rec_000002&part=nothing",
    "from=x",
    "from=-1",
    "from=9999999999999999",
)
OURS = {"/static/view.js", "/static/view.css", "/static/icon.svg"}
INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def check(text: str, *, base: str = "") -> Read:
    """Nothing in the page is of the agent's making but words."""
    read = Read.of(text)
    for tag, given in read.tags:
        assert tag not in ("iframe", "object", "embed", "base", "img", "audio", "video"), tag
        assert not [name for name in given if name.startswith("on")], (tag, given)
        assert "style" not in given, (tag, given)
        for name in ("href", "src", "action", "formaction", "data-src"):
            address = given.get(name, "")
            assert not address or address.startswith((f"{base}/", "#")), (tag, address)
        if tag in ("script", "link"):
            assert given.get("src", given.get("href", "")).removeprefix(base) in OURS, given
    assert not {each for each in text if unicodedata.category(each) in INVISIBLE} - {"\n", "\t"}
    return read


def addresses(read: Read, base: str) -> Iterator[str]:
    for _, given in read.tags:
        for name in ("href", "data-src"):
            if given.get(name, "").startswith(f"{base}/r/"):
                yield given[name]


def test_no_page_or_fragment_obeys_what_it_shows(served: Served) -> None:
    base = served.path.rstrip("/")
    pending = [
        f"{base}/",
        f"{base}/runs?from=0",
        f"{base}/r/{RUN}",
        f"{base}/compare?a={RUN}/rec_000001&b={RUN}/rec_000003",
    ]
    pending += [f"{base}/r/{RUN}?q=document", f"{base}/r/{RUN}?failed=1", f"{base}/r/{RUN}?node=~0.2"]
    seen: set[str] = set()
    while pending:
        address = pending.pop()
        if address in seen or (RUN not in address and "/r/" in address):
            continue
        seen.add(address)
        found = served.raw("GET", address)
        assert found.status in (200, 422), (address, found.text[:300])
        assert len(found.body) < 1_500_000
        pending += addresses(check(found.text, base=base), base)
    # every node and event, their parts, and the whole long line in pieces
    assert len(seen) > 60


def test_the_texts_are_there_to_be_read(served: Served) -> None:
    read = Read.of(served.get(f"r/{RUN}/pane", node="rec_000002").text)
    assert HOSTILE["script"] in read.text
    assert "{{ 7 * 7 }}" in read.text
    assert "invoice⟨U+202E⟩gpj.exe" in read.text
    assert "⟨ESC⟩]0;owned⟨U+0007⟩" in read.text
    assert r"a\n  D  everything.txt" in read.text
    assert r"\u202etxt.exe" in read.text


def test_an_odd_id_has_an_address(served: Served) -> None:
    found = served.get(f"r/{RUN}", node=ODD_ID)
    assert found.status == 200
    assert "odd id" in Read.of(found.text).text
    assert served.get(f"r/{RUN}/pane", node=ODD_ID).status == 200


def test_a_line_of_ten_megabytes_comes_in_pieces(served: Served) -> None:
    first = served.get(f"r/{RUN}/pane", node="rec_000004")
    assert len(first.body) < 100_000
    total, start = 0, 0
    while True:
        found = served.get(f"r/{RUN}/part", node="rec_000004", part="result", **{"from": str(start)})
        read = Read.of(found.text)
        total += read.text.count("y")
        more = [given["href"] for tag, given in read.tags if tag == "a" and "data-more" in given]
        if not more:
            break
        start = int(re.findall(r"from=(\d+)", more[0])[0])
    assert total == LONG_LINE


@pytest.mark.parametrize("query", ODD_QUERIES)
@pytest.mark.parametrize("path", ["pane", "part", "rows", "messages", "file"])
def test_odd_questions_get_an_answer_that_is_no_failure(served: Served, path: str, query: str) -> None:
    found = served.raw("GET", f"{served.path}r/{RUN}/{path}?{query}")
    assert found.status in (200, 400, 404, 422), found.text[:300]
    check(found.text, base=served.path.rstrip("/"))


def test_the_file_obeys_nothing_either(shown: tuple[Desk, str], tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    shown[0].json("view", RUN, "--html", str(file))
    text = file.read_text(encoding="utf-8")
    read = check(text)
    assert not [tag for tag, _ in read.tags if tag in ("script", "link", "form", "input", "button")]
    assert {given["href"][0] for _, given in read.tags if given.get("href")} == {"#"}
    assert not re.search(r"url\(|@import|https?://", text)
    assert HOSTILE["script"] in read.text
    assert len(text) < 500_000


COMMANDS = (
    ("list",),
    ("log", RUN),
    ("show", RUN, "rec_000001"),
    ("show", RUN, "rec_000002", "--full"),
    ("show", RUN, "rec_000003"),
    ("show", RUN, ODD_ID),
    ("diff", RUN, "rec_000001", "rec_000003"),
    ("diff", RUN, "rec_000002", "rec_000004"),
    ("candidates", RUN),
    ("verify", RUN),
    ("show", RUN, "rec_\u202e\x1b[2J"),
    ("log", "\x1b[2J\u202e"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: ascii(" ".join(each))[:40])
def test_no_command_plays_with_the_terminal(shown: tuple[Desk, str], command: tuple[str, ...]) -> None:
    done = shown[0].call(*command)
    for text in (done.stdout, done.stderr):
        assert not {each for each in text if unicodedata.category(each) in INVISIBLE} - {"\n", "\t"}
    assert "Traceback" not in done.stderr


def test_a_name_with_a_line_break_is_no_second_line(shown: tuple[Desk, str]) -> None:
    done = shown[0].call("show", RUN, "rec_000002", "--full")
    changed = [line.split()[0] for line in done.stdout.splitlines() if re.match(r"  [AMDT] ", line)]
    assert changed == ["M"] * len(HOSTILE_PATHS), done.stdout[-900:]
    assert r"a\n  D  everything.txt" in done.stdout
