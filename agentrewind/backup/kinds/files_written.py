"""Which paths a simple command may write, remove or move, by the `paths` parameter of its rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from agentrewind.backup.kind import Parameters, UnclearError
from agentrewind.backup.kinds.files_archives import archived, unzipped
from agentrewind.backup.kinds.files_asked import Written, listed
from agentrewind.backup.kinds.files_destinations import destinations, last_place, moved
from agentrewind.backup.kinds.words import read_words
from agentrewind.backup.programs import run
from agentrewind.backup.values import Command, Context, Word

_WRITING = (">", ">>", ">|", "&>", "&>>", ">&", "<>")
_NOWHERE = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/full", "/dev/zero")


def written_paths(command: Command, parameters: Parameters, context: Context) -> list[Path]:
    """Absolute paths, not resolved yet. Raises UnclearError where they cannot be told."""
    mode = parameters.get("paths", "operands")
    reader = _MODES.get(mode) if isinstance(mode, str) else None
    if reader is None:
        raise UnclearError(f"the rule's paths = {mode!r} is none of {', '.join(_MODES)}")
    if command.host is not None:
        raise UnclearError(f"it runs on {command.host}, whose files are out of reach")
    if command.unclear:
        raise UnclearError(command.unclear)
    words = read_words(command, listed(parameters, "values"), listed(parameters, "optional"))
    return list(reader(Written(command, context, words, parameters)))


def _operands(written: Written) -> Iterator[Path]:
    given, parameters = written.given, written.parameters
    written.closed()
    skip = parameters.get("skip", 0)
    first = skip if isinstance(skip, int) and not given.has(*written.listed("unless")) else 0
    recursive = written.listed("recursive")
    suffix = given.value(*written.listed("suffix"))
    for path in entered(written, given.operands[first:]):
        if recursive and path.is_dir() and not path.is_symlink() and not given.has(*recursive):
            continue  # refused by the program itself
        yield path
        if suffix is not None and suffix.text:
            yield from _kept_beside(path, suffix)


def entered(written: Written, words: Collection[Word]) -> Iterator[Path]:
    """The paths that these words name; where `link/` names a link, what it leads to as well."""
    for word in words:
        for path in written.paths(word):
            yield path
            if word.text.endswith(("/", "/.")) and path.is_symlink():
                yield path.resolve()


def _kept_beside(path: Path, suffix: Word) -> Iterator[Path]:
    """The copy that `sed -i.bak` and its kind leave, which may take an older file's place."""
    if not suffix.literal:
        raise UnclearError(f"the suffix {suffix.text!r} is known only when the command runs")
    name = suffix.text.replace("*", path.name) if "*" in suffix.text else path.name + suffix.text
    yield path.parent / name


def _empty_directories(written: Written) -> Iterator[Path]:
    parents = written.given.has("-p", "--parents")
    for path in written.all_paths(written.given.operands):
        if parents or (path.is_dir() and not any(path.iterdir())):
            yield path


def _redirects(written: Written) -> Iterator[Path]:
    for redirect in written.command.redirects:
        text = redirect.target.text
        if redirect.operator not in _WRITING or (redirect.operator == ">&" and text.rstrip("-").isdigit()):
            continue
        if text in _NOWHERE or text.startswith("/dev/fd/") or text == "-":
            continue
        yield written.one(redirect.target)


def _block_copy(written: Written) -> Iterator[Path]:
    for word in written.given.operands:
        if word.text.startswith("of="):
            yield written.one(Word(word.text[3:], word.literal, word.glob))


def _compressed(written: Written) -> Iterator[Path]:
    """Both forms of every file that is compressed or expanded in place."""
    for path in _operands(written):
        yield path
        for ending in (".gz", ".bz2", ".xz", ".zst", ".lzma", ".Z", ".lz4"):
            if path.name.endswith(ending):
                yield path.with_name(path.name.removesuffix(ending))
            elif written.command.name in _MAKES.get(ending, ()):
                yield path.with_name(path.name + ending)


_MAKES = {
    ".gz": ("gzip", "pigz"),
    ".bz2": ("bzip2", "pbzip2"),
    ".xz": ("xz",),
    ".zst": ("zstd",),
    ".lz4": ("lz4",),
}


_CHANGING = ("-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fls", "-fprintf")


def _found(written: Written) -> Iterator[Path]:
    """What `find` would hand to its action: asked of find itself, with the action left out."""
    words = written.command.argv[1:]
    first = next((place for place, word in enumerate(words) if word.text in _CHANGING), None)
    if first is None:
        return
    if any(not word.literal for word in words[:first]):
        raise UnclearError("where find looks is known only when the command runs")
    if written.command.cwd is None:
        raise UnclearError("in which directory find looks is known only when the command runs")
    tests = [word.text for word in words[:first]]
    if any(word.text in ("-o", "-or", ",") for word in words):
        tests = [text for text in tests if not text.startswith("-")]
    listed = run(["find", *tests, "-print0"], written.context, cwd=written.command.cwd)
    for name in listed.split(b"\0"):
        if name:
            yield written.command.cwd / name.decode("utf-8", "surrogateescape")


def _argument(written: Written) -> Iterator[Path]:
    """The path in the arguments of a harness's own tool."""
    try:
        arguments = json.loads(written.command.stdin or "{}")
    except ValueError as error:
        raise UnclearError("the tool's arguments are no JSON object") from error
    for name in written.listed("argument"):
        found = arguments.get(name) if isinstance(arguments, dict) else None
        for text in found if isinstance(found, list) else [found]:
            if isinstance(text, str) and text:
                yield from written.paths(Word(text))


_MODES: dict[str, Callable[[Written], Iterator[Path]]] = {
    "operands": _operands,
    "empty-directories": _empty_directories,
    "destination": destinations,
    "moved": moved,
    "last": last_place,
    "redirects": _redirects,
    "of": _block_copy,
    "archive": archived,
    "unzipped": unzipped,
    "compressed": _compressed,
    "found": _found,
    "argument": _argument,
}
