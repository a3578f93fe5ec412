"""The converter reads service files as docs/conf-format.md describes."""

import sys
import unittest

sys.path.insert(0, "tools")

from convert import Malformed, parse


class Parse(unittest.TestCase):
    def test_continuation(self):
        self.assertEqual(parse("[a]\nx = one\n  two\n# why\n\tthree\ny = 1\n"), {"a": {"x": "one two three", "y": 1}})

    def test_remark(self):
        self.assertEqual(parse('[a]\nx = 30 ; seconds\ny = "a ; b" ; both\nz = a;b\n'), {"a": {"x": 30, "y": "a ; b", "z": "a;b"}})

    def test_a_section_opened_again(self):
        self.assertEqual(parse("[a]\nx = 1\ny = 2\n[b]\n[a]\nx = 3\n"), {"a": {"x": 3, "y": 2}, "b": {}})

    def test_errors_have_a_line(self):
        for text in ("x = 1\n", "[a]\nwhat is this\n", "  alone\n"):
            with self.assertRaisesRegex(Malformed, r"^\d+: "):
                parse(text)
