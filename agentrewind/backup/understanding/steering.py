"""Which variables change what a program's name means or what the program does besides its task."""

from __future__ import annotations

import re
from collections.abc import Collection

_STEERING = re.compile(
    r"PATH|LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|GLIBC_TUNABLES|MALLOC_.*|BASH_ENV|ENV|IFS|BASH_FUNC.*|SHELLOPTS|"
    r"BASHOPTS|PROMPT_COMMAND|PS4|GLOBIGNORE|CDPATH|SHELL|HOME|XDG_CONFIG_.*|ZDOTDIR|FPATH|INPUTRC|TAR_OPTIONS|"
    r"(?:\w*_)?(?:PAGER|EDITOR|ASKPASS|BROWSER)|VISUAL|LESS\w*|MAN\w*|MAKEFLAGS|GIT_.*|GREP_OPTIONS|"
    r"RIPGREP_CONFIG_PATH|AWK\w*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|JAVA_.*|_JAVA_OPTIONS|JDK_.*|npm_config_.*|NPM_.*|"
    r"PIP_.*|PSQLRC|PSQL_.*|PGSYSCONFDIR|SSLKEYLOGFILE|OPENSSL_.*|CURL_HOME|KUBECONFIG|KUBECTL_.*|DOCKER_CONFIG|"
    r"DOCKER_CLI_.*|SSH_.*|RUSTC?_.*|RUSTC|CARGO_.*|GOFLAGS|GOENV|CC|CXX|HELM_.*|TF_.*|AWS_CONFIG_FILE|"
    r"BUNDLE_.*|GEM_.*|LESSOPEN|LESSCLOSE|TERMINFO.*|TERMCAP|NLSPATH|PARALLEL_.*|JQ_.*|SQLITE_.*|MYSQL_HOME",
    re.IGNORECASE,
)

_HARMLESS = {
    "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS",
    "GIT_PAGER_IN_USE",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONHASHSEED",
    "PYTHONFAULTHANDLER",
    "NODE_ENV",
    "NODE_NO_WARNINGS",
    "PIP_NO_INPUT",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_ROOT_USER_ACTION",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "MANWIDTH",
    "LESSCHARSET",
    "SSH_AUTH_SOCK",
}

SYSTEM_DIRECTORIES = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/usr/games",
    "/snap/bin",
)


def steers(name: str, value: str | None, known_path: Collection[str] = ()) -> bool:
    """Whether setting `name` to `value` (None: unknown) may change what commands do.

    `known_path`: directories that names of programs are looked up in already.
    """
    if name in _HARMLESS or not _STEERING.fullmatch(name):
        return False
    if name.endswith("PAGER") and value in ("", "cat"):
        return False
    if name == "PATH" and value is not None:
        return not all(part in SYSTEM_DIRECTORIES or part in known_path for part in value.split(":"))
    return not (name == "IFS" and value in (" \t\n", "\n", ""))
