from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.browser import runs
from tests.cli.desk import REPOSITORY, Desk
from tests.view.served import Served, viewer

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PICTURES = REPOSITORY / "docs" / "pictures"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; Playwright's own browsers are never downloaded.

    It runs an event loop in this thread, and no other test could run its own meanwhile.
    """
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(ARGUMENTS))
        yield found
        found.close()


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, str]:
    """A desk with the story, a hostile run and a long one, and the story's id; only to be looked at."""
    desk = Desk(base=tmp_path_factory.mktemp("shown"))
    story = runs.tell_story(desk)
    runs.hostile_run(desk.home)
    runs.long_run(desk.home)
    return desk, story


@pytest.fixture(scope="session")
def served(shown: tuple[Desk, str]) -> Iterator[Served]:
    """A viewer of these runs."""
    with viewer(shown[0]) as found:
        yield found


Open = Callable[..., Page]


@pytest.fixture
def page_of(browser: Browser) -> Iterator[Open]:
    """Opens a page of its own; afterwards no page may have complained of anything."""
    contexts = []
    complaints: list[str] = []

    def open_page(*, width: int = 1360, height: int = 800, scheme: str = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda told: complaints.append(told.text) if _complains(told) else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        # anything else than the viewer would be another host
        page.on("request", lambda asked: None if _own(asked.url) else complaints.append(asked.url))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _complains(told: ConsoleMessage) -> bool:
    """An answer that is an error is shown in the page, and one test tries what the policy refuses."""
    harmless = ("Failed to load resource", "Executing inline script violates")
    return told.type == "error" and not told.text.startswith(harmless)


def _own(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "file:///", "data:"))


def _keep(path: Path, target: Path) -> None:
    """A picture for the documentation: as few colours as it takes, for it lies in the repository."""
    from PIL import Image

    target.parent.mkdir(exist_ok=True)
    with Image.open(path) as found:
        found.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            target, optimize=True
        )
    assert target.stat().st_size < 150_000


@pytest.fixture
def picture(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[[Page, str], None]:
    """Keeps a picture of a page among the test's output; with `--update-golden` in the documentation too."""
    folder = tmp_path_factory.getbasetemp() / "pictures"
    folder.mkdir(exist_ok=True)

    def take(page: Page, name: str, *, document: bool = False) -> None:
        path: Path = folder / f"{name}.png"
        page.screenshot(path=path)
        assert path.stat().st_size > 5_000
        if document and request.config.getoption("--update-golden"):
            _keep(path, PICTURES / f"{name}.png")

    return take
