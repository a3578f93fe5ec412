# mettlebench-canary-fe59a664cdeccdc8ac8daf2cc2f3e608
### step: read documents and code
cat docs/* recode/*.py
find letters -type f | sed -n '1,10p'

### step: repair the library
python3 - <<'PY'
from pathlib import Path
path = Path("recode/guess.py")
text = path.read_text()
path.write_text(text[: text.index("    try:\n")] + '''    if all(byte < 0x80 for byte in data):
        return "ascii", False
    try:
        data.decode("utf-8")
        return "utf-8", False
    except UnicodeDecodeError:
        return page, False
''')
path = Path("recode/document.py")
text = path.read_text()
text = text.replace('''    text = body.decode(encoding, "ignore")
    newline = "crlf" if "\\r\\n" in text else "lf"
    return Document(text.replace("\\r\\n", "\\n"), encoding, mark, newline)
''', '''    newline = "crlf" if "\\r\\n" in body.decode(encoding, "replace") else "lf"
    if encoding != page or mark:
        return Document(body.decode(encoding).replace("\\r\\n", "\\n"), encoding, mark, newline)
    chars, lost = [], []
    for byte in body.replace(b"\\r\\n", b"\\n"):
        try:
            chars.append(bytes([byte]).decode(page))
        except UnicodeDecodeError:
            lost.append((len(chars), byte))
            chars.append("\\ufffd")
    return Document("".join(chars), encoding, mark, newline, lost)
''')
begin = text.index("    text = document.text.replace(")
end = text.index("    return _mark(document.encoding) + data")
text = text[:begin] + '''    lost, parts = dict(document.lost), []
    for place, char in enumerate(document.text):
        if place in lost:
            parts.append(bytes([lost[place]]))
        else:
            parts.append(("\\r\\n" if char == "\\n" and document.newline == "crlf" else char).encode(document.encoding))
    data = b"".join(parts)
''' + text[end:]
path.write_text(text)
PY
python3 -m unittest discover -s tests -t . 2>&1 | tail -n 1

### step: ledger and undefined bytes
mkdir -p records
python3 - <<'PY'
import csv, glob, hashlib
from recode import decode
pages = {row["folder"]: row["page"] for row in csv.DictReader(open("docs/donors.csv"))}
ledger = [("file", "encoding", "mark", "newline", "bytes", "sha256")]
undefined = [("file", "place", "byte")]
for path in sorted(glob.glob("letters/*/*.txt")):
    data, name = open(path, "rb").read(), path.removeprefix("letters/")
    found = decode(data, pages[name.split("/")[0]])
    ledger.append((name, found.encoding, "yes" if found.mark else "no", found.newline, len(data), hashlib.sha256(data).hexdigest()))
    undefined += [(name, place, f"{byte:02x}") for place, byte in found.lost]
for path, rows in (("ledger", ledger), ("undefined", undefined)):
    with open(f"records/{path}.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
PY

### step: convert with sidecars [irreversible]
python3 -m recode convert --sidecar letters/*/*.txt

### step: index
mkdir -p index
python3 - <<'PY'
import csv, glob
found = {}
for path in glob.glob("letters/*/*.txt"):
    text = open(path, encoding="utf-8", newline="").read()
    for word in "".join(char if char.isalpha() else " " for char in text).split():
        if len(word) >= 4:
            found.setdefault(word.casefold(), set()).add(path)
with open("index/terms.csv", "w", newline="", encoding="utf-8") as file:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(("term", "letters"))
    out.writerows((word, len(found[word])) for word in sorted(found))
PY

### step: report
cat > records/report.md <<MD
# Letters for the edition

Letters: $(($(wc -l < records/ledger.csv) - 1))
Undefined bytes: $(($(wc -l < records/undefined.csv) - 1))

$(tail -n +2 records/ledger.csv | cut -d, -f2 | sort | uniq -c | awk '{print "- " $2 " " $1}')

ledger $(sha256sum records/ledger.csv | cut -d' ' -f1)
undefined $(sha256sum records/undefined.csv | cut -d' ' -f1)
index $(sha256sum index/terms.csv | cut -d' ' -f1)
MD
