import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "vendor"))

from tabula import render


class Tables(unittest.TestCase):
    def test_cells_are_padded(self):
        self.assertEqual(render([["a", "bcd"], ["ef", "g"]]), "a  | bcd\nef | g  ")

    def test_wide_characters_take_two_columns(self):
        self.assertEqual(render([["東京", "x"], ["abc", "y"]]), "東京 | x\nabc  | y")

    def test_nothing_is_an_empty_cell(self):
        self.assertEqual(render([[None, "x"], ["ab", "y"]]), "   | x\nab | y")

    def test_numbers_stand_to_the_right(self):
        self.assertEqual(render([["a", 1.5], ["b", 100]]), "a | 1.5\nb | 100")
        self.assertEqual(render([["a", 7], ["b", 100]]), "a |   7\nb | 100")


if __name__ == "__main__":
    unittest.main()
