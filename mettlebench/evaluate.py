"""Grades a state of a workspace: copies it, runs the evaluator on the copy in a sandbox, reads its outcomes.

Two kinds of sandbox, neither inside the other: the evaluator's process sees
the copy (read-only), its task and scratch copies; an agent's program, run when the evaluator asks for it
over a pipe, sees one scratch copy and nothing else. So neither can a link lead the evaluator astray, nor a
program find out, or decide, how it is judged.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

from mettlebench.errors import EvaluatorError
from mettlebench.other_user import lent
from mettlebench.sandbox import Completed, Sandbox, SandboxMode, end, require_sandbox, run, start
from mettlebench.task import Task
from mettlebench.tree import copy_tree, remove_tree
from mettlebench.verdict import CriterionResult, Verdict, make_verdict

PROGRAM_CPU_SECONDS = 60
PROGRAM_OUTPUT = 4 << 20
DETAIL_LENGTH = 300
MAX_SCRATCHES = 500

_CODE = Path(__file__).parent
_INSIDE = {"workspace": "/workspace", "scratches": "/scratch", "task": "/task", "code": "/code/mettlebench"}
_LOG_TAIL = 4000


def evaluate(
    task: Task,
    workspace: Path,
    *,
    mode: SandboxMode = SandboxMode.BUBBLEWRAP,
    previous: Verdict | None = None,
    program_user: int | None = None,
) -> Verdict:
    """The verdict on a workspace, which stays as it is; equal states give equal verdicts.

    Every criterion is run, whatever the ones before it said. In mode none, with root's rights, an agent's
    programs run as `program_user`, whose processes are nothing else. Raises EvaluatorError where the
    evaluator raises, hangs or answers garbage, SandboxUnavailableError, and WorkspaceCopyError.
    """
    require_sandbox(mode)
    if program_user is not None and mode is not SandboxMode.NONE:
        raise ValueError("a program's own user stands in for the sandbox, and is not for use within it")
    place = Path(tempfile.mkdtemp(prefix="mettle-grade-"))
    try:
        copy_tree(workspace, place / "workspace")
        (place / "scratches").mkdir()
        (place / "home").mkdir()
        if program_user is not None:
            place.chmod(0o711)
            (place / "scratches").chmod(0o711)
        outcomes = _Grading(task, place, mode=mode, program_user=program_user).outcomes()
    finally:
        remove_tree(place)
    return make_verdict(task, _results(task, outcomes), previous)


def _results(task: Task, outcomes: Any) -> tuple[CriterionResult, ...]:
    wellformed = isinstance(outcomes, list) and all(
        isinstance(each, list) and [type(part) for part in each] == [str, bool, str] for each in outcomes
    )
    if not wellformed:
        raise EvaluatorError(task.id, "reports something that is no list of outcomes")
    ids = [criterion.id for criterion in task.criteria]
    if [each[0] for each in outcomes] != ids:
        raise EvaluatorError(
            task.id,
            f"reports {', '.join(str(each[0]) for each in outcomes)}, the checklist has {', '.join(ids)}",
        )
    return tuple(
        CriterionResult(
            id=criterion.id, category=criterion.category.value, passed=passed, detail=_printable(detail)
        )
        for criterion, (_, passed, detail) in zip(task.criteria, outcomes, strict=True)
    )


def _printable(detail: str) -> str:
    # what an agent wrote may stand in a detail, lone surrogates among it
    safe = detail.encode("utf-8", "backslashreplace").decode()
    return safe if len(safe) <= DETAIL_LENGTH else safe[: DETAIL_LENGTH - 1] + "…"


class _Grading:
    """One evaluator process, and the requests it makes."""

    def __init__(self, task: Task, place: Path, *, mode: SandboxMode, program_user: int | None) -> None:
        self._task = task
        self._place = place
        self._mode = mode
        self._program_user = program_user
        self._scratches = 0
        self._deadline = time.monotonic() + task.evaluation_seconds

    def outcomes(self) -> Any:
        """Run the evaluator and return what it reports."""
        their_asks, their_answers = os.pipe(), os.pipe()
        with tempfile.TemporaryFile() as log:
            process = self._start(their_asks[1], their_answers[0], log)
            os.close(their_asks[1])
            os.close(their_answers[0])
            try:
                with (
                    os.fdopen(their_asks[0], "rb", 0) as asks,
                    os.fdopen(their_answers[1], "wb", 0) as answers,
                ):
                    return self._serve(asks, answers)
            except BrokenPipeError:
                raise self._fault("ends while it is being answered") from None
            except _FaultError as fault:
                end(process)
                log.seek(0)
                said = log.read()[-_LOG_TAIL:].decode(errors="replace")
                raise EvaluatorError(self._task.id, str(fault), said) from None
            finally:
                end(process)

    def _start(self, asks: int, answers: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
        host = {
            "workspace": self._place / "workspace",
            "scratches": self._place / "scratches",
            "task": self._task.folder,
            "code": _CODE,
        }
        prefix = Path(sys.base_prefix)
        sandbox = Sandbox(
            workspace=host["workspace"],
            mode=self._mode,
            workspace_read_only=True,
            writable={host["scratches"]: _INSIDE["scratches"]},
            read_only={
                host["task"]: _INSIDE["task"],
                host["code"]: _INSIDE["code"],
                **({} if prefix.is_relative_to("/usr") else {prefix: str(prefix)}),
            },
        )
        seen = {name: sandbox.seen(_INSIDE[name], path) for name, path in host.items()}
        # the evaluator runs under the Python that loaded the task, not whatever the system calls python3
        python = os.path.realpath(sys.executable)
        command = [python, "-I", "-S", "-B", f"{seen['code']}/check/inside.py", str(asks), str(answers)]
        command += [seen["workspace"], seen["scratches"], seen["task"], str(Path(seen["code"]).parent)]
        return start(
            sandbox,
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            home=self._place / "home",
            pass_fds=(asks, answers),
        )

    def _serve(self, asks: IO[bytes], answers: IO[bytes]) -> Any:
        operations: dict[str, Callable[[Any], Any]] = {"scratch": self._scratch, "run": self._run}
        lines = _Lines(asks, self._deadline)
        while True:
            request = self._request(lines.next())
            if request["op"] == "report":
                answers.write(b"{}\n")
                return request.get("outcomes")
            if request["op"] not in operations:
                raise self._fault(f"asks for {request['op']!r}, which nobody knows")
            try:
                answer = operations[request["op"]](request)
            except (KeyError, TypeError, ValueError) as error:
                raise self._fault(f"asks in a way that cannot be understood: {error!r}") from error
            answers.write(json.dumps(answer).encode() + b"\n")

    def _request(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
        except ValueError:
            raise self._fault(f"answers garbage: {line[:80]!r}") from None
        if not isinstance(request, dict) or not isinstance(request.get("op"), str):
            raise self._fault(f"answers garbage: {line[:80]!r}")
        return request

    def _scratch(self, _request: Any) -> dict[str, int]:
        if self._scratches >= MAX_SCRATCHES:
            raise self._fault(f"asks for more than {MAX_SCRATCHES} scratch copies")
        self._scratches += 1
        copy_tree(self._place / "workspace", self._place / "scratches" / str(self._scratches))
        return {"scratch": self._scratches}

    def _run(self, request: Any) -> dict[str, Any]:
        number = request["scratch"]
        if type(number) is not int or not 0 < number <= self._scratches:
            raise ValueError(f"there is no scratch copy {number!r}")
        sandbox = Sandbox(
            workspace=self._place / "scratches" / str(number),
            mode=self._mode,
            environment={str(key): str(value) for key, value in request["environment"].items()},
            user=self._program_user,
        )
        left = max(self._deadline - time.monotonic(), 0.1)
        seconds = float(request["seconds"])
        user = self._program_user
        with nullcontext() if user is None else lent(sandbox.workspace, user):
            ended = run(
                sandbox,
                [str(part) for part in request["command"]],
                stdin=base64.b64decode(request["stdin"]),
                seconds=min(seconds, left),
                cpu_seconds=PROGRAM_CPU_SECONDS,
                output_limit=PROGRAM_OUTPUT,
            )
        return _answer(ended)

    def _fault(self, reason: str) -> _FaultError:
        return _FaultError(reason)


def _answer(ended: Completed) -> dict[str, Any]:
    return {
        # output past all measure is no answer either
        "code": None if ended.truncated else ended.code,
        "stdout": base64.b64encode(ended.stdout).decode(),
        "stderr": base64.b64encode(ended.stderr).decode(),
    }


class _FaultError(Exception):
    """What the evaluator did wrong; becomes an EvaluatorError once its output is read."""


class _Lines:
    """Lines from a pipe, each before the deadline."""

    def __init__(self, pipe: IO[bytes], deadline: float) -> None:
        self._pipe = pipe
        self._deadline = deadline
        # a batch may hold more than the 1,024 descriptors that select takes
        self._ready = select.poll()
        self._ready.register(pipe, select.POLLIN)
        self._held = b""

    def next(self) -> bytes:
        while b"\n" not in self._held:
            left = self._deadline - time.monotonic()
            if left <= 0 or not self._ready.poll(left * 1000):
                raise _FaultError("does not come to an end in the time its task allows")
            block = os.read(self._pipe.fileno(), 1 << 16)
            if not block:
                raise _FaultError("ends without a report")
            self._held += block
        line, _, self._held = self._held.partition(b"\n")
        return line
