"""Snapshots that no workspace can have been: told as damage wherever they are read, and never acted on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import pytest

from agentrewind.archive import export_run, import_run
from agentrewind.clock import SystemClock
from agentrewind.commands.soundness import Examination
from agentrewind.errors import DamagedError, MissingSnapshotError
from agentrewind.manual import Machine, Outside, restore_elsewhere, restore_in_place
from agentrewind.records import CommitId, Metadata, WorkspaceDeclaration, WorkspaceSpan
from agentrewind.run_store import Run, RunStore
from agentrewind.workspace.objects import BLOB, MODE_DIRECTORY, MODE_FILE, MODE_LINK, TREE
from agentrewind.workspace.policy import Policy
from agentrewind.workspace.policy_text import encode_policy
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.roots import workspace_directory
from agentrewind.workspace.snapshots import SnapshotStore
from agentrewind.workspace.trees import DirectoryIds
from agentrewind.workspace.wholeness import Examiner
from tests import records
from tests.cli.desk import tree

Value: TypeAlias = "bytes | list[Item]"
Item: TypeAlias = tuple[int, bytes, Value]

AT = b"1796132447700730704"
OWN = b"d 755 " + AT


def side(*of: bytes, own: bytes = OWN) -> bytes:
    """A sidecar with these records."""
    return b"agentrewind-sidecar 1\n" + b"".join(record + b"\0" for record in (own, *of))


def plain(name: bytes, kind: bytes = b"f", mode: bytes = b"644", at: bytes = AT) -> bytes:
    return b"%s %s %s %s" % (kind, mode, at, name)


def file(name: bytes, content: bytes = b"content") -> Item:
    return MODE_FILE, name, content


@dataclass(frozen=True)
class Forgery:
    """The two trees of a snapshot's root, item by item in the order in which they are written."""

    files: list[Item]
    meta: list[Item]

    def __init__(
        self, files: list[Item], *of: bytes, own: bytes = OWN, more: list[Item] | None = None
    ) -> None:
        object.__setattr__(self, "files", files)
        object.__setattr__(self, "meta", [*(more or []), file(b"m", side(*of, own=own))])


def named(name: bytes) -> Forgery:
    """A file of this name, on which tree and sidecar agree."""
    return Forgery([file(name)], plain(name))


def folder(name: bytes) -> Forgery:
    """A directory of this name."""
    inner: list[Item] = [file(b"f")]
    return Forgery([(MODE_DIRECTORY, name, inner)], more=[file(b"d" + name, side(plain(b"f")))])


def link(target: bytes) -> Forgery:
    return Forgery([(MODE_LINK, b"l", target)], plain(b"l", b"l", b"777"))


def twins(**leaders: bytes) -> Forgery:
    """Files with equal contents, each a hard link of the path that is given."""
    names = [name.encode() for name in sorted(leaders)]
    return Forgery(
        [file(name) for name in names], *(b"h " + name + b"\0" + leaders[name.decode()] for name in names)
    )


def deep(levels: int) -> Forgery:
    files: list[Item] = []
    meta: list[Item] = [file(b"m", side())]
    for _ in range(levels):
        files = [(MODE_DIRECTORY, b"d", files)]
        meta = [(MODE_DIRECTORY, b"dd", meta), file(b"m", side())]
    forged = Forgery(files)
    object.__setattr__(forged, "meta", meta)
    return forged


OUT = (b"", b".", b"..", b"../evil", b"../../evil", b"/evil", b"x/../..", b"d/evil", b"evil/")

FORGED: dict[str, Forgery] = {
    **{f"a file {name!r}": named(name) for name in OUT},
    **{f"a directory {name!r}": folder(name) for name in OUT},
    **{f"left out {name!r}": Forgery([], b"o excluded " + name) for name in OUT},
    **{
        f"a link {name!r}": Forgery([(MODE_LINK, name, b"/etc")], plain(name, b"l", b"777"))
        for name in (b"..", b"../evil")
    },
    "a name twice in the tree": Forgery([file(b"a"), file(b"a", b"other")], plain(b"a")),
    "a file and a directory of one name": Forgery(
        [file(b"a"), (MODE_DIRECTORY, b"a", [])], plain(b"a"), more=[file(b"da", side())]
    ),
    "a name twice in the sidecar": Forgery([file(b"a")], plain(b"a"), plain(b"a", mode=b"600")),
    "a name left out twice": Forgery([], b"o excluded a", b"o special a"),
    "a name left out and there": Forgery([file(b"a")], plain(b"a"), b"o excluded a"),
    "an unsorted tree": Forgery([file(b"b"), file(b"a")], plain(b"a"), plain(b"b")),
    "a file that the sidecar lacks": Forgery([file(b"a"), file(b"b")], plain(b"a")),
    "a file that the tree lacks": Forgery([file(b"a")], plain(b"a"), plain(b"b")),
    "a directory without a sidecar": Forgery([(MODE_DIRECTORY, b"d", [])]),
    "a link by the tree alone": Forgery([(MODE_LINK, b"a", b"b")], plain(b"a")),
    "a link by the sidecar alone": Forgery([file(b"a")], plain(b"a", b"l", b"777")),
    "a file in pieces that are not there": Forgery([file(b"a")], b"p 644 " + AT + b" 9000000 a"),
    "pieces of a small file": Forgery([file(b"a")], plain(b"a"), more=[(MODE_DIRECTORY, b"ca", [])]),
    "a submodule": Forgery([(0o160000, b"a", b"content")], plain(b"a")),
    "a hard link of itself": twins(h=b"h"),
    "hard links in a circle": twins(a=b"b", b=b"a"),
    "a hard link of a hard link": Forgery(
        [file(b"a"), file(b"b"), file(b"c")], plain(b"a"), b"h b\0a", b"h c\0b"
    ),
    "a hard link of nothing": twins(h=b"absent"),
    "a hard link of a directory": Forgery(
        [(MODE_DIRECTORY, b"d", []), file(b"h")], b"h h\0d", more=[file(b"dd", side())]
    ),
    "a hard link of other contents": Forgery([file(b"a"), file(b"b", b"other")], plain(b"a"), b"h b\0a"),
    **{f"a hard link of {name!r}": twins(h=name) for name in (b"../../etc/passwd", b"/etc/passwd", b"d//f")},
    **{
        f"modified at {at[:12]!r}": Forgery([file(b"a")], plain(b"a", at=at))
        for at in (b"-" + b"9" * 40, b"9" * 40, b"%d" % (10**9 << 63), b"9" * 5000, b"soon")
    },
    **{
        f"a mode of {mode!r}": Forgery([file(b"a")], plain(b"a", mode=mode))
        for mode in (b"-1", b"10000", b"9")
    },
    "a directory of a wrong time": Forgery([], own=b"d 755 " + b"9" * 40),
    "a directory of a wrong mode": Forgery([], own=b"d 17777 " + AT),
    "a link to nowhere": link(b""),
    "a link with NUL": link(b"a\0b"),
    "a link too long": link(b"x" * 4096),
    "too deep": deep(257),
    "far too deep": deep(2000),
}


def commit_of(store: SnapshotStore, forged: Forgery, policy: bytes | None = None) -> CommitId:
    """Put it into the store as it is."""
    writer = store.new_pack()

    def put(value: Value) -> bytes:
        if isinstance(value, bytes):
            return writer.add(BLOB, value)
        lines = [b"%o %s\0%s" % (mode, name, put(inner)) for mode, name, inner in value]
        return writer.add(TREE, b"".join(lines))

    def ladder(items: list[Item]) -> bytes:
        """The same without recursion, where each level has one directory."""
        levels = []
        while True:
            below = [each for each in items if isinstance(each[2], list)]
            if len(below) != 1:
                break
            levels.append(items)
            items = below[0][2]  # type: ignore[assignment]
        oid = put(items)
        for level in reversed(levels):
            lines = [
                b"%o %s\0%s" % (mode, name, oid if isinstance(inner, list) else put(inner))
                for mode, name, inner in level
            ]
            oid = writer.add(TREE, b"".join(lines))
        return oid

    with store.writing():
        commit = store.add_commit(
            writer,
            root=DirectoryIds(tree=ladder(forged.files), meta=ladder(forged.meta)),
            policy=writer.add(BLOB, policy or encode_policy(Policy.default())),
            parents=(),
            label="forged",
            at="2026-01-31T08:00:00+00:00",
        )
        store.publish(writer)
        store.set_ref(f"refs/agentrewind/{records.RUN}/{commit}", commit)
    return commit


@dataclass(frozen=True)
class Place:
    """A run whose only node begins with the snapshot."""

    base: Path
    run: Run
    commit: CommitId

    @property
    def machine(self) -> Machine:
        return Machine(home=self.base / "home", user_home=None, clock=SystemClock())


@pytest.fixture
def place(tmp_path: Path) -> Callable[[Forgery], Place]:
    def make(forged: Forgery) -> Place:
        root, home = tmp_path / "a" / "b" / "ws", tmp_path / "home"
        root.mkdir(parents=True)
        (root / "mine").write_text("mine")
        store = workspace_directory(home, root) / "snapshots.git"
        with closing(SnapshotStore.open(store)) as snapshots:
            commit = commit_of(snapshots, forged)
        declared = {"ws0": WorkspaceDeclaration(root=str(root), policy=Policy.default().to_json())}
        run = RunStore(home).create(replace(records.header(), workspaces=declared))
        span = {"ws0": WorkspaceSpan(before_commit=commit)}
        with run.writer(0) as writer:
            meta = Metadata(created_at=records.AT, latency_ms=1, workspaces=span)
            writer.append(records.llm(1, meta=meta), durable=False)
        return Place(base=tmp_path, run=run, commit=commit)

    return make


def outside_the_store(place: Place) -> dict[str, bytes]:
    return {path: data for path, data in tree(place.base).items() if not path.startswith("home/")}


@pytest.mark.parametrize("kind", FORGED)
def test_it_is_damage_everywhere_and_nothing_is_written(kind: str, place: Callable[[Forgery], Place]) -> None:
    forged = place(FORGED[kind])
    run, base = forged.run, forged.base
    before = outside_the_store(forged)
    for where in (base / "x" / "into", base / "x" / "y" / "into"):
        for dry_run in (True, False):
            with pytest.raises(MissingSnapshotError) as error:
                restore_elsewhere(
                    run, "rec_000001", after=False, into=where, dry_run=dry_run, machine=forged.machine
                )
            assert forged.commit in str(error.value)
            assert " b'" not in str(error.value).partition("invalid literal")[0]
    with pytest.raises(MissingSnapshotError, match=forged.commit):
        restore_in_place(
            run,
            "rec_000001",
            after=False,
            outside=Outside.REVERT,
            dry_run=False,
            machine=forged.machine,
        )
    assert outside_the_store(forged) == before
    assert not (base / "x").exists()
    finding = Examination(base / "home").run(run)
    assert [each.commit for each in finding.snapshots] == [forged.commit]
    assert (finding.sound, finding.restorable) == (False, 0)
    export_run(run, base / "run.tgz", home=base / "home")
    with pytest.raises(DamagedError, match=forged.commit):
        import_run(base / "run.tgz", home=base / "there", clock=SystemClock())
    assert tree(base / "there") == {}


SOUND: dict[str, Forgery] = {
    "nothing": Forgery([]),
    "a file": named(b"..."),
    "odd names": Forgery([file(b" "), file(b"\xff\n")], plain(b" "), plain(b"\xff\n", mode=b"7777")),
    "a file and a directory in git's order": Forgery(
        [file(b"a.b"), (MODE_DIRECTORY, b"a", []), file(b"a0")],
        plain(b"a.b"),
        plain(b"a0"),
        more=[file(b"da", side())],
    ),
    "a long link": link(b"x" * 4095),
    "hard links": Forgery([file(b"a"), file(b"b"), file(b"c")], plain(b"a"), b"h b\0a", b"h c\0a"),
    "hard links of a link": Forgery(
        [(MODE_LINK, b"a", b"x"), (MODE_LINK, b"b", b"x")], plain(b"a", b"l", b"777"), b"h b\0a"
    ),
    "long ago": Forgery([file(b"a")], plain(b"a", at=b"-1000000000")),
    "deep": deep(150),
}


@pytest.mark.parametrize("kind", SOUND)
def test_what_a_workspace_can_be_is_none(kind: str, place: Callable[[Forgery], Place]) -> None:
    sound = place(SOUND[kind])
    assert Examination(sound.base / "home").run(sound.run).sound
    done = restore_elsewhere(
        sound.run, "rec_000001", after=False, into=sound.base / "into", dry_run=False, machine=sound.machine
    )
    assert done.verified


def test_path_rules_that_cannot_be_read(tmp_path: Path) -> None:
    with closing(SnapshotStore.open(tmp_path / "s.git")) as store:
        commit = commit_of(store, Forgery([]), policy=b"[1]")
        with pytest.raises(DamagedError, match="path rules"):
            Examiner(store).examine(commit)
        with pytest.raises(DamagedError, match="path rules"):
            restore_into(store, commit, tmp_path / "into")
    assert not (tmp_path / "into").exists()
