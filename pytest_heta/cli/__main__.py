"""``python -m pytest_heta.cli`` is ``pytest-heta``."""

from __future__ import annotations

import sys

from pytest_heta.cli import main

sys.exit(main())
