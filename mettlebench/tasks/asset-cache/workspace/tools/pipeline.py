"""Publishes assets: pipeline.py build. See docs/pipeline.md."""

import csv
import hashlib
import json
import shutil
import sys
from pathlib import Path

VERSION = "3"


def published(data):
    """What is published of an original."""
    lines = [line.rstrip() for line in data.splitlines()]
    return b"".join(line + b"\n" for line in lines if line)


def prepare(cache):
    """A cache of this version; one of another version is cleared."""
    mark = cache / "VERSION"
    if not mark.is_file() or mark.read_text().strip() != VERSION:
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir()
        mark.write_text(VERSION + "\n")


def build(root):
    cache = root / ".cache"
    prepare(cache)
    manifest, missing = {}, []
    with open(root / "assets.csv", newline="", encoding="utf-8") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    for name in names:
        original = root / "assets" / name
        if not original.is_file():
            missing.append(name)
            continue
        data = original.read_bytes()
        kept = cache / hashlib.sha256(data).hexdigest()
        if not kept.is_file():
            kept.write_bytes(published(data))
        target = root / "public" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(kept.read_bytes())
        manifest[name] = hashlib.sha256(target.read_bytes()).hexdigest()
    (root / "public").mkdir(exist_ok=True)
    (root / "public/manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    for name in missing:
        print(f"no original: {name}", file=sys.stderr)
    return int(bool(missing))


if __name__ == "__main__":
    if sys.argv[1:] != ["build"]:
        raise SystemExit(__doc__)
    sys.exit(build(Path(__file__).resolve().parent.parent))
