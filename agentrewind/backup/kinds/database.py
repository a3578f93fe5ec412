"""The database that a migration runner works on, found where the runner itself finds it.

Parameters of a rule: `url_env`, names of variables that hold a URL; `ini`, a file and option of its own
(`["alembic.ini", "alembic", "sqlalchemy.url"]`); `django = true` to ask the project's settings; `dotenv`, a
file with lines NAME=URL; `default`, a URL. What is found first counts. The targets are those of PostgreSQL or
SQLite.
"""

from __future__ import annotations

import ast
import configparser
import re
from pathlib import Path
from typing import Any

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.kinds import sqlite
from agentrewind.backup.kinds.postgresql_connection import connect
from agentrewind.backup.programs import run
from agentrewind.backup.values import Command, Context, Target

_OF_DJANGO = re.compile(r"^DATABASES = (.*?)(?:\s+###)?$", re.MULTILINE)
_PATH = re.compile(r"(?:PurePosix|Posix|Pure)Path\(('[^']*'|\"[^\"]*\")\)")


class MigratedDatabase:
    """The kind `database`: only finds; what it finds is captured by another kind."""

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """The database of the project in the command's directory. Raises UnclearError."""
        if command.host is not None or command.cwd is None:
            raise UnclearError("the project whose database it changes cannot be told")
        env = {**context.env, **{name: word.text for name, word in command.assignments.items()}}
        inside = Context(cwd=command.cwd, env=env, home=context.home, workspace=context.workspace)
        if parameters.get("django") is True and not _first(parameters.get("url_env"), env):
            return _of_django(command, inside)
        return _of_url(_url(parameters, inside), inside)

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """Never asked: the targets are of other kinds."""
        raise CaptureError(f"{target.name} is no target of this kind")

    def fingerprint(self, target: Target, context: Context) -> str:
        """Never asked."""
        raise CaptureError(f"{target.name} is no target of this kind")

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Never asked."""
        raise CaptureError(f"{target.name} is no target of this kind")

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """Never asked."""
        raise CaptureError(f"{target.name} is no target of this kind")

    def describe(self, target: Target) -> tuple[str, str]:
        """Never asked."""
        raise CaptureError(f"{target.name} is no target of this kind")


def _url(parameters: Parameters, context: Context) -> str:
    found = (
        _first(parameters.get("url_env"), context.env)
        or _of_ini(parameters.get("ini"), context.cwd)
        or _of_dotenv(parameters, context.cwd)
    )
    default = parameters.get("default")
    url = found or (str(default) if default else "")
    if not url:
        raise UnclearError(f"the database of the project in {context.cwd} was not found")
    if "%(" in url or "${" in url:
        raise UnclearError("the database's URL is put together when the runner starts")
    return url


def _of_url(url: str, context: Context) -> tuple[Target, ...]:
    scheme = url.partition(":")[0].partition("+")[0]
    if scheme in ("postgres", "postgresql"):
        return (connect({}, url.partition("?schema=")[0], context.env).target(),)
    if scheme == "sqlite":
        # sqlite:///relative and sqlite:////absolute
        return sqlite.targets_of(context.cwd / url.partition("///")[2], context)
    if scheme == "file":
        return sqlite.targets_of(context.cwd / url.removeprefix("file:"), context)
    raise UnclearError(f"databases of the kind {scheme!r} are not known here")


def _first(names: object, env: Any) -> str:
    return next((env[name] for name in names if env.get(name)), "") if isinstance(names, list) else ""


def _of_ini(place: object, directory: Path) -> str:
    if not isinstance(place, list) or len(place) != 3:
        return ""
    file, section, option = map(str, place)
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(directory / file, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise UnclearError(f"{file} cannot be read: {error}") from error
    return parser.get(section, option, fallback="").replace("%(here)s", str(directory))


def _of_dotenv(parameters: Parameters, directory: Path) -> str:
    file, names = parameters.get("dotenv"), parameters.get("url_env")
    path = directory / str(file)
    if not file or not isinstance(names, list) or not path.exists():
        return ""
    for line in path.read_text("utf-8", "replace").splitlines():
        name, _, value = line.strip().removeprefix("export ").partition("=")
        if name in names:
            return value.strip().strip("'\"")
    return ""


def _of_django(command: Command, context: Context) -> tuple[Target, ...]:
    """Asked from the project's own settings, which the call is about to load anyway."""
    script = next((word.text for word in command.argv if word.text.endswith("manage.py")), "manage.py")
    python = command.argv[0].text if command.name.startswith("python") else "python3"
    try:
        output = run([python, script, "diffsettings", "--all"], context, cwd=context.cwd)
    except CaptureError as error:
        raise UnclearError(f"the project's settings cannot be asked: {error}") from error
    match = _OF_DJANGO.search(output.decode("utf-8", "replace"))
    try:
        databases = ast.literal_eval(_PATH.sub(r"\1", match[1])) if match else {}
    except (ValueError, SyntaxError) as error:
        raise UnclearError("the project's DATABASES are not plain values") from error
    if not databases:
        raise UnclearError("the project's settings name no database")
    return tuple(target for each in databases.values() for target in _of_settings(each, context))


def _of_settings(settings: dict[str, Any], context: Context) -> tuple[Target, ...]:
    engine, name = str(settings.get("ENGINE", "")), str(settings.get("NAME", ""))
    if engine.endswith("sqlite3"):
        return sqlite.targets_of(context.cwd / name, context)
    if engine.endswith(("postgresql", "postgis", "postgresql_psycopg2")):
        given = {key: str(settings.get(key.upper()) or "") for key in ("host", "port", "user", "password")}
        return (connect(given, name, context.env).target(),)
    raise UnclearError(f"databases of the engine {engine!r} are not known here")
