"""Decides for every code action of a CodeAgent: run it, run it again, or only bring back what it left.

Code that reaches nothing outside the interpreter runs again on replay, its tools answered from the log, and
has to come to the same. Code that can reach further is a node of its own and never runs a second time: what
it gave is served, and its variables come from a pickle.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from smolagents import local_python_executor
from smolagents.local_python_executor import (
    CodeOutput,
    ExecutionTimeoutError,
    InterpreterError,
    PrintContainer,
)
from smolagents.utils import truncate_content

from agentrewind.capture.nesting import is_inside
from agentrewind.difference import first_difference
from agentrewind.errors import AgentRewindError, DivergenceError
from agentrewind.layer import Layer
from agentrewind.nested import CARRIED, CodeRun
from agentrewind.raised import rebuild_exception
from agentrewind.records import ErrorRecord, Json, JsonObject, LlmNode, RecordUid
from agentrewind.replayer import OnDivergence
from harness_adapters.smolagents_inner import inner_calls
from harness_adapters.smolagents_namespace import dump_namespace, empty_namespace, load_namespace
from harness_adapters.smolagents_pickle import without_addresses
from harness_adapters.smolagents_values import decode_value, encode_value

NAME = "python_interpreter"
"""What the harness itself calls a code action in the conversation."""

_CLOCKS = frozenset({"time", "datetime"})
_NEVER_ENDED = " Variables are as they were before this code."


class ContextPool(ThreadPoolExecutor):
    """A pool whose threads see the context of whoever submits, as the interpreter's own does not."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return super().submit(copy_context().run, fn, *args, **kwargs)


class Shown:
    """A value of which the log holds the text only."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


class CodeActions:
    """Stands in the place of one agent's interpreter, and is it in all other respects.

    Args:
        named: the agent's tools as its code knows them, by name.
        begun: told of the answer whose code is about to run, so that its tool calls find their parent.
        submitted: told what to submit where a final answer came from code that never runs again.
        step: the number by which the harness names the action.
        alone: the agent manages no others, whose calls a code action could hold.
    """

    def __init__(
        self,
        executor: Any,
        layer: Layer,
        *,
        label: str,
        named: Callable[[], Mapping[str, object]],
        begun: Callable[[LlmNode], None],
        submitted: Callable[[RecordUid], None],
        step: Callable[[], int],
        alone: bool,
    ) -> None:
        local_python_executor.ThreadPoolExecutor = ContextPool
        self._inner = executor
        self._layer = layer
        self._label = label
        self._named = named
        self._begun = begun
        self._submitted = submitted
        self._step = step
        self._alone = alone
        self._outside = bool(executor.additional_authorized_imports or executor.additional_functions)
        self._waiting: JsonObject | None = None
        self._sent: dict[str, Any] = {}
        self.live_object = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def send_variables(self, variables: dict[str, Any]) -> None:
        """The harness's own way to define variables; those of the log do not overwrite them."""
        self._sent.update(variables)
        self._inner.send_variables(variables)

    def __call__(self, code_action: str) -> CodeOutput:
        """Carry out the code of the answer that this thread got last."""
        answer = self._layer.last_answer
        if answer is None or is_inside():
            return self._inner(code_action)
        self._layer.latch.check()
        self._begun(answer)
        self._outside = self._outside or _reads_clock(code_action)
        found = self._once(code_action, answer) if self._outside else self._again(code_action, answer)
        # agent code may have swallowed the signal in a `finally: return`
        self._layer.latch.check()
        return found

    # --- code that may run again ---

    def _again(self, code: str, answer: LlmNode) -> CodeOutput:
        known = self._layer.code.recorded(answer.record_uid)
        if known is not None and known.carried is not None:
            self._outside = True
            self._left(known.carried)
            if known.final:
                self._submitted(answer.record_uid)
            return self._given(known, Shown(known.output), None)
        self._bring_back()
        self.live_object = False
        with _seeded(answer), self._unhurried(known is not None):
            output, error = self._run(code)
        run = self._result(answer, output, error)
        if known is None:
            if self.live_object:
                self._outside = True
                run = self._result(answer, output, error, carried=self._carry() if self._alone else None)
            self._layer.code.keep(run)
            if run.final and run.carried is not None:
                self._submitted(answer.record_uid)
            known = run
        elif difference := _differs(known, run):
            self._diverged(answer, difference)
        return self._given(known, output.output if output is not None else None, error)

    def _run(self, code: str) -> tuple[CodeOutput | None, Exception | None]:
        try:
            return self._inner(code), None
        except Exception as error:  # noqa: BLE001 - whatever agent code raises is handed to the agent
            return None, error

    def _result(
        self,
        answer: LlmNode,
        output: CodeOutput | None,
        error: Exception | None,
        carried: JsonObject | None = None,
    ) -> CodeRun:
        return CodeRun(
            parent=answer.record_uid,
            logs=str(self._inner.state.get("_print_outputs", "")),
            output=truncate_content(str(output.output)) if output is not None else "",
            error=(_path(error), str(error)) if error is not None else None,
            final=output is not None and output.is_final_answer,
            carried=carried,
        )

    def _given(self, known: CodeRun, value: object, error: Exception | None) -> CodeOutput:
        """What the harness gets: always the recorded texts, which its next request has to repeat."""
        self._printed(known.logs)
        if known.error is not None:
            raise error if error is not None and str(error) == known.error[1] else _rebuilt(*known.error)
        if truncate_content(str(value)) != known.output:
            value = Shown(known.output)
        return CodeOutput(output=value, logs=known.logs, is_final_answer=known.final)

    def _diverged(self, answer: LlmNode, difference: str) -> None:
        uid = answer.record_uid
        if self._layer.options.on_divergence is OnDivergence.POSITION:
            self._layer.gate.warn(f"the code of {uid} gave something else than before: {difference}")
            return
        text = f"its code ran again and gave something else: {difference}"
        raise self._layer.latch.stop(DivergenceError(record_uid=uid, difference=text))

    # --- code that runs once ---

    def _once(self, code: str, answer: LlmNode) -> CodeOutput:
        ran: list[tuple[CodeOutput | None, Exception | None]] = []

        def perform() -> Json:
            self._bring_back()
            with inner_calls() as calls:
                ran.append(self._run(code))
            output, error = ran[0]
            result = self._result(answer, output, error).to_json()
            result["model_calls"] = calls
            result["value"] = None
            if output is not None and output.is_final_answer:
                result["value"] = encode_value(output.output, self._layer.code.sealed.keep)
            return {**result, CARRIED: self._carry()}

        result = self._layer.run_tool(
            NAME,
            {"code": code},
            perform,
            tool_call_id=f"call_{self._step()}",
            parent=answer.record_uid,
            interrupted=lambda text: {
                "error": [_path(InterpreterError()), text + _NEVER_ENDED],
                "logs": "",
                "parent": answer.record_uid,
            },
        )
        with self._layer.gate.stopping():
            stored = result.value if isinstance(result.value, dict) else {}
            known = CodeRun.from_json(stored)
        if known.final:
            self._submitted(result.record_uid)
        if ran:
            output, error = ran[0]
            return self._given(known, output.output if output is not None else None, error)
        if known.carried is not None:
            self._left(known.carried)
        value: object = Shown(known.output)
        if known.final:
            value = decode_value(stored.get("value"), self._layer.code.sealed.load, inert_only=False)
        return self._given(known, value, None)

    # --- variables ---

    def _carry(self) -> JsonObject:
        """Keep the variables as they are now."""
        dump = dump_namespace(self._inner, self._named())
        with self._layer.gate.stopping():
            kept = self._layer.code.sealed.keep(dump.data)
        names: list[Json] = list(dump.names)
        return {**kept, "agent": self._label, "names": names, "lost": dict(dump.lost)}

    def _left(self, carried: JsonObject) -> None:
        self._waiting = carried
        self._sent.clear()

    def _bring_back(self) -> None:
        """The variables that the kept prefix left, put in place when code needs them for the first time."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        try:
            load_namespace(self._layer.code.sealed.load(waiting), self._inner, self._named())
        except AgentRewindError as error:
            self._give_up(waiting, str(error))
        except Exception as error:  # noqa: BLE001 - unpickling runs code of any class
            self._give_up(waiting, f"{type(error).__name__}: {error}")
        self._inner.send_variables(self._sent)

    def _give_up(self, waiting: JsonObject, reason: str) -> None:
        names = waiting.get("names")
        self._layer.gate.warn(f"variables of {self._label} could not be brought back: {reason}")
        empty_namespace(self._inner, map(str, names if isinstance(names, list) else ()), reason)

    def _printed(self, logs: str) -> None:
        container = PrintContainer()
        container.append(logs)
        self._inner.state["_print_outputs"] = container

    @contextmanager
    def _unhurried(self, again: bool) -> Iterator[None]:  # noqa: FBT001 - a context of this class only
        """A second run is not cut off by the clock: the record says whether the first one was."""
        limit = self._inner.timeout_seconds
        if again:
            self._inner.timeout_seconds = None
        try:
            yield
        finally:
            self._inner.timeout_seconds = limit


@contextmanager
def _seeded(answer: LlmNode) -> Iterator[None]:
    """Chance within a code action comes from the answer that wrote it, and so falls the same way again."""
    before = random.getstate()
    random.seed(f"{answer.record_uid} {answer.metadata.created_at}")
    try:
        yield
    finally:
        random.setstate(before)


def _reads_clock(code: str) -> bool:
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(each.name.split(".")[0] in _CLOCKS for each in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _CLOCKS:
            return True
    return False


def _differs(known: CodeRun, run: CodeRun) -> str | None:
    """The first difference between two runs of a code action, or None; places in memory do not count."""
    if known.error is not None and known.error[0] == _path(ExecutionTimeoutError()):
        return None
    sides: list[JsonObject] = []
    for each in (known, run):
        error = without_addresses(each.error[1]) if each.error is not None else None
        sides.append(
            {
                "printed": without_addresses(each.logs),
                "error": error,
                "value": without_addresses(each.output),
                "final": each.final,
            }
        )
    return None if sides[0] == sides[1] else first_difference(sides[0], sides[1])


def _path(error: Exception) -> str:
    return f"{type(error).__module__}:{type(error).__qualname__}"


def _rebuilt(path: str, message: str) -> BaseException:
    found: BaseException = InterpreterError(message)
    try:
        found = rebuild_exception(ErrorRecord(type=path, message=message, args=(message,)))
    except AgentRewindError:
        return found
    return found
