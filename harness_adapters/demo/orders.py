"""The demo's orders: what the clerks typed and what it means, the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

COUNT = 160

CUSTOMERS = (
    ("Albatross Charter", False),
    ("Brigg & Daughters", False),
    ("Corvid Salvage", True),
    ("Dockside Sailmakers", False),
    ("Eiderdown Ferries", False),
    ("Fulmar Pilots", True),
    ("Gannet Fisheries", False),
    ("Heron Boatyard", False),
)
"""Name, and whether the account is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order; `entered` is the amount exactly as typed, blanks included."""

    order_id: int
    customer: str
    placed_on: str
    entered: str
    cents: int
    currency: str
    status: str


def orders() -> tuple[Order, ...]:
    """All orders, ascending by id."""
    return tuple(_order(order_id) for order_id in range(1, COUNT + 1))


def _draw(order_id: int, what: str, bound: int) -> int:
    """A number below `bound` that looks random; the standard generators may change between versions."""
    return int.from_bytes(sha256(f"{order_id} {what}".encode()).digest()[:8], "big") % bound


def _order(order_id: int) -> Order:
    currency = "GBP" if _draw(order_id, "currency", 4) == 0 else "EUR"
    styles = _POUND_STYLES if currency == "GBP" else _EURO_STYLES
    style = styles[_draw(order_id, "style", len(styles))]
    entered, cents = style(100 + _draw(order_id, "cents", 400_000))
    months = 36 * (order_id - 1) // COUNT
    day = 1 + _draw(order_id, "day", 28)
    return Order(
        order_id=order_id,
        customer=CUSTOMERS[_draw(order_id, "customer", len(CUSTOMERS))][0],
        placed_on=f"{2022 + months // 12}-{1 + months % 12:02}-{day:02}",
        entered=entered,
        cents=cents,
        currency=currency,
        status=("delivered", "delivered", "delivered", "cancelled")[_draw(order_id, "status", 4)],
    )


def _english(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02}"


def _continental(cents: int, *, group: str = ".") -> str:
    return f"{cents // 100:,}".replace(",", group) + f",{cents % 100:02}"


def _round(text: Callable[[int], str]) -> Callable[[int], tuple[str, int]]:
    def style(cents: int) -> tuple[str, int]:
        whole = cents // 100
        return text(whole), whole * 100

    return style


def _exact(text: Callable[[int], str]) -> Callable[[int], tuple[str, int]]:
    def style(cents: int) -> tuple[str, int]:
        return text(cents), cents

    return style


def _product(cents: int) -> tuple[str, int]:
    quantity, price = 2 + cents % 11, 100 + cents // 20
    return f"{quantity} x {_continental(price)}", quantity * price


_EURO_STYLES: tuple[Callable[[int], tuple[str, int]], ...] = (
    _exact(lambda cents: f"{_continental(cents)} €"),
    _exact(lambda cents: f"€{_english(cents)}"),
    _exact(lambda cents: f"EUR {_english(cents)} "),
    _exact(lambda cents: f"{cents // 100}.{cents % 100:02}"),
    _exact(lambda cents: f"{_continental(cents, group=' ')} eur"),
    _exact(lambda cents: f" {_continental(cents)}"),
    _round(lambda whole: f"{whole},-"),
    _round(lambda whole: f"{whole}"),
    _product,
)

_POUND_STYLES: tuple[Callable[[int], tuple[str, int]], ...] = (
    _exact(lambda cents: f"£{_english(cents)}"),
    _exact(lambda cents: f"{_english(cents)} gbp"),
    _exact(lambda cents: f"GBP {_continental(cents)}"),
    _exact(lambda cents: f"£ {cents // 100}.{cents % 100:02} "),
    _round(lambda whole: f"gbp {whole},-"),
)
