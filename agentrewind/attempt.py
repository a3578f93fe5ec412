"""The agent process's main: one attempt, from the start or from a checkpoint, to its end.

Started by the supervisor with `python -P -m agentrewind.attempt`. What it is to do stands on disk; the
environment only says where.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from agentrewind.adapters import AgentOutcome, Assignment, load_adapter
from agentrewind.capture.install import install_all
from agentrewind.clock import Clock, SystemClock
from agentrewind.current import current_gate, set_layer
from agentrewind.errors import AgentRewindError, DamagedError, DivergenceError, StorageError
from agentrewind.handover import EXIT_REWIND, EXIT_STORAGE, Handover, take
from agentrewind.layer import Layer
from agentrewind.opening import Place, live_layer, replay_layer
from agentrewind.options import RunOptions
from agentrewind.processes import die_with_parent
from agentrewind.recorder import Recorder
from agentrewind.records import MAIN_WORKSPACE, Finished, Note
from agentrewind.replay_report import Account, write_damage
from agentrewind.replayer import OnDivergence
from agentrewind.rewind.signal import EndReason, LayerSignal
from agentrewind.run_store import Run


def main(parent: int | None = None) -> int:
    """Run one attempt; the exit code tells the supervisor what to do next.

    `parent` is the process that started this one, where that is not the supervisor itself.
    """
    handed = take()
    run, clock = handed.run, SystemClock()
    die_with_parent(handed.supervisor if parent is None else parent)
    if handed.replay is not None:
        return _replay(handed, handed.replay, clock)
    root = Path(run.timeline().header.workspaces[MAIN_WORKSPACE].root)
    os.chdir(root)
    try:
        with live_layer(
            Place(run=run, root=root, store=handed.store),
            supervisor=handed.supervisor,
            clock=clock,
            secrets=handed.secrets,
            warn=_say,
            on_divergence=handed.on_divergence,
            environment=handed.environment,
        ) as layer:
            outcome = _run_agent(run, layer)
            return _end(layer, outcome, clock)
    except StorageError as error:
        _say(str(error))
        return EXIT_STORAGE
    except AgentRewindError as error:
        _say(str(error))
        return error.exit_code


def _run_agent(run: Run, layer: Layer) -> AgentOutcome | Exception | None:
    header = run.timeline().header
    options = RunOptions.from_json(header.options)
    set_layer(layer)
    install_all(current_gate)
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
            return write_stop(layer.recorder, error, clock)
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
    _say(detail)
    return outcome.exit_code if isinstance(outcome, AgentRewindError) else 1


def write_stop(recorder: Recorder, error: AgentRewindError, clock: Clock) -> int:
    """Write down why the layer stopped this process, if the disk still takes it; returns the exit code."""
    _say(str(error))
    topic = "divergence" if isinstance(error, DivergenceError) else "stopped"
    with suppress(StorageError):
        recorder.write(Note(topic=topic, text=str(error), at=clock.now()))
        recorder.write(Finished(state="error", detail=str(error)[:2000], at=clock.now()), durable=True)
    return EXIT_STORAGE if isinstance(error, StorageError) else error.exit_code


def _say(text: str) -> None:
    """Tell the run's agent.log; where the disk takes no more, what is printed from here on goes nowhere."""
    try:
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - the run's agent.log
    except OSError:
        # text left in a buffer would turn the exit code into one that says nothing
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.dup2(nowhere, sys.stderr.fileno())


def _replay(handed: Handover, result: Path, clock: Clock) -> int:
    try:
        layer, account = replaying(handed, result, clock)
    except DamagedError as error:
        _say(str(error))
        return write_damage(result, error)
    return account.close(_run_agent(handed.run, layer))


def replaying(handed: Handover, result: Path, clock: Clock) -> tuple[Layer, Account]:
    """The layer of a replay, and the account that is kept of it."""
    warnings: list[str] = []
    layer = replay_layer(
        handed.run,
        clock=clock,
        warn=warnings.append,
        on_divergence=handed.on_divergence or OnDivergence.STOP,
    )
    account = Account(layer=layer, result=result, debug_at=handed.debug_at, warnings=warnings)
    layer.gate.on_served = account.served
    return layer, account


def leave(code: int) -> NoReturn:
    """End this process: at once for a rewind, whose own memory is of no use to anybody any more."""
    if code == EXIT_REWIND:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        # taking down everything that a harness has imported takes most of a second
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    leave(main())
