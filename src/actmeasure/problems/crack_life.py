"""A fatigue crack over a service life, with inspections that may miss it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import sparse

from actmeasure.model import Measurement, Model
from actmeasure.model.transitions import FloatArray
from actmeasure.problems.fatigue import ACTIONS, BINS, CRITICAL, FAILED, crack_bins, growth, size_names
from actmeasure.problems.textbook import over_periods
from actmeasure.settings import amount, whole

__all__ = ["crack_life", "detection"]

#: Size in mm for which a failed weld counts in the probability of detection.
FAILED_SIZE = CRITICAL + 1.0
#: Years after which transitions no longer change with the age, where the horizon is infinite.
OLDEST = 30


def crack_life(
    failure_price: float = 10_000.0,
    periods: int | None = 30,
    repair: float = 20.0,
    detection_size: float = 8.0,
    measuring_cost: float = 1.0,
    discount: float = 0.95,
    samples: int = 1_000_000,
    seed: int = 0,
) -> Model:
    """Inspect and repair a weld over 30 years with inspections that may miss its crack; after IMP-MARL (arXiv 2306.11551).

    The crack grows as in `fatigue_crack`, in 30 size classes with the years since the last repair, the age, as a known part of
    the state. An inspection (1), which cannot be made with a repair, detects the crack with probability 1 - exp(-d / 8), where d
    is the midpoint of its size class in mm, and 21 mm for a failed weld. A repair (20) takes the year, at the end of which the
    weld is as new. Failure costs 10,000 times the increase of its probability in the year. The first crack is not shown, and a
    failure is not noticed without an inspection.

    The model is `am.lifetime` of a stationary one, whose states are age and size class: 30 periods of 31 x 30 states, and one
    for the end. Its probabilities are counted from simulated cracks, a million by default, which are kept for further calls with
    the same seed; with other seeds values differ in the third digit. What is approximated and assumed is said in `fatigue_crack`.

    Parameters
    ----------
    failure_price : float
        Cost of a failure.
    periods : int, optional
        Years; None for an infinite horizon, in which welds older than 30 years crack as at 30.
    repair : float
        Price of a repair.
    detection_size : float
        Size in mm at which a crack is detected with probability 1 - 1/e.
    measuring_cost : float
        Price of an inspection.
    discount : float
    samples : int
        Simulated cracks, at least 1,000.
    seed : int
        Of the simulation.

    Examples
    --------
    >>> import actmeasure as am
    >>> am.problems.crack_life(failure_price=500.0, periods=10, samples=10_000)
    Model(3,301 states, 2 actions, measurement inspection (1), discount=0.95, 1 terminal)
    """
    oldest = OLDEST if periods is None else whole(periods, "periods", 1)
    failure, fixed = amount(failure_price, "failure_price"), amount(repair, "repair")
    pod = detection(amount(detection_size, "detection_size", above_zero=True))
    begin, ageing = _growth(oldest, whole(samples, "samples", 1_000), whole(seed, "seed"))
    n_states = (oldest + 1) * BINS
    initial = np.zeros(n_states)
    initial[:BINS] = begin
    by_age = np.concatenate([ageing, ageing[-1:]])  # the oldest age repeats that before
    stay = sparse.block_diag([sparse.csr_array(block) for block in by_age], format="csr")
    # One year older: the block of an age moves to the columns of the next, and the last stays where it is.
    shift = sparse.csr_array(np.eye(oldest + 1, k=1) + np.diag(np.arange(oldest + 1) == oldest))
    renewed = sparse.csr_array(np.tile(np.append(begin, np.zeros(n_states - BINS)), (n_states, 1)))
    rewards = np.zeros((oldest + 1, BINS, len(ACTIONS)))
    rewards[:, :FAILED, 0] = -failure * by_age[:, :FAILED, FAILED]
    rewards[:, :FAILED, 1] = -failure * begin[FAILED]
    rewards[:, :, 1] -= fixed
    weld = Model.from_arrays(
        [stay @ sparse.kron(shift, sparse.eye_array(BINS), format="csr"), renewed],
        rewards.reshape(n_states, len(ACTIONS)),
        measurements=[
            Measurement.detection(
                "inspection", measuring_cost, pod=np.tile(pod, oldest + 1), outcomes=("no crack", "crack"),
                with_actions=("nothing",),
            )
        ],
        initial=initial,
        state_names=[f"age {age}: {size}" for age in range(oldest + 1) for size in size_names()],
        action_names=ACTIONS,
    )  # fmt: skip
    return over_periods(weld, periods, discount)


def detection(scale: float) -> FloatArray:
    """Return the probability of detection in each size class, shape (30,); at `scale` mm it is 1 - 1/e."""
    edges = np.concatenate([[0.0], crack_bins()])
    middle = np.append((edges[1:] + edges[:-1]) / 2, FAILED_SIZE)
    return -np.expm1(-middle / scale)


@lru_cache(maxsize=4)
def _growth(years: int, samples: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return what `fatigue.growth` estimates, read-only, as it is kept."""
    estimated = growth(years, samples, np.random.default_rng(seed))
    for array in estimated:
        array.setflags(write=False)
    return estimated
