# mettlebench-canary-696d225d2311ad1faf8ac9519086b56c
### step: read documents and files
cat docs/*.md tools/convert.py
ls services; cat services/mail.conf

### step: repair the converter
python3 - <<'PY'
from pathlib import Path
path = Path("tools/convert.py")
text = path.read_text()
begin, end = text.index("def parse(text):"), text.index("def main(")
path.write_text(text[:begin] + '''def without_remark(text):
    """The text before a blank and a semicolon that are not in quotes."""
    quoted = escaped = False
    for place, char in enumerate(text):
        if quoted and char == "\\\\" and not escaped:
            escaped = True
            continue
        if char == '"' and not escaped:
            quoted = not quoted
        if char == ";" and not quoted and place and text[place - 1].isspace():
            return text[:place].strip()
        escaped = False
    return text.strip()


def parse(text):
    """Section name to an object of its keys."""
    sections, current, parts = {}, None, None
    held = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or line[0] in "#;":
            continue
        if line[0] in " \\t":
            if parts is None:
                raise Malformed(f"{number}: continues nothing")
            parts.append(without_remark(" " + stripped))
            continue
        parts = None
        if stripped[0] == "[" and without_remark(stripped)[-1] == "]":
            current = sections.setdefault(without_remark(stripped)[1:-1].strip(), {})
            continue
        key, equals, value = stripped.partition("=")
        if current is None or not equals or not key.strip():
            raise Malformed(f"{number}: neither a section nor a key and its value")
        parts = [without_remark(value)]
        held.append((current, key.strip(), parts))
    for section, key, parts in held:
        section.pop(key, None)
        section[key] = scalar(" ".join(part for part in parts if part))
    return sections


''' + text[end:])
PY
python3 -m unittest discover -s tests -t . 2>&1 | tail -n 1

### step: record what stands in comments
mkdir -p records
python3 - <<'PY'
import csv, glob, os, re, sys
sys.path.insert(0, "tools")
from convert import scalar, without_remark
directives, notes = [("file", "line", "key", "value")], [("file", "line", "date", "author", "text")]
for path in sorted(glob.glob("services/*.conf")):
    name = os.path.basename(path)
    for number, line in enumerate(open(path, encoding="utf-8"), start=1):
        line = line.rstrip("\n")
        if line.startswith("#@"):
            key, _, value = line[2:].strip().partition("=")
            value = scalar(without_remark(value)) if not key.startswith("!") else ""
            directives.append((name, number, key.strip(), str(value).lower() if isinstance(value, bool) else value))
        elif found := re.fullmatch(r"# (\d{4}-\d\d-\d\d) (\w+): (.*)", line):
            notes.append((name, number, *found.groups()))
for path, rows in (("directives", directives), ("notes", notes)):
    with open(f"records/{path}.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
PY

### step: keep digests of the old files
sha256sum services/*.conf > records/before.tmp

### step: convert in place [irreversible]
python3 tools/convert.py -i services/*.conf

### step: make keys of directives and notes
python3 - <<'PY'
import csv, json, sys
from pathlib import Path
sys.path.insert(0, "tools")
from convert import scalar
directives = list(csv.DictReader(open("records/directives.csv", encoding="utf-8")))
notes = list(csv.DictReader(open("records/notes.csv", encoding="utf-8")))
for path in sorted(Path("services").glob("*.json")):
    document, supervisor = json.loads(path.read_text(encoding="utf-8")), {}
    for row in directives:
        if row["file"] == path.stem + ".conf":
            supervisor.pop(row["key"].lstrip("!"), None)
            if not row["key"].startswith("!"):
                supervisor[row["key"]] = scalar(row["value"])
    mine = [{k: row[k] for k in ("date", "author", "text")} for row in notes if row["file"] == path.stem + ".conf"]
    document |= {"supervisor": supervisor, "notes": mine}
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
PY

### step: take stock
{
  echo service,before,after
  sort -k2 records/before.tmp | while read -r digest path; do
    name=$(basename "$path" .conf)
    echo "$name,$digest,$(sha256sum "services/$name.json" | cut -d' ' -f1)"
  done
} > records/inventory.csv
rm records/before.tmp
cat > records/change.md <<MD
# Service files moved to JSON

Services: $(ls services | wc -l)
Directives: $(($(wc -l < records/directives.csv) - 1))
Notes: $(($(wc -l < records/notes.csv) - 1))

directives $(sha256sum records/directives.csv | cut -d' ' -f1)
notes $(sha256sum records/notes.csv | cut -d' ' -f1)
inventory $(sha256sum records/inventory.csv | cut -d' ' -f1)
MD
