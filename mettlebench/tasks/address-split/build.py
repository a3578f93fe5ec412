"""Builds the CRM's database, and knows how each address in it is taken apart."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

from mettlebench.craft import Craft

PARTS = ("street", "number", "box", "addition", "postcode", "city", "country")
STREETS = (
    "Lange Gasse",
    "Rue du Lac",
    "Am Markt",
    "Kirchweg",
    "Allee 27 Juli",
    "Bahnhofstr.",
    "Quai Nord",
    "Hof zum Stern",
)
CITIES = {
    "CH": ("Bern", "Genève", "La Neuveville"),
    "AT": ("Linz", "Wien"),
    "DE": ("Köln", "Bad Tölz"),
    "FR": ("Lyon", "Le Mans"),
}
NAMES = ("Amira", "Bruno", "Cem", "Dorothea", "Egon", "Fiona", "Goran", "Hülya")
SURNAMES = ("Vogt", "Lemaire", "Öztürk", "Steiner", "Baumann", "Moreau")
LOST = (
    "c/o Steiner, wherever the river bends",
    "Kirchweg, 4020 Linz, AT",
    "Am Markt 7, 50667 Köln",
    "Quai Nord 2, 690020 Lyon, FR",
    "Lange Gasse 9, 4020 Linz, Austria",
    '  unknown; moved, "ask Bruno"  ',
    "Rue du Lac 4, 1201 Genève, DE",
)
SCHEMA = """
pragma page_size = 4096;
create table customers (
    id integer primary key, name text not null, email text not null, address text not null,
    since text not null
);
create table orders (
    id integer primary key, customer_id integer not null references customers(id), cents integer not null
);
create table address_history (
    id integer primary key, customer_id integer not null, before text not null, after text not null
);
create view labels as select id as customer_id, name, address from customers order by id;
create trigger address_changes after update of address on customers
begin
    insert into address_history (customer_id, before, after) values (old.id, old.address, new.address);
end;
create index customers_by_address on customers (address);
"""


@dataclass(frozen=True, kw_only=True)
class Customer:
    """A customer: the text in the column, and its parts, or None where it is no address."""

    id: int
    name: str
    email: str
    text: str
    since: str
    parts: dict[str, str] | None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def address(chance: random.Random) -> tuple[str, dict[str, str]]:
    """A text as somebody would write it, and its parts."""
    country = chance.choice(("CH", "CH", "AT", "DE", "FR"))
    digits = 4 if country in ("CH", "AT") else 5
    parts = dict.fromkeys(PARTS, "")
    parts |= {"country": country, "city": chance.choice(CITIES[country])}
    parts["postcode"] = str(chance.randrange(10 ** (digits - 1), 10**digits))
    if chance.random() < 0.25:
        parts["box"] = str(chance.randrange(1, 3000))
        first = f"{chance.choice(('Postfach', 'PO Box', 'CASE POSTALE', 'postfach'))} {parts['box']}"
    else:
        parts["street"] = chance.choice(STREETS)
        parts["number"] = chance.choice(("3", "12a", "3-5", "44/2", "108", "7B"))
        if chance.random() < 0.2:
            parts["street"] = f"Haus Lind, {parts['street']}"
        first = f"{parts['street']} {parts['number']}"
        first = f'"{first}"' if "," in first or chance.random() < 0.1 else first
    wanted = [first]
    if chance.random() < 0.35:
        parts["addition"] = chance.choice(("2. Stock links", "Hinterhaus, Tor 4", "z. Hd. Buchhaltung"))
        wanted.append(f'"{parts["addition"]}"' if "," in parts["addition"] else parts["addition"])
    wanted += [f"{parts['postcode']} {parts['city']}", country.lower() if chance.random() < 0.2 else country]
    text = chance.choice((", ", ",", " ,  ")).join(wanted)
    return text.replace(" ", "  ", 1) if chance.random() < 0.15 else text, parts


def customers(seed: int = 64, count: int = 64) -> list[Customer]:
    chance = random.Random(seed)
    made = []
    for number in range(1, count + 1):
        text, parts = address(chance)
        lost = number % 9 == 4
        name = f"{chance.choice(NAMES)} {chance.choice(SURNAMES)}"
        made.append(
            Customer(
                id=number,
                name=name,
                email=f"{name.split()[0].lower()}{number}@mail.example",
                text=LOST[number // 9 % len(LOST)] if lost else text,
                since=f"20{chance.randrange(10, 25)}-{chance.randrange(1, 13):02}-01",
                parts=None if lost else parts,
            )
        )
    return made


CUSTOMERS = customers()
ORDERS = [(number, 1 + number * 7 % 64, 900 + number * 137 % 8000) for number in range(1, 121)]
HISTORY = [(1, 3, "Kirchweg 1, 4020 Linz, AT", CUSTOMERS[2].text), (2, 17, "?", CUSTOMERS[16].text)]


def formatted(parts: dict[str, str]) -> str:
    first = f"Postfach {parts['box']}" if parts["box"] else f"{parts['street']} {parts['number']}"
    place = f"{parts['postcode']} {parts['city']}"
    return ", ".join(part for part in (first, parts["addition"], place, parts["country"]) if part)


def labels(found: list[Customer]) -> str:
    lines = []
    for each in found:
        if each.parts:
            lines.append(f"{each.id:04} {each.name}")
            lines += [f"     {line}" for line in formatted(each.parts).split(", ")]
    return "".join(line + "\n" for line in lines)


def build(craft: Craft) -> None:
    rows = [(each.id, each.name, each.email, each.text, each.since) for each in CUSTOMERS]
    craft.database("crm.db", SCHEMA, {"customers": rows, "orders": ORDERS, "address_history": HISTORY})
