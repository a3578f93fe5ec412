"""Which PostgreSQL server and database a command talks to, from its options, its URL and `PG*` variables.

Passwords stay in this process: they are kept by connection for as long as it lives, and never reach a
target. A later process finds them where the tools do (`PGPASSWORD`, `~/.pgpass`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, unquote, urlsplit

from agentrewind.backup.kind import UnclearError
from agentrewind.backup.values import Target
from agentrewind.records import JsonObject

KIND = "postgresql"

_KEYWORDS = {"host": "host", "port": "port", "user": "user", "dbname": "database", "password": "password"}
_passwords: dict[tuple[str, str, str], str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One database on one server. Empty fields are the tools' own defaults."""

    host: str = ""
    port: str = ""
    user: str = ""
    database: str = ""
    os_user: str | None = None

    def target(self) -> Target:
        """The database as something to preserve."""
        place = f"{self.host or 'the local socket'}:{self.port or '5432'}"
        detail: JsonObject = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "database": self.database,
            "os_user": self.os_user,
        }
        return Target(kind=KIND, name=f"database {self.database} on {place}", detail=detail)

    def on(self, database: str) -> Connection:
        """Another database of the same server."""
        return replace(self, database=database)

    def options(self) -> list[str]:
        """Server and user as options that every PostgreSQL tool takes; no database."""
        found = [("-h", self.host), ("-p", self.port), ("-U", self.user)]
        return ["-w", *(word for option, value in found if value for word in (option, value))]

    def env(self) -> dict[str, str]:
        """Settings that make output comparable, and the password if this process saw one."""
        password = _passwords.get((self.host, self.port, self.user))
        known = {"PGPASSWORD": password} if password else {}
        return {**known, "PGOPTIONS": "-c client_min_messages=warning", "PGCONNECT_TIMEOUT": "10"}


def connection_of(target: Target) -> Connection:
    """The connection that `Connection.target` was made from."""
    detail = target.detail
    return Connection(
        host=str(detail["host"]),
        port=str(detail["port"]),
        user=str(detail["user"]),
        database=str(detail["database"]),
        os_user=str(detail["os_user"]) if detail["os_user"] else None,
    )


def connect(
    given: Mapping[str, str], database: str, env: Mapping[str, str], os_user: str | None = None
) -> Connection:
    """The connection of a command with these options (`host`, `port`, `user`) and this database argument.

    `database` is a name, a URL, a `key=value` text, or empty. Raises UnclearError where the database that a
    tool would take by default depends on who runs it and cannot be told.
    """
    fields = {
        "host": env.get("PGHOST", ""),
        "port": env.get("PGPORT", ""),
        "user": env.get("PGUSER", ""),
        "database": env.get("PGDATABASE", ""),
        "password": env.get("PGPASSWORD", ""),
    }
    for unread in ("PGSERVICE", "PGSERVICEFILE"):
        if env.get(unread):
            raise UnclearError(f"the connection comes from a service file ({unread})")
    fields |= {name: value for name, value in given.items() if value}
    fields |= conninfo(database)
    name = fields["database"] or fields["user"] or os_user or env.get("USER") or env.get("LOGNAME") or ""
    if not name:
        raise UnclearError("no database is named, and the user whose name it would have is not known")
    password = fields.pop("password")
    found = Connection(
        host=fields["host"], port=fields["port"], user=fields["user"], database=name, os_user=os_user
    )
    if password:
        _passwords[(found.host, found.port, found.user)] = password
    return found


def conninfo(text: str) -> dict[str, str]:
    """The parts of a database argument: a name, `postgresql://…`, or `host=… dbname=…`."""
    if text.startswith(("postgres://", "postgresql://", "postgresql+")):
        return _from_url(text)
    if "=" in text:
        found = {}
        for pair in text.split():
            key, _, value = pair.partition("=")
            if key in ("service", "passfile", "hostaddr") or "'" in value or not value:
                raise UnclearError("the connection text has parts that are not understood here")
            if key in _KEYWORDS:
                found[_KEYWORDS[key]] = value
        return found
    return {"database": text} if text else {}


def _from_url(text: str) -> dict[str, str]:
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError as error:
        raise UnclearError("the URL names several servers or no number as port") from error
    if "," in parts.netloc:
        raise UnclearError("the URL names several servers")
    found = {
        "host": unquote(parts.hostname or ""),
        "port": str(port or ""),
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.lstrip("/")),
    }
    for key, value in parse_qsl(parts.query):
        if key in ("service", "passfile", "hostaddr"):
            raise UnclearError("the connection text has parts that are not understood here")
        if key in _KEYWORDS:
            found[_KEYWORDS[key]] = value
    return {name: value for name, value in found.items() if value}
