"""What evaluators are written with: a careful view of a workspace, scratch copies, and `fail`.

Only the standard library is used here, since this package is what stands inside the grading sandbox.
"""

from mettlebench.check.grading import Grading
from mettlebench.check.outcome import Unmet, fail, need, require
from mettlebench.check.scratch import Ran, Scratch
from mettlebench.check.view import View, parse_json, query

__all__ = ["Grading", "Ran", "Scratch", "Unmet", "View", "fail", "need", "parse_json", "query", "require"]
