"""The tools of an agent of ours: a shell and files, as any user would write them, beside the layer's two.

The shell and the file tools know nothing of the layer. The layer's tools are only described here: it carries
them out itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from smolagents import Tool

from agentrewind.records import JsonObject
from agentrewind.rewind.tools import CANDIDATES, COMMIT, SCHEMAS
from harness_adapters.shell import LocalShell, Shell


class Bash(Tool):  # type: ignore[misc]
    """Runs a command in the workspace."""

    name = "bash"
    description = (
        "Run a command with bash in the workspace. Gives a dictionary: `output` is what it wrote (standard "
        "output and standard error together), `returncode` its exit code. Every command has its own shell."
    )
    inputs = {"command": {"type": "string", "description": "The command, as one would type it."}}  # noqa: RUF012
    output_type = "object"

    def __init__(self, shell: Shell) -> None:
        super().__init__()
        self._shell = shell

    def forward(self, command: str) -> dict[str, Any]:
        ended = self._shell.run(command, None)
        return {"output": ended.output, "returncode": ended.exit_code}


class ReadFile(Tool):  # type: ignore[misc]
    """Gives a text file of the workspace."""

    name = "read_file"
    description = "Read a text file. Gives its whole text."
    inputs = {"path": {"type": "string", "description": "Path, relative to the workspace."}}  # noqa: RUF012
    output_type = "string"

    def __init__(self, workspace: Path) -> None:
        super().__init__()
        self._workspace = workspace

    def forward(self, path: str) -> str:
        return (self._workspace / path).read_text(encoding="utf-8", errors="replace")


class WriteFile(Tool):  # type: ignore[misc]
    """Writes a text file of the workspace."""

    name = "write_file"
    description = "Write a text file, in place of one that is there. Gives the number of characters written."
    inputs = {  # noqa: RUF012
        "path": {"type": "string", "description": "Path, relative to the workspace."},
        "text": {"type": "string", "description": "The whole new text."},
    }
    output_type = "integer"

    def __init__(self, workspace: Path) -> None:
        super().__init__()
        self._workspace = workspace

    def forward(self, path: str, text: str) -> int:
        target = self._workspace / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.write_text(text, encoding="utf-8")


class BacktrackCandidates(Tool):  # type: ignore[misc]
    """`backtrack_candidates`."""

    name = CANDIDATES
    description = str(SCHEMAS[CANDIDATES]["description"]) + " Gives JSON text."
    output_type = "string"

    def __init__(self) -> None:
        self.inputs = _inputs(CANDIDATES)
        super().__init__()

    def forward(self, reason: str) -> str:
        raise NotImplementedError


class BacktrackCommit(Tool):  # type: ignore[misc]
    """`backtrack_commit`."""

    name = COMMIT
    description = str(SCHEMAS[COMMIT]["description"]) + " Gives JSON text only where it is refused."
    output_type = "string"

    def __init__(self) -> None:
        self.inputs = _inputs(COMMIT)
        super().__init__()

    def forward(self, record_uid: str, memory_summary: str, reason: str | None = None) -> str:
        raise NotImplementedError


def workspace_tools(workspace: Path, shell: Shell) -> list[Tool]:
    """A shell and files, all in the workspace; the shell alone where it is not this machine's own."""
    if not isinstance(shell, LocalShell):
        return [Bash(shell)]
    return [Bash(shell), ReadFile(workspace), WriteFile(workspace)]


def rewind_tools() -> list[Tool]:
    """The layer's two tools, described for smolagents."""
    return [BacktrackCandidates(), BacktrackCommit()]


def _inputs(name: str) -> dict[str, JsonObject]:
    """The tool's parameters in smolagents' form; those that are not required may be None."""
    parameters = SCHEMAS[name]["parameters"]
    assert isinstance(parameters, dict)
    properties, required = parameters["properties"], parameters["required"]
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    found: dict[str, JsonObject] = {}
    for key, schema in properties.items():
        assert isinstance(schema, dict)
        found[key] = {"type": schema["type"], "description": schema["description"]}
        if key not in required:
            found[key]["nullable"] = True
    return found
