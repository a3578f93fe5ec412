"""Generates models from a schema: generate.py SCHEMA. See docs/generator.md."""

import hashlib
import json
import sys


def generate(data):
    """The module for a schema, given as bytes."""
    schema = json.loads(data)
    parts = [f"# generated from a schema with SHA-256 {hashlib.sha256(data).hexdigest()}\n"]
    parts.append("import re\nfrom dataclasses import dataclass, field\n")
    for name, described in schema["types"].items():
        parts.append(f"\n\n@dataclass\nclass {name}:\n    {json.dumps(described['doc'])}\n\n")
        fields = sorted(described["fields"].items(), key=lambda item: "default" not in item[1])
        for attribute, facts in fields:
            parts.append(f"    {attribute}: {annotation(facts['type'])}{default(facts)}\n")
        parts.append(reader(described["fields"]))
        parts.append(writer(described["fields"]))
    return "".join(parts)


def annotation(kind):
    return "list" if kind.startswith("list:") else kind


def default(facts):
    if "default" not in facts:
        return ""
    if facts["default"] == []:
        return " = field(default_factory=list)"
    return f" = {facts['default']!r}"


def reader(fields):
    lines = ["", "    @classmethod", "    def from_json(cls, document):", "        values = {}"]
    for attribute, facts in fields.items():
        value = f"document[{attribute!r}]"
        kind = facts["type"].removeprefix("list:")
        if kind not in ("str", "int", "bool"):
            plain = f"{kind}.from_json({value})"
            value = f"[{kind}.from_json(each) for each in {value}]" if facts["type"].startswith("list:") else plain
        lines.append(f"        if {attribute!r} in document:")
        lines.append(f"            values[{attribute!r}] = {value}")
    lines.append("        return cls(**values)")
    return "".join(line + "\n" for line in lines)


def writer(fields):
    lines = ["", "    def to_json(self):", "        return {"]
    for attribute, facts in fields.items():
        value = f"self.{attribute}"
        kind = facts["type"].removeprefix("list:")
        if kind not in ("str", "int", "bool"):
            listed = facts["type"].startswith("list:")
            value = f"[each.to_json() for each in {value}]" if listed else f"{value}.to_json()"
        lines.append(f"            {facts.get('alias', attribute)!r}: {value},")
    lines.append("        }")
    return "".join(line + "\n" for line in lines)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with open(sys.argv[1], "rb") as file:
        sys.stdout.write(generate(file.read()))
