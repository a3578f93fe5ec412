"""Builds the plates: headers as several hands have left them, and five files that are malformed."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from mettlebench.craft import Craft

BLOCK = 2880
FIRST = ("SIMPLE", "BITPIX", "NAXIS", "NAXIS1", "NAXIS2")
Value = bool | int | float | str


@dataclass(frozen=True, kw_only=True)
class Plate:
    """One plate: what is in its header and image, its file, and why it is malformed, if it is."""

    name: str
    values: dict[str, Value]
    remarks: list[tuple[str, str]]
    pixels: list[list[int]]
    data: bytes
    reason: str | None

    @property
    def flat(self) -> list[int]:
        return [pixel for row in self.pixels for pixel in row]


def shown(value: Value) -> str:
    if isinstance(value, bool):
        return f"{'T' if value else 'F':>20}"
    if isinstance(value, str):
        return "'" + value.replace("'", "''").ljust(8) + "'"
    return f"{repr(value).upper():>20}"


def filled(raw: bytes, by: bytes) -> bytes:
    return raw.ljust(-(-len(raw) // BLOCK) * BLOCK, by)


def image(values: dict[str, Value], pixels: list[list[int]]) -> bytes:
    flat = [pixel for row in pixels for pixel in row]
    return filled(struct.pack(f">{len(flat)}{'B' if values['BITPIX'] == 8 else 'h'}", *flat), b"\0")


def standard(plate: Plate) -> bytes:
    """The file of a plate in standard form."""
    names = [*FIRST, *sorted(name for name in plate.values if name not in FIRST)]
    cards = [f"{name:<8}= {shown(plate.values[name])}" for name in names]
    text = "".join(f"{card:<80}" for card in [*cards, "END"]).encode("ascii")
    return filled(text, b" ") + image(plate.values, plate.pixels)


def plates(seed: int = 1931, count: int = 38) -> list[Plate]:
    chance = random.Random(seed)
    made = []
    reasons = {4: "header", 12: "short", 19: "long", 25: "header", 33: "short"}
    for number in range(1, count + 1):
        width, height, bits = chance.randrange(1, 40), chance.randrange(1, 40), chance.choice((8, 16, 16))
        values: dict[str, Value] = {
            "SIMPLE": True,
            "BITPIX": bits,
            "NAXIS": 2,
            "NAXIS1": width,
            "NAXIS2": height,
        }
        if chance.random() < 0.9:
            values["OBJECT"] = chance.choice(("M31/32", "O'Neil 7", "Mira", "NGC 7000 / west", "'quoted'"))
        if chance.random() < 0.9:
            values["EXPOSURE"] = chance.choice((900.5, 1.5e-05, 60.0, -1.25))
        values["PLATENO"] = number
        values["DOME"] = chance.random() < 0.5
        if number % 7 == 0:
            values |= {f"AUX{n:02}": chance.randrange(-900, 900) for n in range(34)}
        low, high = (0, 255) if bits == 8 else (-32768, 32767)
        pixels = [[chance.randint(low, high) for _ in range(width)] for _ in range(height)]
        remarks: list[tuple[str, str]] = []
        cards = [f"{name:<8}= {shown(values[name])}" for name in FIRST]
        for name, value in list(values.items())[5:]:
            tail = chance.choice(("", " / as written on the plate", " / it's a 'note'"))
            cards.append(f"{name:<8}= {shown(value)}{tail}")
            if chance.random() < 0.3:
                kind = chance.choice(("COMMENT", "HISTORY"))
                text = chance.choice((" clouds after 2h", "cleaned, = see / book 4", ' said "good"', ""))
                remarks.append((kind, text))
                cards.append(f"{kind:<8}{text}")
            if chance.random() < 0.1:
                cards.append("")
        data = filled("".join(f"{card:<80}" for card in [*cards, "END"]).encode(), b" ") + image(
            values, pixels
        )
        reason = reasons.get(number)
        made.append(
            Plate(
                name=f"p{number:03}.plate",
                values=values,
                remarks=remarks,
                pixels=pixels,
                data=spoilt(data, reason, number),
                reason=reason,
            )
        )
    return made


def spoilt(data: bytes, reason: str | None, number: int) -> bytes:
    if reason == "short":
        return data[: -7 - number]
    if reason == "long":
        return data + b"\0" * 80
    if reason == "header":
        return (
            data.replace(b"NAXIS1  =", b"NAXIS1  :", 1)
            if number % 2
            else data.replace(b"END     ", b"FIN     ", 1)
        )
    return data


PLATES = plates()
SOUND = [plate for plate in PLATES if not plate.reason]
MALFORMED = [plate for plate in PLATES if plate.reason]


def build(craft: Craft) -> None:
    for plate in PLATES:
        craft.write(f"plates-1931/{plate.name}", plate.data)
