"""Normal forms are as docs/book.md says."""

import unittest

from book.normal import email, phone


class Normal(unittest.TestCase):
    def test_email(self):
        for text, form in ((" Ana@Example.ORG", "ana@example.org"), ("no address", ""), ("@x", ""), ("a@b@c", ""), ("", "")):
            self.assertEqual(email(text), form)
        self.assertEqual(email("STRAẞE@example.org"), email("strasse@example.org"))

    def test_phone(self):
        for text, form in (
            ("+43 1 58 801", "+43158801"),
            ("0043 1 58801", "+43158801"),
            ("(0221) 47-11 08", "+49221471108"),
            ("0221 471108 ext. 12", "+49221471108"),
            ("0221/471108 X7", "+49221471108"),
            ("221471108", "+49221471108"),
            ("0 12", ""),
            ("", ""),
        ):
            self.assertEqual(phone(text), form, text)
