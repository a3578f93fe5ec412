"""Packs an installed Debian package again from the files that lie there, edited configuration included."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from agentrewind.backup.kind import CaptureError
from agentrewind.backup.programs import run
from agentrewind.backup.values import Context

_INFO = Path("/var/lib/dpkg/info")
_CONTROL = ("preinst", "postinst", "prerm", "postrm", "config", "templates", "triggers", "shlibs", "symbols",
            "conffiles")  # fmt: skip
_OWN = ("Status", "Conffiles", "Config-Version", "Installed-Size")


def repack(name: str, directory: Path, context: Context) -> Path:
    """An archive that dpkg installs, read back. Raises CaptureError; needs root to read every file."""
    root = directory / "package"
    shutil.rmtree(root, ignore_errors=True)
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN").chmod(0o755)
    (root / "DEBIAN" / "control").write_text(_control(name, context))
    for part in _CONTROL:
        source = _info(name, part)
        if source is not None:
            shutil.copy(source, root / "DEBIAN" / part)
    listed = run(["dpkg-query", "--listfiles", name], context).decode("utf-8", "surrogateescape")
    files = [Path(line) for line in listed.splitlines() if line.startswith("/") and line != "/."]
    for path in sorted(files):
        _copy(path, root)
    archive = directory / "package.deb"
    run(["dpkg-deb", "-Zgzip", "-z1", "--build", str(root), str(archive)], context)
    held = len(run(["dpkg-deb", "--contents", str(archive)], context).splitlines())
    present = sum(os.path.lexists(path) for path in files)
    if held < present:
        raise CaptureError(f"the archive of {name} holds {held} of its {present} files")
    shutil.rmtree(root)
    return archive


def conffiles(name: str, context: Context) -> list[Path]:
    """The package's configuration files."""
    try:
        output = run(["dpkg-query", "-W", "-f=${Conffiles}", name], context).decode(
            "utf-8", "surrogateescape"
        )
    except CaptureError:
        return []  # the package is not known, so that it has none
    return [Path(line.split()[0]) for line in output.splitlines() if line.strip()]


def _control(name: str, context: Context) -> str:
    lines = run(["dpkg-query", "--status", name], context).decode("utf-8", "surrogateescape").splitlines()
    kept: list[str] = []
    dropping = False
    for line in lines:
        if not line.startswith(" "):
            dropping = line.partition(":")[0] in _OWN
        if line and not dropping:
            kept.append(line)
    return "\n".join(kept) + "\n"


def _info(name: str, part: str) -> Path | None:
    bare = name.partition(":")[0]
    found = [_INFO / f"{bare}.{part}", *_INFO.glob(f"{bare}:*.{part}")]
    return next((path for path in found if path.exists()), None)


def _copy(path: Path, root: Path) -> None:
    """One file, link or directory with mode and owner, where it exists."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return  # removed by hand; the package comes back without it, as it was
    place = root / path.relative_to("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(status.st_mode):
        if not place.is_dir():
            place.symlink_to(path.readlink())
    elif stat.S_ISDIR(status.st_mode):
        place.mkdir(exist_ok=True)
    else:
        shutil.copy2(path, place)
    os.chown(place, status.st_uid, status.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        place.chmod(stat.S_IMODE(status.st_mode))
