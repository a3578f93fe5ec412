"""What git runs or writes besides its subcommand's own work is never passed over in silence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentrewind.backup.decide import decide
from agentrewind.backup.rules.loading import load_rules
from agentrewind.backup.values import Context, Decision, Tier, ToolCall
from tests.workspace.disk import git

RULES = load_rules(None)


class Place:
    """A workspace with a repository `rep` of one commit, and files outside it."""

    def __init__(self, base: Path) -> None:
        self.inside, self.outside = base / "ws", base / "out"
        self.rep = self.inside / "rep"
        for folder in (self.rep, self.outside):
            folder.mkdir(parents=True)
        (self.outside / "f").write_text("precious\n")
        (self.inside / "link").symlink_to("../out")
        (self.rep / "a").write_text("a\n")
        git(self.rep, "init", "-q", "-b", "main")
        git(self.rep, "add", ".")
        git(self.rep, "commit", "-qm", "first")
        env = {"PATH": os.environ["PATH"], "HOME": str(base)}
        self.context = Context(cwd=self.rep, env=env, home=base, workspace=self.inside)

    def decide(self, text: str) -> Decision:
        call = ToolCall(name="bash", arguments={"command": text.replace("@", str(self.outside))})
        return decide(call, self.context, RULES)

    def precious(self) -> str:
        return (self.outside / "f").read_text()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


OPTIONS = [
    "git fetch --upload-pack='rm @/f;' .",
    "git fetch --upl='rm @/f;' .",
    "git fetch --upload-pack 'rm @/f;' .",
    "git pull --upload-pack='rm @/f;' .",
    "git ls-remote --upload-pack='rm @/f;' .",
    "git ls-remote --u='rm @/f;' .",
    "git ls-remote --exec='rm @/f;' .",
    "git clone -u 'rm @/f;' . copy",
    "git clone -qu 'rm @/f;' . copy",
    "git clone --upload-pack='rm @/f;' . copy",
    "git clone -c core.fsmonitor='rm @/f;' . copy",
    "git clone --config core.fsmonitor='rm @/f;' . copy",
    "git clone --template=@/t . copy",
    "git clone ext::'sh -c rm% @/f' copy",
    "git init --template=@/t new",
    "git push --receive-pack='rm @/f;' . main:x",
    "git push --exec='rm @/f;' . main:x",
    "git push --exec 'rm @/f;' . main:x",
    "git rebase -x 'rm @/f' HEAD",
    "git rebase -ix 'rm @/f' HEAD",
    "git rebase --exec 'rm @/f' HEAD",
    "git rebase --ex='rm @/f' HEAD",
    "git bisect run rm @/f",
    "git submodule foreach 'rm @/f'",
    "git submodule --quiet foreach --recursive 'rm @/f'",
    "git difftool -x 'rm @/f' HEAD",
    "git mergetool -t x",
    "git grep -O'rm @/f' a",
    "git archive --remote=. --exec='rm @/f;' HEAD",
    "git filter-branch --tree-filter 'rm @/f' HEAD",
    "git filter-branch -f --msg-filter 'rm @/f' HEAD",
    "git -c core.fsmonitor='rm @/f;' status",
    "git -c core.sshCommand='rm @/f;' fetch ssh://x/y",
    "git -c core.hooksPath=@ commit -m x",
    "git -c core.worktree=@ clean -fdx",
    "git --exec-path=@ fetch",
    "git -c include.path=@/c add .",
    "git -c filter.x.clean='rm @/f' add .",
    "git fetch $OPTION .",
    "echo --upload-pack=x | xargs git fetch .",
    "git maintenance register",
    "git maintenance start",
    "git config -e",
    "git bundle create @/f HEAD",
    "git bundle create -q @/f HEAD",
    "git bundle create ../link/f HEAD",
    "git checkout-index -a --prefix=@/",
    "git checkout-index -a --prefix=../../out/",
    "git checkout-index -a --prefix ../link/",
    "git read-tree --index-output=@/f HEAD",
    "git fast-import --export-marks=@/f",
    "git fast-export --export-marks=@/f HEAD",
    "git apply --build-fake-ancestor=@/f p",
    "git apply --unsafe-paths --directory=@ p",
    "git clone --separate-git-dir=@/g . copy",
    "git clone --separate-git-dir @/g . copy",
    "git init --separate-git-dir=@/g new",
    "git init --separate-git=../link/g new",
    "git worktree add @/w",
    "git archive -o @/f HEAD",
    "git format-patch -o @ HEAD",
    "git bugreport -o @",
    "git diff --output=@/f",
    "git config -f @/f a.b c",
    "git config -f@/f a.b c",
    "git config --file=@/f a.b c",
    "git config --fil ../link/f a.b c",
]
"""Options that run a program, or write where the snapshots do not look."""


@pytest.mark.parametrize("text", OPTIONS)
def test_an_option_that_runs_or_writes_elsewhere_is_named(place: Place, text: str) -> None:
    decision = place.decide(text)
    assert decision.targets or decision.uncovered
    assert decision.tier is not Tier.NONE
    assert not decision.read_only
    assert place.precious() == "precious\n"


@pytest.mark.parametrize(
    "text",
    ["git push --receive-pack='rm @/f;' . main:x", "git -c core.sshCommand='rm @/f;#' push ssh://x/y main"],
)
def test_judging_a_push_runs_no_program_that_it_names(place: Place, text: str) -> None:
    assert place.decide(text).uncovered
    assert place.precious() == "precious\n"


@pytest.mark.parametrize(
    "change",
    [
        "git config core.worktree @",
        "git config --local core.worktree @",
        "git config set core.worktree @",
        "git config core.fsmonitor 'rm @/f;'",
        "git config core.hooksPath @",
        "git config core.sshCommand 'rm @/f'",
        "git config alias.st '!rm @/f'",
        "git config diff.external 'rm @/f'",
        "git config filter.x.clean 'rm @/f'",
        "git config diff.x.textconv 'rm @/f'",
        "git config include.path @/c",
        "git config $NAME x",
        "git config --rename-section user core",
        "printf 'rm @/f' > .git/hooks/pre-commit",
        "cp ../hook .git/hooks/pre-commit",
        "printf '[core]\\nworktree=@' >> .git/config",
        "(cd .git && echo '[core] worktree=@' >> config)",
        "tar xf x.tar",
    ],
)
@pytest.mark.parametrize(
    "after", ["git clean -fdx", "git reset --hard", "git checkout -f", "git status", "git commit -m x"]
)
def test_what_the_call_itself_sets_puts_the_commands_after_it_in_doubt(
    place: Place, change: str, after: str
) -> None:
    for text in (f"{change} && {after}", f"{after}; {change}; {after}"):
        decision = place.decide(text)
        assert any(each.startswith("git") for each in decision.uncovered)
        assert decision.tier is not Tier.NONE


SETTINGS = [
    "core.fsmonitor", "core.hooksPath", "core.sshCommand", "core.editor", "diff.external", "diff.x.command",
    "diff.x.textconv", "filter.x.clean", "filter.x.smudge", "filter.x.process", "merge.x.driver",
    "gpg.program", "gpg.ssh.program", "credential.helper", "credential.https://x.helper",
    "remote.origin.uploadpack", "remote.origin.receivepack", "core.askPass", "core.pager",
    "sequence.editor", "core.alternateRefsCommand",
]  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("text", ["git status", "git add .", "git commit -m x", "git -C . fetch"])
def test_a_program_that_the_repository_names_is_named(place: Place, name: str, text: str) -> None:
    git(place.rep, "config", name, f"rm {place.outside}/f;")
    decision = place.decide(text)
    assert any(name.lower() in each.lower() for each in decision.uncovered)
    assert not decision.read_only
    assert place.precious() == "precious\n"


def test_a_setting_behind_an_include_is_found(place: Place) -> None:
    (place.inside / "more").write_text('[core]\n\tfsmonitor = "rm x"\n')
    git(place.rep, "config", "include.path", str(place.inside / "more"))
    assert any("core.fsmonitor" in each for each in place.decide("git status").uncovered)


def test_what_the_user_sets_is_the_users_own(place: Place) -> None:
    (place.context.home / ".gitconfig").write_text("[core]\n\tfsmonitor = watch\n[diff]\n\texternal = x\n")
    git(place.rep, "config", "diff.renames", "true")
    assert place.decide("git status").read_only


@pytest.mark.parametrize(
    ("hook", "text", "doubted"),
    [
        ("pre-commit", "git commit -m x", True),
        ("post-checkout", "git checkout -b x", True),
        ("post-merge", "git merge x", True),
        ("pre-rebase", "git rebase x", True),
        ("reference-transaction", "git branch x", True),
        ("post-index-change", "git status", True),
        ("post-index-change", "git add .", True),
        ("pre-commit", "git status", False),
        ("pre-commit", "git log -1", False),
        ("pre-commit", "git add .", False),
        ("pre-commit.sample", "git commit -m x", False),
    ],
)
def test_a_hook_that_runs_is_named(place: Place, hook: str, text: str, doubted: bool) -> None:
    path = place.rep / ".git" / "hooks" / hook
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    assert any(hook in each for each in place.decide(text).uncovered) is doubted


@pytest.mark.parametrize(
    "text", ["git status", "git log -1", "git diff", "git -c core.pager=cat log", "git branch"]
)
def test_ordinary_reading_reads(place: Place, text: str) -> None:
    assert place.decide(text).read_only


@pytest.mark.parametrize(
    "text",
    [
        "git add . && git commit -m x",
        "git -c user.name=x -c user.email=y commit -am x",
        "git config user.name x && git commit -m x",
        "git checkout -b side && git reset --hard",
        "mkdir -p sub && git init -q sub && touch a && git add a && git commit -qm x",
        "git fetch origin main",
        "git bundle create x.bundle HEAD",
        "git clone -q . copy",
        "git config -f own a.b c",
        "git rebase main",
        "rm -f .git/index.lock && git add .",
    ],
)
def test_ordinary_changes_are_the_snapshots_business(place: Place, text: str) -> None:
    decision = place.decide(text)
    assert (decision.tier, decision.uncovered, decision.targets) == (Tier.NONE, (), ())
