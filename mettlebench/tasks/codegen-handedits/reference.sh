# mettlebench-canary-ef69f5634e26a787a60604d64a1e7ee7
### step: read documents, schema and models
cat docs/*.md schema/api.json tools/generate.py
cat shopapi/models.py

### step: make the generator work
cat > tools/generate.py <<'PY'
"""Generates models from a schema: generate.py SCHEMA. See docs/generator.md."""

import hashlib
import json
import sys

PLAIN = ("str", "int", "bool")


def generate(data):
    """The module for a schema, given as bytes."""
    schema = json.loads(data)
    parts = [f"# generated from a schema with SHA-256 {hashlib.sha256(data).hexdigest()}\n"]
    parts.append("import re\nfrom dataclasses import dataclass, field\n")
    for name, described in schema["types"].items():
        parts.append(f"\n\n@dataclass\nclass {name}:\n    {described['doc']!r}\n\n")
        fields = sorted(described["fields"].items(), key=lambda item: "default" in item[1])
        for attribute, facts in fields:
            parts.append(f"    {attribute}: {annotation(facts['type'])}{default(facts)}\n")
        parts.append(checks(described["fields"]))
        parts.append(reader(described["fields"]))
        parts.append(writer(described["fields"]))
    return "".join(parts)


def annotation(kind):
    return "list" if kind.startswith("list:") else kind


def default(facts):
    if "default" not in facts:
        return ""
    if isinstance(facts["default"], list):
        return f" = field(default_factory=lambda: {facts['default']!r})"
    return f" = {facts['default']!r}"


def typed(kind, value):
    """A condition under which a value is not of a type."""
    if kind == "int":
        return f"not isinstance({value}, int) or isinstance({value}, bool)"
    return f"not isinstance({value}, {kind})"


def checks(fields):
    lines = ["", "    def __post_init__(self):"]

    def refuse(condition, name):
        lines.extend((f"        if {condition}:", f"            raise ValueError({name!r})"))

    for attribute, facts in fields.items():
        value, kind, name = f"self.{attribute}", facts["type"], facts.get("alias", attribute)
        if kind.startswith("list:"):
            refuse(typed("list", value), name)
            refuse(f"any({typed(kind[5:], 'each')} for each in {value})", name)
        else:
            refuse(typed(kind, value), name)
        if facts.get("strip"):
            lines.append(f"        {value} = {value}.strip()")
        if "min" in facts:
            refuse(f"{value} < {facts['min']!r}", name)
        if "max" in facts:
            refuse(f"{value} > {facts['max']!r}", name)
        if "pattern" in facts:
            refuse(f"not re.fullmatch({facts['pattern']!r}, {value})", name)
        if "max_items" in facts:
            refuse(f"len({value}) > {facts['max_items']!r}", name)
    return "".join(line + "\n" for line in lines)


def reader(fields):
    names = {facts.get("alias", attribute): attribute for attribute, facts in fields.items()}
    required = [facts.get("alias", attribute) for attribute, facts in fields.items() if "default" not in facts]
    lines = ["", "    @classmethod", "    def from_json(cls, document):", f"        known = {names!r}"]
    lines += ["        if not isinstance(document, dict) or set(document) - set(known):"]
    lines += ['            raise ValueError("unknown field")']
    lines += [f"        if set({required!r}) - set(document):", '            raise ValueError("missing field")']
    lines += ["        values = {known[name]: value for name, value in document.items()}"]
    for attribute, facts in fields.items():
        kind = facts["type"].removeprefix("list:")
        if kind in PLAIN:
            continue
        value = f"values[{attribute!r}]"
        made = f"{kind}.from_json({value})"
        lines.append(f"        if {attribute!r} in values:")
        if facts["type"].startswith("list:"):
            lines += [f"            if not isinstance({value}, list):", f"                raise ValueError({attribute!r})"]
            made = f"[{kind}.from_json(each) for each in {value}]"
        lines.append(f"            {value} = {made}")
    lines.append("        return cls(**values)")
    return "".join(line + "\n" for line in lines)


def writer(fields):
    lines = ["", "    def to_json(self):", "        return {"]
    for attribute, facts in fields.items():
        value = f"self.{attribute}"
        kind = facts["type"].removeprefix("list:")
        listed = facts["type"].startswith("list:")
        if kind not in PLAIN:
            value = f"[each.to_json() for each in {value}]" if listed else f"{value}.to_json()"
        elif listed:
            value = f"list({value})"
        lines.append(f"            {facts.get('alias', attribute)!r}: {value},")
    lines.append("        }")
    return "".join(line + "\n" for line in lines)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with open(sys.argv[1], "rb") as file:
        sys.stdout.write(generate(file.read()))
PY
python3 tools/generate.py schema/api.json | python3 -

### step: record the hand edits
cp schema/api.json schema/api-1.json
python3 tools/generate.py schema/api-1.json > /tmp/models.py
diff -u /tmp/models.py shopapi/models.py | sed '1s/.*/--- generated.py/; 2s/.*/+++ models.py/' > docs/handedits.patch || test $? = 1
cat > docs/handedits.csv <<'CSV'
class,field,key,value
Address,country,default,"""CH"""
Address,country,pattern,"""[A-Z]{2}"""
Address,postcode,pattern,"""\\d{4,5}"""
Address,postcode,strip,true
Line,qty,max,999
Line,qty,min,1
Line,sku,pattern,"""[A-Z]{3}-\\d{1,6}"""
Line,sku,strip,true
Line,unit_cents,min,0
Order,customer_email,pattern,"""[^@\\s]+@[^@\\s]+"""
Order,customer_email,strip,true
Order,lines,max_items,200
Order,note,strip,true
Order,priority,default,3
Order,priority,max,5
Order,priority,min,1
CSV

### step: say it in the schema
python3 - <<'PY'
import csv, json
schema = json.load(open("schema/api.json"))
for row in csv.DictReader(open("docs/handedits.csv")):
    schema["types"][row["class"]]["fields"][row["field"]][row["key"]] = json.loads(row["value"])
open("schema/api.json", "w").write(json.dumps(schema, indent=2) + "\n")
PY

### step: generate the models in place [irreversible]
make models

### step: test
make test

### step: release
sed -i 's/1.4.2/2.0.0/' shopapi/__init__.py
python3 - <<'PY'
import csv, gzip, hashlib, io, tarfile
from pathlib import Path
def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
edits = len(list(csv.DictReader(open("docs/handedits.csv"))))
text = Path("CHANGES.md").read_text()
section = f"""## 2.0.0

- {edits} hand edits moved into the schema; values that break a rule are refused.
- docs/handedits.patch {digest('docs/handedits.patch')}
- shopapi/models.py {digest('shopapi/models.py')}

"""
Path("CHANGES.md").write_text(text.replace("## 1.4.2", section + "## 1.4.2", 1))
held = io.BytesIO()
with tarfile.open(fileobj=held, mode="w", format=tarfile.USTAR_FORMAT) as archive:
    for name in ("CHANGES.md", "schema/api.json", "shopapi/__init__.py", "shopapi/models.py"):
        data = Path(name).read_bytes()
        entry = tarfile.TarInfo("shopapi-2.0.0/" + name)
        entry.size, entry.mode = len(data), 0o644
        archive.addfile(entry, io.BytesIO(data))
Path("dist").mkdir()
Path("dist/shopapi-2.0.0.tar.gz").write_bytes(gzip.compress(held.getvalue(), mtime=0))
PY
