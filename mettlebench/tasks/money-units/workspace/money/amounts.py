"""Between minor units and decimal text; see docs/redenomination.md."""

from money.currencies import decimals


def show(minor, currency):
    """Decimal text of an amount."""
    places = decimals(currency)
    if not places:
        return str(minor)
    whole, rest = divmod(minor, 10**places)
    return f"{whole}.{rest:0{places}}"


def parse(text, currency):
    """Minor units of decimal text."""
    whole, _, rest = text.partition(".")
    return int(whole) * 10 ** decimals(currency) + int(rest or 0)
