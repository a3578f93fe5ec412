"""Runs commands where they see one workspace, a read-only system, and nothing else of this machine.

With bubblewrap a command has its own mount, process, user, network and host name spaces, no capability, an
empty `/tmp` and home, a fixed environment and no standard input. Nothing that it started outlives it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO

from mettlebench.errors import SandboxUnavailableError
from mettlebench.other_user import end_all_of

INSIDE = "/workspace"
"""Where a workspace is seen inside the sandbox, unless the sandbox says otherwise."""

DEFAULT_OUTPUT_LIMIT = 4 << 20

_ETC = Path(__file__).parent / "etc"
_SYSTEM_ETC = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ssl/openssl.cnf",
    "/etc/ssl/certs",
    "/etc/mime.types",
    "/etc/magic",
)
_OWN_PLACES = ("proc", "dev", "sys", "tmp", "run", "home", "logs", "tests")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_LEAST_PYTHON = (3, 11)


class SandboxMode(StrEnum):
    """How commands are kept apart from this machine."""

    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


GIVEN_UP_BY_NONE = (
    "sandbox mode none: commands run as this user on this machine. They can read every file that this user "
    "can (evaluators, checklists, stores and other runs among them), reach the network, signal other "
    "processes and leave some behind. Results made so are fit for trying things out, not for a report."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What a command may see: `workspace` to write, `read_only` (host path to inner path) to read.

    `root` is a system to be seen, read-only, in place of this machine's; in it the command is root by name.
    `user` is whom it runs as in mode none, if not as the caller; what `run` leaves of that user is ended.
    """

    workspace: Path
    mode: SandboxMode = SandboxMode.BUBBLEWRAP
    inside: str = INSIDE
    network: bool = False
    read_only: Mapping[Path, str] = field(default_factory=dict)
    writable: Mapping[Path, str] = field(default_factory=dict)
    workspace_read_only: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    root: Path | None = None
    user: int | None = None

    def seen(self, inner: str, host: Path) -> str:
        """How a bound path is called by the command: its inner name, or the host's own without a sandbox."""
        return inner if self.mode is SandboxMode.BUBBLEWRAP else str(host.absolute())


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a command ended. `code` is None where it did not end in time; `truncated` where output was cut."""

    code: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool = False


def require_sandbox(mode: SandboxMode) -> None:
    """Raise SandboxUnavailableError, with what to do, unless this machine can make the sandbox."""
    if mode is SandboxMode.NONE:
        return
    if shutil.which("bwrap", path=_search_path()) is None:
        raise SandboxUnavailableError(
            "bubblewrap is not installed, so there is no sandbox: install it (Debian: apt-get install "
            "bubblewrap), or choose --sandbox none and read what that gives up"
        )
    with tempfile.TemporaryDirectory(prefix="mettle-") as place:
        tried = run(Sandbox(workspace=Path(place)), ["true"], seconds=60)
    if tried.code != 0:
        said = tried.stderr.decode(errors="replace").strip()
        raise SandboxUnavailableError(
            f"bubblewrap is installed but cannot make a sandbox here: {said or 'no reason given'}; allow "
            "user namespaces (sysctl kernel.unprivileged_userns_clone, container security profile), or "
            "choose --sandbox none and read what that gives up"
        )


def run(
    sandbox: Sandbox,
    command: Sequence[str],
    *,
    seconds: float | None,
    stdin: bytes | None = None,
    cpu_seconds: int | None = None,
    output_limit: int = DEFAULT_OUTPUT_LIMIT,
) -> Completed:
    """Run one command to its end, or end it and all it started after `seconds`."""
    limited = _limited(command, cpu_seconds=cpu_seconds, output_limit=output_limit)
    with (
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryDirectory(prefix="mettle-home-") as home,
    ):
        given.write(stdin or b"")
        given.seek(0)
        if sandbox.user is not None:
            os.chown(home, sandbox.user, sandbox.user)
        # files in place of pipes: a child left behind in mode none would hold a pipe open
        process = start(sandbox, limited, stdin=given, stdout=stdout, stderr=stderr, home=Path(home))
        try:
            code: int | None = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end(process)
            if sandbox.user is not None:
                end_all_of(sandbox.user)
        out, out_cut = _read_back(stdout, output_limit)
        err, err_cut = _read_back(stderr, output_limit)
    return Completed(code=code, stdout=out, stderr=err, truncated=out_cut or err_cut)


def start(
    sandbox: Sandbox,
    command: Sequence[str],
    *,
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    home: Path,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a command in the sandbox and return at once; `end` ends it with all that it started."""
    environment = sandbox_environment(sandbox, home)
    if sandbox.mode is SandboxMode.BUBBLEWRAP:
        arguments, working = [*_bubblewrap(sandbox, environment), "--", *command], Path("/")
    else:
        arguments, working = list(command), sandbox.workspace
    return subprocess.Popen(
        arguments,
        cwd=working,
        env=environment,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        pass_fds=pass_fds,
        user=sandbox.user,
        group=sandbox.user,
        extra_groups=None if sandbox.user is None else [],
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a started command: its name space with it, or in mode none its process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()


def sandbox_environment(sandbox: Sandbox, home: Path) -> dict[str, str]:
    """The whole environment of a command; nothing is inherited."""
    boxed = sandbox.mode is SandboxMode.BUBBLEWRAP
    return {
        "PATH": _search_path(),
        "HOME": "/home/dev" if boxed else str(home),
        "USER": "dev",
        "LOGNAME": "dev",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        **sandbox.environment,
    }


def _search_path() -> str:
    extra = _own_python()
    return f"{extra / 'bin'}:{_PATH}" if extra else _PATH


def _own_python() -> Path | None:
    """The prefix of the running Python where the system has no recent one of its own."""
    global _own_python_found
    if _own_python_found is None:
        system = shutil.which("python3", path=_PATH)
        recent = system is not None and _version(system) >= _LEAST_PYTHON
        _own_python_found = (None if recent else Path(sys.base_prefix),)
    return _own_python_found[0]


_own_python_found: tuple[Path | None] | None = None


def _version(python: str) -> tuple[int, ...]:
    asked = subprocess.run(
        [python, "-I", "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return tuple(int(part) for part in asked.stdout.split())


def _bubblewrap(sandbox: Sandbox, environment: Mapping[str, str]) -> list[str]:
    number = "1000" if sandbox.root is None else "0"
    arguments = ["bwrap", "--unshare-all", "--unshare-user", "--uid", number, "--gid", number]
    arguments += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "workshop"]
    if sandbox.network:
        arguments += ["--share-net"]
    arguments += ["--clearenv"]
    for name, value in environment.items():
        arguments += ["--setenv", name, value]
    system = _system() if sandbox.root is None else _other_system(sandbox.root)
    arguments += [*system, "--proc", "/proc", "--dev", "/dev"]
    for place in ("/tmp", "/run", "/var/tmp", "/home/dev"):
        arguments += ["--tmpfs", place]
    arguments += ["--ro-bind" if sandbox.workspace_read_only else "--bind"]
    # a sandbox is made from the root directory, where a path of the caller's leads elsewhere
    arguments += [str(sandbox.workspace.absolute()), sandbox.inside]
    for host, inner in sandbox.writable.items():
        arguments += ["--bind", str(host.absolute()), inner]
    for host, inner in sandbox.read_only.items():
        arguments += ["--ro-bind", str(host.absolute()), inner]
    return [*arguments, "--chdir", sandbox.inside]


def _system() -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        host = Path("/") / name
        if host.is_symlink():
            arguments += ["--symlink", f"usr/{name}", str(host)]
        elif host.is_dir():
            arguments += ["--ro-bind", str(host), str(host)]
    own = _own_python()
    if own is not None and not own.is_relative_to("/usr"):
        arguments += ["--ro-bind", str(own), str(own)]
    for place in _SYSTEM_ETC:
        arguments += ["--ro-bind-try", place, place]
    for file in ("passwd", "group", "hosts", "nsswitch.conf"):
        arguments += ["--ro-bind", str(_ETC / file), f"/etc/{file}"]
    return arguments


def _other_system(root: Path) -> list[str]:
    """Each entry of an unpacked image on its own, so that other places can stand beside them."""
    arguments = []
    for path in sorted(root.absolute().iterdir()):
        if path.name in _OWN_PLACES:
            continue
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), f"/{path.name}"]
        else:
            arguments += ["--ro-bind", str(path), f"/{path.name}"]
    return arguments


def _limited(command: Sequence[str], *, cpu_seconds: int | None, output_limit: int) -> list[str]:
    if cpu_seconds is None:
        return list(command)
    # generous for what a command writes, small enough that no disk is filled
    blocks = max(output_limit * 16, 256 << 20) // 512
    script = f'ulimit -t {cpu_seconds}; ulimit -f {blocks}; exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *command]


def _read_back(file: IO[bytes], limit: int) -> tuple[bytes, bool]:
    file.seek(0)
    data = file.read(limit + 1)
    return data[:limit], len(data) > limit
