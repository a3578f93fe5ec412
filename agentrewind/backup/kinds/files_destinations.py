"""Which paths cp, mv, ln, install, rsync and scp write: where a source goes, and what is backed up there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agentrewind.backup.kind import UnclearError
from agentrewind.backup.kinds.files_asked import Written
from agentrewind.backup.kinds.files_names import below, linked_below, shared_below
from agentrewind.backup.values import Word

_LONG = frozenset(
    (
        "--archive", "--attributes-only", "--backup", "--compare", "--copy-contents", "--debug",
        "--dereference", "--directory", "--force", "--group", "--interactive", "--link", "--logical",
        "--mode", "--no-clobber", "--no-dereference", "--no-preserve", "--no-target-directory",
        "--one-file-system", "--owner", "--parents", "--physical", "--preserve", "--preserve-timestamps",
        "--recursive", "--reflink", "--relative", "--remove-destination", "--sparse", "--strip",
        "--strip-trailing-slashes", "--suffix", "--symbolic", "--symbolic-link", "--target-directory",
        "--update", "--verbose",
    )
)  # fmt: skip
"""Every other long option, or one that is cut short, may say anything of where something goes."""

_RECURSIVE = ("-r", "-R", "-a", "--recursive", "--archive")
_MOST = 20_000
_BACKUPS = ("VERSION_CONTROL", "SIMPLE_BACKUP_SUFFIX")


def destinations(written: Written) -> Iterator[Path]:
    """Where `cp`, `ln` and `install` put each source."""
    given = written.given
    _check_options(written)
    if given.has("-d", "--directory") and written.command.name == "install":
        yield from written.all_paths(given.operands)
        return
    sources, target, into = _ends(written)
    for word, source in sources:
        place = _place(written, word, source, target, into=into)
        yield place
        yield from _backed_up(written, place, len(sources))
        if given.has(*_RECURSIVE) and place.is_dir():
            yield from _merged(written, place, whole=place == target)
    if not sources:
        yield target


def moved(written: Written) -> Iterator[Path]:
    """Both ends of every move, one after the other."""
    _check_options(written)
    sources, target, into = _ends(written)
    for word, source in sources:
        place = _place(written, word, source, target, into=into)
        yield source
        yield place
        for kept in _backed_up(written, place, len(sources)):
            yield kept
            yield kept
    if not sources:
        yield target
        yield target


def _check_options(written: Written) -> None:
    written.closed()
    unknown = [name for name, _ in written.given.options if name.startswith("--") and name not in _LONG]
    if unknown:
        raise UnclearError(f"what {written.command.name} does with {unknown[0]} cannot be told")


def _ends(written: Written) -> tuple[list[tuple[Word, Path]], Path, bool]:
    """Sources, the destination, and whether the sources go into it."""
    given = written.given
    directory = given.value("-t", "--target-directory")
    if directory is not None:
        return _each(written, given.operands), written.one(directory), True
    if not given.operands:
        raise UnclearError("it names no file")
    if len(given.operands) == 1:
        # `ln TARGET` puts its link here
        if written.command.name == "ln":
            return _each(written, given.operands), written.one(Word(".")), True
        return [], written.one(given.operands[0]), False
    target = written.one(given.operands[-1])
    whole = given.has("-T", "--no-target-directory") or (
        given.has("-n", "--no-dereference") and target.is_symlink()
    )
    return _each(written, given.operands[:-1]), target, target.is_dir() and not whole


def _each(written: Written, words: tuple[Word, ...]) -> list[tuple[Word, Path]]:
    return [(word, path) for word in words for path in written.paths(word)]


def _place(written: Written, word: Word, source: Path, target: Path, *, into: bool) -> Path:
    if written.given.has("--parents"):
        root = Path("/") if word.text.startswith("/") else written.command.cwd or Path("/")
        if ".." in word.text.split("/") or not source.is_relative_to(root):
            raise UnclearError(f"where the folders of {word.text} are made cannot be told")
        return target / source.relative_to(root)
    # `sub/.` is not a thing in the destination, but all that `sub` holds
    last = word.text.rstrip("/").rpartition("/")[2]
    return target / source.name if into and last not in (".", "..") else target


def _merged(written: Written, place: Path, *, whole: bool) -> Iterator[Path]:
    """What is written through links to files when a tree is copied over another; cp enters no link."""
    yield from (name for name in below(place) if name.is_symlink() and not name.is_dir())
    yield from shared_below(place)
    workspace = written.context.workspace
    real = place.resolve()
    # what the source holds by the time that it is copied is not known, so that all of the destination counts
    if whole and (workspace is None or not real.is_relative_to(workspace)):
        for count, _ in enumerate(below(real)):
            if count >= _MOST:
                raise UnclearError(f"what is written over in {place} cannot be told, and it is very large")


def _backed_up(written: Written, place: Path, sources: int) -> Iterator[Path]:
    """The names that `-b`, `--backup` and `-S` give to what was at a place, which may be those of others."""
    given = written.given
    if not given.has("-b", "--backup", "-S", "--suffix"):
        return
    if any(name in env for name in _BACKUPS for env in (written.command.assignments, written.context.env)):
        raise UnclearError(f"{' or '.join(_BACKUPS)} may say what the backups are called")
    suffix = given.value("-S", "--suffix") or Word("~")
    if not suffix.literal or "/" in suffix.text or not place.name:
        raise UnclearError("what the backups are called cannot be told")
    yield place.parent / f"{place.name}{suffix.text}"
    numbered = re.compile(re.escape(place.name) + r"\.~(\d+)~")
    beside = place.parent.iterdir() if place.parent.is_dir() else ()
    last = max((int(found[1]) for each in beside if (found := numbered.fullmatch(each.name))), default=0)
    for number in range(last + 1, last + 1 + sources):
        yield place.parent / f"{place.name}.~{number}~"


def last_place(written: Written) -> Iterator[Path]:
    """The whole destination of `rsync` and `scp`."""
    written.closed()
    for name, _ in written.given.options:
        if name.startswith(_ELSEWHERE):
            raise UnclearError(f"what {written.command.name} does with {name} cannot be told")
    _check_connection(written)
    if not written.given.operands:
        return
    word = written.given.operands[-1]
    if ":" in word.text.partition("/")[0]:
        raise UnclearError(f"{word.text} lies on another machine")
    place = written.one(word)
    yield place
    if written.command.name == "scp" and place.is_dir():
        yield from linked_below(place)
        yield from shared_below(place)


def _check_connection(written: Written) -> None:
    """Raises UnclearError where a program is named that makes the connection, apart from ssh itself."""
    given = written.given
    shells = [value for name, value in given.options if name in ("-e", "--rsh")]
    named = any(shell is None or not re.match(r"ssh( |$)", shell.text) for shell in shells)
    words = " ".join(word.text for word in written.command.argv).lower()
    if named or (written.command.name == "scp" and given.has("-S", "-F", "-D")) or "command" in words:
        raise UnclearError(f"{written.command.name} is told which program makes the connection")


_ELSEWHERE = (
    "--backup-dir", "--remove-source-files", "--remove-sent-files", "--log-file", "--partial-dir",
    "--temp-dir", "--write-batch", "--only-write-batch", "--read-batch", "--inplace", "--append",
    "--keep-dirlinks",    "--write-devices", "--copy-as", "--daemon", "-T", "-K",
)  # fmt: skip
"""Options of rsync that write somewhere else, or through links and other names."""
