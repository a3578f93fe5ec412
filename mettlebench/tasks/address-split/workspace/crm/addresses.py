"""Takes addresses apart, as docs/addresses.md describes."""

import re

COUNTRIES = {"CH": 4, "AT": 4, "DE": 5, "FR": 5}


def parse(text):
    """The parts of an address as a dict; ValueError where the text is none."""
    parts = [" ".join(part.split()) for part in text.split(",")]
    if len(parts) == 3:
        first, place, country = parts
        addition = ""
    elif len(parts) == 4:
        first, addition, place, country = parts
    else:
        raise ValueError("three or four parts are expected")
    street = re.fullmatch(r"(.+) (\d[\w/-]*)", first)
    if not street:
        raise ValueError("the street has no number")
    found = re.fullmatch(r"(\d{4,5}) (.+)", place)
    country = country.upper()
    if not found or len(found.group(1)) != COUNTRIES.get(country):
        raise ValueError("postcode, city or country are wrong")
    return {
        "street": street.group(1),
        "number": street.group(2),
        "box": "",
        "addition": addition,
        "postcode": found.group(1),
        "city": found.group(2),
        "country": country,
    }
