"""Normal forms by which rows are compared; see docs/book.md."""

import re


def email(text):
    """The normal form of an address, or nothing."""
    name, domain = text.strip().split("@")
    return f"{name}@{domain}".lower()


def phone(text):
    """The normal form of a number, or nothing."""
    digits = re.sub(r"[^0-9+]", "", text)
    if digits.startswith("0"):
        digits = "+49" + digits[1:]
    elif digits.startswith("00"):
        digits = "+" + digits[2:]
    return digits if len(digits) > 6 else ""
