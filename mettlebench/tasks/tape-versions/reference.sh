# mettlebench-canary-799cbdd1869c573350bbad37e21eb265
### step: read documents and tape
cat docs/*.md
tar -tvf tape/notebooks.tar --ignore-zeros > /tmp/listing || test $? = 2
head -n 12 /tmp/listing

### step: rebuild the index
mkdir -p tools
cat > tools/tapeindex.py <<'PY'
"""Lists the members of a tape archive; see docs/tape-format.md."""

import hashlib
import sys


def text(field):
    return field.split(b"\0")[0].decode()


def number(field):
    digits = field.split(b"\0")[0].split(b" ")[0] if not field.startswith(b" ") else field.strip(b" \0")
    return int(digits or b"0", 8)


def members(data):
    """Offset, name, type, size, time and content of each sound member."""
    place = 0
    while place + 512 <= len(data):
        block = data[place : place + 512]
        place += 512
        try:
            right = number(block[148:156]) == sum(block[:148]) + 8 * 32 + sum(block[156:])
        except ValueError:
            right = False
        if not any(block) or not right or block[257:262] != b"ustar":
            continue
        size, prefix = number(block[124:136]), text(block[345:500])
        name = f"{prefix}/{text(block[:100])}" if prefix else text(block[:100])
        kind = "folder" if block[156:157] == b"5" else "file"
        yield place - 512, name, kind, size, number(block[136:148]), data[place : place + size]
        place += -(-size // 512) * 512


def main(path):
    print("offset,name,type,size,mtime,sha256")
    with open(path, "rb") as file:
        for offset, name, kind, size, mtime, body in members(file.read()):
            print(offset, name, kind, size, mtime, hashlib.sha256(body).hexdigest() if kind == "file" else "", sep=",")


if __name__ == "__main__":
    main(sys.argv[1])
PY
python3 tools/tapeindex.py tape/notebooks.tar > /tmp/listing
head -n 3 /tmp/listing

### step: record and keep every version
mkdir -p records versions
python3 tools/tapeindex.py tape/notebooks.tar > records/versions.csv
sha256sum tape/notebooks.tar | cut -d' ' -f1 > records/old.tmp
python3 -B - <<'PY'
import csv, hashlib, sys
sys.path.insert(0, "tools")
from tapeindex import members
previous, struck = {}, []
for offset, name, kind, _, _, body in members(open("tape/notebooks.tar", "rb").read()):
    if kind != "file":
        continue
    open(f"versions/{hashlib.sha256(body).hexdigest()}", "wb").write(body)
    lines = body.decode().splitlines()
    if name in previous:
        before, old = previous[name]
        struck += [(before, number, name, offset, line) for number, line in enumerate(old) if line not in lines]
    previous[name] = (offset, lines)
with open("records/struck.csv", "w", newline="", encoding="utf-8") as file:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(("name", "before", "after", "line"))
    out.writerows((name, before, after, line) for before, _, name, after, line in sorted(struck))
PY

### step: make the repository's archive [irreversible]
mkdir /tmp/last
tar -C /tmp/last -xf tape/notebooks.tar --ignore-zeros 2> /dev/null || test $? = 2
(cd /tmp/last && find . -type f | sed 's/^\.\///' | LC_ALL=C sort) > /tmp/names
python3 - <<'PY'
import tarfile
def plain(member):
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member
with tarfile.open("tape/notebooks.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
    for name in open("/tmp/names").read().splitlines():
        archive.add(f"/tmp/last/{name}", name, filter=plain)
PY

### step: write the note
cat > records/handover.md <<MD
# Notebooks

Members: $(($(wc -l < records/versions.csv) - 1))
Contents: $(ls versions | wc -l)
Struck lines: $(($(wc -l < records/struck.csv) - 1))

old archive $(cat records/old.tmp)
versions $(sha256sum records/versions.csv | cut -d' ' -f1)
new archive $(sha256sum tape/notebooks.tar | cut -d' ' -f1)
MD
rm records/old.tmp
