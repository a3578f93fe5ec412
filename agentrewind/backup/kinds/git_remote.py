"""Refs of a remote repository: their tips are fetched and kept as a bundle, and pushed back."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.kinds.git import fingerprint_of
from agentrewind.backup.kinds.git_command import find_repository, read_git
from agentrewind.backup.kinds.git_push import ASKING, read_push, without_password
from agentrewind.backup.programs import run
from agentrewind.backup.values import Command, Context, Target
from agentrewind.fields import Fields
from agentrewind.records import Json, JsonObject

KIND = "git-remote"


class GitRemote:
    """The refs of a remote that a push may change."""

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        git = read_git(command)
        found = find_repository(git, context)
        if found is None:
            return ()
        targets = []
        for push in read_push(git, context):
            refs: list[Json] = list(push.refs)
            detail: JsonObject = {
                "repository": str(found.git_dirs[-1]),
                "remote": push.remote,
                "address": push.address,
                "refs": refs,
            }
            target = Target(kind=KIND, name=f"{_short(push.refs)} on {push.address}", detail=detail)
            try:
                _tips(target, context)
            except CaptureError as error:
                raise UnclearError(f"the remote's state cannot be asked: {error}") from error
            targets.append(target)
        return tuple(targets)

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """Every tip with all that it reaches, so that no other repository is needed to bring it back."""
        fields = Fields(target.detail, "target")
        tips = _tips(target, context)
        named = [ref for ref in fields.texts("refs") if not ref.endswith("*")]
        manifest: JsonObject = {"tips": {ref: tips.get(ref, "") for ref in [*named, *tips]}}
        if not tips:
            return Captured(manifest=manifest)
        scratch = store.scratch()
        bare = scratch / "tips.git"
        run(["git", "init", "--quiet", "--bare", str(bare)], context, cwd=scratch)
        _borrow(bare, Path(fields.text("repository")))
        env = {**ASKING, "GIT_DIR": str(bare)}
        for number, ref in enumerate(tips):
            spec = f"+{ref}:refs/kept/{number}"
            words = [
                "git",
                *_config(target),
                "fetch",
                "--quiet",
                "--no-tags",
                _address(target, context),
                spec,
            ]
            run(words, context, env=env, cwd=scratch)
        bundle = scratch / "tips.bundle"
        run(["git", "bundle", "create", "--quiet", str(bundle), "--all"], context, env=env, cwd=scratch)
        run(["git", "bundle", "verify", "--quiet", str(bundle)], context, env=env, cwd=scratch)
        heads = run(["git", "bundle", "list-heads", str(bundle)], context, env=env, cwd=scratch).decode()
        kept = {line.split(" ")[0] for line in heads.splitlines()}
        if not set(tips.values()) <= kept or _tips(target, context) != tips:
            raise CaptureError(f"{target.name} changed while it was being preserved; try again")
        name = store.put_file(bundle)
        manifest["bundle"] = name
        return Captured(manifest=manifest, blobs=(name,), bytes=bundle.stat().st_size)

    def fingerprint(self, target: Target, context: Context) -> str:
        tips = _tips(target, context)
        return fingerprint_of([f"{ref} {tip}" for ref, tip in sorted(tips.items())]) if tips else ""

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        wanted = _wanted(captured)
        missing: dict[str, str] = {}
        scratch = store.scratch()
        bare = scratch / "tips.git"
        run(["git", "init", "--quiet", "--bare", str(bare)], context, cwd=scratch)
        env = {**ASKING, "GIT_DIR": str(bare)}
        bundle = captured.manifest.get("bundle")
        if isinstance(bundle, str):
            kept = scratch / "tips.bundle"
            kept.write_bytes(store.get(bundle))
            run(
                ["git", "fetch", "--quiet", str(kept), "+refs/kept/*:refs/kept/*"],
                context,
                env=env,
                cwd=scratch,
            )
        address = _address(target, context)
        present = _tips(target, context)
        wanted |= {ref: "" for ref in present if ref not in wanted}
        for ref, tip in wanted.items():
            if present.get(ref, "") == tip:
                continue
            words = ["push", "--quiet", "--no-verify", "--force", address, f"{tip}:{ref}"]
            try:
                run(["git", *_config(target), *words], context, env=env, cwd=scratch)
            except CaptureError as error:
                missing[ref] = str(error)
        # a push that says it went well is no proof: the remote is asked
        after = _tips(target, context)
        for ref, tip in wanted.items():
            if after.get(ref, "") != tip:
                missing.setdefault(ref, "the remote does not have it")
        back = tuple(f"{ref} at {tip[:12] or 'nothing'}" for ref, tip in wanted.items() if ref not in missing)
        return Outcome(restored=back, missing=tuple(f"{ref}: {reason}" for ref, reason in missing.items()))

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        where = Fields(target.detail, "target").text("address")
        return tuple(
            f"push {tip[:12]} to {ref} of {where}" if tip else f"delete {ref} of {where}, which was not there"
            for ref, tip in _wanted(captured).items()
        )

    def describe(self, target: Target) -> tuple[str, str]:
        return f"the tips of {target.name}, with all that they reach", "the old tips are pushed back"


def _short(refs: Sequence[str]) -> str:
    names = [ref.removeprefix("refs/heads/") for ref in refs]
    names = [{"*": "branches", "refs/tags/*": "tags", "refs/*": "all refs"}.get(name, name) for name in names]
    # a name may be a branch or a tag until it is pushed
    names = [name for name in names if name.removeprefix("refs/tags/") not in names or "/" not in name]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _borrow(bare: Path, repository: Path) -> None:
    """Let git take what the repository that pushes has already, instead of fetching it again."""
    objects = repository / "objects"
    if objects.is_dir():
        (bare / "objects" / "info" / "alternates").write_text(f"{objects}\n", encoding="utf-8")


def _address(target: Target, context: Context) -> str:
    """Where to push: the stored address, or what the repository says of the remote, credentials included."""
    fields = Fields(target.detail, "target")
    stored, remote, repository = fields.text("address"), fields.text("remote"), fields.text("repository")
    if "://" in stored and remote and Path(repository).is_dir():
        words = ["git", "--git-dir", repository, "remote", "get-url", "--push", remote]
        try:
            named = run(words, context, env=ASKING, cwd=Path(repository)).decode().strip()
        except CaptureError:
            return stored
        if without_password(named) == stored:
            return named
    return stored


def _config(target: Target) -> Sequence[str]:
    """The settings of the repository that pushed (credential helpers, headers), where it still exists."""
    config = Path(Fields(target.detail, "target").text("repository")) / "config"
    if not config.is_file():
        return ()
    return ("-c", f"include.path={config}", "-c", "core.bare=true")


def _tips(target: Target, context: Context) -> dict[str, str]:
    """The refs of the target that exist now. Raises CaptureError."""
    refs = Fields(target.detail, "target").texts("refs")
    words = ["git", *_config(target), "ls-remote", "--refs", _address(target, context), *refs]
    answer = run(words, context, env=ASKING, cwd=Path("/")).decode()
    lines = [line.partition("\t") for line in answer.splitlines()]
    return {ref: tip for tip, _, ref in lines if any(fnmatchcase(ref, pattern) for pattern in refs)}


def _wanted(captured: Captured) -> dict[str, str]:
    tips = Fields(captured.manifest, "manifest").mapping("tips")
    return {ref: tip for ref, tip in tips.items() if isinstance(tip, str)}
