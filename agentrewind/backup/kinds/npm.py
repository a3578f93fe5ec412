"""Packages of npm: those of the whole machine with their commands, and those of a project elsewhere."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import orjson

from agentrewind.backup.kind import Captured, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.kinds.files import Files
from agentrewind.backup.kinds.files_targets import file_target
from agentrewind.backup.programs import run
from agentrewind.backup.values import Command, Context, Target
from agentrewind.errors import DamagedError
from agentrewind.records import Json, JsonObject

_PROJECT = ("node_modules", "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock",
            "pnpm-lock.yaml")  # fmt: skip


class NpmPackages:
    """The kind `npm`. Global packages are its own targets; a project's are files."""

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """Where the call installs into or removes from."""
        if command.host is not None or command.open_ended or not all(word.literal for word in command.argv):
            raise UnclearError("what it is for is only known when it runs")
        words = [word.text for word in command.argv[1:]]
        if "--dry-run" in words or "--help" in words:
            return ()
        if {"-g", "--global", "--location=global"} & set(words):
            return (_global(command, context),)
        if "--location" in words:
            raise UnclearError("its location is only known to npm")
        project = _project(words, command)
        if context.workspace is not None and project.is_relative_to(context.workspace.resolve()):
            return ()
        return (file_target([project / name for name in _PROJECT]),)

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """The packages' files, and the commands that lead to them."""
        tree = Files().capture(_packages(target), store, context)
        links: dict[str, Json] = {**_links(target)}
        manifest: JsonObject = {"tree": tree.manifest, "links": links}
        return Captured(manifest=manifest, blobs=tree.blobs, bytes=tree.bytes, notes=tree.notes)

    def fingerprint(self, target: Target, context: Context) -> str:
        """Digest of files and commands."""
        found = [Files().fingerprint(_packages(target), context), sorted(_links(target).items())]
        return sha256(orjson.dumps(found)).hexdigest()

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Put the files back, then the commands; those that were added go."""
        done = Files().restore(_packages(target), _tree(captured), store, context)
        wanted, present = _wanted(captured), _links(target)
        directory = Path(str(target.detail["prefix"])) / "bin"
        for name in present.keys() - wanted.keys():
            (directory / name).unlink()
        for name, leads_to in wanted.items():
            if present.get(name) != leads_to:
                directory.mkdir(parents=True, exist_ok=True)
                (directory / name).unlink(missing_ok=True)
                (directory / name).symlink_to(leads_to)
        missing = () if _links(target) == wanted else ("commands of packages",)
        return Outcome(restored=done.restored, missing=(*done.missing, *missing), notes=done.notes)

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """A line for each difference."""
        lines = Files().plan(_packages(target), _tree(captured), context)
        wanted, present = _wanted(captured), _links(target)
        gone = [f"remove the command {name}" for name in sorted(present.keys() - wanted.keys())]
        back = [f"link the command {name}" for name in sorted(wanted) if present.get(name) != wanted[name]]
        return (*lines, *gone, *back)

    def describe(self, target: Target) -> tuple[str, str]:
        """What is captured and how it comes back."""
        return f"{target.name}: files and commands", "files written back, commands linked or removed"


def _global(command: Command, context: Context) -> Target:
    inside = Context(cwd=command.cwd or context.cwd, env=context.env, home=context.home)
    prefix = run(["npm", "prefix", "--global"], inside).decode().strip()
    return Target(kind="npm", name=f"npm's packages of {prefix}", detail={"prefix": prefix})


def _project(words: list[str], command: Command) -> Path:
    if command.cwd is None:
        raise UnclearError("the directory of the project cannot be told")
    for index, word in enumerate(words):
        if word in ("--prefix", "-C", "--dir", "--cwd") and index + 1 < len(words):
            return (command.cwd / words[index + 1]).resolve()
    for directory in (command.cwd, *command.cwd.parents):
        if (directory / "package.json").exists() or (directory / "node_modules").is_dir():
            return directory.resolve()
    return command.cwd.resolve()


def _packages(target: Target) -> Target:
    return file_target([Path(str(target.detail["prefix"])) / "lib" / "node_modules"])


def _links(target: Target) -> dict[str, str]:
    """Commands that lead into the packages."""
    directory = Path(str(target.detail["prefix"])) / "bin"
    if not directory.is_dir():
        return {}
    found = {}
    for each in directory.iterdir():
        if each.is_symlink() and "/lib/node_modules/" in f"/{each.readlink()}":
            found[each.name] = str(each.readlink())
    return found


def _tree(captured: Captured) -> Captured:
    tree = captured.manifest.get("tree")
    if not isinstance(tree, dict):
        raise DamagedError("the backup's files of npm cannot be read")
    return Captured(manifest=tree, blobs=captured.blobs, bytes=captured.bytes)


def _wanted(captured: Captured) -> dict[str, str]:
    links = captured.manifest.get("links")
    if not isinstance(links, dict):
        raise DamagedError("the backup's commands of npm cannot be read")
    return {name: str(each) for name, each in links.items()}
