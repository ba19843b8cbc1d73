"""What leaves a run: the report file, the terminal's tables, JUnit properties."""

from __future__ import annotations

from pytest_heta.reports._inert import plain_text
from pytest_heta.reports.json_file import ReportFile, check_writable, read_reports, write_reports
from pytest_heta.reports.junit import case_properties, suite_properties
from pytest_heta.reports.option import REPORT_FORMATS, ReportTarget, parse_report_option
from pytest_heta.reports.text import (
    WorstCase,
    case_details,
    gate_line,
    summary_table,
    worst_cases,
    worst_cases_lines,
)

__all__ = [
    "REPORT_FORMATS",
    "ReportFile",
    "ReportTarget",
    "WorstCase",
    "case_details",
    "case_properties",
    "check_writable",
    "gate_line",
    "parse_report_option",
    "plain_text",
    "read_reports",
    "suite_properties",
    "summary_table",
    "worst_cases",
    "worst_cases_lines",
    "write_reports",
]
