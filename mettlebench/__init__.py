"""MettleBench: long engineering assignments with hidden ordered checklists."""
