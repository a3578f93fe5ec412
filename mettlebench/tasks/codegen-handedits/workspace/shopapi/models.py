# generated, do not edit
import re
from dataclasses import dataclass, field


@dataclass
class Address:
    """Where a parcel goes."""

    name: str
    postcode: str
    country: str = "CH"  # mv: most are
    addition: str = ""

    def __post_init__(self):
        # mv 2025-03: the carrier refuses anything else
        self.postcode = self.postcode.strip()
        if not re.fullmatch(r"\d{4,5}", self.postcode):
            raise ValueError("postcode")
        if not re.fullmatch("[A-Z]{2}", self.country):
            raise ValueError("country")

    @classmethod
    def from_json(cls, document):
        known = {"name": "name", "addition": "addition", "postcode": "postcode", "country": "country"}
        return cls(**{known[key]: value for key, value in document.items()})

    def to_json(self):
        return {
            "name": self.name,
            "addition": self.addition,
            "postcode": self.postcode,
            "country": self.country,
        }


@dataclass
class Line:
    """One line of an order."""

    sku: str
    unit_cents: int
    qty: int = 1
    gift: bool = False

    def __post_init__(self):
        self.sku = self.sku.strip()
        if not re.fullmatch(r"[A-Z]{3}-\d{1,6}", self.sku):
            raise ValueError("sku")
        if self.qty < 1 or self.qty > 999:  # lst: someone ordered 10000 sofas
            raise ValueError("qty")
        if self.unit_cents < 0:
            raise ValueError("unitCents")

    @classmethod
    def from_json(cls, document):
        known = {"sku": "sku", "qty": "qty", "unitCents": "unit_cents", "gift": "gift"}
        return cls(**{known[key]: value for key, value in document.items()})

    def to_json(self):
        return {"sku": self.sku, "qty": self.qty, "unitCents": self.unit_cents, "gift": self.gift}


@dataclass
class Order:
    """An order as the shop sends it."""

    id: str
    customer_email: str
    ship_to: Address
    priority: int = 3  # hc: new clients do not send it
    note: str = ""
    lines: list = field(default_factory=list)
    tags: list = field(default_factory=list)

    def __post_init__(self):
        self.customer_email = self.customer_email.strip()
        if not re.fullmatch(r"[^@\s]+@[^@\s]+", self.customer_email):
            raise ValueError("customerEmail")
        if not 1 <= self.priority <= 5:
            raise ValueError("priority")
        if len(self.lines) > 200:  # the warehouse's limit
            raise ValueError("lines")
        self.note = self.note.strip()

    @classmethod
    def from_json(cls, document):
        known = {
            "id": "id",
            "customerEmail": "customer_email",
            "note": "note",
            "shipTo": "ship_to",
            "lines": "lines",
            "priority": "priority",
            "tags": "tags",
        }
        values = {known[key]: value for key, value in document.items()}
        values["ship_to"] = Address.from_json(values["ship_to"])
        values["lines"] = [Line.from_json(each) for each in values.get("lines", [])]
        return cls(**values)

    def to_json(self):
        return {
            "id": self.id,
            "customerEmail": self.customer_email,
            "note": self.note,
            "shipTo": self.ship_to.to_json(),
            "lines": [each.to_json() for each in self.lines],
            "priority": self.priority,
            "tags": list(self.tags),
        }
