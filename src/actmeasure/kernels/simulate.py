"""Drawing what happens next."""

from __future__ import annotations

from typing import Any

from actmeasure.kernels.jit import compiled


@compiled
def pick(offsets: Any, probabilities: Any, row: int, uniform: float) -> int:
    """The entry of a row that a uniform number from [0, 1) falls on; the last one takes what rounding leaves over."""
    entry = offsets[row]
    last = offsets[row + 1] - 1
    while entry < last:
        uniform -= probabilities[entry]
        if uniform < 0:
            return entry  # type: ignore[no-any-return]
        entry += 1
    return last  # type: ignore[no-any-return]
