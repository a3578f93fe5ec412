"""Whole plates."""

import struct
from dataclasses import dataclass, field

from plates.header import BLOCK, Malformed, parse_header, write_header


@dataclass
class Plate:
    values: dict
    pixels: list
    remarks: list = field(default_factory=list)


def read(data):
    """The plate in a file; Malformed where there is none."""
    values, remarks, start = parse_header(data)
    width, height, size = values["NAXIS1"], values["NAXIS2"], values["BITPIX"] // 8
    if values["SIMPLE"] is not True or values["NAXIS"] != 2 or size not in (1, 2) or width < 1 or height < 1:
        raise Malformed("header")
    length = -(-width * height * size // BLOCK) * BLOCK
    if len(data) < start + length:
        raise Malformed("short")
    if len(data) > start + length:
        raise Malformed("long")
    flat = struct.unpack(f">{width * height}{'B' if size == 1 else 'H'}", data[start : start + width * height * size])
    return Plate(values, [list(flat[row * width : (row + 1) * width]) for row in range(height)], remarks)


def write(plate):
    """The file of a plate, in standard form."""
    flat = [pixel for row in plate.pixels for pixel in row]
    raw = struct.pack(f">{len(flat)}{'B' if plate.values['BITPIX'] == 8 else 'H'}", *flat)
    return write_header(plate.values) + raw.ljust(-(-len(raw) // BLOCK) * BLOCK, b"\0")
