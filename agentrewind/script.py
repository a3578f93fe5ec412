"""Joins a user's own script to a run, from its first moment to its last."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from agentrewind.attempt import replaying, write_stop
from agentrewind.capture.install import install_all
from agentrewind.clock import SystemClock
from agentrewind.current import current_gate, set_layer
from agentrewind.errors import AgentRewindError, DamagedError, StorageError
from agentrewind.handover import EXIT_REWIND, EXIT_STORAGE, STARTUP, Handover, claim, take
from agentrewind.layer import Layer
from agentrewind.opening import Place, live_layer
from agentrewind.processes import ancestors, die_with_parent
from agentrewind.records import MAIN_WORKSPACE
from agentrewind.replay_report import write_damage
from agentrewind.rewind.signal import LayerSignal


def join_script() -> None:
    """Join this process to the run that the supervisor named, until it exits; nothing if there is none.

    Only the first Python process of an attempt joins: what it starts itself are its tools.
    """
    if not claim():
        return
    sys.path[:] = [entry for entry in sys.path if entry != STARTUP]
    handed = take()
    if os.getppid() == handed.supervisor:
        die_with_parent(handed.supervisor)
    elif handed.replay is None and handed.supervisor not in ancestors(os.getpid()):
        # it was killed while this process started, and a resumed run may have another one by now
        os._exit(1)
    if handed.replay is not None:
        _join_replay(handed, handed.replay)
    else:
        _join_live(handed)
    install_all(current_gate)
    show = sys.excepthook
    sys.excepthook = lambda kind, error, trace: (
        None if issubclass(kind, LayerSignal) else show(kind, error, trace)
    )


def _join_live(handed: Handover) -> None:
    root = Path(handed.run.timeline().header.workspaces[MAIN_WORKSPACE].root)
    stack = ExitStack()
    layer = stack.enter_context(
        live_layer(
            Place(run=handed.run, root=root, store=handed.store),
            supervisor=handed.supervisor,
            clock=SystemClock(),
            secrets=handed.secrets,
            warn=lambda text: print(text, file=sys.stderr),  # noqa: T201 - a script's own standard error
            on_divergence=handed.on_divergence,
            environment=handed.environment,
        )
    )
    set_layer(layer)
    damage: list[DamagedError] = []
    show = sys.excepthook

    def note(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        damage.extend([error] if isinstance(error, DamagedError) else [])
        show(kind, error, trace)

    sys.excepthook = note
    atexit.register(_leave, layer, stack, damage)


def _leave(layer: Layer, stack: ExitStack, damage: Sequence[DamagedError]) -> None:
    """Last of all exit handlers: the last snapshot, and the exit code that the supervisor understands.

    `damage` is what the script has let pass: not its own failure, but that of the log.
    """
    reason, error = layer.latch.reason, layer.latch.error
    if error is not None:
        write_stop(layer.recorder, error, SystemClock())
    elif damage:
        error = damage[0]
    try:
        stack.close()
    except AgentRewindError as failed:
        error = error or failed
        print(failed, file=sys.stderr)  # noqa: T201 - a script's own standard error
    set_layer(None)
    if isinstance(error, StorageError):
        _exit(EXIT_STORAGE)
    if error is not None:
        _exit(error.exit_code)
    if reason is not None:
        _exit(EXIT_REWIND)


def _join_replay(handed: Handover, result: Path) -> None:
    try:
        layer, account = replaying(handed, result, SystemClock())
    except DamagedError as error:
        write_damage(result, error)
        raise
    set_layer(layer)

    def leave() -> None:
        _exit(account.close(account.failure))

    show = sys.excepthook

    def note(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        account.failure = error if isinstance(error, Exception) else None
        show(kind, error, trace)

    sys.excepthook = note
    atexit.register(leave)


def _exit(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
