"""A person with a browser: finds a rewind, reads its memory, looks at files, searches, compares, restores."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agentrewind.records import NodeKind
from agentrewind.run_store import RunStore
from tests.browser.runs import HOSTILE, ODD_ID, answer, call, changed, write_run
from tests.cli.desk import Desk
from tests.records import started
from tests.view.served import Served, viewer

LONG = "20260131-090000-10e900"
HOSTILE_RUN = "20260131-100000-ba0bab"
expect.set_options(timeout=15_000)

Open = Callable[..., Page]
Picture = Callable[..., None]


def picked(page: Page) -> str | None:
    return page.locator("#rows .row.picked").get_attribute("data-key")


def test_from_the_list_to_a_rewind_and_its_memory(
    served: Served, shown: tuple[Desk, str], page_of: Open, picture: Picture
) -> None:
    page = page_of()
    page.goto(served.url)
    page.locator(f'.item[data-run="{shown[1]}"]').wait_for()
    picture(page, "runs")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/r/{shown[1]}")
    expect(page.locator("#rows .row.rewind", has_text="rewind to")).to_have_count(3)
    expect(page.locator("#overview .arc")).to_have_count(6)
    page.keyboard.press("n")
    expect(page.locator("#pane h3", has_text="memory")).to_be_visible()
    expect(page.locator("#pane pre.memory")).to_contain_text("[1] Keep data/history.csv")
    page.keyboard.press("n")
    page.keyboard.press("n")
    expect(page.locator("#pane pre.memory")).to_contain_text("[3] Leave the sources' line endings alone")
    picture(page, "rewind")
    page.locator("#pane .facts a").click()
    expect(page.locator("#pane h2")).to_contain_text("rec_000029")
    expect(page.locator("#pane .tag.gone")).to_have_text("abandoned")
    assert "node=rec_000029" in page.url


def test_what_was_abandoned_stands_beside_the_path(
    served: Served, shown: tuple[Desk, str], page_of: Open
) -> None:
    desk, run = shown
    page = page_of()
    page.goto(f"{served.url}r/{run}")
    for node in desk.json("log", run)["nodes"]:
        row = page.locator(f'.row[data-key="{node["record_uid"]}"]')
        middle = int(str(row.locator("circle").get_attribute("cx")))
        assert (middle > 10, "gone" in str(row.get_attribute("class")).split()) == (
            not node["on_path"],
            not node["on_path"],
        )


def test_a_node_with_its_files(
    served: Served, shown: tuple[Desk, str], page_of: Open, picture: Picture
) -> None:
    page = page_of()
    page.goto(f"{served.url}r/{shown[1]}")
    page.locator('.row[data-key="rec_000028"]').click()
    expect(page.locator("#pane .answered h3").first).to_have_text("Result")
    # the first file is open by itself, others on a click
    expect(page.locator("#pane table.diff .new").first).to_contain_text("from decimal import ROUND_HALF_UP")
    picture(page, "node", document=True)
    page.locator('#rows .row[data-key="rec_000030"]').click()
    expect(page.locator("#pane h2")).to_contain_text("rec_000030")
    second = page.locator("#pane details.file").nth(1)
    second.locator("summary").click()
    expect(second.locator("table.diff")).to_contain_text("⟨U+000D⟩")
    page.go_back()
    expect(page.locator("#pane h2")).to_contain_text("rec_000028")


def test_the_request_of_an_answer(
    served: Served, shown: tuple[Desk, str], page_of: Open, picture: Picture
) -> None:
    page = page_of(scheme="dark")
    page.goto(f"{served.url}r/{shown[1]}?node=rec_000027")
    expect(page.locator("#pane .message.memory")).to_contain_text("[2] ROUND_DOWN loses a cent")
    expect(page.locator("#pane .called")).to_contain_text("rec_000028")
    count = page.locator("#pane .message").count()
    picture(page, "answer-dark", document=True)
    page.locator("#pane a[data-more]", has_text="earlier messages").click()
    expect(page.locator("#pane .message")).to_have_count(count + 4)
    expect(page.locator("#pane .message").first).to_contain_text("You repair a small project")


def test_search_with_the_keyboard(
    served: Served, shown: tuple[Desk, str], page_of: Open, picture: Picture
) -> None:
    page = page_of()
    page.goto(f"{served.url}r/{shown[1]}")
    page.keyboard.press("/")
    page.keyboard.type("half_up")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=half_up**")
    expect(page.locator(".told")).to_contain_text("rows of")
    assert [row.get_attribute("data-key") for row in page.locator("#rows .row").all()][:2] == [
        "rec_000027",
        "rec_000028",
    ]
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("#pane h2")).to_contain_text("rec_000028")
    picture(page, "search")
    page.locator("text=clear").click()
    page.locator('input[name="path"]').fill("history")
    page.locator('input[name="path"]').press("Enter")
    expect(page.locator("#rows .row")).to_have_count(1)
    page.goto(f"{served.url}r/{shown[1]}")
    page.locator('input[name="failed"]').check()
    page.locator('select[name="tool"]').select_option("bash")
    page.locator("text=Find").click()
    assert {row.get_attribute("data-key") for row in page.locator("#rows .row").all()} == {"rec_000004"}


def test_compare_by_marking_two_nodes(
    served: Served, shown: tuple[Desk, str], page_of: Open, picture: Picture
) -> None:
    page = page_of()
    page.goto(f"{served.url}r/{shown[1]}?node=rec_000005")
    page.keyboard.press("c")
    expect(page.locator(".row.marked")).to_have_attribute("data-key", "rec_000005")
    page.locator('.row[data-key="rec_000029"]').click()
    expect(page.locator("#pane h2")).to_contain_text("rec_000029")
    page.keyboard.press("c")
    page.wait_for_url("**/compare**")
    expect(page.locator("h1")).to_have_text("Two nodes")
    expect(page.locator("table.diff").first).to_contain_text("[rewind memory]")
    expect(page.locator("details.file table.diff")).to_contain_text("_cents(price)")
    picture(page, "comparison", document=True)


def test_compare_two_runs_from_the_list(served: Served, shown: tuple[Desk, str], page_of: Open) -> None:
    page = page_of()
    page.goto(served.url)
    page.locator('input[name="a"]').fill(shown[1])
    page.locator('input[name="b"]').fill(LONG)
    page.locator("button", has_text="Compare").click()
    expect(page.locator("h1")).to_have_text("Two runs")
    expect(page.locator(".lead")).to_contain_text("0 nodes the same")


def test_dry_run_of_a_restore_and_of_a_fork(
    served: Served, shown: tuple[Desk, str], page_of: Open, picture: Picture
) -> None:
    desk, run = shown
    before = desk.files()
    page = page_of()
    page.goto(f"{served.url}r/{run}?node=rec_000005")
    page.locator("summary", has_text="Restore").click()
    page.locator('input[value="in-place"]').check()
    page.locator("text=Show what would happen").click()
    expect(page.locator("h1")).to_have_text("A restore, not done yet")
    expect(page.locator(".report")).to_contain_text("report.txt")
    expect(page.locator("button.do")).to_have_text("Restore now")
    picture(page, "restore", document=True)
    page.locator("text=Do nothing").click()
    expect(page.locator("#pane h2")).to_contain_text("rec_000005")
    assert desk.files() == before
    page.locator("summary", has_text="Fork").click()
    page.locator('textarea[name="memory"]').fill("Use Decimal.")
    page.locator("button", has_text="Go on from here").click()
    command = f"agentrewind fork {run} --at rec_000005 --memory 'Use Decimal.'"
    expect(page.locator("pre.command")).to_have_text(command)
    expect(page.locator("h1")).to_contain_text("not made yet")


def test_a_restore_that_is_confirmed(tmp_path: Path, page_of: Open) -> None:
    from tests.browser import runs

    desk = Desk(base=tmp_path)
    run = runs.tell_story(desk)
    with viewer(desk) as served:
        page = page_of()
        page.goto(f"{served.url}r/{run}?node=rec_000005")
        page.locator("summary", has_text="Restore").click()
        page.locator('input[value="in-place"]').check()
        page.locator("text=Show what would happen").click()
        page.locator("button.do").click()
        expect(page.locator("h1")).to_have_text("Restored")
        expect(page.locator("main .good")).to_contain_text("verified")
        assert "report.txt" not in desk.files()
        page.reload()  # a form that is sent again restores nothing
        expect(page.locator("h1")).to_have_text("UsageError")


def test_keys_and_help(served: Served, shown: tuple[Desk, str], page_of: Open) -> None:
    page = page_of()
    page.goto(f"{served.url}r/{shown[1]}")
    page.locator(".row").first.wait_for()
    for key, wanted in (("j", "rec_000001"), ("ArrowDown", "rec_000002"), ("k", "rec_000001")):
        page.keyboard.press(key)
        expect(page.locator(".row.picked")).to_have_attribute("data-key", wanted)
    page.keyboard.press("G")
    expect(page.locator("#rows .row").last).to_have_class(re.compile("picked"))
    page.keyboard.press("g")
    expect(page.locator(".row.picked")).to_have_attribute("data-key", "rec_000001")
    page.keyboard.press("Enter")
    expect(page.locator("#pane")).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).not_to_be_visible()
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_class("dark")
    page.reload()
    expect(page.locator("html")).to_have_class("dark")


def test_a_narrow_window(served: Served, shown: tuple[Desk, str], page_of: Open, picture: Picture) -> None:
    page = page_of(width=420, height=800)
    page.goto(f"{served.url}r/{shown[1]}")
    expect(page.locator("#pane")).not_to_be_visible()
    picture(page, "narrow", document=True)
    page.locator('.row[data-key="rec_000028"]').click()
    expect(page.locator("#pane h2")).to_be_visible()
    expect(page.locator("#rows")).not_to_be_visible()
    picture(page, "narrow-node")
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not wide
    page.locator(".back").click()
    expect(page.locator("#rows")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_whole_page(
    served: Served, shown: tuple[Desk, str], page_of: Open, picture: Picture, scheme: str
) -> None:
    page = page_of(scheme=scheme)
    page.goto(f"{served.url}r/{shown[1]}?node=rec_000017")
    page.locator("#pane .called").wait_for()
    picture(page, f"run-{scheme}", document=scheme == "light")


# --- a long run ---


def first_paint(page: Page) -> float:
    """When something was to be seen first, in ms; a page may be loaded before it is painted."""
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
    found = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return float(found)


def test_two_thousand_nodes(
    served: Served, page_of: Open, picture: Picture, record_property: Callable[[str, Any], None]
) -> None:
    page = page_of()
    page.goto(f"{served.url}r/{LONG}")  # whatever is read for the first time, is read here
    page.goto(served.url)
    page.goto(f"{served.url}r/{LONG}")
    paint = first_paint(page)
    record_property("first_paint_ms", paint)
    print(f"first paint of 2,000 nodes: {paint:.0f} ms")
    assert paint < 10_000
    assert page.locator("#rows .row").count() <= 400
    page.keyboard.press("G")
    expect(page.locator("#rows .row.picked .what")).to_contain_text("accepted")
    picture(page, "long")
    page.keyboard.press("p")
    expect(page.locator("#pane pre.memory").first).to_contain_text("Do not touch module")
    assert page.locator("#rows .row.picked").is_visible()
    page.goto(f"{served.url}r/{LONG}?node=rec_001000")
    expect(page.locator(".row.picked")).to_be_in_viewport()


def test_first_paint_of_a_run_that_was_not_read_before(shown: tuple[Desk, str], page_of: Open) -> None:
    with viewer(shown[0]) as fresh:
        page = page_of()
        page.goto(f"{fresh.url}r/{LONG}")
        paint = first_paint(page)
        print(f"first paint of 2,000 nodes, read for the first time: {paint:.0f} ms")
        assert paint < 20_000


def test_scrolling_fetches_what_comes_into_view(served: Served, page_of: Open) -> None:
    page = page_of()
    page.goto(f"{served.url}r/{LONG}")
    place = page.locator("#rows")
    height = place.evaluate("each => each.scrollHeight")
    assert height > 2000 * 26
    place.evaluate("each => { each.scrollTop = each.scrollHeight / 2 }")
    expect(page.locator('.row[data-key="rec_001010"]')).to_be_attached()
    # the rows that were not needed have not been fetched
    assert page.locator(".chunk.waiting").count() >= 5
    assert abs(place.evaluate("each => each.scrollHeight") - height) < 100


def test_five_megabytes_come_when_they_are_asked_for(served: Served, page_of: Open) -> None:
    page = page_of()
    page.goto(f"{served.url}r/{LONG}?node=rec_000100")
    first = page.locator("#pane pre.result")
    assert len(str(first.text_content())) < 10_000
    page.locator("#pane a[data-more]", has_text="more characters").first.click()
    expect(page.locator("#pane pre.piece")).to_have_count(1)
    page.locator("#pane a[data-more]", has_text="more characters").first.click()
    expect(page.locator("#pane pre.piece")).to_have_count(2)


# --- hostile text ---


def test_hostile_text_is_shown_and_nothing_else(served: Served, page_of: Open, picture: Picture) -> None:
    page = page_of()
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.goto(f"{served.url}r/{HOSTILE_RUN}")
    rows = page.locator("#rows .row")
    for place in range(rows.count()):
        rows.nth(place).click()
        page.locator("#pane .node").wait_for()
        page.wait_for_timeout(80)
        assert "AgentRewind" in page.title()
    page.goto(f"{served.url}r/{HOSTILE_RUN}?node=rec_000001")
    expect(page.locator("#pane")).to_contain_text(HOSTILE["script"])
    picture(page, "hostile")
    assert page.locator("img, iframe, object").count() == 0
    assert page.evaluate("[...document.links].every(each => each.protocol === 'http:')")
    page.locator("#rows .row", has_text="odd id").click()
    expect(page.locator("#pane .node")).to_have_attribute("data-key", ODD_ID)
    page.reload()
    expect(page.locator("#pane .node")).to_have_attribute("data-key", ODD_ID)


def test_no_script_of_a_page_runs(
    served: Served, shown: tuple[Desk, str], page_of: Open, tmp_path: Path
) -> None:
    """Even were something not escaped, the policy would not run it."""
    page = page_of()
    page.goto(f"{served.url}r/{shown[1]}")
    refused = page.evaluate(
        """() => new Promise(done => {
            document.addEventListener("securitypolicyviolation", event => done(event.violatedDirective));
            const script = document.createElement("script");
            script.textContent = "document.title = 'owned'";
            document.body.append(script);
            setTimeout(() => done("ran"), 2000);
        })"""
    )
    assert refused.startswith("script-src")
    assert "AgentRewind" in page.title()


# --- live ---


def test_a_run_under_way_grows_on_the_page(tmp_path: Path, page_of: Open) -> None:
    desk = Desk(base=tmp_path)
    run = write_run(desk.home, "20260131-120000-aaaaaa", [[answer(1, "I begin.", second=1)]])
    with viewer(desk) as served:
        page = page_of()
        page.goto(f"{served.url}r/{run.run_id}?node=rec_000001")
        expect(page.locator("#rows .row")).to_have_count(1)
        with RunStore(desk.home).open(run.run_id).writer(0) as writer:
            writer.append(started(2, NodeKind.TOOL), durable=False)
            expect(page.locator("#rows .row")).to_have_count(2)
            page.locator('.row[data-key="rec_000002"]').click()
            expect(page.locator("#pane h2")).to_contain_text("unfinished call")
            writer.append(call(2, "make check", {"output": "", "returncode": 1}, second=2), durable=False)
            expect(page.locator("#pane .answered")).to_contain_text("returncode")
            expect(page.locator('.row[data-key="rec_000002"]')).to_have_class(re.compile("bad"))
            expect(page.locator("#node-count")).to_have_text("2")
            writer.append(changed(2, b"a.txt", b"b.txt", second=3), durable=False)
            expect(page.locator('.row[data-key="rec_000002"] .files')).to_have_text("±2")
            for number in range(3, 450):
                writer.append(call(number, f"step {number}", "done", second=number), durable=False)
        expect(page.locator("#node-count")).to_have_text("449", timeout=20_000)
        page.keyboard.press("G")
        expect(page.locator(".row.picked")).to_have_attribute("data-key", "rec_000449")
        assert picked(page) == "rec_000449"


# --- the page that is a file ---


@pytest.mark.parametrize("run", ["story", HOSTILE_RUN])
def test_the_file_opens_by_itself(
    shown: tuple[Desk, str], page_of: Open, picture: Picture, tmp_path: Path, run: str
) -> None:
    desk, story = shown
    file = tmp_path / "run.html"
    desk.json("view", story if run == "story" else run, "--html", str(file))
    page = page_of()
    page.goto(file.as_uri())
    rows = page.locator("details.entry")
    assert rows.count() >= 12
    for place in range(min(rows.count(), 20)):
        rows.nth(place).locator("summary").first.click()
    assert "AgentRewind" in page.title()
    # the style sheet is in force: its hash is the one that the policy allows
    assert page.locator(".bar").evaluate("each => getComputedStyle(each).display") == "flex"
    picture(page, f"file-{'story' if run == 'story' else 'hostile'}")
