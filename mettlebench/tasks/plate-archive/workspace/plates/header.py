"""Takes headers apart, and writes them."""

import re

BLOCK = 2880
FIRST = ("SIMPLE", "BITPIX", "NAXIS", "NAXIS1", "NAXIS2")


class Malformed(Exception):
    """The file is not what the format asks for; `reason` is header, short or long."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


def parse_header(data):
    """Values, remarks, and the length of the header in bytes."""
    values, remarks = {}, []
    for place in range(0, min(len(data), BLOCK), 80):
        try:
            card = data[place : place + 80].decode("ascii")
        except UnicodeDecodeError:
            raise Malformed("header") from None
        if card.rstrip() == "END":
            if tuple(values)[:5] != FIRST:
                raise Malformed("header")
            return values, remarks, -(-(place + 80) // BLOCK) * BLOCK
        parse_card(card, values, remarks)
    raise Malformed("header")


def parse_card(card, values, remarks):
    keyword = card[:8].rstrip()
    if keyword in ("COMMENT", "HISTORY"):
        remarks.append((keyword, card[8:].rstrip()))
    elif card[8:10] == "= " and keyword:
        values[keyword] = parse_value(card[10:].split("/")[0].strip())
    elif card.strip():
        raise Malformed("header")


def parse_value(text):
    if re.fullmatch(r"'.*'", text):
        return text[1:-1].replace("''", "'").rstrip()
    if text in ("T", "F"):
        return text == "T"
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(r"[+-]?\d*\.\d*([eE][+-]?\d+)?", text):
        return float(text)
    raise Malformed("header")


def write_header(values):
    names = [*FIRST, *sorted(name for name in values if name not in FIRST)]
    cards = [f"{name:<8}= {write_value(values[name])}" for name in names]
    text = "".join(f"{card:<80}" for card in [*cards, "END"])
    return text.encode("ascii").ljust(-(-len(text) // BLOCK) * BLOCK)


def write_value(value):
    if isinstance(value, str):
        return "'" + value.ljust(8) + "'"
    if isinstance(value, bool):
        return f"{'T' if value else 'F':>20}"
    return f"{repr(value).upper():>20}"
