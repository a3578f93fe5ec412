"""Exceptions as records, and back: what a call raised is raised again on replay, class and arguments kept."""

from __future__ import annotations

import copy
import importlib
import inspect
import re
from collections.abc import Collection, Sequence

from agentrewind.errors import AgentRewindError, DamagedError
from agentrewind.jsonform import to_json
from agentrewind.records import ErrorRecord, Json, JsonObject
from agentrewind.redact import REDACTED, scrub

_CREDENTIAL = re.compile(
    r"authorization|cookie|password|passwd|secret|token|(?:api|access|private)[-_ ]?key", re.I
)


def record_exception(error: BaseException, *, secrets: Collection[str] = ()) -> ErrorRecord:
    """The exception as a record; credentials in it are blotted out, what is no JSON is left out."""
    cls = type(error)
    arguments, state = _reduced(error)
    return ErrorRecord(
        type=f"{cls.__module__}:{cls.__qualname__}",
        message=scrub(_text(error), secrets),
        args=tuple(_argument(value, secrets) for value in arguments),
        attributes=_attributes(state, secrets),
    )


def rebuild_exception(record: ErrorRecord) -> BaseException:
    """An exception of the recorded class with the recorded arguments and attributes.

    Raises:
        DamagedError: the class cannot be imported here, so `except` clauses could not meet it.
    """
    record = copy.deepcopy(record)
    error = _built(_class(record.type), record)
    for name, value in record.attributes.items():
        try:
            setattr(error, name, value)
        except (AttributeError, TypeError, ValueError):
            continue
    if _text(error) != record.message:
        # a constructor that adds to its text has added twice
        error.args = record.args or (record.message,)
    return error


def _built(cls: type[BaseException], record: ErrorRecord) -> BaseException:
    try:
        return cls(*record.args)
    except Exception:  # noqa: BLE001 - constructors of foreign exceptions may demand and raise anything
        error = _built_by_name(cls, record.attributes)
    error.args = record.args or (record.message,)
    return error


def _built_by_name(cls: type[BaseException], attributes: JsonObject) -> BaseException:
    """Built from the attributes that its constructor asks for by name, or else without a constructor."""
    try:
        known = inspect.signature(cls).parameters
        return cls(**{name: value for name, value in attributes.items() if name in known})
    except Exception:  # noqa: BLE001 - as above
        return cls.__new__(cls)


def _class(name: str) -> type[BaseException]:
    module, _, qualified = name.partition(":")
    try:
        found: object = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise DamagedError(f"the recorded exception {name} cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        raise DamagedError(f"{name} was recorded as an exception and is none")
    return found


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the text is made by foreign code, from attributes that may be missing
        return f"{type(error).__name__} (it has no text)"


def _reduced(error: BaseException) -> tuple[Sequence[object], dict[str, object]]:
    """What the exception says that it is rebuilt from: arguments and state."""
    arguments: Sequence[object] = error.args
    state: dict[str, object] = dict(vars(error))
    try:
        reduced = error.__reduce__()
    except Exception:  # noqa: BLE001 - as above
        return arguments, state
    if isinstance(reduced, tuple) and isinstance(reduced[1], tuple):
        arguments = reduced[1]
    if isinstance(reduced, tuple) and len(reduced) > 2 and isinstance(reduced[2], dict):
        state.update(reduced[2])
    return arguments, state


def _attributes(state: dict[str, object], secrets: Collection[str]) -> JsonObject:
    found: JsonObject = {}
    for name, value in state.items():
        if name.startswith("_"):
            continue
        try:
            plain = to_json(value)
        except AgentRewindError:
            continue
        found.update(_clean_object({name: plain}, secrets))
    return found


def _argument(value: object, secrets: Collection[str]) -> Json:
    try:
        return _clean(to_json(value), secrets)
    except AgentRewindError:
        pass
    try:
        return scrub(repr(value), secrets)
    except Exception:  # noqa: BLE001 - as above
        return type(value).__name__


def _clean(value: Json, secrets: Collection[str]) -> Json:
    match value:
        case str():
            return scrub(value, secrets)
        case bytes():
            # latin-1 gives every byte a letter and takes it back
            return scrub(value.decode("latin-1"), secrets).encode("latin-1")
        case list():
            return [_clean(each, secrets) for each in value]
        case dict():
            return _clean_object(value, secrets)
        case _:
            return value


def _clean_object(value: JsonObject, secrets: Collection[str]) -> JsonObject:
    return {
        name: REDACTED if isinstance(each, str) and _CREDENTIAL.search(name) else _clean(each, secrets)
        for name, each in value.items()
    }
