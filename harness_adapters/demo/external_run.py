"""Runs the demo's story about state outside the workspace, and tells how it ended."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from agentrewind.backup.policy import BackupPolicy
from agentrewind.commands.output import emit, say
from agentrewind.commands.running import document, see_through, tell_end, tell_trouble
from agentrewind.commands.session import Session
from agentrewind.options import RunOptions
from agentrewind.outcome import RunResult
from agentrewind.runs import NewRun, start_run
from agentrewind.supervise import Surroundings
from agentrewind.workspace.policy import Policy
from harness_adapters.demo.command import SCRIPTED, local_provider
from harness_adapters.demo.external import policy, scene
from harness_adapters.scripted import ScriptedModel


def tell_external(session: Session, root: Path, *, harness: str, model: str | None, as_json: bool) -> int:
    """The exit code. Raises UsageError where PostgreSQL is missing, or backups cannot be made."""
    from agentrewind.backup.joining import check_ready

    check_ready(session.home)
    root.mkdir(exist_ok=True)
    outside = Path(tempfile.mkdtemp(prefix="agentrewind-demo-outside-")).resolve()
    outside.chmod(0o755)  # the server's own user has to reach its data
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, outside, ignore_errors=True)
        place = stack.enter_context(scene(outside, session.environment))
        environment = {**session.environment, **place.environment}
        if model is None:
            served = stack.enter_context(ScriptedModel(policy(place.letters)))
            environment |= local_provider(served.base_url)
        new = NewRun(
            root=root,
            harness=harness,
            model=model or SCRIPTED,
            options=RunOptions(task=place.task, check=place.check, backup=BackupPolicy()),
            policy=Policy.default(),
        )
        if not as_json:
            say(
                f"An agent tidies up in {root}, in a PostgreSQL database and in {place.letters}. "
                "What it changes outside its workspace is preserved first (--backup)."
            )

        def begin(around: Surroundings) -> RunResult:
            return start_run(new, around)

        run, result = see_through(session, begin, as_json=as_json, environment=environment)
    if as_json:
        emit({**document(run, result), "workspace": str(root), "scripted": model is None})
        return result.exit_code
    tell_end(run, result)
    say(f"  backups   agentrewind backup log --run {run.run_id}")
    say(f"  files     {root}")
    say()
    say(_closing(result, scripted=model is None))
    tell_trouble(run, result)
    return result.exit_code


def _closing(result: RunResult, *, scripted: bool) -> str:
    if not scripted:
        return "The model was a real one; what it did is its own."
    if not result.accepted:
        return "The story did not come to its end; the log above tells where. The model is scripted."
    return (
        "The agent dropped the column and deleted the folder before it had copied either, was rejected, and "
        "went back: the rewind brought back the database and the folder, of which the workspace's snapshots "
        "hold nothing. Then it did things in the right order. The model is scripted; harness, shell, "
        "PostgreSQL, check, backups and rewind are real. The demo's server and folder are gone again."
    )
