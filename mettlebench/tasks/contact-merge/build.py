"""Builds three exports of people who are in several of them, written differently."""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata
from dataclasses import dataclass

from mettlebench.craft import Craft

FIRST = [
    "Ada",
    "Björn",
    "Chloé",
    "Dilek",
    "Enno",
    "Fatma",
    "Greta",
    "Hiro",
    "Ines",
    "Jakub",
    "Kaja",
    "Luis",
    "Milo",
    "Nora",
    "Oskar",
    "Pia",
    "Quirin",
    "Rosa",
]
LAST = ["Weiß", "Núñez", "Öz", "Berg", "Kowal", "Sato", "Ivanova", "Groß"]
CITIES = ("Köln", "Bonn", "Aachen", "Düren", "")
COLUMNS = {
    "crm": ("name", "email", "phone", "city", "updated", "contact"),
    "letter": ("email", "full_name", "since", "status"),
    "phones": ("name", "number", "second", "changed"),
}
FIELDS = ("name", "email", "phone", "city")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of an export: its line, and what counts of it."""

    source: str
    line: int
    text: str
    date: str
    values: dict[str, str]
    keys: frozenset[str]
    refused: bool

    @property
    def place(self) -> tuple[str, str]:
        return self.source, str(self.line)


def email(text: str) -> str:
    name, at, domain = unicodedata.normalize("NFKC", text.strip()).casefold().partition("@")
    return f"{name}@{domain}" if at and name and domain and "@" not in domain else ""


def phone(text: str) -> str:
    rest = re.sub(r"(?i)\s*(ext\.?|x)\s*\d+\s*$", "", text)
    plus, digits = rest.strip().startswith("+"), re.sub(r"\D", "", rest)
    if not plus:
        digits = digits[2:] if digits.startswith("00") else "49" + digits.removeprefix("0")
    return f"+{digits}" if len(digits) >= 6 and re.search(r"\d", rest) else ""


def row(source: str, line: int, cells: tuple[str, ...]) -> Row:
    held = dict(zip(COLUMNS[source], cells, strict=True))
    numbers = [phone(held.get(key, "")) for key in ("phone", "number", "second")]
    address = email(held.get("email", ""))
    return Row(
        source=source,
        line=line,
        text=",".join(cells),
        date=held.get("updated") or held.get("since") or held["changed"],
        values={
            "name": held.get("name", held.get("full_name", "")),
            "email": address,
            "phone": next((number for number in numbers if number), ""),
            "city": held.get("city", ""),
        },
        keys=frozenset(key for key in (address, *numbers) if key),
        refused=held.get("contact") == "no" or held.get("status") == "left",
    )


def written(number: str, chance: random.Random) -> str:
    """A normal number as somebody may write it."""
    country, rest = number[1:3], number[3:]
    forms = [f"+{country} {rest[:3]} {rest[3:]}", f"00{country} {rest}", f"+{country}({rest[:3]}){rest[3:]}"]
    if country == "49":
        forms += [f"0{rest[:3]}/{rest[3:]}", f"0{rest[:3]}-{rest[3:5]} {rest[5:]}", rest]
    return chance.choice(forms) + chance.choice(("", "", "", " ext. 4", " x12", "  EXT 7"))


def day(chance: random.Random) -> str:
    return f"202{chance.randrange(1, 6)}-{chance.randrange(1, 13):02}-{chance.randrange(1, 28):02}"


def rows() -> list[Row]:
    chance = random.Random(49)
    cells: dict[str, list[tuple[str, ...]]] = {name: [] for name in COLUMNS}
    for number in range(46):
        name = f"{chance.choice(FIRST)} {chance.choice(LAST)}"
        mails = [
            f"{name.replace(' ', '.')}{number}@Example.org",
            f"{name.split()[0].upper()}{number}@mail.example",
        ]
        phones = [
            chance.choice(("+49221", "+49228", "+43158")) + str(chance.randrange(100000, 999999))
            for _ in "ab"
        ]
        refuses = number % 7 == 3
        sources = chance.sample(tuple(COLUMNS), chance.randrange(1, 4))
        for source in sources:
            mail, call = chance.choice(mails), chance.choice(phones)
            if source == "crm":
                no = "no" if refuses and source == sources[0] else "yes"
                blank = chance.random()
                cells[source].append(
                    (
                        name,
                        "" if blank < 0.2 else mail,
                        "" if blank > 0.8 else written(call, chance),
                        chance.choice(CITIES),
                        day(chance),
                        no,
                    )
                )
            elif source == "letter":
                left = "left" if refuses and source == sources[0] else "active"
                cells[source].append((f" {mail.lower()}", name.upper(), day(chance), left))
            else:
                other = written(phones[0], chance) if call == phones[1] and chance.random() < 0.7 else ""
                first = "12" if other and chance.random() < 0.4 else written(call, chance)
                cells[source].append((name.split()[0], first, other, day(chance)))
    found = []
    for source, held in cells.items():
        chance.shuffle(held)
        found += [row(source, line, each) for line, each in enumerate(held, start=2)]
    return found


def persons() -> list[list[Row]]:
    """The rows of each person, by first row."""
    found: list[list[Row]] = []
    for each in rows():
        mine = [group for group in found if any(each.keys & other.keys for other in group)]
        found = [group for group in found if group not in mine]
        found.append([*(other for group in mine for other in group), each])
    order = [each.place for each in rows()]
    found = [sorted(group, key=lambda each: order.index(each.place)) for group in found]
    return sorted(found, key=lambda group: order.index(group[0].place))


def best(group: list[Row], field: str) -> Row | None:
    """The row that a value comes from: the newest, the first of a day."""
    having = [each for each in group if each.values[field]]
    return max(having, key=lambda each: each.date, default=None)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def export(source: str) -> str:
    lines = [",".join(COLUMNS[source]), *(each.text for each in rows() if each.source == source)]
    return "\n".join(lines) + "\n"


def build(craft: Craft) -> None:
    for source in COLUMNS:
        craft.write(f"sources/{source}.csv", export(source))
