"""Leaves of an image what a picture needs."""

KEPT = ("IHDR", "PLTE", "tRNS", "gAMA", "IDAT", "IEND")


def stripped(chunks):
    return [(kind, body) for kind, body in chunks if kind in KEPT]
