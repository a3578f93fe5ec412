"""Builds letters in the encodings of their time, some with bytes that mean nothing in them."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

from mettlebench.craft import Craft

PAGES = {"hansen": "cp865", "kowalska": "iso8859-2", "petrov": "koi8-r", "weber": "cp1252"}
WORDS = {
    "hansen": [
        "kære",
        "mor",
        "båden",
        "lå",
        "ved",
        "øen",
        "så",
        "længe",
        "været",
        "var",
        "skønt",
        "vi",
        "rejste",
        "hjem",
        "århus",
        "søndag",
        "fødselsdag",
    ],
    "kowalska": [
        "kochana",
        "mamo",
        "żółty",
        "dom",
        "stoi",
        "nad",
        "łąką",
        "wróciłam",
        "późno",
        "świeże",
        "jabłka",
        "źródło",
        "córka",
        "Święta",
    ],
    "petrov": [
        "дорогая",
        "мама",
        "поезд",
        "пришёл",
        "поздно",
        "снег",
        "лежит",
        "везде",
        "Москва",
        "письмо",
        "получил",
        "спасибо",
        "весна",
    ],
    "weber": [
        "liebe",
        "Mutter",
        "Grüße",
        "aus",
        "Köln",
        "der",
        "Fluß",
        "steigt",
        "„schön“",
        "naïve",
        "Straße",
        "über",
        "Ärger",
        "Übung",
        "groß",
    ],
}
MARKS = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
UNDEFINED = (0x81, 0x8D, 0x8F, 0x90, 0x9D)


@dataclass(frozen=True, kw_only=True)
class Letter:
    """One file as it was handed in, and what it says."""

    name: str
    text: str
    encoding: str
    mark: bool
    newline: str
    lost: tuple[tuple[int, int], ...]
    data: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def encoded(text: str, encoding: str, mark: bool, newline: str, lost: dict[int, int]) -> bytes:  # noqa: FBT001
    parts = [MARKS[encoding]] if mark else []
    for place, char in enumerate(text):
        if place in lost:
            parts.append(bytes([lost[place]]))
        else:
            parts.append(("\r\n" if char == "\n" and newline == "crlf" else char).encode(encoding))
    return b"".join(parts)


def letter(folder: str, number: int, chance: random.Random) -> Letter:
    lines = [
        " ".join(chance.choices(WORDS[folder], k=chance.randrange(4, 9)))
        for _ in range(chance.randrange(3, 8))
    ]
    text = ",\n".join(lines) + ".\n"
    encoding = chance.choice((PAGES[folder],) * 5 + ("utf-8", "utf-8", "utf-16-le", "utf-16-be", "ascii"))
    mark = encoding.startswith("utf-16") or (encoding == "utf-8" and chance.random() < 0.5)
    if encoding == "ascii":
        text = "".join(char for char in text if char < "\x80")
    if encoding == "cp1252" and chance.random() < 0.3:
        text = text.replace("\n", "\r", 1)
    newline = chance.choice(("lf", "crlf"))
    lost: dict[int, int] = {}
    if encoding == "cp1252":
        for _ in range(chance.randrange(1, 5)):
            place = chance.randrange(1, len(text))
            if text[place].isalpha() and place not in lost:
                text = text[:place] + "\ufffd" + text[place + 1 :]
                lost[place] = chance.choice(UNDEFINED)
    if encoding.startswith("utf-16"):
        text = text.replace(".", "\ufffd.")
    return Letter(
        name=f"{folder}/{number:03}.txt",
        text=text,
        encoding=encoding,
        mark=mark,
        newline=newline,
        lost=tuple(sorted(lost.items())),
        data=encoded(text, encoding, mark, newline, lost),
    )


def letters() -> list[Letter]:
    chance = random.Random(1988)
    return [letter(folder, number, chance) for folder in PAGES for number in range(1, 13)]


def terms() -> list[tuple[str, str]]:
    found: dict[str, set[str]] = {}
    for each in letters():
        for word in "".join(char if char.isalpha() else " " for char in each.text).split():
            if len(word) >= 4:
                found.setdefault(word.casefold(), set()).add(each.name)
    return [(word, str(len(found[word]))) for word in sorted(found)]


def build(craft: Craft) -> None:
    for each in letters():
        craft.write(f"letters/{each.name}", each.data)
