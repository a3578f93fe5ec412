"""Checks the published photo archive (mettlebench-canary-0ca3e30b29eadaa4991ff09b126bc02e)."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
import zlib

from mettlebench.check import Grading, fail, need, require

from build import KEPT, SIGNATURE, Photo, image, photos, text_chunk

PHOTOS = photos()
SOUND = [photo for photo in PHOTOS if not photo.damaged]
DAMAGED = [photo for photo in PHOTOS if photo.damaged]
PUBLISHED = [photo for photo in SOUND if photo.licence]
WITHDRAWN = [photo for photo in SOUND if not photo.licence]

PROBE = """
import json
from pngmeta.chunks import Damaged, read_chunks, write_chunks
from pngmeta.text import texts
found = []
for line in sys.stdin:
    data = bytes.fromhex(line)
    try:
        chunks = read_chunks(data)
        found.append([sorted(texts(chunks).items()), write_chunks(chunks) == data])
    except Damaged:
        found.append("damaged")
print(json.dumps(found))
"""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def probes() -> tuple[list[bytes], list[object]]:
    images: list[bytes] = []
    expected: list[object] = []
    head = ("IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    for kind, text in (
        ("tEXt", "Zoë à Évian"),
        ("zTXt", "Käthe " * 9),
        ("iTXt", "Ελένη"),
        ("zTXt", "Ελένη, дважды"),
        ("tEXt", ""),
    ):
        images.append(image([head, text_chunk("Author", text, kind), ("IDAT", b"x"), ("IEND", b"")]))
        expected.append([[["Author", text]], True])
    twice = [text_chunk("Author", "first", "tEXt"), text_chunk("Author", "last", "zTXt")]
    images.append(image([head, *twice, ("IEND", b"")]))
    expected.append([[["Author", "last"]], True])
    sound = images[1]
    for broken in (sound[:-3], sound + b"\0", sound[:40] + bytes([sound[40] ^ 8]) + sound[41:], b"GIF89a"):
        images.append(broken)
        expected.append("damaged")
    # the letters of a chunk's type are under its checksum, too
    images.append(sound.replace(b"zTXt", b"zTXT"))
    expected.append("damaged")
    return images, expected


def library_reads_right(work: Grading) -> None:
    images, expected = probes()
    said = work.scratch().python(PROBE, path=["."], stdin="\n".join(each.hex() for each in images))
    found = said.json("the library")
    wrong = [
        n for n, want in enumerate(expected) if not isinstance(found, list) or found[n : n + 1] != [want]
    ]
    require(not wrong, f"images {wrong} of {len(expected)} are not read right")
    require(
        work.read("tests/test_pngmeta.py") == work.shipped("tests/test_pngmeta.py"), "the tests were changed"
    )
    work.scratch().run(["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."]).ok(
        "the library's tests"
    )


def rows(work: Grading, path: str, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in work.csv(path, columns)]


def captures_are_registered(work: Grading) -> None:
    found = rows(work, "provenance/captures.csv", ("file", "capture", "author", "taken", "sha256"))
    expected = [(p.name, p.capture, p.author, p.taken, digest(p.data)) for p in SOUND]
    require(found == expected, f"{len(found)} rows, {len(expected)} sound photos, or other values")


def damaged_are_untouched(work: Grading) -> None:
    found = rows(work, "provenance/damaged.csv", ("file", "sha256"))
    require(found == [(p.name, digest(p.data)) for p in DAMAGED], f"{len(found)} rows, or other values")
    for photo in DAMAGED:
        require(work.read(f"photos/{photo.name}") == photo.data, f"{photo.name} is not the file it was")


def unlicensed_are_withdrawn(work: Grading) -> None:
    found = rows(work, "provenance/withdrawn.csv", ("file", "capture", "author"))
    require(
        found == [(p.name, p.capture, p.author) for p in WITHDRAWN], f"{len(found)} rows, or other values"
    )
    present = work.files("photos")
    expected = sorted(f"photos/{photo.name}" for photo in PHOTOS if photo not in WITHDRAWN)
    require(present == expected, f"{len(present)} photos are left, {len(expected)} should be")


def chunks(data: bytes, name: str) -> list[tuple[str, bytes]]:
    place, found = 8, []
    if not data.startswith(SIGNATURE):
        fail(f"{name} is no image")
    while place + 12 <= len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        typed = data[place + 4 : place + 8 + length]
        if data[place + 8 + length : place + 12 + length] != struct.pack(">I", zlib.crc32(typed)):
            fail(f"{name} has a wrong checksum")
        found.append((typed[:4].decode("latin-1"), typed[4:]))
        place += 12 + length
    require(place == len(data) and found and found[-1][0] == "IEND", f"{name} is cut short")
    return found


def only_pictures_are_left(work: Grading) -> None:
    for photo in PUBLISHED:
        kinds = {kind for kind, _ in chunks(work.read(f"photos/{photo.name}"), photo.name)}
        require(kinds <= set(KEPT), f"{photo.name} holds {', '.join(sorted(kinds - set(KEPT)))}")


def pictures_are_unchanged(work: Grading) -> None:
    for photo in PUBLISHED:
        found, was = chunks(work.read(f"photos/{photo.name}"), photo.name), chunks(photo.data, photo.name)
        for kind in ("IHDR", "gAMA"):
            require(_of(found, kind) == _of(was, kind), f"{photo.name}: {kind}")
        try:
            pixels = zlib.decompress(_of(found, "IDAT"))
        except zlib.error:
            fail(f"{photo.name}: the picture cannot be unpacked")
        require(pixels == photo.pixels, f"{photo.name}: other pixels")


def _of(found: list[tuple[str, bytes]], kind: str) -> bytes:
    return b"".join(body for each, body in found if each == kind)


def manifest_is_right(work: Grading) -> None:
    found = need(work.json("gallery/manifest.json"), "photos", list)
    require(found == [entry(work, photo) for photo in PUBLISHED], f"{len(found)} photos, or other values")


def entry(work: Grading, photo: Photo) -> dict[str, object]:
    return {
        "file": photo.name,
        "width": photo.width,
        "height": photo.height,
        "before": digest(photo.data),
        "after": work.sha256(f"photos/{photo.name}"),
        "licence": photo.licence,
        "credit": photo.author,
    }


def archive_is_reproducible(work: Grading) -> None:
    data = work.read("dist/gallery.tar.gz")
    require(data[:2] == b"\x1f\x8b" and data[4:8] == bytes(4), "no gzip file, or one with a time in it")
    expected = {"manifest.json": work.read("gallery/manifest.json")}
    expected |= {photo.name: work.read(f"photos/{photo.name}") for photo in PUBLISHED}
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = archive.getmembers()
            held = [(m.name, _bytes(archive, m)) for m in members]
    except (tarfile.TarError, OSError, EOFError, zlib.error):
        fail("the archive cannot be read")
    require(
        held == list(expected.items()), f"{len(held)} members, {len(expected)} expected, or another order"
    )
    for member in members:
        facts = (member.uid, member.gid, member.uname, member.gname, member.mtime, member.mode)
        require(facts == (0, 0, "", "", 0, 0o644), f"{member.name}: owner, time or mode")


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member) if member.isreg() else None
    return file.read() if file else b""


def note_ties_together(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("dist/RELEASE.md").split()}
    wanted = [str(len(PUBLISHED)), str(len(WITHDRAWN)), str(len(DAMAGED))]
    quoted = ("provenance/captures.csv", "gallery/manifest.json", "dist/gallery.tar.gz")
    wanted += [work.sha256(path) for path in quoted]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")
    top = {name.split("/")[0] for name, _ in work.walk() if "__pycache__" not in name}
    extra = top - {"dist", "docs", "gallery", "photos", "pngmeta", "provenance", "tests"}
    extra |= set(work.files("provenance")) - {
        f"provenance/{n}.csv" for n in ("captures", "damaged", "withdrawn")
    }
    require(not extra, f"left behind: {', '.join(sorted(extra))}")


CHECKS = {
    "C01": library_reads_right,
    "C02": captures_are_registered,
    "C03": damaged_are_untouched,
    "C04": unlicensed_are_withdrawn,
    "C05": only_pictures_are_left,
    "C06": pictures_are_unchanged,
    "C07": manifest_is_right,
    "C08": archive_is_reproducible,
    "C09": note_ties_together,
}
