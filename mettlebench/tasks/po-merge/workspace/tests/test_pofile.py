import unittest

from pofile import Entry, parse, write


class Parsing(unittest.TestCase):
    def test_a_text_may_run_over_lines(self):
        (entry,) = parse('msgid ""\n"one "\n"two"\nmsgstr "x"\n')
        self.assertEqual(entry.msgid, "one two")

    def test_all_forms_are_kept(self):
        (entry,) = parse('msgid "a"\nmsgid_plural "b"\nmsgstr[0] "x"\nmsgstr[1] "y"\n')
        self.assertEqual(entry.strings, ["x", "y"])


class Writing(unittest.TestCase):
    def test_quotes_come_back(self):
        entry = Entry(msgid='say "hi"', strings=["a\\b"])
        self.assertEqual(parse(write([entry])), [entry])


if __name__ == "__main__":
    unittest.main()
