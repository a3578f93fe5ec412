"""Writes a run as one page of HTML that needs nothing else and holds no script."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from agentrewind.durable import write_file
from agentrewind.errors import UsageError
from agentrewind.redacted_records import redacted
from agentrewind.run_store import Run
from agentrewind.view.graph import Picture, pictures
from agentrewind.view.overview import TICK, TOP, WIDTH, overview_of
from agentrewind.view.pane import Pane, pane_of
from agentrewind.view.reading import Library, Reading
from agentrewind.view.rows import Row
from agentrewind.view.templating import STATIC, environment

SHOWN = 20_000
"""Characters of each text that the page holds; what is beyond is counted in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The file, its bytes, and how many nodes it shows."""

    path: Path
    size: int
    nodes: int


def write_page(run: Run, home: Path, path: Path, *, made_at: str) -> Written:
    """Write the page, whole or not at all, in place of a file that is there.

    What looks like a credential is replaced in it; contents of files are not part of it.

    Raises:
        DamagedError: the run cannot be opened at all.
        UsageError: `path` is a directory, or its folder does not exist.
        StorageError: the file cannot be written.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}; make it first")
    library = Library(home)
    try:
        reading = library.fresh(run.run_id, clean=redacted)
        data = render(library, reading, made_at=made_at).encode("utf-8")
    finally:
        library.close()
    write_file(path, data)
    return Written(path=path, size=len(data), nodes=len(reading.timeline.nodes))


def render(library: Library, reading: Reading, *, made_at: str) -> str:
    """The page of a run that was redacted before."""
    style = (STATIC / "view.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return (
        environment()
        .get_template("page.html")
        .render(
            reading=reading,
            rows=_shown(library, reading),
            layout=reading.rows.layout,
            overview=overview_of(reading.rows),
            overview_size=(WIDTH, TOP, TICK),
            # as the browser sees it: line breaks of the file are those of the page
            style=style,
            style_hash=f"sha256-{digest}",
            made_at=made_at,
        )
    )


def _shown(library: Library, reading: Reading) -> Iterator[tuple[Row, Picture, Pane]]:
    every = reading.rows.all
    for row, drawn in zip(every, pictures(reading.rows.layout, 0, len(every)), strict=True):
        yield row, drawn, pane_of(library, reading, row, length=SHOWN)
