"""The agent process's main: one attempt, from the start or from a checkpoint, to its end.

Started by the supervisor with `python -P -m agentrewind.attempt`. What it is to do stands on disk; the
environment only says where.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from agentrewind.adapters import AgentOutcome, Assignment, load_adapter
from agentrewind.capture import litellm
from agentrewind.clock import Clock, SystemClock
from agentrewind.current import current_gate, set_layer
from agentrewind.errors import AgentRewindError, DivergenceError
from agentrewind.layer import Layer
from agentrewind.opening import Place, live_layer, replay_layer
from agentrewind.options import RunOptions
from agentrewind.processes import die_with_parent
from agentrewind.recorder import Recorder
from agentrewind.records import MAIN_WORKSPACE, Finished, Note
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.signal import EndReason, LayerSignal
from agentrewind.run_store import Run, RunStore

EXIT_REWIND = 75
"""Exit code of an agent process that ended for a rewind."""

RUN_DIRECTORY = "AGENTREWIND_RUN"
REWIND_FILE = "AGENTREWIND_REWIND"
SNAPSHOT_STORE = "AGENTREWIND_STORE"
SUPERVISOR = "AGENTREWIND_SUPERVISOR"
HASH_SEED = "AGENTREWIND_HASH_SEED"
CLAIM = "AGENTREWIND_CLAIM"
PATH_BEFORE = "AGENTREWIND_PYTHONPATH"
ON_DIVERGENCE = "AGENTREWIND_ON_DIVERGENCE"

STARTUP = str(Path(__file__).parent / "startup")

_CREDENTIAL_ENDINGS = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_KEY")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one attempt; the exit code tells the supervisor what to do next."""
    parser = argparse.ArgumentParser(prog="agentrewind.attempt")
    parser.add_argument("--replay", type=Path, metavar="RESULT")
    parser.add_argument("--on-divergence", choices=[each.value for each in OnDivergence])
    arguments = parser.parse_args(argv)
    on_divergence = OnDivergence(arguments.on_divergence) if arguments.on_divergence else None
    run, store = _where()
    die_with_parent(int(os.environ.pop(SUPERVISOR)))
    clock = SystemClock()
    if arguments.replay is not None:
        return _replay(run, arguments.replay, clock, on_divergence or OnDivergence.STOP)
    root = Path(run.timeline().header.workspaces[MAIN_WORKSPACE].root)
    os.chdir(root)
    supervisor = os.getppid()
    place = Place(run=run, root=root, store=store)
    with live_layer(
        place,
        supervisor=supervisor,
        clock=clock,
        secrets=_secrets(),
        warn=lambda text: print(text, file=sys.stderr),  # noqa: T201 - the run's agent.log
        on_divergence=on_divergence,
    ) as layer:
        outcome = _run_agent(run, layer)
        return _end(layer, outcome, clock)


def join_script() -> None:
    """Join this process to the run that the supervisor named, until it exits; nothing if there is none.

    Only the first Python process of an attempt joins: what it starts itself are its tools.
    """
    if SUPERVISOR not in os.environ or not _claim(os.environ.pop(CLAIM, "")):
        return
    sys.path[:] = [entry for entry in sys.path if entry != STARTUP]
    run, store = _where()
    supervisor = int(os.environ.pop(SUPERVISOR))
    if os.getppid() == supervisor:
        die_with_parent(supervisor)
    root = Path(run.timeline().header.workspaces[MAIN_WORKSPACE].root)
    value = os.environ.pop(ON_DIVERGENCE, None)
    stack = ExitStack()
    layer = stack.enter_context(
        live_layer(
            Place(run=run, root=root, store=store),
            supervisor=supervisor,
            clock=SystemClock(),
            secrets=_secrets(),
            warn=lambda text: print(text, file=sys.stderr),  # noqa: T201 - a script's own standard error
            on_divergence=OnDivergence(value) if value else None,
        )
    )
    set_layer(layer)
    litellm.install(current_gate)
    show = sys.excepthook
    sys.excepthook = lambda kind, error, trace: (
        None if issubclass(kind, LayerSignal) else show(kind, error, trace)
    )
    atexit.register(_leave_script, layer, stack)


def _leave_script(layer: Layer, stack: ExitStack) -> None:
    """Last of all exit handlers: the last snapshot, and the exit code that the supervisor understands."""
    reason, error = layer.latch.reason, layer.latch.error
    if error is not None:
        _stopped(layer.recorder, error, SystemClock())
    stack.close()
    set_layer(None)
    if reason is None:
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(EXIT_REWIND if error is None else error.exit_code)


def _claim(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True


def _where() -> tuple[Run, Path]:
    """The run and its snapshot store, out of the environment, which is tidied for the agent's tools."""
    rewind = os.environ.pop(REWIND_FILE, None)
    directory = Path(rewind).parent if rewind else Path(os.environ[RUN_DIRECTORY])
    os.environ.pop(RUN_DIRECTORY, None)
    store = Path(os.environ.pop(SNAPSHOT_STORE))
    path = os.environ.pop(PATH_BEFORE, None)
    if path is not None:
        os.environ.pop("PYTHONPATH", None)
        if path:
            os.environ["PYTHONPATH"] = path
    seed = os.environ.pop(HASH_SEED, None)
    if seed is not None:
        # the fixed seed was for this interpreter; what the agent starts gets what the user had
        os.environ.pop("PYTHONHASHSEED", None)
        if seed:
            os.environ["PYTHONHASHSEED"] = seed
    return RunStore(directory.parent.parent).open(directory.name), store


def _run_agent(run: Run, layer: Layer) -> AgentOutcome | Exception | None:
    header = run.timeline().header
    options = RunOptions.from_json(header.options)
    set_layer(layer)
    litellm.install(current_gate)
    assignment = Assignment(
        task=options.task,
        model=header.model or "",
        workspace=Path(header.workspaces[MAIN_WORKSPACE].root),
        settings=options.settings,
    )
    try:
        return load_adapter(header.harness or "").run(layer, assignment)
    except LayerSignal:
        return None
    except Exception as error:  # noqa: BLE001 - whatever a harness raises ends the attempt, with its reason kept
        return error


def _end(layer: Layer, outcome: AgentOutcome | Exception | None, clock: Clock) -> int:
    match layer.latch.reason:
        case EndReason.REWIND:
            return EXIT_REWIND
        case EndReason.STOP:
            error = layer.latch.error
            assert error is not None
            return _stopped(layer.recorder, error, clock)
        case None:
            pass
    if isinstance(outcome, AgentOutcome):
        layer.recorder.settle("end")
        layer.recorder.write(
            Finished(state=outcome.state, detail=outcome.detail, at=clock.now()), durable=True
        )
        return 0 if outcome.state == "accepted" else 1
    detail = f"{type(outcome).__name__}: {outcome}"
    layer.recorder.settle("end")
    layer.recorder.write(Finished(state="error", detail=detail[:2000], at=clock.now()), durable=True)
    print(detail, file=sys.stderr)  # noqa: T201 - the run's agent.log
    return 1


def _stopped(recorder: Recorder, error: AgentRewindError, clock: Clock) -> int:
    print(error, file=sys.stderr)  # noqa: T201 - the run's agent.log
    topic = "divergence" if isinstance(error, DivergenceError) else "stopped"
    recorder.write(Note(topic=topic, text=str(error), at=clock.now()))
    recorder.write(Finished(state="error", detail=str(error)[:2000], at=clock.now()), durable=True)
    return error.exit_code


def _replay(run: Run, result: Path, clock: Clock, on_divergence: OnDivergence) -> int:
    warnings: list[str] = []
    layer = replay_layer(run, clock=clock, warn=warnings.append, on_divergence=on_divergence)
    outcome = _run_agent(run, layer)
    error = layer.latch.error
    report: dict[str, object] = {
        "served": layer.served,
        "live": 0,
        "remaining": layer.remaining,
        "divergence": None,
        "warnings": warnings,
        "error": None,
    }
    if isinstance(error, DivergenceError):
        report["divergence"] = {"record_uid": error.record_uid, "difference": error.difference}
    elif error is not None:
        report["error"] = str(error)
    elif isinstance(outcome, Exception):
        report["error"] = f"{type(outcome).__name__}: {outcome}"
    elif isinstance(outcome, AgentOutcome):
        report["state"] = outcome.state
    result.write_text(json.dumps(report))
    return error.exit_code if error is not None else 0


def _secrets() -> list[str]:
    return [
        value for name, value in os.environ.items() if name.endswith(_CREDENTIAL_ENDINGS) and len(value) >= 8
    ]


if __name__ == "__main__":
    sys.exit(main())
