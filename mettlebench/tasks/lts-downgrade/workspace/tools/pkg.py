"""`pkg.py install ARCHIVE`: puts a package into site/ in place of the version that is there."""

import hashlib
import os
import shutil
import sys
import tarfile


def install(archive):
    name = os.path.basename(archive).split("-")[0]
    shutil.rmtree(f"site/{name}", ignore_errors=True)
    with tarfile.open(archive) as held:
        for member in held.getmembers():
            path = member.name.partition("/")[2]
            if member.isreg() and path:
                os.makedirs(os.path.dirname(f"site/{path}"), exist_ok=True)
                with open(f"site/{path}", "wb") as out:
                    out.write(held.extractfile(member).read())
    lines = []
    for folder, _, files in os.walk(f"site/{name}"):
        for file in files:
            path = os.path.join(folder, file)
            with open(path, "rb") as opened:
                data = opened.read()
            lines.append(f"{os.path.relpath(path, 'site')},{hashlib.sha256(data).hexdigest()},{len(data)}\n")
    with open(f"site/{name}.RECORD", "w", encoding="utf-8") as out:
        out.writelines(sorted(lines))


if sys.argv[1:2] != ["install"] or len(sys.argv) != 3:
    sys.exit(__doc__)
install(sys.argv[2])
