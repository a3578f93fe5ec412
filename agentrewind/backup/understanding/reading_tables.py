"""The tables of read-only programs: whatever their words, except for some options, by subcommand."""

from __future__ import annotations

from dataclasses import dataclass


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLAIN = _words(
    """
    : true false test [ echo printf pwd cat head tail wc basename dirname realpath readlink stat ls
    dir vdir du df id whoami groups logname users uname arch nproc uptime printenv cut tr rev tac nl
    fold fmt expand unexpand paste join comm cmp diff diff3 sum cksum md5sum sha1sum sha224sum
    sha256sum sha384sum sha512sum b2sum base32 base64 basenc od hexdump strings seq sleep tty
    getconf getent lscpu lsblk lsmod lspci lsusb vmstat ps pgrep pidof pstree free which type
    whereis grep egrep fgrep zgrep zcat bzcat xzcat zstdcat expr factor numfmt column jq tsort
    pathchk cd chdir pushd popd dirs exit logout return break continue read mapfile readarray
    getopts set shift unset alias unalias shopt  hash trap eval wait jobs times umask xargs
    env w who last    readelf objdump  look apropos whatis let caller source .

    """
)
"""Programs that write nothing whatever they are given; source, eval and trap are judged by what they run."""

EVALUATING = _words("test [ printf unset read mapfile readarray getopts let")
"""Those among them that run a substitution in the index of an array, even a quoted one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """Options that may write or run something; at most `operands` operands, each of this shape."""

    options: frozenset[str] = frozenset()
    operands: int = 1000
    shape: str = ".*"


def _denied(options: str = "", operands: int = 1000, shape: str = ".*") -> Denied:
    return Denied(options=_words(options), operands=operands, shape=shape)


DENIED = {
    "rg": _denied("--pre --hostname-bin --search-zip -z"),
    "fd": _denied("-x -X --exec --exec-batch"),
    "fdfind": _denied("-x -X --exec --exec-batch"),
    "tree": _denied("-o -R --output"),
    "file": _denied("-C --compile -p --preserve-date"),
    "hostname": _denied("-F -b --file --boot", operands=0),
    "hostnamectl": _denied(operands=1, shape="status"),
    "timedatectl": _denied(operands=1, shape="status|show|list-timezones"),
    "xxd": _denied("-r -revert", operands=1),
    "sort": _denied("-o --output --compress-program"),
    "uniq": _denied(operands=1),
    "shuf": _denied("-o --output"),
    "lsof": _denied("-D"),
    "nm": _denied("--plugin"),
    "size": _denied("--plugin"),
    "ss": _denied("-K --kill -D --diag"),
    "netstat": _denied(),
    "ping": _denied(),
    "dig": _denied(shape=r"[^/]*"),
    "host": _denied(),
    "nslookup": _denied(),
    "dmesg": _denied("-c -C -D -E -n --clear --read-clear --console-off --console-on --console-level"),
    "journalctl": _denied(
        "--vacuum-size --vacuum-time --vacuum-files --rotate --flush --sync --relinquish-var "
        "--smart-relinquish-var --setup-keys --update-catalog --cursor-file"
    ),
    "man": _denied("-P --pager -H --html -C --config-file -X --gxditview -p --preprocessor"),
    "history": _denied("-c -d -a -n -r -w -p -s", operands=1, shape=r"\d+"),
    "tee": _denied(shape="/dev/(null|stdout|stderr|tty)|-"),
    "crontab": _denied("-r -e -i", operands=0),
    "dpkg-query": _denied(),
    "zipinfo": _denied(),
    "unzip": _denied("-d -o -n -j -f -u -x"),
    "command": _denied(),
    "ulimit": _denied(shape="(?!)"),
    "yq": _denied("-i --inplace --in-place -s --split-exp --split-exp-file"),
    "top": _denied(),
    "iostat": _denied("-o"),
    "sysctl": _denied("-w --write -p --load --system", shape="[^=]*"),
    "mount": _denied("-a --all -o --options -t --types", operands=0),
    "lsattr": _denied(),
    "getfacl": _denied(),
    "getfattr": _denied(),
    "findmnt": _denied(),
    "loginctl": _denied(operands=1, shape="list-sessions|list-users"),
}

NEEDED = {
    "crontab": _words("-l"),
    "unzip": _words("-l -Z -v -t -p"),
    "command": _words("-v -V"),
    "top": _words("-b -bn1 -n -bn"),
}
"""Programs of `DENIED` that are harmless only with one of these."""

VERSIONED = _words(
    """
    python python3 python2 node npm npx yarn pnpm pip pip3 cargo rustc rustup go java javac gcc g++
    cc clang make cmake git docker kubectl helm terraform ansible psql sqlite3 mysql redis-cli curl
    wget ruby gem perl php composer bash sh zsh ssh rsync tar unzip zip sed awk gawk find sudo
    systemctl apt apt-get dpkg uv ruff mypy pytest black gh aws gcloud az jq rg fd tree openssl
    nginx vim nano tmux screen ffmpeg pandoc deno bun dotnet
    """
)
"""Programs whose `--version` and `--help` are harmless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A program with subcommands.

    Attributes:
        one: subcommands that read, whatever follows.
        two: pairs of words that do.
        values: options before the subcommand that take the next word.
        flags: other options allowed before the subcommand.
        denied: options that may write or run something, wherever they stand.
    """

    one: frozenset[str]
    two: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()


def _family(one: str, two: str = "", values: str = "", flags: str = "", denied: str = "") -> Family:
    pairs = frozenset(" ".join(pair.split()) for pair in two.split(",") if pair.strip())
    return Family(
        one=_words(one), two=pairs, values=_words(values), flags=_words(flags), denied=_words(denied)
    )


_KUBECTL = _family(
    "get describe logs top version api-resources api-versions explain wait cluster-info options",
    "config view, config current-context, config get-contexts, config get-clusters, config get-users, "
    "auth can-i, auth whoami, rollout status, rollout history",
    values="-n --namespace --context --cluster -s --server --request-timeout --user",
    flags="-A --all-namespaces",
    denied="--kubeconfig --output-directory --as-file",
)

_DOCKER = _family(
    "ps images logs inspect version info stats top port diff history search events",
    "container ls, container list, container ps, container inspect, container logs, container top, "
    "container stats, container port, container diff, image ls, image list, image inspect, image history, "
    "volume ls, volume inspect, network ls, network inspect, system df, system info, system "
    "events, compose ps,"
    "compose logs, compose ls, compose images, compose top, compose version, context ls, context inspect, "
    "context show, node ls, service ls, service ps, service logs, stack ls, stack ps, secret ls",
    values="-c --context -H --host -l --log-level -f --file -p --project-name --profile --env-file",
    flags="-D --debug",
    denied="--config",
)

_PIP = _family(
    "list show freeze check inspect help debug",
    "index versions, config list, config get, cache dir, cache info, cache list",
    flags="-q --quiet -v --verbose --disable-pip-version-check --no-input --no-color --isolated",
    denied="--log --log-file --python --cache-dir -o --output",
)

SUBCOMMANDS = {
    "kubectl": _KUBECTL,
    "oc": _KUBECTL,
    "docker": _DOCKER,
    "podman": _DOCKER,
    "docker-compose": _family("ps logs images top version ls", values="-f --file -p --project-name"),
    "pip": _PIP,
    "pip3": _PIP,
    "npm": _family(
        "ls list ll la view info show search root prefix bin whoami ping help outdated explain why",
        "config get, config list, config ls",
        flags="-g --global --silent -s",
        denied="--script-shell --userconfig --globalconfig --viewer",
    ),
    "apt": _family("list show search policy depends rdepends", flags="-q -qq", denied="-o --option -c"),
    "apt-cache": _family(
        "policy show search showpkg depends rdepends madison pkgnames stats dump dumpavail unmet",
        denied="-o --option -c --config-file",
    ),
    "apt-mark": _family("showmanual showauto showhold showinstall"),
    "systemctl": _family(
        "status show list-units list-unit-files list-timers list-sockets list-jobs "
        "list-dependencies is-active"
        "is-enabled is-failed is-system-running cat get-default show-environment help",
        flags="--no-pager --user --system --all -a --full -l --quiet -q --plain --failed",
    ),
    "helm": _family(
        "list ls status history version env",
        "get all, get values, get manifest, get notes, get hooks, get metadata, show all, show chart, "
        "show readme, show values, search repo, search hub, repo list, plugin list",
        values="-n --namespace --kube-context",
        denied="--post-renderer --output-dir --kubeconfig --registry-config --repository-config",
    ),
    "terraform": _family("version show output", "state list, state show, workspace list, workspace show"),
    "gh": _family(
        "status",
        "pr view, pr list, pr status, pr diff, pr checks, issue view, issue list, issue status, repo view, "
        "repo list, run list, run view, release list, release view, auth status, workflow list, "
        "workflow view",
        values="-R --repo",
        denied="-w --web",
    ),
    "go": _family("version", "list std"),
    "conda": _family("list info", "env list, config --show"),
    "brew": _family("list info search deps leaves outdated config doctor"),
}
