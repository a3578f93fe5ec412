"""The settings of a harness, as a run's header holds them: by name, or as `NAME=VALUE` texts in `config`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from agentrewind.errors import UsageError
from agentrewind.records import Json, JsonObject

NOT_OURS = frozenset({"config", "demo", "shell"})
"""`config` holds texts that are read here; by `demo` a resumed run finds its scripted model again; `shell`
says where commands run."""

Choices = Sequence[str] | type


def read_settings(settings: Mapping[str, Json], *, harness: str, known: Mapping[str, Choices]) -> JsonObject:
    """The settings that were given, each a text out of its choices or a value of its type.

    Raises:
        UsageError: an unknown name, a value that is none of the choices or has another type.
    """
    given: JsonObject = {name: value for name, value in settings.items() if name not in NOT_OURS}
    config = settings.get("config") or []
    for each in config if isinstance(config, list) else [config]:
        name, separator, text = str(each).partition("=")
        if not separator:
            raise UsageError(f"{harness} takes a setting as NAME=VALUE, not {each!r}")
        given[name] = _value(text)
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"{harness} has no setting {name!r}; known: {', '.join(sorted(known))}")
        _check(harness, name, value, known[name])
    return given


def openai_model(name: str) -> str:
    """The model's name as the openai SDK takes it, without the prefix by which others choose the provider."""
    return name.removeprefix("openai/")


def _value(text: str) -> Json:
    try:
        found: Json = json.loads(text)
    except ValueError:
        return text
    return found


def _check(harness: str, name: str, value: Json, choices: Choices) -> None:
    if isinstance(choices, type):
        fits = isinstance(value, (int, float) if choices is float else choices)
        if not fits or (isinstance(value, bool) and choices is not bool):
            raise UsageError(f"{harness}: the setting {name} is a {choices.__name__}, not {value!r}")
    elif value not in choices:
        raise UsageError(f"{harness}: the setting {name} is one of {', '.join(choices)}, not {value!r}")
