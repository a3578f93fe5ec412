"""What the library makes of files, and that it can make them again."""

import unittest

from recode import decode, detect, encode


class Recode(unittest.TestCase):
    def test_detect(self):
        for data, expected in (
            ("Größe".encode(), ("utf-8", False)),
            ("Größe".encode("cp1252"), ("cp1252", False)),
            (b"plain", ("ascii", False)),
            (b"\xff\xfea\0", ("utf-16-le", True)),
            (b"\xef\xbb\xbfplain", ("utf-8", True)),
        ):
            self.assertEqual(detect(data, "cp1252"), expected)

    def test_undefined_bytes_are_remembered(self):
        document = decode(b"a\r\n\x81b\x9d\xe9", "cp1252")
        self.assertEqual(document.text, "a\n\ufffdb\ufffdé")
        self.assertEqual([tuple(each) for each in document.lost], [(2, 0x81), (4, 0x9D)])

    def test_there_and_back(self):
        for data in (b"a\r\n\x81b\x9d\xe9", b"", b"\xfe\xff\0a\xff\xfd", "ä\nö".encode("utf-8-sig"), b"one\rtwo\xe4"):
            self.assertEqual(encode(decode(data, "cp1252")), data)
