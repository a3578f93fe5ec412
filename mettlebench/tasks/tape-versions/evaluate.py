"""Checks index, versions and new archive (mettlebench-canary-799cbdd1869c573350bbad37e21eb265)."""

from __future__ import annotations

import hashlib
import io
import tarfile

from mettlebench.check import Grading, fail, require

from build import Member, archive, files, index, last, nights, struck, tape

DATA, FOUND = tape()


def index_is_right(work: Grading) -> None:
    scratch = work.scratch()
    few = nights(5, 6)
    torn = [
        Member(name=m.name, kind=m.kind, data=m.data, mtime=m.mtime, damaged=n % 4 == 2)
        for n, m in enumerate(few)
    ]
    # a file that looks like a header inside must not be taken for one
    nested = Member(name="inner.tar", kind="file", data=archive(few[:2], ())[0], mtime=7)
    for members, ends in ((few, ()), (few, (0, 3)), (torn, (4,)), ([nested, *few], (0,)), ([], ())):
        data, found = archive(members, ends)
        scratch.write("probe.tar", data)
        ended = scratch.run(["python3", "-I", "tools/tapeindex.py", "probe.tar"]).ok("the index")
        lines = [line.strip() for line in ended.text().splitlines() if line.strip()]
        require(
            lines == index(found).splitlines(),
            f"{len(lines) - 1} members listed, {len(found)} there, or others",
        )


def versions_are_recorded(work: Grading) -> None:
    lines = work.lines("records/versions.csv")
    require(
        lines == index(FOUND).splitlines(),
        f"{len(lines) - 1} members, {len(FOUND)} on the tape, or other values",
    )


def contents_are_kept(work: Grading) -> None:
    wanted = {member.digest for _, member in files()}
    held = {name.removeprefix("versions/") for name in work.files("versions")}
    require(held == wanted, f"{len(held)} contents, {len(wanted)} there were, or other names")
    for digest in sorted(wanted):
        require(work.sha256(f"versions/{digest}") == digest, f"{digest} is something else")


def struck_lines_are_recorded(work: Grading) -> None:
    rows = [
        tuple(row.values()) for row in work.csv("records/struck.csv", ("name", "before", "after", "line"))
    ]
    require(rows == struck(), f"{len(rows)} lines, {len(struck())} were struck, or other values")


def archive_is_for_the_repository(work: Grading) -> None:
    require(work.files("tape") == ["tape/notebooks.tar"], "something lies beside the archive")
    try:
        with tarfile.open(fileobj=io.BytesIO(work.read("tape/notebooks.tar")), mode="r:") as held:
            members = [(each, _bytes(held, each)) for each in held.getmembers()]
    except (tarfile.TarError, OSError, EOFError, ValueError):
        fail("the archive cannot be read")
    wanted = [(each.name, each.mtime, each.data) for each in last().values()]
    found = [(each.name, each.mtime, data) for each, data in members]
    require(
        found == wanted, f"{len(found)} members, {len(wanted)} notebooks, or another order, time or content"
    )
    for each, _ in members:
        facts = (each.uid, each.gid, each.uname, each.gname, each.mode, each.isreg())
        require(facts == (0, 0, "", "", 0o644, True), f"{each.name}: owner, mode or kind")


def _bytes(held: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = held.extractfile(member) if member.isreg() else None
    return file.read() if file else b""


def note_ties_together(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("records/handover.md").split()}
    contents = {member.digest for _, member in files()}
    wanted = [str(len(FOUND)), str(len(contents)), str(len(struck())), hashlib.sha256(DATA).hexdigest()]
    wanted += [work.sha256("records/versions.csv"), work.sha256("tape/notebooks.tar")]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    names = {f"records/{name}" for name in ("handover.md", "struck.csv", "versions.csv")}
    present = {name for name, kind in work.walk() if kind != "dir" and "__pycache__" not in name}
    known = ("docs/", "tape/", "versions/")
    extra = {name for name in present if not name.startswith(known)} - {*names, "tools/tapeindex.py"}
    require(not extra, f"left behind: {', '.join(sorted(extra))}")


CHECKS = {
    "C01": index_is_right,
    "C02": versions_are_recorded,
    "C03": contents_are_kept,
    "C04": struck_lines_are_recorded,
    "C05": archive_is_for_the_repository,
    "C06": note_ties_together,
}
