"""Reads the amounts of the order book."""


def cents(text):
    """The amount in whole cents."""
    whole, _, part = text.strip().partition(".")
    whole = whole.lstrip("-")
    part = part.rstrip("-")
    return int(whole) * 100 + int(part or "0")
