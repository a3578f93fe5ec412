import struct
import unittest
import zlib

from pngmeta.chunks import SIGNATURE, Damaged, read_chunks, write_chunks
from pngmeta.text import texts

HEAD = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)


class Chunks(unittest.TestCase):
    def test_an_image_of_another_program_is_read(self):
        data = SIGNATURE
        for kind, body in ((b"IHDR", HEAD), (b"IDAT", zlib.compress(b"\0\0")), (b"IEND", b"")):
            data += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        self.assertEqual([kind for kind, _ in read_chunks(data)], ["IHDR", "IDAT", "IEND"])
        self.assertEqual(write_chunks(read_chunks(data)), data)

    def test_damage_is_noticed(self):
        data = bytearray(write_chunks([("IHDR", HEAD), ("IDAT", zlib.compress(b"\0\0")), ("IEND", b"")]))
        data[18] ^= 1
        with self.assertRaises(Damaged):
            read_chunks(bytes(data))


class Texts(unittest.TestCase):
    def test_plain_text_is_latin_1(self):
        self.assertEqual(texts([("tEXt", b"Author\0J\xfcrg")]), {"Author": "Jürg"})

    def test_international_text_is_utf_8(self):
        body = b"Author\0\0\0\0\0" + "Žofie".encode()
        self.assertEqual(texts([("iTXt", body)]), {"Author": "Žofie"})


if __name__ == "__main__":
    unittest.main()
