"""What a supervisor hands an agent process through its environment, and how that process takes it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentrewind.processes import Identity, identity_of
from agentrewind.replayer import OnDivergence
from agentrewind.run_store import Run, RunStore

RUN_DIRECTORY = "AGENTREWIND_RUN"
REWIND_FILE = "AGENTREWIND_REWIND"
SNAPSHOT_STORE = "AGENTREWIND_STORE"
SUPERVISOR = "AGENTREWIND_SUPERVISOR"
HASH_SEED = "AGENTREWIND_HASH_SEED"
CLAIM = "AGENTREWIND_CLAIM"
PATH_BEFORE = "AGENTREWIND_PYTHONPATH"
ON_DIVERGENCE = "AGENTREWIND_ON_DIVERGENCE"
REPLAY_RESULT = "AGENTREWIND_REPLAY"
DEBUG_AT = "AGENTREWIND_DEBUG_AT"

EXIT_REWIND = 75
"""Exit code of an agent process that ended for a rewind."""

EXIT_STORAGE = 74
"""Exit code of an agent process that could not write its log or a snapshot, nor, then, why it ended."""

STARTUP = str(Path(__file__).parent / "startup")
"""The folder whose `sitecustomize` joins a script's process."""

_CREDENTIAL_ENDINGS = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_KEY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """Where the run is, who started this process, and what it is to do.

    Attributes:
        replay: where the result of a replay goes; None in a live process.
        debug_at: the node at which a replay opens the debugger.
        secrets: values of the environment that look like credentials and are kept out of the log.
        environment: what the agent's own programs are given.
    """

    run: Run
    store: Path
    supervisor: int
    on_divergence: OnDivergence | None
    replay: Path | None
    secrets: tuple[str, ...]
    debug_at: str | None = None
    environment: Mapping[str, str]


def take() -> Handover:
    """Take what was handed over out of the environment, which is left as the agent's tools should see it."""
    rewind = os.environ.pop(REWIND_FILE, None)
    named = os.environ.pop(RUN_DIRECTORY, None)
    directory = Path(rewind).parent if rewind else Path(named or "")
    store = Path(os.environ.pop(SNAPSHOT_STORE))
    supervisor = int(os.environ.pop(SUPERVISOR))
    chosen = os.environ.pop(ON_DIVERGENCE, None)
    replay = os.environ.pop(REPLAY_RESULT, None)
    debug_at = os.environ.pop(DEBUG_AT, None)
    # the path and the fixed hash seed were for this interpreter only
    _put_back("PYTHONPATH", os.environ.pop(PATH_BEFORE, None))
    _put_back("PYTHONHASHSEED", os.environ.pop(HASH_SEED, None))
    return Handover(
        run=RunStore(directory.parent.parent).open(directory.name),
        store=store,
        supervisor=supervisor,
        on_divergence=OnDivergence(chosen) if chosen else None,
        replay=Path(replay) if replay else None,
        debug_at=debug_at,
        secrets=tuple(
            value
            for name, value in os.environ.items()
            if name.endswith(_CREDENTIAL_ENDINGS) and len(value) >= 8
        ),
        environment=dict(os.environ),
    )


def put(environment: Mapping[str, str]) -> None:
    """Make this the process's environment, as if it had been started with it."""
    os.environ.clear()
    os.environ.update(environment)


def claim() -> bool:
    """Whether this process is the first of its attempt to ask, and so the one that joins the run."""
    if SUPERVISOR not in os.environ:
        return False
    try:
        file = os.open(os.environ.pop(CLAIM, ""), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError:
        return False
    os.write(file, b"%d %d" % (identity_of(os.getpid()) or (os.getpid(), 0)))
    os.close(file)
    return True


def claimant(path: Path) -> Identity | None:
    """The process that joined a script's attempt by this file; it outlives a supervisor that was killed."""
    try:
        pid, start = map(int, path.read_bytes().split())
    except (OSError, ValueError):
        return None
    return pid, start


def _put_back(name: str, value: str | None) -> None:
    if value is None:
        return
    os.environ.pop(name, None)
    if value:
        os.environ[name] = value
