"""The process inside the builder's sandbox: calls a task's `build(craft)` on the workspace.

Started as `build_inside.py WORKSPACE TASK CODE`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main() -> None:
    """Build; whatever is raised ends the process with its traceback."""
    workspace, task, code = sys.argv[1:4]
    sys.path[:0] = [task, code]
    from mettlebench.craft import Craft

    importlib.import_module("build").build(Craft(Path(workspace)))


if __name__ == "__main__":
    main()
