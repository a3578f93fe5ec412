"""Checks the rotation of the vault's keys (mettlebench-canary-e8d7517f1bf964e4040ea818d5907b85)."""

from __future__ import annotations

import collections
import hashlib
import hmac
import io
import json
import re
import tarfile
import zlib
from typing import Any

from mettlebench.check import Grading, fail, need, parse_json, require

from build import HELD, KEYS, PLACES, file_bytes, record, records

SOUND = [held for held in HELD if not held.tampered]
TAMPERED = [held for held in HELD if held.tampered]
PROBE = """
import json, vault
keys, records = json.load(sys.stdin)
found = []
for each in records:
    try:
        found.append(vault.open_record(each, keys).hex())
    except ValueError:
        found.append(None)
made = vault.seal("new", "k2", keys, b"content \\xff")
found.append([made["id"], made["format"], made["key"], vault.open_record(made, keys).hex()])
found.append(made)
print(json.dumps(found))
"""


def seal_of(entry: dict[str, Any], key: str) -> str:
    text = "|".join(str(entry.get(name)) for name in ("id", "key", "iv", "data"))
    return hmac.new(bytes.fromhex(key), text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def tool_is_right(work: Grading) -> None:
    probes = records(11, 24, 6)
    entries = [record(held) for held in probes]
    expected = [None if held.tampered else held.content.hex() for held in probes]
    foreign = {**entries[0], "key": "k9"}
    said = work.scratch().python(PROBE, path=["tools"], stdin=json.dumps([KEYS, [*entries, foreign]]))
    found = said.json("the vault tool")
    require(isinstance(found, list) and len(found) == 27, "the vault tool gives no answer")
    wrong = [n for n, want in enumerate([*expected, None]) if found[n] != want]
    require(not wrong, f"{len(wrong)} of {len(probes)} records are opened wrongly")
    require(found[25] == ["new", 2, "k2", b"content \xff".hex()], "a new record is not as it should be")
    made = found[26]
    require(
        isinstance(made, dict) and made.get("mac") == seal_of(made, KEYS["k2"]),
        "a new record's seal is wrong",
    )


def inventory_is_complete(work: Grading) -> None:
    rows = work.csv("audit/inventory.csv", ("place", "id", "format", "key", "sha256"))
    expected = [
        (
            h.place,
            h.id,
            str(h.format),
            h.key,
            "tampered" if h.tampered else hashlib.sha256(h.content).hexdigest(),
        )
        for h in HELD
    ]
    require(
        [tuple(row.values()) for row in rows] == expected,
        f"{len(rows)} records, {len(HELD)} exist, or other values",
    )


def tampered_are_set_aside(work: Grading) -> None:
    rows = work.csv("audit/tampered.csv", ("place", "id"))
    found = [tuple(row.values()) for row in rows]
    require(
        found == [(h.place, h.id) for h in TAMPERED],
        f"{len(found)} are listed, {len(TAMPERED)} were tampered with",
    )
    present = work.files("quarantine")
    expected = sorted(f"quarantine/{h.place}/{h.id}.json" for h in TAMPERED)
    require(present == expected, f"{len(present)} are in quarantine")
    for held in TAMPERED:
        path = f"quarantine/{held.place}/{held.id}.json"
        require(work.read(path) == file_bytes(held), f"{path} is not as it was")


def members(work: Grading, place: str) -> dict[str, bytes]:
    """Member or file name to bytes, in order, of one place."""
    if place == "vault":
        return {name.removeprefix("vault/"): work.read(name) for name in work.files("vault")}
    try:
        with tarfile.open(fileobj=io.BytesIO(work.read(f"archive/{place}"))) as archive:
            held = [(m.name, archive.extractfile(m)) for m in archive.getmembers() if m.isreg()]
            return {name: file.read() for name, file in held if file}
    except (tarfile.TarError, OSError, EOFError, zlib.error):
        fail(f"{place} cannot be read")


def new_key(work: Grading) -> str:
    key = work.text("keys/k4.key").strip()
    require(re.fullmatch(r"[0-9a-f]{64}", key), "the new key is not 64 hexadecimal digits")
    return key


def sealed_anew(work: Grading, place: str) -> None:
    key, found = new_key(work), members(work, place)
    own = [held for held in SOUND if held.place == place]
    prefix = "" if place == "vault" else "records/"
    require(
        list(found) == [f"{prefix}{held.id}.json" for held in own],
        f"{place} holds {len(found)} records, {len(own)} are sound",
    )
    lines = []
    for held, data in zip(own, found.values(), strict=True):
        try:
            entry = parse_json(data.decode(), held.id)
        except UnicodeDecodeError:
            fail(f"{held.id} is no text")
        require(
            need(entry, "format", int) == 2 and need(entry, "key", str) == "k4", f"{held.id}: format or key"
        )
        require(need(entry, "id", str) == held.id, f"{held.id} has another id")
        require(re.fullmatch(r"[0-9a-f]{32}", need(entry, "iv", str)), f"{held.id}: no proper vector")
        require(re.fullmatch(r"([0-9a-f]{2})*", need(entry, "data", str)), f"{held.id}: no proper data")
        require(need(entry, "mac", str) == seal_of(entry, key), f"{held.id}: the seal is wrong")
        lines.append(f"{entry['iv']} {entry['data']}")
    contents = opened(work, key, lines)
    for held, content in zip(own, contents, strict=True):
        require(content == held.content.hex(), f"{held.id} holds something else")


DECRYPT = """
import subprocess
for line in sys.stdin:
    iv, data = line.split()
    command = ["openssl", "enc", "-d", "-aes-256-ctr", "-K", sys.argv[1], "-iv", iv]
    print(subprocess.run(command, input=bytes.fromhex(data), capture_output=True).stdout.hex())
"""


def opened(work: Grading, key: str, lines: list[str]) -> list[str]:
    said = (
        work.scratch()
        .python(DECRYPT, key, stdin="".join(line + "\n" for line in lines))
        .ok("opening records")
    )
    contents = said.text().split("\n")[:-1]
    require(len(contents) == len(lines), "not every record can be opened")
    return contents


def live_records_are_sealed(work: Grading) -> None:
    sealed_anew(work, "vault")


def archived_records_are_sealed(work: Grading) -> None:
    present = work.files("archive")
    require(present == [f"archive/{place}" for place in PLACES[:2]], f"archives: {', '.join(present)}")
    for place in PLACES[:2]:
        sealed_anew(work, place)


def vectors_differ(work: Grading) -> None:
    vectors = []
    for place in PLACES:
        for name, data in members(work, place).items():
            entry = parse_json(data.decode("utf-8", "replace"), name)
            if need(entry, "key", str) == "k4":
                vectors.append(need(entry, "iv", str))
    require(vectors, "no record is sealed under the new key")
    counts = collections.Counter(vectors)
    require(max(counts.values()) == 1, f"{len(vectors) - len(counts)} records repeat a vector")


def old_keys_are_gone(work: Grading) -> None:
    new_key(work)
    require(work.files("keys") == ["keys/k4.key", "keys/ring.json"], f"keys: {', '.join(work.files('keys'))}")
    require(work.mode("keys/k4.key") & 0o777 == 0o600, "the new key can be read by others")
    require(work.json("keys/ring.json") == {"current": "k4", "keys": ["k4"]}, "the ring is another")
    for name in work.files():
        data = work.read(name)
        for key in KEYS.values():
            require(key.encode() not in data and bytes.fromhex(key) not in data, f"{name} holds an old key")


def attestation_is_complete(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("audit/ATTESTATION.md").split()}
    wanted = [str(len(HELD)), str(len(TAMPERED)), work.sha256("audit/inventory.csv")]
    wanted += [str(sum(held.key == name for held in HELD)) for name in KEYS]
    wanted.append(hashlib.sha256(bytes.fromhex(new_key(work))).hexdigest())
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {len(missing)} values")
    top = {name.split("/")[0] for name in work.files() if "__pycache__" not in name}
    known = {"archive", "audit", "docs", "keys", "quarantine", "tools", "vault"}
    require(top == known and len(work.files("audit")) == 3, f"the tree holds {', '.join(sorted(top))}")


CHECKS = {
    "C01": tool_is_right,
    "C02": inventory_is_complete,
    "C03": tampered_are_set_aside,
    "C04": live_records_are_sealed,
    "C05": archived_records_are_sealed,
    "C06": vectors_differ,
    "C07": old_keys_are_gone,
    "C08": attestation_is_complete,
}
