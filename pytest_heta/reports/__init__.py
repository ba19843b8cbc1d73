"""What leaves a run: the report file, the terminal's tables, JUnit properties.

What a person reads comes as lines of text without colours. What is in them of
datasets and recipes is made harmless (no control characters), and what is ours
is ASCII, so that every terminal can show it.
"""

from __future__ import annotations

from pytest_heta.reports._details import case_details
from pytest_heta.reports._gates import gate_line
from pytest_heta.reports._inert import plain_text
from pytest_heta.reports._scores import error_line, missing_reason, sample_error, score_error
from pytest_heta.reports._summary import reuse_text, summary_table
from pytest_heta.reports._worst import WorstCase, worst_cases, worst_cases_lines
from pytest_heta.reports.json_file import ReportFile, check_writable, read_reports, write_reports
from pytest_heta.reports.junit import case_properties, suite_properties, tally_properties
from pytest_heta.reports.option import ReportTarget, parse_report_option

__all__ = [
    "ReportFile",
    "ReportTarget",
    "WorstCase",
    "case_details",
    "case_properties",
    "check_writable",
    "error_line",
    "gate_line",
    "missing_reason",
    "parse_report_option",
    "plain_text",
    "read_reports",
    "reuse_text",
    "sample_error",
    "score_error",
    "suite_properties",
    "summary_table",
    "tally_properties",
    "worst_cases",
    "worst_cases_lines",
    "write_reports",
]
