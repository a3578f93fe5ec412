"""The bytes of `result.json`: written and read with every field checked.

The fields are described in docs/benchmark.md. The file is written last, whole or not at all: where it
exists the cell is finished.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from agentrewind.durable import write_file
from agentrewind.errors import DamagedError, UnsupportedFormatError, UsageError
from agentrewind.fields import Fields
from agentrewind.records import Json, JsonObject
from runner.cell import Cell
from runner.order import number, number_or_none
from runner.result import (
    Criterion,
    Endpoint,
    Exit,
    Progress,
    Result,
    Reviews,
    State,
    SubmissionResult,
    Suspicion,
    Tokens,
)

FORMAT = 1
RESULT_FILE = "result.json"

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


def save_result(result: Result, folder: Path) -> None:
    """Write `result.json` into the folder, durable on return and never half there."""
    write_file(folder / RESULT_FILE, encode_result(result))


def load_result(folder: Path) -> Result | None:
    """The result in this folder, None where there is none. Raises DamagedError with file and field."""
    path = folder / RESULT_FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return decode_result(data)
    except UnsupportedFormatError:
        raise
    except DamagedError as error:
        raise DamagedError(f"{path}: {error}") from error


def load_results(root: Path) -> tuple[Result, ...]:
    """Every result below the folder, by cell id. Raises DamagedError as `load_result` does."""
    found = (load_result(path.parent) for path in root.glob("cells/*/*/*/*/*/" + RESULT_FILE))
    return tuple(sorted((each for each in found if each is not None), key=lambda result: result.cell))


def encode_result(result: Result) -> bytes:
    """The JSON of a result, indented for people."""
    document: JsonObject = {
        "format": FORMAT,
        "cell": result.cell.id,
        "task": result.cell.task,
        "task_digest": result.task_digest,
        "family": result.family,
        "harness": result.cell.harness,
        "model": result.cell.model,
        "simulated": result.simulated,
        "strategy": result.cell.strategy.value,
        "run": result.cell.run,
        "seed": result.seed,
        "state": result.state.value,
        "exit": result.exit.value,
        "abnormal": result.abnormal,
        "detail": result.detail,
        "accepted": result.accepted,
        "success": result.success,
        "prefix": result.prefix,
        "total": result.total,
        "prefix_progress": round(result.prefix_progress, 6),
        "criteria": [{"id": c.id, "category": c.category, "passed": c.passed} for c in result.criteria],
        "submissions": [_submission_json(each) for each in result.submissions],
        "nodes": result.nodes,
        "llm_nodes": result.llm_nodes,
        "tool_nodes": result.tool_nodes,
        "rewinds": result.rewinds,
        "attempts": result.attempts,
        "tries": result.tries,
        "tokens": {
            "input": result.tokens.input,
            "output": result.tokens.output,
            "cached": result.tokens.cached,
        },
        "cost": result.cost,
        "seconds": result.seconds,
        "step_seconds": round(result.step_seconds, 6),
        "snapshot_seconds": result.snapshot_seconds,
        "storage_bytes": result.storage_bytes,
        "suspicions": [
            {"kind": each.kind, "record_uid": each.record_uid, "text": each.text}
            for each in result.suspicions
        ],
        "clean": result.clean,
        "progress": [[each.nodes, each.prefix] for each in result.progress],
        "sandbox": result.sandbox,
        "started_at": result.started_at,
        "ended_at": result.ended_at,
        "reviews": None
        if result.reviews is None
        else {
            "asked": result.reviews.asked,
            "blocked": result.reviews.blocked,
            "unparsable": result.reviews.unparsable,
        },
        "endpoint": None
        if result.endpoint is None
        else {"cell": result.endpoint.cell, "prefix": result.endpoint.prefix},
    }
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"


def _submission_json(each: SubmissionResult) -> JsonObject:
    return {
        "attempt": each.attempt,
        "record_uid": each.record_uid,
        "nodes": each.nodes,
        "accepted": each.accepted,
        "first_failure": each.first_failure,
        "prefix": each.prefix,
        "passed": list(each.passed),
        "regressions": list(each.regressions),
        "repeated": each.repeated,
    }


def decode_result(data: bytes) -> Result:
    """The inverse of `encode_result`. Raises DamagedError that names the field, UnsupportedFormatError."""
    try:
        root = Fields(json.loads(data), "")
    except ValueError as error:
        raise DamagedError(f"no JSON: {error}") from error
    found = root.integer("format")
    if found > FORMAT:
        raise UnsupportedFormatError(found, FORMAT)
    result = _read(root)
    _check(root, result)
    return result


def _read(root: Fields) -> Result:
    try:
        cell = Cell.from_id(root.text("cell"))
    except UsageError as error:
        raise DamagedError(f"the field cell: {error}") from error
    return Result(
        cell=cell,
        task_digest=root.text("task_digest"),
        family=root.text("family"),
        seed=root.integer("seed"),
        state=_word(root, "state", State),
        exit=_word(root, "exit", Exit),
        detail=root.text("detail"),
        accepted=root.flag("accepted"),
        success=root.flag("success"),
        criteria=_list(root, "criteria", _criterion),
        submissions=_list(root, "submissions", _submission),
        nodes=_count(root, "nodes"),
        llm_nodes=_count(root, "llm_nodes"),
        tool_nodes=_count(root, "tool_nodes"),
        rewinds=_count(root, "rewinds"),
        attempts=_count(root, "attempts"),
        tries=_count(root, "tries"),
        tokens=_tokens(root.fields("tokens")),
        cost=number_or_none(root, "cost"),
        seconds=number(root, "seconds"),
        snapshot_seconds=number_or_none(root, "snapshot_seconds"),
        storage_bytes=_count(root, "storage_bytes"),
        suspicions=_list(root, "suspicions", _suspicion),
        clean=root.flag("clean"),
        progress=_points(root),
        sandbox=root.text("sandbox"),
        started_at=root.text("started_at"),
        ended_at=root.text("ended_at"),
        reviews=root.optional("reviews", _reviews),
        endpoint=root.optional("endpoint", _endpoint),
    )


def _check(root: Fields, result: Result) -> None:
    """What stands there twice has to agree, or somebody has altered the file by hand."""
    derived: dict[str, Json] = {
        "task": result.cell.task,
        "harness": result.cell.harness,
        "model": result.cell.model,
        "strategy": result.cell.strategy.value,
        "run": result.cell.run,
        "simulated": result.simulated,
        "abnormal": result.abnormal,
        "prefix": result.prefix,
        "total": result.total,
        "prefix_progress": round(result.prefix_progress, 6),
    }
    for name, value in derived.items():
        if root.value(name) != value:
            raise DamagedError(f"the field {name} is {root.value(name)!r}, the others say {value!r}")
    if result.success and not (result.criteria and result.prefix == result.total):
        raise DamagedError("the field success is true, but not every criterion passed")
    if not result.abnormal and not result.criteria:
        raise DamagedError("the field criteria is empty, but the run did not end abnormally")


def _criterion(fields: Fields) -> Criterion:
    return Criterion(id=fields.text("id"), category=fields.text("category"), passed=fields.flag("passed"))


def _submission(fields: Fields) -> SubmissionResult:
    return SubmissionResult(
        attempt=_count(fields, "attempt"),
        record_uid=fields.text("record_uid"),
        nodes=_count(fields, "nodes"),
        accepted=fields.flag("accepted"),
        first_failure=fields.text_or_none("first_failure"),
        prefix=_count(fields, "prefix"),
        passed=fields.texts("passed"),
        regressions=fields.texts("regressions"),
        repeated=_count(fields, "repeated"),
    )


def _tokens(fields: Fields) -> Tokens:
    return Tokens(
        input=_count(fields, "input"), output=_count(fields, "output"), cached=_count(fields, "cached")
    )


def _suspicion(fields: Fields) -> Suspicion:
    return Suspicion(kind=fields.text("kind"), record_uid=fields.text("record_uid"), text=fields.text("text"))


def _reviews(fields: Fields) -> Reviews:
    return Reviews(
        asked=_count(fields, "asked"),
        blocked=_count(fields, "blocked"),
        unparsable=_count(fields, "unparsable"),
    )


def _endpoint(fields: Fields) -> Endpoint:
    return Endpoint(cell=fields.text("cell"), prefix=_count(fields, "prefix"))


def _points(root: Fields) -> tuple[Progress, ...]:
    root.value("progress")
    return tuple(_progress(each) for each in root.items("progress"))


def _progress(value: Json) -> Progress:
    if isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value):
        nodes, prefix = value
        assert isinstance(nodes, int)
        assert isinstance(prefix, int)
        return Progress(nodes=nodes, prefix=prefix)
    raise DamagedError(f"the field progress holds {value!r}, not a pair of integers")


def _list(fields: Fields, name: str, read: Callable[[Fields], T]) -> tuple[T, ...]:
    place = fields.place(name)
    fields.value(name)  # an empty list says something, none at all is damage
    return tuple(read(Fields(each, f"{place}[{n}]")) for n, each in enumerate(fields.objects(name)))


def _word(fields: Fields, name: str, words: type[E]) -> E:
    found = fields.text(name)
    if found not in list(words):
        raise DamagedError(f"the field {fields.place(name)} is {found!r}, not one of {', '.join(words)}")
    return words(found)


def _count(fields: Fields, name: str) -> int:
    found = fields.integer(name)
    if found < 0:
        raise DamagedError(f"the field {fields.place(name)} is {found}, below zero")
    return found
