"""Every rule for git loses commits, work or remote branches for real, and gets them back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agentrewind.backup.entries import State
from tests.backup.bench import Bench
from tests.workspace.disk import Fact, differences, git

NAME = "git -c user.name=a -c user.email=a@example.invalid"


def furnish(bench: Bench) -> Path:
    """A repository `repo` with two branches, a stash, staged, unstaged, untracked and ignored files."""
    repository = bench.out / "repo"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    (repository / ".gitignore").write_text("ignored/\n")
    for number in range(3):
        (repository / "file").write_text(f"version {number}\n")
        (repository / f"extra-{number}").write_text(f"{number}\n")
        git(repository, "add", ".")
        git(repository, "commit", "-qm", f"commit {number}")
    git(repository, "branch", "side", "HEAD~1")
    git(repository, "tag", "first", "HEAD~2")
    (repository / "file").write_text("stashed\n")
    git(repository, "stash", "-q")
    (repository / "file").write_text("staged\n")
    git(repository, "add", "file")
    (repository / "file").write_text("unstaged\n")
    (repository / "extra-0").write_text("hours of work\n")
    (repository / "untracked").write_text("never added\n")
    (repository / "ignored").mkdir()
    (repository / "ignored" / "build").write_text("built\n")
    return repository


LOSES = [
    "git -C repo reset --hard",
    "git -C repo reset --hard HEAD~2",
    "cd repo && git reset HEAD~1",
    "cd repo && git clean -fdx",
    "cd repo && git checkout -- .",
    "cd repo && git checkout file extra-0",
    "cd repo && git checkout -f side",
    "cd repo && git restore file",
    "cd repo && git restore --staged --worktree .",
    f"cd repo && git stash -q && {NAME} rebase -q --onto side HEAD~1 main; true",
    "cd repo && git branch -D side",
    "cd repo && git branch -f side main",
    "cd repo && git tag -d first",
    "cd repo && git stash drop",
    "cd repo && git stash clear",
    "cd repo && git stash pop; true",
    f"cd repo && {NAME} commit -q --amend -m rewritten",
    f"cd repo && {NAME} commit -qam more",
    "cd repo && git reflog expire --expire=now --all && git gc -q --prune=now",
    "cd repo && git update-ref -d refs/heads/side",
    "cd repo && git rm -qf file",
    "cd repo && git mv extra-1 moved",
    "cd repo && git config user.name changed",
    "git config --global user.name changed",
    "git clone -q repo copy",
    "git init -q fresh",
    "rm -rf repo/.git",
    "git --git-dir=repo/.git --work-tree=repo reset -q --hard",
]


def everything(bench: Bench) -> dict[bytes, Fact]:
    return {
        **bench.facts(),
        **{b"home/" + path: fact for path, fact in bench.facts(bench.base / "home").items()},
    }


@pytest.mark.parametrize("command", LOSES)
def test_what_git_lost_comes_back(bench: Bench, command: str) -> None:
    furnish(bench)
    before = everything(bench)
    guarded = bench.do(command)
    assert not guarded.blocked
    assert everything(bench) != before, "the case loses nothing"
    results = bench.take_back()
    assert [result.detail for result in results if not result.back] == []
    assert differences(before, everything(bench)) == []


def test_what_a_filter_rewrote_comes_back_though_the_filter_itself_is_in_doubt(bench: Bench) -> None:
    git(furnish(bench), "stash", "-q")
    before = everything(bench)
    bench.do(f"cd repo && {NAME} filter-branch -f --msg-filter 'sed s/commit/x/' HEAD")
    assert everything(bench) != before, "the case loses nothing"
    assert [result.back for result in bench.take_back()].count(True) == 1
    assert differences(before, everything(bench)) == []


@pytest.mark.parametrize(
    "command", ["git status", "git -C repo log --oneline", "git -C repo diff", "git -C repo stash list"]
)
def test_what_only_reads_leaves_no_entry(bench: Bench, command: str) -> None:
    furnish(bench)
    assert bench.do(command).entries == ()


def test_looking_at_a_repository_is_no_change(bench: Bench) -> None:
    """`git status` refreshes the index and `git gc` packs: neither stands in the way of a restore."""
    repository = furnish(bench)
    bench.do("git -C repo branch -D side")
    (repository / "file").touch()
    git(repository, "status")
    (result,) = bench.take_back()
    assert result.back
    assert "side" in git(repository, "branch")


def test_a_commit_that_a_person_made_since_is_not_lost(bench: Bench) -> None:
    repository = furnish(bench)
    bench.do("git -C repo branch -D side")
    git(repository, "commit", "-qam", "by a person")
    (result,) = bench.take_back()
    assert result.state is State.PRESERVED
    assert "by a person" in git(repository, "log", "--format=%s", "-1")


def test_a_repository_in_the_workspace_is_the_snapshots_business(bench: Bench) -> None:
    git(bench.workspace, "init", "-q")
    assert bench.do(f"git -C {bench.workspace} commit -q --allow-empty -m x").entries == ()


def with_remote(bench: Bench, place: Path) -> Path:
    """A repository at `place` with branches `main` and `side` that are on a remote, as well."""
    remote = bench.out / "remote.git"
    git(bench.out, "init", "-q", "--bare", "-b", "main", str(remote))
    git(place, "init", "-q", "-b", "main")
    for number in range(3):
        (place / "file").write_text(f"version {number}\n")
        git(place, "add", ".")
        git(place, "commit", "-qm", f"commit {number}")
    git(place, "branch", "side")
    git(place, "remote", "add", "origin", str(remote))
    git(place, "push", "-q", "origin", "main", "side")
    git(place, "reset", "-q", "--hard", "HEAD~2")
    git(place, "commit", "-q", "--allow-empty", "-m", "other history")
    return remote


def tips(remote: Path) -> str:
    return git(remote, "for-each-ref", "--format=%(refname) %(objectname)")


PUSHES = [
    "git push --force origin main",
    "git push -f origin HEAD:main",
    "git push origin +main",
    "git push origin --delete side",
    "git push origin :side",
    "git push --mirror origin",
    "git push origin HEAD:refs/heads/new",
    "git push --force --all origin",
    "git push --prune origin 'refs/heads/s*:refs/heads/s*' && git push -f origin main",
    "git tag t && git push --tags origin",
    "git checkout -q -b fresh && git push -q -u origin fresh",
    "git checkout -q -b fresh && git push -q origin HEAD",
    "git checkout -q side; git commit -q --allow-empty -m more; git -c push.default=current push -q origin",
    "git commit -q --allow-empty -m more && git -c push.default=current push -f",
]


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("command", PUSHES)
def test_what_a_push_lost_comes_back(bench: Bench, command: str, *, inside: bool) -> None:
    place = bench.workspace if inside else bench.out / "repo"
    place.mkdir(exist_ok=True)
    remote = with_remote(bench, place)
    before = tips(remote)
    bench.do(f"cd {place} && {command}")
    assert tips(remote) != before, "the case loses nothing"
    if "remote.git" in " ".join(entry.name for entry in bench.entries()):
        # the remote keeps nothing that no ref holds any more, and the repository that pushed is gone
        git(remote, "reflog", "expire", "--expire=now", "--all")
        git(remote, "gc", "-q", "--prune=now")
        shutil.rmtree(place)
        place.mkdir()
    ids = [entry.id for entry in bench.entries() if entry.target and entry.target.kind == "git-remote"]
    results = bench.take_back(*ids)
    assert all(result.back for result in results), results
    assert tips(remote) == before
    assert "missing" not in git(remote, "fsck", "--no-dangling")
    bench.restoring.restore([result.safety for result in results if result.safety], by="undo")
    assert tips(remote) != before


def test_a_remote_that_refuses_is_not_called_restored(bench: Bench) -> None:
    remote = with_remote(bench, bench.workspace)
    bench.do(f"cd {bench.workspace} && git push -f origin main && git push origin :side")
    git(remote, "config", "receive.denyNonFastForwards", "true")
    results = bench.take_back()
    states = {result.state for result in results}
    assert states & {State.PARTLY, State.NOT_RESTORABLE}
    assert any("main" in line for result in results for line in result.detail)
    assert "refs/heads/side" in tips(remote)


def test_someone_elses_push_since_is_not_overwritten(bench: Bench) -> None:
    remote = with_remote(bench, bench.workspace)
    bench.do(f"cd {bench.workspace} && git push -f origin main")
    other = bench.out / "other"
    git(bench.out, "clone", "-q", str(remote), str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "theirs")
    git(other, "push", "-q", "origin", "main")
    (result,) = bench.take_back()
    assert result.state is State.PRESERVED
    assert "theirs" in git(remote, "log", "--format=%s", "-1", "main")


def test_no_credential_is_kept(bench: Bench) -> None:
    from agentrewind.backup.kinds.git_push import without_password

    assert without_password("https://ann:secret@host.invalid/x.git") == "https://host.invalid/x.git"
    assert without_password("https://token@host.invalid/x.git") == "https://host.invalid/x.git"
    assert without_password("ssh://git@host.invalid/x.git") == "ssh://git@host.invalid/x.git"
    assert without_password("git@host.invalid:x.git") == "git@host.invalid:x.git"


def test_a_remote_that_cannot_be_reached_is_said(bench: Bench) -> None:
    git(bench.workspace, "init", "-q")
    git(bench.workspace, "commit", "-q", "--allow-empty", "-m", "x")
    decision = bench.decision(f"cd {bench.workspace} && git push {bench.out}/nowhere HEAD:main")
    assert any("cannot be asked" in line for line in decision.uncovered)
