"""MettleBench: long engineering assignments with hidden ordered checklists."""

__version__ = "0.1.0"
