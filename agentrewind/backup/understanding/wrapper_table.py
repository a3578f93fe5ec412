"""The table of wrappers: programs whose command follows their options, and which options those are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """A wrapper whose command follows its options and `skip` operands."""

    values: str = ""
    flags: str = ""
    skip: int = 0
    assigns: bool = False
    alone: str = ""
    """Options with which it runs nothing."""

    writes: str = ""
    """Options whose value is a file that it writes."""


PREFIXES = {
    "sudo": Prefix(
        values="-u --user -g --group -h --host -p --prompt -C --close-from -T --command-timeout -r --role -t "
        "--type -D --chdir",
        flags="-A --askpass -b --background -E --preserve-env -H --set-home -k -n --non-interactive -P "
        "--preserve-groups -S --stdin -i --login -s --shell -B --bell",
        assigns=True,
        alone="-l --list -v --validate -K -V --version -e --edit --help",
    ),
    "doas": Prefix(values="-u -C", flags="-n -s", alone="-L"),
    "env": Prefix(
        values="-u --unset -C --chdir", flags="-i - --ignore-environment -0 --null -v --debug", assigns=True
    ),
    "nice": Prefix(values="-n --adjustment", flags="-5 -10 -15 -19 -20"),
    "ionice": Prefix(values="-c --class -n --classdata", flags="-t --ignore", alone="-p --pid"),
    "chrt": Prefix(flags="-b -f -i -o -r -R -v --batch --fifo --idle --other --rr", skip=1, alone="-p -m"),
    "taskset": Prefix(flags="-a -c --all-tasks --cpu-list", skip=1, alone="-p --pid"),
    "nohup": Prefix(),
    "setsid": Prefix(flags="-c --ctty -f --fork -w --wait"),
    "stdbuf": Prefix(values="-i --input -o --output -e --error"),
    "timeout": Prefix(
        values="-s --signal -k --kill-after",
        flags="-v --verbose --foreground --preserve-status -f -p",
        skip=1,
    ),
    "gtimeout": Prefix(values="-s --signal -k --kill-after", flags="--foreground --preserve-status", skip=1),
    "time": Prefix(
        values="-f --format -o --output",
        flags="-a --append -p --portability -v --verbose -q --quiet",
        writes="-o --output",
        alone="-V --version",
    ),
    "command": Prefix(flags="-p", alone="-v -V"),
    "builtin": Prefix(),
    "exec": Prefix(values="-a", flags="-c -l"),
    "busybox": Prefix(alone="--list --help --install"),
    "flock": Prefix(
        values="-w --timeout --wait -E --conflict-exit-code",
        flags="-s --shared -x -e --exclusive -n --nb --nonblock -o --close -F "
        "--no-fork -u --unlock --verbose",
        skip=1,
    ),
    "strace": Prefix(
        values="-e -o -s -u -E -P -I -O -S -a -b -X",
        flags="-f -ff -c -C -q -qq -r -t -tt -ttt -T -v -x -xx -y -yy -k -n -i -d -D",
        writes="-o",
        alone="-p -V",
    ),
    "chroot": Prefix(values="--userspec --groups", flags="--skip-chdir", skip=1),
    "fakeroot": Prefix(),
    "unbuffer": Prefix(flags="-p"),
    "eatmydata": Prefix(),
    "caffeinate": Prefix(flags="-d -i -m -s -u", values="-t -w"),
    "xargs": Prefix(
        values="-I -n --max-args -L -P --max-procs -s --max-chars -d --delimiter -a --arg-file -E "
        "--process-slot-var",
        flags="-0 --null -r --no-run-if-empty -t --verbose -p --interactive -x --exit -o "
        "--open-tty -i --replace",
        alone="--show-limits --version --help",
    ),
}
