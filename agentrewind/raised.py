"""Exceptions as records, and back: what a call raised is raised again on replay, class and arguments kept."""

from __future__ import annotations

import importlib
from collections.abc import Collection

from agentrewind.errors import AgentRewindError, DamagedError
from agentrewind.jsonform import to_json
from agentrewind.record import ErrorRecord, Json, JsonObject
from agentrewind.redact import scrub


def record_exception(error: BaseException, *, secrets: Collection[str] = ()) -> ErrorRecord:
    """The exception as a record; credentials in its texts are blotted out, what is no JSON is left out."""
    cls = type(error)
    return ErrorRecord(
        type=f"{cls.__module__}:{cls.__qualname__}",
        message=scrub(str(error), secrets),
        args=_arguments(error, secrets),
        attributes=_attributes(error, secrets),
    )


def rebuild_exception(record: ErrorRecord) -> BaseException:
    """An exception of the recorded class with the recorded arguments and attributes.

    Raises:
        DamagedError: the class cannot be imported here, so `except` clauses could not meet it.
    """
    cls = _class(record.type)
    args = tuple(record.args)
    try:
        error = cls(*args)
    except Exception:  # noqa: BLE001 - constructors of foreign exceptions may demand and raise anything
        error = cls.__new__(cls)
        error.args = args or (record.message,)
    for name, value in record.attributes.items():
        try:
            setattr(error, name, value)
        except AttributeError:
            continue
    if str(error) != record.message and not record.attributes:
        error.args = args or (record.message,)
    return error


def _class(name: str) -> type[BaseException]:
    module, _, qualified = name.partition(":")
    try:
        found: object = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise DamagedError(f"the recorded exception {name} cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        raise DamagedError(f"{name} was recorded as an exception and is none")
    return found


def _arguments(error: BaseException, secrets: Collection[str]) -> tuple[Json, ...]:
    reduced = error.__reduce__()
    raw = reduced[1] if isinstance(reduced, tuple) and isinstance(reduced[1], tuple) else error.args
    return tuple(_plain(value, secrets) for value in raw)


def _attributes(error: BaseException, secrets: Collection[str]) -> JsonObject:
    found: JsonObject = {}
    for name, value in vars(error).items():
        if not name.startswith("_") and isinstance(value, str | int | float | bool | None):
            found[name] = _plain(value, secrets)
    return found


def _plain(value: object, secrets: Collection[str]) -> Json:
    if isinstance(value, str):
        return scrub(value, secrets)
    try:
        return to_json(value)
    except AgentRewindError:
        return scrub(repr(value), secrets)
