"""Which paths tar and unzip write: what an archive is unpacked over, or the archive itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agentrewind.backup.kind import UnclearError
from agentrewind.backup.kinds.files_asked import Written
from agentrewind.backup.programs import run
from agentrewind.backup.values import Word

_LETTERS = {
    "c": "create", "x": "extract", "t": "list", "r": "append", "u": "update", "d": "diff",
    "v": "verbose", "z": "gzip", "j": "bzip2", "J": "xz", "Z": "compress", "a": "auto-compress",
    "k": "keep-old-files", "p": "preserve-permissions", "m": "touch", "O": "to-stdout",
    "h": "dereference", "S": "sparse", "f": "file", "C": "directory", "X": "exclude-from",
}  # fmt: skip

_PLAIN = frozenset(_LETTERS.values()) - {"file", "directory", "exclude-from"} | {
    "get", "diff", "compare", "same-permissions", "no-same-owner", "no-same-permissions", "same-owner",
    "numeric-owner", "skip-old-files", "keep-newer-files", "totals", "wildcards", "exclude-vcs",
    "exclude-caches", "zstd", "one-file-system",
}  # fmt: skip

_VALUES = frozenset(
    ("file", "directory", "exclude-from", "exclude", "format", "sort", "mtime", "owner", "group", "mode")
)
"""Every other option of tar may run a program, write another file or move what is unpacked."""

_MODES = frozenset({"create", "extract", "list", "append", "update", "diff"})
_STEERING = ("TAR_OPTIONS", "TAPE", "TAR_RSH")
_SAME = {"get": "extract", "compare": "diff"}


@dataclass(slots=True)
class _Tar:
    """The words of a tar command."""

    plain: set[str] = field(default_factory=set)
    values: dict[str, list[Word]] = field(default_factory=dict)


def archived(written: Written) -> Iterator[Path]:
    """What `tar` unpacks over, or the archive that it writes. Raises UnclearError for an unknown option."""
    written.closed()
    if any(
        name in place for name in _STEERING for place in (written.command.assignments, written.context.env)
    ):
        raise UnclearError(f"{' or '.join(_STEERING)} may say what tar does")
    for word in written.command.argv[1:]:
        if word.glob and any(path.name.startswith("-") for path in written.paths(word)):
            raise UnclearError(f"{word.text} matches what tar takes for an option")
    tar = _read(list(written.command.argv[1:]))
    mode, archive = _mode(tar), _archive(tar)
    if mode == "extract" and "to-stdout" not in tar.plain:
        yield from _unpacked(written, tar, archive)
    elif mode in ("create", "append", "update") and archive is not None and archive.text != "-":
        path = written.one(archive)
        yield path
        if path.is_symlink():
            yield path.resolve()


def _mode(tar: _Tar) -> str:
    modes = {_SAME.get(each, each) for each in tar.plain} & _MODES
    if len(modes) != 1:
        raise UnclearError("whether tar packs or unpacks cannot be told from its options")
    return modes.pop()


def _archive(tar: _Tar) -> Word | None:
    archives = tar.values.get("file", [])
    if len(archives) > 1:
        raise UnclearError("it names several archives")
    if archives and ":" in archives[0].text.partition("/")[0]:
        raise UnclearError(f"{archives[0].text} lies on another machine")
    return archives[0] if archives else None


def _unpacked(written: Written, tar: _Tar, archive: Word | None) -> Iterator[Path]:
    if archive is None or archive.text == "-":
        raise UnclearError("what the archive holds is known only when the command runs")
    if "dereference" in tar.plain or "mode" in tar.values or len(tar.values.get("directory", [])) > 1:
        raise UnclearError("where tar unpacks cannot be told from its options")
    directory = written.one(tar.values.get("directory", [Word(".")])[0])
    path = written.one(archive)
    if not path.is_file():
        raise UnclearError(f"the archive {path} is not there yet")
    yield from _members(written, ["tar", "-tf", str(path)], directory)


def _read(words: list[Word]) -> _Tar:
    """Options in all of tar's spellings. Raises UnclearError for one that is not surely harmless."""
    tar = _Tar()
    if words and not words[0].text.startswith("-"):
        _bundle(words, tar)
    while words:
        word = words.pop(0)
        if word.text == "--" and word.literal:
            return tar
        if word.text.startswith("--"):
            _long(word, words, tar)
        elif word.text.startswith("-") and len(word.text) > 1:
            _short(word, words, tar)
        else:
            _literal(word)
    return tar


def _bundle(words: list[Word], tar: _Tar) -> None:
    """`tar xfC ARCHIVE DIRECTORY`: letters without a dash take their values from the words behind them."""
    bundle = words.pop(0)
    _literal(bundle)
    for letter in bundle.text:
        name = _letter(letter)
        if name not in _VALUES:
            tar.plain.add(name)
        elif words:
            tar.values.setdefault(name, []).append(words.pop(0))


def _long(word: Word, words: list[Word], tar: _Tar) -> None:
    name, equals, value = word.text[2:].partition("=")
    if name in _PLAIN and not equals:
        tar.plain.add(name)
    elif name in _VALUES and (equals or words):
        tar.values.setdefault(name, []).append(Word(value, word.literal) if equals else words.pop(0))
    else:
        raise UnclearError(f"what tar does with --{name} cannot be told")


def _short(word: Word, words: list[Word], tar: _Tar) -> None:
    for place, letter in enumerate(word.text[1:], start=2):
        name = _letter(letter)
        if name in _VALUES:
            rest = word.text[place:]
            if not rest and not words:
                raise UnclearError(f"-{letter} lacks its value")
            tar.values.setdefault(name, []).append(Word(rest, word.literal) if rest else words.pop(0))
            return
        _literal(word)
        tar.plain.add(name)


def _letter(letter: str) -> str:
    if letter not in _LETTERS:
        raise UnclearError(f"what tar does with -{letter} cannot be told")
    return _LETTERS[letter]


def _literal(word: Word) -> None:
    if not word.literal:
        raise UnclearError(f"what {word.text!r} stands for may be an option of tar")


def unzipped(written: Written) -> Iterator[Path]:
    """What `unzip` unpacks over."""
    written.closed()
    if written.given.has("-:"):
        raise UnclearError("unzip is asked to leave its directory")
    if written.given.operands:
        directory = written.one(written.given.value("-d") or Word("."))
        archive = written.one(written.given.operands[0])
        yield from _members(written, ["unzip", "-Z1", str(archive)], directory)


def _members(written: Written, listing: list[str], directory: Path) -> Iterator[Path]:
    """The paths of an archive's members, by its own list of names."""
    for name in run(listing, written.context).splitlines():
        if b"\\" in name or b".." in name.split(b"/"):
            raise UnclearError("the archive has a member whose place cannot be told from its name")
        path = directory / os.fsdecode(name).strip("/")
        if path != directory and not (name.endswith(b"/") and path.is_dir()):
            yield path
