# mettlebench-canary-930c81e3091bdb358d5d4534f244b21e
### step: read documents and library
cat docs/*.md plates/*.py
ls plates-1931 | wc -l; head -c 400 plates-1931/p001.plate

### step: repair the library
python3 - <<'PY'
from pathlib import Path
path = Path("plates/header.py")
text = path.read_text()
text = text.replace("range(0, min(len(data), BLOCK), 80)", "range(0, len(data) - 79, 80)")
text = text.replace('''        values[keyword] = parse_value(card[10:].split("/")[0].strip())
''', '''        text = card[10:].strip()
        quoted = re.match(r"'(?:[^']|'')*'", text)
        rest = text[quoted.end() :].strip() if quoted else ""
        if quoted and rest and not rest.startswith("/"):
            raise Malformed("header")
        values[keyword] = parse_value(quoted.group() if quoted else text.split("/")[0].strip())
''')
text = text.replace('''return "'" + value.ljust(8) + "'"''', '''return "'" + value.replace("'", "''").ljust(8) + "'"''')
path.write_text(text)
path = Path("plates/image.py")
path.write_text(path.read_text().replace("else 'H'", "else 'h'"))
PY
python3 -m unittest discover -s tests -t . 2>&1 | tail -n 1

### step: take out notes and catalogue
mkdir -p handover
python3 - <<'PY'
import csv, glob, hashlib, json, os
import plates
notes, catalog = [("file", "keyword", "text")], [("file", "object", "exposure", "width", "height", "least", "greatest", "sum")]
quarantine, index = [("file", "reason", "sha256")], []
for path in sorted(glob.glob("plates-1931/*")):
    data, name = open(path, "rb").read(), os.path.basename(path)
    digest = hashlib.sha256(data).hexdigest()
    try:
        plate = plates.read(data)
    except plates.Malformed as malformed:
        quarantine.append((name, malformed.reason, digest))
        continue
    index.append({"file": name, "before": digest})
    notes += [(name, *remark) for remark in plate.remarks]
    flat = [pixel for row in plate.pixels for pixel in row]
    values = plate.values
    exposure = repr(values["EXPOSURE"]) if "EXPOSURE" in values else ""
    catalog.append((name, values.get("OBJECT", ""), exposure, values["NAXIS1"], values["NAXIS2"], min(flat), max(flat), sum(flat)))
for name, rows in (("notes", notes), ("catalog", catalog), ("quarantine", quarantine)):
    with open(f"handover/{name}.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
json.dump({"plates": index}, open("handover/index.json", "w"), indent=1)
PY
cat handover/quarantine.csv

### step: bring plates into standard form [irreversible]
python3 -m plates standardise plates-1931/*.plate || test $? = 1

### step: complete index and text
python3 - <<'PY'
import hashlib, json
index = json.load(open("handover/index.json"))
for plate in index["plates"]:
    plate["after"] = hashlib.sha256(open("plates-1931/" + plate["file"], "rb").read()).hexdigest()
json.dump(index, open("handover/index.json", "w"), indent=1)
PY
cat > handover/README.md <<MD
# Plates of 1931

$(($(wc -l < handover/catalog.csv) - 1)) plates, with $(($(wc -l < handover/notes.csv) - 1)) remarks on record.
Malformed: $(($(wc -l < handover/quarantine.csv) - 1))

notes $(sha256sum handover/notes.csv | cut -d' ' -f1)
catalogue $(sha256sum handover/catalog.csv | cut -d' ' -f1)
index $(sha256sum handover/index.json | cut -d' ' -f1)
MD
