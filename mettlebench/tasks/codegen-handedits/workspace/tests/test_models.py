import unittest

from shopapi.models import Line, Order

ORDER = {
    "id": "o1",
    "customerEmail": " ada@shop.example ",
    "shipTo": {"name": "Ada", "postcode": " 8001", "country": "CH"},
    "lines": [{"sku": "TEA-7", "unitCents": 450}],
}


class Orders(unittest.TestCase):
    def test_what_is_read_is_written(self):
        written = Order.from_json(ORDER).to_json()
        self.assertEqual(written["customerEmail"], "ada@shop.example")
        self.assertEqual(written["lines"], [{"sku": "TEA-7", "qty": 1, "unitCents": 450, "gift": False}])
        self.assertEqual(Order.from_json(written).to_json(), written)

    def test_nonsense_is_refused(self):
        with self.assertRaises(ValueError):
            Line(sku="TEA-7", unit_cents=450, qty=0)


if __name__ == "__main__":
    unittest.main()
