"""Debian packages: what apt or dpkg would replace or remove is packed again as it lies there."""

from __future__ import annotations

import getopt
import re
import shutil
from hashlib import sha256
from pathlib import Path

import orjson

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.kinds.dpkg_repack import conffiles, repack
from agentrewind.backup.programs import run
from agentrewind.backup.values import Command, Context, Target
from agentrewind.errors import DamagedError
from agentrewind.records import Json, JsonObject

_SIMULATED = re.compile(r"^(?:Inst|Remv|Purg) (\S+) ", re.MULTILINE)
_READS = {"list", "search", "show", "policy", "depends", "rdepends", "update", "check", "changelog",
          "download", "source", "indextargets", "help"}  # fmt: skip
_NOTE = "what the packages' own scripts do to other files is not covered"


class DebianPackages:
    """The kind `dpkg`."""

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """The packages that apt says it would change, or that dpkg is told to."""
        if command.host is not None or command.open_ended or not all(word.literal for word in command.argv):
            raise UnclearError("which packages it is for is only known when it runs")
        words = [word.text for word in command.argv[1:]]
        inside = Context(cwd=command.cwd or context.cwd, env=context.env, home=context.home)
        try:
            names = _dpkg(words, inside) if command.name == "dpkg" else _apt(words, inside)
        except CaptureError as error:
            raise UnclearError(f"what would change cannot be told: {error}") from error
        if not names:
            return ()
        packages: list[Json] = [*sorted(names)]
        shown = ", ".join(sorted(names)[:5]) + (" …" if len(names) > 5 else "")
        return (Target(kind="dpkg", name=f"Debian packages {shown}", detail={"packages": packages}),)

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """Each package that is installed, as an archive of its present files, and which were asked for."""
        automatic = set(run(["apt-mark", "showauto"], context).decode().split())
        manifest: dict[str, Json] = {}
        blobs: list[str] = []
        size = 0
        for name in _packages(target):
            state, version = _state(name, context)
            archive = None
            if state == "installed":
                file = repack(name, store.scratch(), context)
                archive, packed = store.put_file(file), file.stat().st_size
                file.unlink()
                blobs.append(archive)
                size += packed
            manifest[name] = {
                "state": state,
                "version": version,
                "archive": archive,
                "automatic": name.partition(":")[0] in automatic,
                "beside": [str(path) for path in _beside(name, context)],
            }
        return Captured(manifest={"packages": manifest}, blobs=tuple(blobs), bytes=size, notes=(_NOTE,))

    def fingerprint(self, target: Target, context: Context) -> str:
        """Digest of states, versions and configuration files."""
        found: list[Json] = [
            [name, *_state(name, context), *map(_digest, conffiles(name, context))]
            for name in _packages(target)
        ]
        return sha256(orjson.dumps(found)).hexdigest()

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Purge what was added, install the packed archives, compare states and versions."""
        wanted = _manifest(captured)
        added = [name for name, each in wanted.items() if each["state"] == "absent"]
        present = [name for name in added if _state(name, context)[0] != "absent"]
        if present:
            run(["dpkg", "--purge", *present], context)
        beside = {name: _beside(name, context) for name in wanted}
        files = _unpacked(wanted, store)
        if files:
            quiet = {"DEBIAN_FRONTEND": "noninteractive"}
            run(["dpkg", "--force-confnew,confmiss,downgrade", "--install", *files], context, env=quiet)
        for name, each in wanted.items():
            _mark(name, each, context)
            _clear(each, [*beside[name], *_beside(name, context)])
        missing = [
            f"{name} {each['version']!s}"
            for name, each in wanted.items()
            if _state(name, context) != (each["state"], each["version"])
        ]
        return Outcome(restored=tuple(wanted), missing=tuple(missing), notes=(_NOTE,))

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """A line for each package."""
        lines = []
        for name, each in _manifest(captured).items():
            present = _state(name, context)
            if each["state"] == "absent":
                lines += [f"purge {name}"] if present[0] != "absent" else []
            elif each["state"] == "installed":
                lines.append(f"install {name} {each['version']!s} as it was")
        return tuple(lines)

    def describe(self, target: Target) -> tuple[str, str]:
        """What is captured and how it comes back."""
        return (
            f"{target.name}: archives of their present files, configuration included",
            "additions purged, archives installed with dpkg, marks of apt set",
        )


def _apt(words: list[str], context: Context) -> set[str]:
    if {"-s", "--simulate", "--dry-run", "--just-print", "--no-act", "-d", "--download-only"} & set(words):
        return set()
    operands = [word for word in words if not word.startswith("-")]
    if not operands or operands[0] in _READS:
        return set()
    output = run(["apt-get", "--simulate", "-o", "Debug::NoLocking=true", *words], context)
    return set(_SIMULATED.findall(output.decode("utf-8", "replace")))


def _dpkg(words: list[str], context: Context) -> set[str]:
    long = ["install", "unpack", "remove", "purge", "configure", "recursive", "no-act", "dry-run", "simulate",
            "list", "listfiles", "search", "status", "print-avail", "audit", "get-selections", "version",
            "help", "print-architecture", "verify", "compare-versions"]  # fmt: skip
    forced = [word for word in words if not word.startswith(("--force-", "--refuse-", "--admindir"))]
    try:
        options, operands = getopt.gnu_getopt(forced, "iArPRlLsSpCV", long)
    except getopt.GetoptError as error:
        raise UnclearError(f"dpkg: {error.msg}") from error
    flags = {name for name, _ in options}
    if flags & {"-R", "--recursive"}:
        raise UnclearError("it installs whatever a directory holds")
    if flags & {"--no-act", "--dry-run", "--simulate"}:
        return set()
    if flags & {"-i", "--install", "-A", "--unpack"}:
        fields = ["dpkg-deb", "-f"]
        return {run([*fields, file, "Package"], context).decode().strip() for file in operands}
    if flags & {"-r", "--remove", "-P", "--purge"}:
        if {"-a", "--pending"} & set(words):
            raise UnclearError("it is for all packages that are marked")
        return set(operands)
    if flags & {"--configure"}:
        raise UnclearError("configuring runs the packages' own scripts")
    return set()


def _state(name: str, context: Context) -> tuple[str, str]:
    """`installed`, `config-files` or `absent`, and the version."""
    form = "${db:Status-Status}\t${Version}"
    try:
        output = run(["dpkg-query", "-W", f"-f={form}", name], context).decode()
    except CaptureError as error:
        if "no packages found" in str(error):
            return "absent", ""
        raise
    status, _, version = output.partition("\t")
    if status == "not-installed":
        return "absent", ""
    return ("installed" if status not in ("config-files",) else status), version


def _unpacked(wanted: dict[str, JsonObject], store: Store) -> list[str]:
    """The archives of the packages that were installed, as files."""
    directory = store.scratch()
    files: list[str] = []
    for each in wanted.values():
        if each["archive"]:
            file = directory / f"{len(files)}.deb"
            with store.open(str(each["archive"])) as source, file.open("wb") as out:
                shutil.copyfileobj(source, out)
            files.append(str(file))
    return files


def _beside(name: str, context: Context) -> list[Path]:
    """What dpkg leaves beside configuration files when it replaces or keeps them."""
    return [
        path.with_name(path.name + ending)
        for path in conffiles(name, context)
        for ending in (".dpkg-old", ".dpkg-dist", ".dpkg-new", ".dpkg-bak")
        if path.with_name(path.name + ending).exists()
    ]


def _clear(wanted: JsonObject, beside: list[Path]) -> None:
    """Remove what dpkg left beside them since."""
    known = wanted["beside"]
    for path in beside:
        if isinstance(known, list) and str(path) not in known:
            path.unlink(missing_ok=True)


def _mark(name: str, wanted: JsonObject, context: Context) -> None:
    """Leave only configuration where only that was there, and note again who asked for the package."""
    if wanted["state"] == "config-files" and _state(name, context)[0] == "installed":
        run(["dpkg", "--remove", name], context)
    if wanted["state"] == "installed":
        run(["apt-mark", "auto" if wanted["automatic"] else "manual", name], context)


def _packages(target: Target) -> list[str]:
    packages = target.detail["packages"]
    assert isinstance(packages, list)
    return [str(each) for each in packages]


def _manifest(captured: Captured) -> dict[str, JsonObject]:
    packages = captured.manifest.get("packages")
    if not isinstance(packages, dict):
        raise DamagedError("the backup's list of packages cannot be read")
    return {name: each for name, each in packages.items() if isinstance(each, dict)}


def _digest(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""
