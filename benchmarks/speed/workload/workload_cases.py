"""The workload's cases, made once for the suite and its recipe, as the peers make them once."""

from __future__ import annotations

import workload as w

CASES = w.make_cases()
BY_QUERY = {case.query: case for case in CASES}
"""A knowledge base is asked with the text of a query: it finds its case by that."""
