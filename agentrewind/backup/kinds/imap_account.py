"""Which mail account a tool works on, and a connection to it.

A rule's parameters may give `host`, `port`, `user`, `tls` and `password_env` (the name of a variable); what
they leave out comes from variables that begin with one of `env_prefixes`. Passwords are read from the
environment when a connection is made, and are kept nowhere.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError

from agentrewind.backup.kind import CaptureError, Parameters, UnclearError
from agentrewind.backup.values import Context
from agentrewind.records import Json, JsonObject

_NAMES = {
    "host": ("IMAP_HOST", "HOST"),
    "port": ("IMAP_PORT", "PORT"),
    "user": ("IMAP_USER", "USER_NAME", "USERNAME", "USER", "EMAIL_ADDRESS", "ADDRESS"),
    "password": ("IMAP_PASSWORD", "PASSWORD"),
    "tls": ("IMAP_SSL", "IMAP_TLS", "TLS"),
}
_NO = ("0", "false", "no", "off")
_DEADLINE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account on an IMAP server; `password_env` names the variable that holds its password."""

    host: str
    port: int
    user: str
    tls: bool
    password_env: str

    def to_json(self) -> JsonObject:
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "tls": self.tls,
            "password_env": self.password_env,
        }


def account_of(parameters: Parameters, context: Context) -> Account:
    """The account that a rule's parameters and the environment name. Raises UnclearError."""
    given = {name: _given(name, parameters, context) for name in ("host", "port", "user", "tls")}
    if not given["host"] or not given["user"]:
        raise UnclearError(
            "which mail account the tool uses is not known here; name it in a rule of your own "
            "(parameters: host, user, password_env)"
        )
    tls = given["tls"].lower() not in _NO
    try:
        port = int(given["port"] or (993 if tls else 143))
    except ValueError as error:
        raise UnclearError(f"the mail server's port is no number: {given['port']!r}") from error
    named = parameters.get("password_env")
    password_env = str(named) if named else _variable("password", parameters, context)
    return Account(host=given["host"], port=port, user=given["user"], tls=tls, password_env=password_env)


def account_from(detail: JsonObject) -> Account:
    """The account that `Account.to_json` wrote."""
    return Account(
        host=str(detail["host"]),
        port=int(str(detail["port"])),
        user=str(detail["user"]),
        tls=bool(detail["tls"]),
        password_env=str(detail["password_env"]),
    )


@contextmanager
def connected(account: Account, context: Context) -> Iterator[IMAPClient]:
    """A connection that is logged in. Raises CaptureError for whatever the server refuses meanwhile."""
    password = context.env.get(account.password_env, "")
    if not password:
        where = account.password_env or "any variable known here"
        raise CaptureError(f"the password of {account.user} on {account.host} is not in {where}")
    try:
        client = IMAPClient(
            account.host,
            port=account.port,
            ssl=account.tls,
            ssl_context=ssl.create_default_context() if account.tls else None,
            timeout=_DEADLINE,
        )
    except OSError as error:
        raise CaptureError(
            f"the mail server {account.host}:{account.port} cannot be reached: {error}"
        ) from error
    # times as the server gives them, not in this machine's zone
    client.normalise_times = False
    try:
        client.login(account.user, password)
        yield client
    except (IMAPClientError, OSError) as error:
        raise CaptureError(f"the mail server {account.host} refused: {error}") from error
    finally:
        with suppress(IMAPClientError, OSError):
            client.logout()


def _given(name: str, parameters: Parameters, context: Context) -> str:
    value: Json = parameters.get(name)
    if value is not None:
        return str(value)
    variable = _variable(name, parameters, context)
    return context.env.get(variable, "") if variable else ""


def _variable(name: str, parameters: Parameters, context: Context) -> str:
    prefixes = parameters.get("env_prefixes")
    for prefix in map(str, prefixes) if isinstance(prefixes, list) else [""]:
        for ending in _NAMES[name]:
            if context.env.get(f"{prefix}{ending}"):
                return f"{prefix}{ending}"
    return ""
