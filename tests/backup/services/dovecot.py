"""A mail server of the tests' own: Dovecot, one account, no encryption, one port on 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from imapclient import IMAPClient

_CONFIGURATION = """
protocols = imap
base_dir = {directory}/run
log_path = {directory}/log
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
default_internal_user = dovecot
default_login_user = dovenull
first_valid_uid = 1
mail_uid = nobody
mail_gid = nogroup
mail_location = maildir:{directory}/mail/%u
passdb {{
  driver = static
  args = password=secret
}}
userdb {{
  driver = static
  args = uid=nobody gid=nogroup home={directory}/mail/%u
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Trash {{
    auto = subscribe
    special_use = \\Trash
  }}
  mailbox Drafts {{
    auto = create
    special_use = \\Drafts
  }}
}}
"""


@dataclass(frozen=True)
class Dovecot:
    """A running mail server; every user name is an account with the password `secret`."""

    port: int

    def env(self, user: str) -> dict[str, str]:
        return {
            "IMAP_HOST": "127.0.0.1",
            "IMAP_PORT": str(self.port),
            "IMAP_USER": user,
            "IMAP_PASSWORD": "secret",
            "IMAP_SSL": "false",
        }

    @contextmanager
    def client(self, user: str) -> Iterator[IMAPClient]:
        """A mail program's connection."""
        client = IMAPClient("127.0.0.1", port=self.port, ssl=False)
        client.normalise_times = False
        client.login(user, "secret")
        try:
            yield client
        finally:
            client.logout()


@contextmanager
def dovecot() -> Iterator[Dovecot]:
    """Start the server, and stop it."""
    if os.geteuid() != 0:
        pytest.skip("Dovecot needs root to serve its accounts")
    program = shutil.which("dovecot", path="/usr/sbin:/usr/bin")
    if program is None:
        pytest.fail("Dovecot is not installed: apt-get install dovecot-imapd")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # not below pytest's directory, which other users cannot enter
    directory = Path(tempfile.mkdtemp(prefix="agentrewind-dovecot-"))
    directory.chmod(0o755)
    (directory / "mail").mkdir()
    shutil.chown(directory / "mail", "nobody", "nogroup")
    configuration = directory / "dovecot.conf"
    configuration.write_text(_CONFIGURATION.format(directory=directory, port=port))
    process = subprocess.Popen(
        [program, "-F", "-c", str(configuration)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(port, process)
        yield Dovecot(port=port)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(directory, ignore_errors=True)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, "Dovecot ended at once"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
            continue
        return
    pytest.fail("Dovecot did not open its port")
