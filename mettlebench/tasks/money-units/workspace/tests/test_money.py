"""Decimal text and minor units, below zero too."""

import unittest

from money import parse, show

PAIRS = ((1250, "EUR", "12.50"), (-5, "EUR", "-0.05"), (-250, "CHF", "-2.50"), (7, "KWD", "0.007"), (-3, "JPY", "-3"), (0, "EUR", "0.00"))


class Money(unittest.TestCase):
    def test_show(self):
        for minor, currency, text in PAIRS:
            self.assertEqual(show(minor, currency), text)

    def test_parse(self):
        for minor, currency, text in PAIRS:
            self.assertEqual(parse(text, currency), minor)

    def test_other_forms_are_refused(self):
        for text in ("12", "12.5", "12.500", ".50", "-0.00", "1e2", " 1.00", "1,00", "", "01.00"):
            with self.assertRaises(ValueError, msg=text):
                parse(text, "EUR")
