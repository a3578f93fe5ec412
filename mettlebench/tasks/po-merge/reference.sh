# mettlebench-canary-5f1fffbfd32d51d103178016895f5b88
### step: read documents and code
cat docs/*.md pofile/*.py
head -n 40 po/de.po

### step: repair the library
python3 - <<'PY'
from pathlib import Path
path = Path("pofile/parse.py")
text = path.read_text()
text = text.replace('''def parse_entry(lines):
    entry = Entry()
''', '''def parse_entry(lines):
    entry = Entry()
    joined = []
    for line in lines:
        bare = line[3:] if line.startswith("#~ ") else line
        if bare.startswith('"') and joined:
            joined[-1] = joined[-1][:-1] + bare[1:]
        else:
            joined.append(line)
    lines = joined
''').replace("        entry.strings = [text]", "        entry.strings.append(text)")
text = text.replace('(\\[\\d\\])? "(.*)"', '(\\[\\d+\\])? "(.*)"')
path.write_text(text)
path = Path("pofile/write.py")
text = path.read_text()
text = text.replace("""text.replace("\\n", "\\\\n")""", """text.replace("\\\\", "\\\\\\\\").replace('"', '\\\\"').replace("\\n", "\\\\n")""")
path.write_text(text)
PY
python3 -m unittest discover -s tests -t . 2>&1 | tail -n 1

### step: harvest
mkdir -p l10n
python3 -B - <<'PY'
import csv
import pofile
def state(entry):
    if entry.obsolete:
        return "obsolete"
    if "fuzzy" in entry.flags:
        return "fuzzy"
    return "translated" if all(entry.strings) else "untranslated"
before = [("language", "context", "msgid", "state", "comments")]
glossary, notes = [("language", "msgid", "msgstr")], [("language", "context", "msgid", "comment")]
for language in ("de", "fr"):
    for entry in pofile.parse(open(f"po/{language}.po", encoding="utf-8").read()):
        if not entry.msgid:
            continue
        before.append((language, entry.context or "", entry.msgid, state(entry), len(entry.comments)))
        if entry.obsolete:
            glossary.append((language, entry.msgid, entry.strings[0]))
        notes += [(language, entry.context or "", entry.msgid, comment) for comment in entry.comments]
for name, rows in (("before", before), ("glossary", glossary), ("notes", notes)):
    with open(f"l10n/{name}.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
PY
wc -l l10n/*

### step: merge and prune [irreversible]
for language in de fr; do python3 -B -m pofile merge --prune po/$language.po po/messages.pot; done

### step: compile and report
mkdir -p build l10n
python3 -B - <<'PY'
import csv, hashlib, json
import pofile
def digest(path):
    return hashlib.sha256(open(path, "rb").read()).hexdigest()
fuzzy, lines = [("language", "context", "msgid")], []
for language in ("de", "fr"):
    entries = [e for e in pofile.parse(open(f"po/{language}.po", encoding="utf-8").read()) if e.msgid]
    soft = [e for e in entries if "fuzzy" in e.flags]
    good = [e for e in entries if e not in soft and all(e.strings)]
    fuzzy += [(language, e.context or "", e.msgid) for e in soft]
    table = {(e.context + "|" if e.context is not None else "") + e.msgid: e.strings for e in good}
    with open(f"build/{language}.json", "w", encoding="utf-8") as file:
        file.write(json.dumps(table, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    lines.append(f"{language}: {len(good)} translated, {len(soft)} fuzzy, {len(entries) - len(good) - len(soft)} untranslated")
    lines.append(f"build/{language}.json {digest(f'build/{language}.json')}")
with open("l10n/fuzzy.csv", "w", newline="", encoding="utf-8") as file:
    csv.writer(file, lineterminator="\n").writerows(fuzzy)
count = {name: len(list(csv.reader(open(f"l10n/{name}.csv", encoding="utf-8")))) - 1 for name in ("glossary", "notes", "fuzzy")}
lines.append(f"harvested: {count['glossary']} obsolete translations and {count['notes']} comments")
lines.append(f"to look at again: {count['fuzzy']}")
lines += [f"l10n/{name}.csv {digest(f'l10n/{name}.csv')}" for name in ("glossary", "notes")]
open("l10n/REPORT.md", "w").write("# Merge\n\n" + "\n".join(lines) + "\n")
PY
