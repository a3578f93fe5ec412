"""Tests of pngmeta: python3 -m unittest discover -s tests -t ."""
