"""Arrays that stay in their files until they are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["mapped_array", "plain_view"]


def mapped_array(path: Path) -> Any:
    """Return the array in a file of numpy, memory-mapped and read-only."""
    return plain_view(np.load(path, mmap_mode="r", allow_pickle=False))


def plain_view(array: Any) -> NDArray[Any]:
    """Return a mapped array as a plain one: numpy's own class is slow at every access."""
    view: NDArray[Any] = array.view(np.ndarray)
    return view
