"""What a restore brings back, leaves alone and says, one test per kind of trouble."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from pathlib import Path

import pytest

from agentrewind.errors import MissingSnapshotError, RestoreError, UsageError
from agentrewind.records import CommitId
from agentrewind.workspace.contents import LARGE, PIECE
from agentrewind.workspace.plan import ASIDE_SUFFIX
from agentrewind.workspace.policy import TEMPORARY_PREFIX, Policy
from agentrewind.workspace.restore import restore_into
from agentrewind.workspace.scan import MAX_DEPTH
from agentrewind.workspace.tracker import Snapshot
from tests.cli.desk import tree
from tests.workspace.disk import as_ordinary_user, differences, git, manifest, open_base
from tests.workspace.stage import staged


def test_additions_deletions_empty_directories_and_the_empty_tree(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        root = stage.root
        nothing, empty = CommitId(stage.take()), manifest(root)
        (root / "a").write_text("a")
        (root / "out").mkdir()
        (root / "x").write_text("x")
        some, full = CommitId(stage.take()), manifest(root)
        (root / "a").unlink()
        (root / "out").rmdir()
        (root / "x").unlink()
        (root / "x").mkdir()
        (root / "x" / "y").write_text("y")
        (root / "new" / "deep").mkdir(parents=True)
        (root / "new" / "deep" / "f").write_text("f")
        report = stage.workspace.restore(some)
        assert (report.created, report.modified) == (("a", "out"), ("x",))
        assert report.deleted == ("new/deep/f", "x/y")
        assert differences(manifest(root), full) == []
        assert stage.workspace.restore(nothing).verified
        assert differences(manifest(root), empty) == []


def test_untouched_files_keep_inode_and_time_and_only_the_changed_one_moves(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        files = [stage.root / f"f{number}" for number in range(200)]
        for file in files:
            file.write_text(file.name)
            os.utime(file, ns=(0, 981173106 * 10**9))
        os.link(files[0], stage.root / "twin")
        before = stage.take()
        inodes = [file.lstat().st_ino for file in files]
        files[7].write_text("changed")
        report = stage.workspace.restore(CommitId(before))
        assert report.modified == ("f7",)
        assert [file.lstat().st_mtime_ns for file in files] == [981173106 * 10**9] * 200
        assert [n for n, file in enumerate(files) if file.lstat().st_ino != inodes[n]] == [7]
        assert files[0].lstat().st_ino == (stage.root / "twin").lstat().st_ino


def test_mode_and_time_alone_are_set_without_rewriting(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        for name, mode in [("p", 0o755), ("q", 0o640), ("r", 0o600), ("s", 0o444)]:
            (stage.root / name).write_text(name)
            (stage.root / name).chmod(mode)
        before, expected = stage.take(), manifest(stage.root)
        inodes = {name: (stage.root / name).lstat().st_ino for name in "pqrs"}
        for name in "pqrs":
            (stage.root / name).chmod(0o777)
        (stage.root / "p").touch()
        after = stage.take()
        assert after != before
        assert [
            change.status for change in stage.workspace.changes(CommitId(before), CommitId(after))
        ] == list("MMMM")
        report = stage.workspace.restore(CommitId(before))
        assert report.touched == ("p", "q", "r", "s")
        assert differences(manifest(stage.root), expected) == []
        assert {name: (stage.root / name).lstat().st_ino for name in "pqrs"} == inodes


def test_excluded_paths_stay_are_named_and_even_survive_their_directory(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        root = stage.root
        (root / ".gitignore").write_text(".env\ndist/\n")
        (root / ".env").write_text("KEY=1")
        (root / "dist").mkdir()
        (root / "dist" / "app.js").write_text("one")
        before = stage.take()
        assert stage.workspace.snapshot(label="x").left_out == (".env (excluded by the path rules)",)
        (root / ".env").write_text("KEY=2")
        (root / "dist" / "app.js").write_text("two")
        (root / "later").mkdir()
        (root / "later" / ".env.local").write_text("KEY=3")
        (root / "later" / "code").write_text("x")
        report = stage.workspace.restore(CommitId(before))
        assert report.kept == (
            ".env: excluded by the path rules",
            "later/.env.local: excluded by the path rules",
        )
        assert (root / ".env").read_text() == "KEY=2"
        assert (root / "dist" / "app.js").read_text() == "one"
        assert (root / "later" / ".env.local").read_text() == "KEY=3"
        assert not (root / "later" / "code").exists()


def test_an_excluded_file_in_the_way_is_set_aside(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "a").write_text("a file")
        before = stage.take()
        (stage.root / "a").unlink()
        (stage.root / "a").mkdir()
        (stage.root / "a" / ".env").write_text("KEY")
        report = stage.workspace.restore(CommitId(before))
        assert (stage.root / "a").read_text() == "a file"
        assert (stage.root / f"a{ASIDE_SUFFIX}" / ".env").read_text() == "KEY"
        assert any(line.startswith("a: ") for line in report.kept) or any(
            ".env" in line for line in report.kept
        )


@pytest.mark.parametrize("kind", ["file", "link"])
@pytest.mark.parametrize("name", ["d", "d" * 255], ids=["short", "long"])
def test_what_is_kept_where_the_snapshot_has_no_folder_is_set_aside_whole(
    tmp_path: Path, kind: str, name: str
) -> None:
    with staged(tmp_path) as stage:
        folder = stage.root / name
        if kind == "file":
            folder.write_text("a file")
        else:
            folder.symlink_to("/etc")
        before = stage.take()
        folder.unlink()
        (folder / "in").mkdir(parents=True)
        for path in (folder / "f", folder / "person", folder / "in" / "person"):
            path.write_text("person's")
        (folder / "of the agent").write_text("agent's")
        aside = stage.root / (name[:229] + ASIDE_SUFFIX)
        aside.mkdir()
        (aside / "older").write_text("older")
        present = stage.take()
        raw = name.encode()
        keep = {raw + b"/f", raw + b"/person", raw + b"/in/person", os.fsencode(aside.name) + b"/older"}
        report = stage.workspace.restore(CommitId(before), keep=keep)
        assert folder.is_symlink() if kind == "link" else folder.read_text() == "a file"
        second = aside.with_name(f"{aside.name}-2")
        assert tree(second) == dict.fromkeys(("f", "person", "in/person"), b"person's")
        assert tree(aside) == {"older": b"older"}
        assert [line for line in report.kept if second.name in line] == [
            f"{second.name}: stood at {name!r}, where the snapshot has something else"
        ]
        assert not any("person" in path for path in report.deleted)
        stage.workspace.restore(CommitId(present))
        assert tree(folder).keys() == {"f", "person", "in/person", "of the agent"}
        assert not second.exists()


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1, 900])
def test_folders_within_folders_however_deep(tmp_path: Path, depth: int) -> None:
    def from_below(frames: int) -> Snapshot:
        """As a harness calls that is itself deep in its calls."""
        return from_below(frames - 1) if frames else stage.workspace.snapshot(label="deep")

    with staged(tmp_path) as stage:
        before = stage.take()
        (stage.root / ("d/" * depth)).mkdir(parents=True)
        taken = from_below(100)
        assert [line.partition("(")[2] for line in taken.partial] == ["nested too deeply)"] * (
            depth > MAX_DEPTH
        )
        report = stage.workspace.restore(CommitId(before))
        assert bool(report.kept) is (stage.root / "d").exists() is (depth > MAX_DEPTH)
        assert stage.workspace.restore(taken.commit).verified


def test_caches_are_deleted_but_not_what_is_excluded_in_them(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        before = stage.take()
        cache = stage.root / "__pycache__"
        cache.mkdir()
        (cache / "m.pyc").write_text("c")
        (cache / "server.key").write_text("k")
        report = stage.workspace.restore(CommitId(before))
        assert report.deleted == ("__pycache__",)
        assert report.kept == ("__pycache__/server.key: excluded by the path rules",)
        assert [path.name for path in cache.iterdir()] == ["server.key"]
        assert stage.workspace.restore(CommitId(before)).deleted == ()


def test_a_file_beyond_the_limit_is_left_out_kept_and_named(tmp_path: Path) -> None:
    with staged(tmp_path, policy=Policy(max_file_bytes=1000)) as stage:
        (stage.root / "grows").write_bytes(b"x" * 10)
        before = stage.take()
        (stage.root / "big").write_bytes(b"b" * 1001)
        (stage.root / "grows").write_bytes(b"y" * 1001)
        taken = stage.workspace.snapshot(label="big")
        assert taken.partial == ()
        assert taken.left_out == (
            "big (larger than the path rules allow)",
            "grows (larger than the path rules allow)",
        )
        report = stage.workspace.restore(CommitId(before))
        assert (stage.root / "big").stat().st_size == 1001
        assert (stage.root / "grows").read_bytes() == b"x" * 10
        assert (stage.root / f"grows{ASIDE_SUFFIX}").read_bytes() == b"y" * 1001
        assert len(report.kept) == 2


def test_special_files_are_named_and_no_obstacle(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        os.mkfifo(stage.root / "pipe")
        before = stage.workspace.snapshot(label="pipe")
        assert before.partial == ()
        assert "pipe" in before.left_out[0]
        os.mkfifo(stage.root / "later")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(stage.root / "s"))
        report = stage.workspace.restore(before.commit)
        assert report.deleted == ("later", "s")
        assert stat.S_ISFIFO((stage.root / "pipe").lstat().st_mode)


def test_paths_kept_on_request(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "a").write_text("1")
        before = stage.take()
        (stage.root / "a").write_text("2")
        (stage.root / "b").write_text("2")
        (stage.root / "notes").mkdir()
        (stage.root / "notes" / "n").write_text("2")
        report = stage.workspace.restore(CommitId(before), keep={b"a", b"notes/n"})
        assert (stage.root / "a").read_text() == "2"
        assert (stage.root / "notes" / "n").read_text() == "2"
        assert not (stage.root / "b").exists()
        assert len(report.kept) == 2


def test_a_plan_shows_and_does_not_act(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "a").write_text("1")
        before = stage.take()
        (stage.root / "a").write_text("2")
        (stage.root / "b").write_text("2")
        seen = manifest(stage.root)
        plan = stage.workspace.plan(CommitId(before))
        assert (plan.modified, plan.deleted, plan.created) == (("a",), ("b",), ())
        assert manifest(stage.root) == seen
        report = stage.workspace.restore(CommitId(before))
        assert (report.modified, report.deleted) == (plan.modified, plan.deleted)


def test_links_are_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    with staged(tmp_path) as stage:
        (stage.root / "d").mkdir()
        (stage.root / "d" / "secret").write_text("inside")
        before = stage.take()
        (stage.root / "d" / "secret").unlink()
        (stage.root / "d").rmdir()
        (stage.root / "d").symlink_to(outside)
        seen = manifest(outside)
        after = stage.take()
        assert all(b"secret" not in entry.path for entry in stage.store.entries(CommitId(after)))
        stage.workspace.restore(CommitId(before))
        assert (stage.root / "d" / "secret").read_text() == "inside"
        assert manifest(outside) == seen


def test_a_file_with_a_name_outside_is_not_changed_through_it(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "f").write_text("f")
        (stage.root / "f").chmod(0o644)
        before = stage.take()
        os.link(stage.root / "f", tmp_path / "outside")
        (stage.root / "f").chmod(0o755)
        stage.workspace.restore(CommitId(before))
        assert stat.S_IMODE((stage.root / "f").lstat().st_mode) == 0o644
        assert stat.S_IMODE((tmp_path / "outside").lstat().st_mode) == 0o755


def test_repositories_come_back_with_index_stash_reflog_and_all(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        root = stage.root
        for directory in (root, root / "vendor"):
            directory.mkdir(exist_ok=True)
            git(directory, "init", "-q")
            (directory / "a").write_text("1")
            git(directory, "add", "a")
            git(directory, "commit", "-qm", "one")
        (root / "a").write_text("stashed")
        git(root, "stash", "-q")
        (root / "a").write_text("staged")
        git(root, "add", "a")
        (root / "a").write_text("unstaged")
        (root / "fresh").mkdir()
        git(root / "fresh", "init", "-q")
        (root / "file-link").mkdir()
        (root / "file-link" / ".git").write_text("gitdir: /nowhere\n")
        git(root, "branch", "server.key")
        before, expected = CommitId(stage.take()), manifest(root)
        git(root, "commit", "-qam", "two")
        git(root, "stash", "drop", "-q")
        git(root / "vendor", "commit", "-q", "--allow-empty", "-m", "two")
        (root / "later").mkdir()
        git(root / "later", "init", "-q")
        git(root / "later", "commit", "-q", "--allow-empty", "-m", "only")
        heads = {name: git(root / name, "rev-parse", "HEAD").strip() for name in (".", "vendor", "later")}
        after = CommitId(stage.take())
        changed = manifest(root)
        report = stage.workspace.restore(before)
        assert differences(manifest(root), expected) == []
        assert {line.split(" (")[0] for line in report.lost_commits} >= {
            f"{name}: {sha}" for name, sha in heads.items()
        }
        stage.workspace.restore(after)
        assert differences(manifest(root), changed) == []


def test_a_submodule_comes_back_with_its_repository(tmp_path: Path) -> None:
    """Its repository lies in that of the project, and a file stands where its `.git` would be."""
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    git(library, "commit", "-q", "--allow-empty", "-m", "first")
    with staged(tmp_path) as stage:
        git(stage.root, "init", "-q")
        git(stage.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "vendor")
        git(stage.root, "commit", "-q", "-m", "with a submodule")
        inner = stage.root / "vendor"
        head = git(inner, "rev-parse", "HEAD")
        before, expected = CommitId(stage.take()), manifest(stage.root)
        git(inner, "commit", "-q", "--allow-empty", "-m", "by the agent")
        (inner / "new").write_text("new")
        stage.take()
        git(stage.root, "submodule", "deinit", "-q", "-f", "vendor")
        shutil.rmtree(stage.root / ".git" / "modules")
        after, gone = CommitId(stage.take()), manifest(stage.root)
        stage.workspace.restore(before)
        assert differences(manifest(stage.root), expected) == []
        assert git(inner, "rev-parse", "HEAD") == head
        assert git(inner, "fsck") == ""
        stage.workspace.restore(after)
        assert differences(manifest(stage.root), gone) == []


def test_with_repositories_switched_off_git_is_left_alone(tmp_path: Path) -> None:
    with staged(tmp_path, policy=Policy(inner_repositories=False)) as stage:
        git(stage.root, "init", "-q")
        (stage.root / "a").write_text("1")
        before = CommitId(stage.take())
        git(stage.root, "add", "a")
        git(stage.root, "commit", "-qm", "one")
        (stage.root / "a").write_text("2")
        seen = manifest(stage.root / ".git")
        report = stage.workspace.restore(before)
        assert (stage.root / "a").read_text() == "1"
        assert manifest(stage.root / ".git") == seen
        assert report.kept == (".git: excluded by the path rules",)


@pytest.mark.parametrize("size", [LARGE, LARGE + 1, LARGE + 3 * PIECE])
def test_large_and_sparse_files(tmp_path: Path, size: int) -> None:
    with staged(tmp_path) as stage:
        with (stage.root / "big").open("wb") as file:
            file.write(os.urandom(PIECE + 5))
            file.truncate(size)
        before, expected = CommitId(stage.take()), manifest(stage.root)
        with (stage.root / "big").open("r+b") as file:
            file.seek(size // 2)
            file.write(b"changed")
        after = CommitId(stage.take())
        content = (stage.root / "big").read_bytes()
        assert stage.store.read_file(after, b"big") == content
        stage.workspace.restore(before)
        assert differences(manifest(stage.root), expected) == []
        copy = tmp_path / "copy"
        restore_into(stage.store, after, copy)
        assert (copy / "big").read_bytes() == content


def test_attributes_and_filters_rewrite_nothing(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        git(stage.root, "init", "-q")
        (stage.root / ".gitattributes").write_text(
            "* text=auto eol=crlf ident filter=lfs\n*.u text working-tree-encoding=UTF-16\n"
        )
        git(stage.root, "config", "filter.lfs.required", "true")
        (stage.root / "mixed").write_bytes(b"one\r\ntwo\n$Id$\n")
        (stage.root / "x.u").write_bytes(b"\xff\xfea\0")
        before, expected = CommitId(stage.take()), manifest(stage.root)
        (stage.root / "mixed").unlink()
        (stage.root / "x.u").unlink()
        stage.workspace.restore(before)
        assert differences(manifest(stage.root), expected) == []


def test_the_store_is_browsable_with_plain_git(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "d").mkdir()
        (stage.root / "d" / "f").write_text("text")
        commit = stage.take("a label")
        shown = git(stage.store.git_dir, "show", f"{commit}:files/d/f")
        assert shown == "text"
        assert git(stage.store.git_dir, "log", "-1", "--format=%s", "refs/runs/test") == "a label\n"
        git(stage.store.git_dir, "fsck", "--full")
        assert stat.S_IMODE(stage.store.git_dir.stat().st_mode) == 0o700


def test_restore_into_refuses_a_directory_that_is_not_empty(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        commit = CommitId(stage.take())
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "x").write_text("x")
        with pytest.raises(UsageError, match="not empty"):
            restore_into(stage.store, commit, tmp_path / "full")
        with pytest.raises(UsageError, match="snapshot id"):
            stage.workspace.restore(CommitId("nonsense"))
        with pytest.raises(MissingSnapshotError):
            stage.workspace.restore(CommitId("0" * 40))


def test_leftovers_of_a_killed_restore_are_swept_by_the_next(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.root / "a").write_text("a")
        before = CommitId(stage.take())
        (stage.root / f"{TEMPORARY_PREFIX}0123").write_text("half")
        assert stage.workspace.snapshot(label="x").left_out == ()
        stage.workspace.restore(before)
        assert sorted(path.name for path in stage.root.iterdir()) == ["a"]


def test_read_only_directories_and_files_are_no_obstacle() -> None:
    def scenario() -> None:
        os.umask(0o022)
        with staged(base) as stage:
            (stage.root / "ro").mkdir()
            (stage.root / "ro" / "f").write_text("1")
            (stage.root / "ro" / "f").chmod(0o444)
            (stage.root / "ro").chmod(0o555)
            before, expected = CommitId(stage.take()), manifest(stage.root)
            (stage.root / "ro").chmod(0o755)
            (stage.root / "ro" / "f").unlink()
            (stage.root / "ro" / "g").write_text("2")
            (stage.root / "ro2" / "deep").mkdir(parents=True)
            (stage.root / "ro2" / "deep" / "h").write_text("3")
            (stage.root / "ro2" / "deep").chmod(0o500)
            (stage.root / "ro").chmod(0o555)
            assert stage.workspace.restore(before).verified
            assert differences(manifest(stage.root), expected) == []

    with open_base() as base:
        as_ordinary_user(scenario)


def test_what_cannot_be_read_makes_a_snapshot_partial_and_is_never_lost() -> None:
    def scenario() -> None:
        with staged(base) as stage:
            (stage.root / "d").mkdir()
            (stage.root / "d" / "f").write_text("1")
            before = CommitId(stage.take())
            (stage.root / "d" / "f").write_text("2")
            (stage.root / "d").chmod(0o000)
            (stage.root / "other").mkdir()
            (stage.root / "other" / "x").write_text("x")
            (stage.root / "other").chmod(0o000)
            taken = stage.workspace.snapshot(label="partial")
            assert taken.partial == ("d (could not be read)", "other (could not be read)")
            report = stage.workspace.restore(before)
            # ours to open: it was looked into before it was reverted
            assert (stage.root / "d" / "f").read_text() == "1"
            assert report.kept == ("other: could not be read",)
            (stage.root / "other").chmod(0o700)
            assert (stage.root / "other" / "x").read_text() == "x"

    with open_base() as base:
        as_ordinary_user(scenario)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a file that belongs to somebody else")
def test_what_is_not_ours_to_open_refuses_the_restore_untouched() -> None:
    def before() -> None:
        (base / "ws" / "d").mkdir(parents=True)
        (base / "ws" / "d" / "f").write_text("1")
        with staged(base) as stage:
            stage.take()

    def after() -> None:
        with staged(base) as stage:
            target = stage.store.ref("refs/runs/test")
            assert target is not None
            (stage.root / "new").write_text("new")
            with pytest.raises(RestoreError, match="cannot be read"):
                stage.workspace.restore(target)
            assert (stage.root / "new").read_text() == "new"

    with open_base() as base:
        as_ordinary_user(before)
        os.chown(base / "ws" / "d", 0, 0)
        (base / "ws" / "d").chmod(0o700)
        as_ordinary_user(after)
        assert (base / "ws" / "d" / "f").read_text() == "1"
