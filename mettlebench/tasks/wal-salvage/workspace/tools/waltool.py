"""Reads SQLite write-ahead logs without opening the database they belong to.

    waltool.py frames LOG
    waltool.py image DB LOG FRAME OUT
"""

import struct
import sys

MAGIC = (0x377F0682, 0x377F0683)


class Frame:
    def __init__(self, number, page, size, salt, checksum, data):
        self.number = number
        self.page = page
        self.size = size
        self.salt = salt
        self.checksum = checksum
        self.data = data
        self.committed = False


def checksum(data, start=(0, 0)):
    s1, s2 = start
    for x, y in struct.iter_unpack(">II", data):
        s1 = (s1 + x + s2) & 0xFFFFFFFF
        s2 = (s2 + y + s1) & 0xFFFFFFFF
    return s1, s2


def read_frames(log):
    """The valid frames of a log, given as bytes."""
    magic, _, page_size, _, salt1, salt2, sum1, sum2 = struct.unpack(">8I", log[:32])
    if magic not in MAGIC:
        raise SystemExit("this is no write-ahead log")
    running = checksum(log[:24])
    if running != (sum1, sum2):
        return []
    frames = []
    place = 32
    while place + 24 + page_size <= len(log):
        page, size, s1, s2, c1, c2 = struct.unpack(">6I", log[place : place + 24])
        data = log[place + 24 : place + 24 + page_size]
        running = checksum(data, checksum(log[place : place + 8], running))
        if (s1, s2) != (salt1, salt2) or running != (c1, c2):
            break
        frame = Frame(len(frames) + 1, page, size, s1, c2, data)
        frame.committed = True
        frames.append(frame)
        place += 24 + page_size
    return frames


def image(database, frames, last):
    """The bytes of the database as it was after frame `last`."""
    pages = bytearray(database)
    for frame in frames[:last]:
        end = frame.page * len(frame.data)
        if len(pages) < end:
            pages.extend(bytes(end - len(pages)))
        pages[end - len(frame.data) : end] = frame.data
    pages[18:20] = b"\x01\x01"
    return bytes(pages)


def main(arguments):
    if arguments[:1] == ["frames"] and len(arguments) == 2:
        with open(arguments[1], "rb") as file:
            frames = read_frames(file.read())
        print("frame,page,commit,salt,checksum")
        for frame in frames:
            commit = int(frame.committed)
            print(f"{frame.number},{frame.page},{commit},{frame.salt:08x},{frame.checksum:08x}")
    elif arguments[:1] == ["image"] and len(arguments) == 5:
        with open(arguments[1], "rb") as file:
            database = file.read()
        with open(arguments[2], "rb") as file:
            frames = read_frames(file.read())
        with open(arguments[4], "wb") as file:
            file.write(image(database, frames, int(arguments[3])))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
