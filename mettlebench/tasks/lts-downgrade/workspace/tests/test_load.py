"""What the loader takes out of an export."""

import json
import sys
import unittest

sys.path.insert(0, "tools")

from load import items


def export(*each):
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in each)


class Items(unittest.TestCase):
    def test_any_text(self):
        for text in ("two\nlines", "line\u2028separator", "form\x0cfeed\x85", "a\rb"):
            held = export({"key": "a", "tags": [], "revisions": [[1, text]]})
            self.assertEqual(items(held), [("a", 1, [], text)])

    def test_newest(self):
        held = export({"key": "a", "tags": ["x"], "revisions": [[1, "old"], [2, None], [5, "new"]]})
        self.assertEqual(items(held), [("a", 5, ["x"], "new")])

    def test_deleted_and_empty(self):
        held = export({"key": "a", "tags": [], "revisions": [[1, "x"], [2, None]]}, {"key": "b", "tags": [], "revisions": [[1, ""]]})
        self.assertEqual(items(held), [("b", 1, [], "")])
