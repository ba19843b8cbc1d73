"""What a person reads in a terminal, as lines of text without colours.

All functions are pure. What comes from datasets and recipes is made harmless
(no control characters), and what is ours is ASCII, so that every terminal can
show it.
"""

from __future__ import annotations

from pytest_heta.reports._details import case_details
from pytest_heta.reports._gates import gate_line
from pytest_heta.reports._summary import summary_table
from pytest_heta.reports._worst import WorstCase, worst_cases, worst_cases_lines

__all__ = [
    "WorstCase",
    "case_details",
    "gate_line",
    "summary_table",
    "worst_cases",
    "worst_cases_lines",
]
