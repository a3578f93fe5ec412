"""Tests of pofile: python3 -m unittest discover -s tests -t ."""
