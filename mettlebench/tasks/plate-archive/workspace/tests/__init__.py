"""Tests of plates: python3 -m unittest discover -s tests -t ."""
