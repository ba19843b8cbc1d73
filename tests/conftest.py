"""What all tests share."""

from __future__ import annotations

# Inner runs of pytester forget modules that they import first. Modules with
# state of their own (stash keys, extension modules) must be here before.
import numpy as np  # noqa: F401

import pytest_heta.plugin.activation  # noqa: F401
