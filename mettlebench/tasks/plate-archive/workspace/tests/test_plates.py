import unittest

from plates import Malformed, Plate, read, write

VALUES = {"SIMPLE": True, "BITPIX": 16, "NAXIS": 2, "NAXIS1": 2, "NAXIS2": 1}


class Plates(unittest.TestCase):
    def test_a_slash_in_a_text_is_no_comment(self):
        plate = Plate({**VALUES, "OBJECT": "M31/32"}, [[1, 2]])
        self.assertEqual(read(write(plate)), plate)

    def test_pixels_may_be_negative(self):
        plate = Plate(VALUES, [[-1, 2]])
        self.assertEqual(read(write(plate)).pixels, [[-1, 2]])

    def test_a_header_may_be_long(self):
        plate = Plate({**VALUES, **{f"KEY{n:02}": n for n in range(50)}}, [[1, 2]])
        self.assertEqual(read(write(plate)), plate)

    def test_what_is_cut_off_is_malformed(self):
        with self.assertRaises(Malformed) as caught:
            read(write(Plate(VALUES, [[1, 2]]))[:-1])
        self.assertEqual(caught.exception.reason, "short")


if __name__ == "__main__":
    unittest.main()
