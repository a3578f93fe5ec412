"""Shows a run while it goes on: a live tree on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

import click

from agentrewind.commands.output import put, styled
from agentrewind.display_story import Entry, Sort, Story
from agentrewind.display_tree import Line, entry_line, to_ascii, tree
from agentrewind.journal import SegmentTail, tail_reader
from agentrewind.records import RecordUid
from agentrewind.run_store import Run

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

_POLL_S = 0.1
_PLAIN_WIDTH = 160
_RICH = {
    "": "",
    "strong": "bold",
    "faint": "dim",
    "good": "green",
    "bad": "red",
    "rewind": "magenta",
    "note": "yellow",
}


def print_tree(
    story: Story, *, width: int, live: bool = False, only: Collection[RecordUid] | None = None
) -> None:
    """Print the tree to standard output, whole or only these nodes."""
    for line in tree(story, width=width, live=live, only=only):
        put(_coloured(line))


def _coloured(line: Line) -> str:
    plain = not _speaks_unicode(sys.stdout)
    rail, text, outcome = (to_ascii(part) if plain else part for part in (line.rail, line.text, line.outcome))
    style = "bad" if line.failed else "faint"
    tail = f"  {styled(outcome, style)}" if outcome else ""
    return f"{styled(rail, 'faint')}{styled(text, 'faint' if line.dim else line.style)}{tail}"


class Shows(Protocol):
    """What a follower hands on: the story so far, and the entries that are new in it."""

    def update(self, story: Story, new: Iterable[tuple[int, Entry]]) -> None: ...
    def close(self, story: Story) -> None: ...


class Follower:
    """Follows a run's segments in a thread of its own and hands what comes to a display.

    Used as a context manager around the run; `follow` is called once the run exists.
    """

    def __init__(self, shows: Shows) -> None:
        self._shows = shows
        self._reader: _Reader | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._gone = False

    def follow(self, run: Run) -> None:
        """Begin; what the run holds already is taken in without being announced."""
        self._reader = _Reader(run)
        self._reader.read()
        self._show(self._reader.story, ())
        self._thread = threading.Thread(target=self._loop, name="display", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None and self._reader is not None:
            self._thread.join()
            self._show(self._reader.story, self._reader.read())
            if not self._gone:
                self._shows.close(self._reader.story)

    def _loop(self) -> None:
        assert self._reader is not None
        while not self._ended.wait(_POLL_S):
            new = self._reader.read()
            if self._reader.moved:
                self._show(self._reader.story, new)

    def _show(self, story: Story, new: Iterable[tuple[int, Entry]]) -> None:
        """Hand on; once whoever looked on is gone, the run goes on unseen."""
        try:
            if not self._gone:
                self._shows.update(story, new)
        except OSError:
            self._gone = True


@dataclass(slots=True)
class _Reader:
    """Reads what has been added to any segment since the last time."""

    run: Run
    story: Story = field(default_factory=Story)
    tails: list[SegmentTail] = field(default_factory=list)
    moved: bool = False
    """Whether the last look found anything."""

    def read(self) -> list[tuple[int, Entry]]:
        self.moved = False
        while self.run.segment_path(len(self.tails)).exists():
            self.tails.append(tail_reader(self.run.segment_path(len(self.tails))))
        new: list[tuple[int, Entry]] = []
        for number, tail in enumerate(self.tails):
            for record in tail.poll():
                self.moved = True
                new += [(number, entry) for entry in self.story.add(number, record)]
        return new


class PlainLines:
    """One line for each thing that happened, in the order in which it did; for files, pipes and CI logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._segment = -1
        self._held: Entry | None = None

    def update(self, story: Story, new: Iterable[tuple[int, Entry]]) -> None:
        """Print what is new."""
        for segment, entry in new:
            if segment != self._segment and segment > 0:
                self._flush()
                self._print(Line(rail="", text=f"— segment {segment} —"))
            self._segment = segment
            self._flush()
            # which files a call changed is known when the next one begins
            self._held = entry
            if entry.sort is not Sort.CALL:
                self._flush()

    def close(self, story: Story) -> None:
        """Print what was held back."""
        self._flush()

    def _flush(self) -> None:
        if self._held is not None:
            for line in _plain(self._held):
                self._print(line)
        self._held = None

    def _print(self, line: Line) -> None:
        text = line.plain()
        click.echo(text if _speaks_unicode(self._stream) else to_ascii(text), file=self._stream)


def _plain(entry: Entry) -> list[Line]:
    if entry.sort is not Sort.MEMORY:
        return [entry_line(entry, width=_PLAIN_WIDTH)]
    texts = [text for text in entry.text.splitlines() if text.strip()]
    return [entry_line(Entry(sort=Sort.MEMORY, text=text), width=_PLAIN_WIDTH) for text in texts]


class LiveTree:
    """The end of the tree, redrawn in place as it grows; the whole tree remains at the end."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._ascii = not _speaks_unicode(stream)
        self._live: Live | None = None

    @property
    def movable(self) -> bool:
        """Whether the terminal can redraw what it shows."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def update(self, story: Story, new: Iterable[tuple[int, Entry]]) -> None:
        """Redraw."""
        from rich.live import Live

        lines = tree(story, width=self._console.width, live=True)
        height = max(4, self._console.height - 2)
        shown = lines[-height:]
        if len(shown) < len(lines):
            hidden = Line(rail="│ ", text=f"… {len(lines) - len(shown) + 1} lines above", style="faint")
            shown = [hidden, *shown[1:]]
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._rendered(shown), refresh=True)

    def close(self, story: Story) -> None:
        """Replace the live part by the whole tree."""
        if self._live is not None:
            self._live.stop()
        self._console.print(self._rendered(tree(story, width=self._console.width)))

    def _rendered(self, lines: list[Line]) -> Text:
        from rich.text import Text

        text = Text(no_wrap=True, overflow="crop", end="")
        for number, line in enumerate(lines):
            if number:
                text.append("\n")
            text.append(self._safe(line.rail), _RICH["faint"])
            text.append(self._safe(line.text), _RICH["faint" if line.dim else line.style])
            if line.outcome:
                text.append("  " + self._safe(line.outcome), _RICH["bad" if line.failed else "faint"])
        return text

    def _safe(self, text: str) -> str:
        return to_ascii(text) if self._ascii else text


def make_display(stream: TextIO) -> Shows:
    """The live tree where the stream is a terminal that can move its cursor, plain lines elsewhere."""
    if stream.isatty():
        display = LiveTree(stream)
        if display.movable:
            return display
    return PlainLines(stream)


def _speaks_unicode(stream: TextIO) -> bool:
    encoding = getattr(stream, "encoding", None) or "ascii"
    try:
        "│├─…✓".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
