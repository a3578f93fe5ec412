"""Scratch copies of the workspace in which an agent's code is run, each run in a sandbox of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from mettlebench.check.outcome import fail
from mettlebench.check.view import View, parse_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a program that is not ours ended; `code` is None where it did not end in time."""

    code: int | None
    stdout: bytes
    stderr: bytes

    def text(self) -> str:
        """Standard output as text, whatever it holds."""
        return self.stdout.decode("utf-8", "replace")

    def ok(self, what: str) -> Ran:
        """Itself; unmet where the program did not end with 0."""
        if self.code is None:
            fail(f"{what} does not come to an end")
        if self.code != 0:
            fail(f"{what} ends with {self.code}")
        return self

    def json(self, what: str) -> Any:
        """Standard output as JSON, of a program that ended with 0."""
        return parse_json(self.ok(what).text(), f"what {what} prints")


class Broker:
    """Asks the grading process, over two pipes, for what cannot be done in here."""

    def __init__(self, asks: IO[bytes], answers: IO[bytes]) -> None:
        self._asks = asks
        self._answers = answers

    def ask(self, **request: Any) -> Any:
        """Send one request and return its answer."""
        self._asks.write(json.dumps(request).encode() + b"\n")
        self._asks.flush()
        line = self._answers.readline()
        if not line:
            raise ConnectionError("the grading process is gone")
        return json.loads(line)


class Scratch(View):
    """A copy of the workspace that may be changed and that programs run in; others never see it."""

    def __init__(self, root: Path, number: int, broker: Broker) -> None:
        super().__init__(root)
        self._number = number
        self._broker = broker

    def write(self, path: str, data: bytes | str) -> None:
        """Put a file there, in place of whatever is there, links on the way included."""
        target = self._clear_way(path)
        target.write_bytes(data.encode() if isinstance(data, str) else data)

    def remove(self, path: str) -> None:
        """Take a file or link away, if it is there."""
        if self.kind(path) in ("file", "link", "other"):
            (self.root / path).unlink()

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | str = b"",
        environment: Mapping[str, str] | None = None,
        seconds: int = 60,
    ) -> Ran:
        """Run a program in this copy, with no network and no sight of the evaluator."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        answer = self._broker.ask(
            op="run",
            scratch=self._number,
            command=list(command),
            stdin=base64.b64encode(data).decode(),
            environment=dict(environment or {}),
            seconds=seconds,
        )
        return Ran(
            code=answer["code"],
            stdout=base64.b64decode(answer["stdout"]),
            stderr=base64.b64decode(answer["stderr"]),
        )

    def python(self, source: str, *arguments: str, path: Sequence[str] = (), stdin: str = "") -> Ran:
        """Run a Python text that may import from `path`, folders of this copy."""
        places = [str(PurePosixPath(place)) for place in path]
        begin = f"import os, sys\nsys.path[:0] = [os.path.abspath(p) for p in {places!r}]\n"
        return self.run(["python3", "-I", "-B", "-c", begin + source, *arguments], stdin=stdin)

    def git(self, repository: str, *arguments: str, stdin: str = "") -> Ran:
        """Run git on a repository of this copy, deaf to replacements, hooks and monitors set up in it."""
        options = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"]
        command = ["git", "--no-pager", "--no-replace-objects", *options, "-C", repository, *arguments]
        return self.run(command, stdin=stdin)

    def _clear_way(self, path: str) -> Path:
        parts = PurePosixPath(path).parts
        if ".." in parts or path.startswith("/"):
            raise ValueError(f"{path} leaves the workspace")
        for depth in range(1, len(parts)):
            step = "/".join(parts[:depth])
            if self.kind(step) not in ("dir", None):
                (self.root / step).unlink()
            (self.root / step).mkdir(exist_ok=True)
            (self.root / step).chmod(0o755)
        target = self.root / path
        if self.kind(path) == "dir":
            fail(f"{path} is a folder where a file belongs")
        self.remove(path)
        return target
