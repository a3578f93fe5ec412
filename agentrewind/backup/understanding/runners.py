"""Takes off what runs a command as somebody else or elsewhere: su, ssh, docker and kubectl exec; and find."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from agentrewind.backup.understanding.nested import Nested, made_unclear, open_ended, take, text_of
from agentrewind.backup.values import Command, Word


def _su(command: Command) -> Iterator[Command | Nested]:
    """Su and runuser: `-c TEXT`, or with runuser `-u USER COMMAND`."""
    values = "-c --command -s --shell -g --group -G --supp-group -w --whitelist-environment -u --user"
    words = tuple(word for word in command.argv[1:] if word.text != "-" or not word.literal)
    taken = take(words, values, "-l --login -m -p --preserve-environment -f --fast -P --pty")
    user = taken.options.get("-u") or taken.options.get("--user")
    name = user or (taken.rest[0] if taken.rest else Word("root"))
    after = take(tuple(taken.rest[1:]), values, "-l --login -") if not user else taken
    inner = replace(
        command,
        argv=(),
        wrappers=(*command.wrappers, command.name),
        user=name.text if name.literal else "?",
    )
    text = {**taken.options, **after.options}.get("-c") or {**taken.options, **after.options}.get("--command")
    if taken.problem or after.problem:
        yield made_unclear(command, f"{command.name}: {taken.problem or after.problem}")
    elif text is not None:
        yield text_of(inner, [text])
    elif user is not None and taken.rest:
        yield Nested(command=inner, words=tuple(taken.rest))
    elif command.stdin is not None:
        yield Nested(command=inner, text=command.stdin, keeps_stdin=False)
    else:
        yield made_unclear(command, f"{command.name} starts a shell")


_SSH_VALUES = "-b -c -D -e -I -i -J -L -l -m -p -R -S -W -w -B -P -o"
_SSH_FLAGS = "-4 -6 -A -a -C -f -g -K -k -n -q -s -T -t -v -X -x -Y -y -N"
_SSH_RUNS = re.compile(
    r"\s*(proxycommand|localcommand|permitlocalcommand|knownhostscommand|include|match)\b", re.I
)


def _ssh(command: Command) -> Iterator[Command | Nested]:
    """The rest of the words is a text for the shell at the other end."""
    taken = take(command.argv[1:], _SSH_VALUES, _SSH_FLAGS)
    if taken.problem or not taken.rest:
        yield made_unclear(command, f"ssh: {taken.problem or 'no host is named'}")
        return
    if any(_SSH_RUNS.match(word.text) for word in command.argv[1:]) or any(
        re.match(r"-\w*o\s*(proxy|local|permit|known)", word.text, re.I) for word in command.argv[1:]
    ):
        yield made_unclear(command, "ssh is told to run a program here")
        return
    more = take(tuple(taken.rest[1:]), _SSH_VALUES, _SSH_FLAGS)
    host = taken.rest[0]
    inner = replace(
        command,
        argv=(),
        host=f"ssh {host.text}",
        wrappers=(*command.wrappers, "ssh"),
        redirects=tuple(each for each in command.redirects if each.operator[0] != "<"),
    )
    if any(each.operator.startswith((">", "&>")) for each in command.redirects):
        # what the other end says is written here
        yield replace(command, argv=(), stdin=None)
        inner = replace(inner, redirects=())
    if more.problem:
        yield made_unclear(command, f"ssh: {more.problem}")
    elif more.rest:
        yield text_of(inner, more.rest)
    elif command.stdin is not None:
        yield Nested(command=inner, text=command.stdin, keeps_stdin=False)
    else:
        yield made_unclear(command, "ssh starts a shell")


_EXEC_VALUES = (
    "-u --user -w --workdir -e --env --env-file --detach-keys --index -c --container -n --namespace "
)
_EXEC_VALUES += (
    "-f --filename --context --kubeconfig --request-timeout -p --project-name --project-directory -H --host"
)
_EXEC_FLAGS = "-i --interactive -t --tty -d --detach --privileged -T --no-TTY -q --quiet --stdin -it -ti"


def _container(command: Command) -> Iterator[Command | Nested]:
    """`docker exec NAME COMMAND`, `kubectl exec POD -- COMMAND`; other subcommands are left as they are."""
    program = command.name
    before = take(command.argv[1:], _EXEC_VALUES, "-D --debug --tls")
    rest = before.rest
    if rest and rest[0].text == "compose":
        rest = take(tuple(rest[1:]), _EXEC_VALUES, "").rest
    if not rest or rest[0].text != "exec" or before.problem:
        yield command
        return
    after = take(tuple(rest[1:]), _EXEC_VALUES, _EXEC_FLAGS)
    place, words = after.rest[:1], after.rest[1:]
    if program in ("kubectl", "oc"):
        more = take(tuple(words), _EXEC_VALUES, _EXEC_FLAGS)
        dashes = [at for at, word in enumerate(rest) if word.text == "--" and word.literal]
        words = more.rest if dashes else []
    if after.problem or not place or not words:
        yield made_unclear(command, f"{program} exec: {after.problem or 'the command is not understood'}")
        return
    if any(each.operator.startswith((">", "&>")) for each in command.redirects):
        yield replace(command, argv=(), stdin=None)
    inner = replace(
        command,
        argv=(),
        host=f"{program} exec {place[0].text}",
        wrappers=(*command.wrappers, f"{program} exec"),
        redirects=(),
        cwd=None,
    )
    yield Nested(command=inner, words=tuple(words))


def _watch(command: Command) -> Iterator[Command | Nested]:
    taken = take(
        command.argv[1:],
        "-n --interval -q --equexit",
        "-d --differences -t --no-title -b --beep -e --errexit -g --chgexit -c --color -x --exec -p -w",
    )
    inner = replace(command, argv=(), wrappers=(*command.wrappers, "watch"))
    if taken.problem or not taken.rest:
        yield made_unclear(command, f"watch: {taken.problem or 'no command'}")
    else:
        yield text_of(inner, taken.rest)


def _find(command: Command) -> Iterator[Command | Nested]:
    """Find itself, then what it runs for what it finds."""
    yield command
    words = command.argv
    for at, word in enumerate(words):
        if word.text not in ("-exec", "-execdir", "-ok", "-okdir"):
            continue
        end = next((n for n in range(at + 1, len(words)) if words[n].text in (";", "+")), len(words))
        inner = replace(
            command,
            argv=(),
            wrappers=(*command.wrappers, "find"),
            source=None if command.open_ended else command,
            cwd=None if word.text.endswith("dir") else command.cwd,
        )
        if words[at + 1 : end]:
            yield open_ended(inner, list(words[at + 1 : end]), "{}")


RUNNERS: dict[str, Callable[[Command], Iterator[Command | Nested]]] = {
    "su": _su,
    "runuser": _su,
    "ssh": _ssh,
    "docker": _container,
    "podman": _container,
    "docker-compose": _container,
    "kubectl": _container,
    "oc": _container,
    "watch": _watch,
    "find": _find,
}
