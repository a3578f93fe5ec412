# mettlebench-canary-0ca3e30b29eadaa4991ff09b126bc02e
### step: read documents and code
cat docs/png-notes.md docs/publishing.md docs/licences.csv pngmeta/*.py

### step: repair the library
sed -i 's/zlib.crc32(body) and not lenient/zlib.crc32(kind + body) and not lenient/; s/struct.pack(">I", zlib.crc32(body))/struct.pack(">I", zlib.crc32(name + body))/' pngmeta/chunks.py
cat > pngmeta/text.py <<'PY'
"""Decodes the texts of a PNG image."""

import zlib


def texts(chunks):
    """Keyword to text."""
    found = {}
    for kind, body in chunks:
        keyword, _, rest = body.partition(b"\0")
        if kind == "tEXt":
            text = rest.decode("latin-1")
        elif kind == "zTXt":
            text = zlib.decompress(rest[1:]).decode("latin-1")
        elif kind == "iTXt":
            raw = rest[2:].split(b"\0", 2)[2]
            text = (zlib.decompress(raw) if rest[0] else raw).decode("utf-8")
        else:
            continue
        found[keyword.decode("latin-1")] = text
    return found
PY
python3 -m unittest discover -s tests -t . 2>&1 | tail -n 1

### step: register captures and damage
mkdir -p provenance
python3 - <<'PY'
import csv, glob, hashlib, os
from pngmeta.chunks import Damaged, read_chunks
from pngmeta.text import texts
captures, damaged = [("file", "capture", "author", "taken", "sha256")], [("file", "sha256")]
for path in sorted(glob.glob("photos/*.png")):
    data = open(path, "rb").read()
    name, digest = os.path.basename(path), hashlib.sha256(data).hexdigest()
    try:
        found = texts(read_chunks(data))
        captures.append((name, found["Capture"], found["Author"], found["Taken"], digest))
    except Damaged:
        damaged.append((name, digest))
for path, rows in (("captures", captures), ("damaged", damaged)):
    with open(f"provenance/{path}.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
PY

### step: withdraw what has no licence [irreversible]
python3 - <<'PY'
import csv, os
licences = {row["series"]: row for row in csv.DictReader(open("docs/licences.csv"))}
with open("provenance/withdrawn.csv", "w", newline="", encoding="utf-8") as file:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(("file", "capture", "author"))
    for row in csv.DictReader(open("provenance/captures.csv", encoding="utf-8")):
        licence = licences.get(row["capture"].split("-")[0])
        if licence is None or row["taken"] > licence["last_day"]:
            out.writerow((row["file"], row["capture"], row["author"]))
            os.unlink("photos/" + row["file"])
PY

### step: strip what stays [irreversible]
damaged=$(tail -n +2 provenance/damaged.csv | cut -d, -f1)
for photo in photos/*.png; do
  if ! grep -qxF "${photo#photos/}" <<< "$damaged"; then python3 -m pngmeta strip "$photo"; fi
done

### step: manifest and archive
mkdir -p gallery dist
python3 - <<'PY'
import csv, gzip, hashlib, io, json, struct, tarfile
licences = {row["series"]: row["licence"] for row in csv.DictReader(open("docs/licences.csv"))}
withdrawn = {row["file"] for row in csv.DictReader(open("provenance/withdrawn.csv"))}
photos, members = [], []
for row in csv.DictReader(open("provenance/captures.csv", encoding="utf-8")):
    if row["file"] in withdrawn:
        continue
    data = open("photos/" + row["file"], "rb").read()
    width, height = struct.unpack(">II", data[16:24])
    photos.append({"file": row["file"], "width": width, "height": height, "before": row["sha256"],
                   "after": hashlib.sha256(data).hexdigest(), "licence": licences[row["capture"].split("-")[0]],
                   "credit": row["author"]})
    members.append((row["file"], data))
manifest = (json.dumps({"photos": photos}, indent=1, ensure_ascii=False) + "\n").encode()
open("gallery/manifest.json", "wb").write(manifest)
held = io.BytesIO()
with tarfile.open(fileobj=held, mode="w", format=tarfile.USTAR_FORMAT) as archive:
    for name, data in [("manifest.json", manifest), *members]:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), 0o644
        archive.addfile(entry, io.BytesIO(data))
open("dist/gallery.tar.gz", "wb").write(gzip.compress(held.getvalue(), mtime=0))
PY

### step: release note
cat > dist/RELEASE.md <<MD
# Regional photo archive

Published: $(tar -tzf dist/gallery.tar.gz | grep -c png) photos.
Withdrawn: $(($(wc -l < provenance/withdrawn.csv) - 1)) photos without a licence.
Damaged: $(($(wc -l < provenance/damaged.csv) - 1)) photos, kept as they are.

captures $(sha256sum provenance/captures.csv | cut -d' ' -f1)
manifest $(sha256sum gallery/manifest.json | cut -d' ' -f1)
archive $(sha256sum dist/gallery.tar.gz | cut -d' ' -f1)
MD
