"""Reads and strips the metadata of PNG images."""
