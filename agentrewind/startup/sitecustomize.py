"""Joins a script's process to the layer before the script's own modules are imported.

Python imports a module of this name at its start; the supervisor puts this folder first on the path of
COMMAND's process, and only of that one. The machine's own `sitecustomize`, if any, is run as well.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path


def _run_the_next() -> None:
    here = str(Path(__file__).parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    this = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        if this is not None:
            sys.modules["sitecustomize"] = this


def _join() -> None:
    try:
        from agentrewind.script import join_script
    except ImportError:
        # another interpreter than the one that has the layer: not the agent's, or told at its end
        return
    try:
        join_script()
    except Exception as error:  # noqa: BLE001 - whatever it is, the script must not go on without the layer
        # Python would go on with the script, and everything would happen unrecorded
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
        os._exit(getattr(error, "exit_code", 1))


_run_the_next()
_join()
