"""A fatigue crack in a weld: inspection and repair over a service life."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import amount, whole

__all__ = ["crack_bins", "fatigue_crack", "growth", "size_names", "state_number"]

#: Paris' law: its exponent, cycles in a year, and the distributions of the logarithm of its factor and of the stress range.
EXPONENT, CYCLES = 3.5, 1e6
LOG_FACTOR, STRESS = (-35.2, 0.5), (70.0, 10.0)
#: Millimetres: the mean crack of a new weld, the finest bin's upper edge, and the size at which it fails.
BEGIN, FINEST, CRITICAL = 1.0, 1e-4, 20.0
#: Size classes, the last of them a failed weld.
BINS = 30
FAILED = BINS - 1
ACTIONS = ("nothing", "repair")


def crack_bins() -> FloatArray:
    """Return the edges between the size classes in mm, shape (29,): evenly spaced logarithms up to the critical size."""
    return np.geomspace(FINEST, CRITICAL, BINS - 1)


def state_number(year: int, age: int, size: int) -> int:
    """Return the number of a state: years since the beginning, years since the last repair (at most `year`), and size class."""
    return (year * (year + 1) // 2 + age) * BINS + size


def fatigue_crack(
    years: int = 30,
    repair: float = 20.0,
    failure: float = 10_000.0,
    measuring_cost: npt.ArrayLike = 1.0,
    discount: float = 0.95,
    samples: int = 300_000,
    seed: int = 0,
) -> Model:
    """Inspect and repair a weld in which a fatigue crack grows; after IMP-MARL (Leroy and others 2023, arXiv 2306.11551).

    The crack grows by Paris' law: after a year a depth of d mm has become

        [(2 - m)/2 C (sqrt(pi) S)^m n + d^((2 - m)/2)]^(2/(2 - m))

    with m = 3.5 and n = 1e6 cycles; ln C ~ N(-35.2, 0.5) and S ~ N(70, 10) belong to the unit, a new crack has d ~ Exp(1), and
    above 20 mm the weld has failed. There are 30 size classes, of equal width in the logarithm. An inspection costs 1, a repair
    20, and failure 10,000 times the increase of its probability in the year. A repair makes the unit as new.

    This is an approximation. As C and S belong to the unit, size alone is not Markov: a crack that is still small after 20 years
    is a slow one. So the state has the years since the last repair (the age) as well, and the probabilities are counted from
    simulated units, for each age. What a unit's earlier sizes would tell beyond that is lost. The year, which decides how long
    there is still to go, is the third part of the state.

    Assumptions: a look shows the size class exactly (IMP-MARL's inspections are noisy); that a weld has failed is not noticed
    without a look, and a failed one can be repaired; a failed one pays nothing more; a repair takes the year, at the end of which
    there is a new crack; classes that no simulated unit came to at some age stay as they are, and are never reached.

    Parameters
    ----------
    years : int
        How long it goes on, at least 1.
    repair, failure : float
        Prices; only their ratio to each other and to that of an inspection matters.
    measuring_cost : float, or array of shape (S, 2)
    discount : float
    samples : int
        Simulated units, at least 1,000.
    seed : int
        Of the simulation.
    """
    years, samples = whole(years, "years", 1), whole(samples, "samples", 1_000)
    repair, failure = amount(repair, "repair"), amount(failure, "failure")
    begin, ageing = growth(years, samples, np.random.default_rng(whole(seed, "seed")))
    over = state_number(years, 0, 0)
    P = [_matrix(years, ageing), _matrix(years, np.broadcast_to(begin, ageing.shape), is_repair=True)]
    initial = np.zeros(over + 1)
    initial[:BINS] = begin
    return Model.from_arrays(
        P, _rewards(years, ageing, begin, repair, failure), measuring_cost=measuring_cost, discount=discount,
        initial=initial, terminal=np.arange(over + 1) == over, reveal_start=False,
        state_names=_names(years), action_names=ACTIONS,
    )  # fmt: skip


def growth(years: int, samples: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Estimate the size classes of new welds, shape (30,), and their yearly transitions at each age, shape (years, 30, 30)."""
    power = (2 - EXPONENT) / 2
    factor = np.exp(rng.normal(*LOG_FACTOR, samples))
    stress = np.maximum(rng.normal(*STRESS, samples), 0.0)
    yearly = -power * factor * (np.sqrt(np.pi) * stress) ** EXPONENT * CYCLES
    # The law is linear in d^power, which falls as the crack grows; below that of the critical size the weld has failed.
    transformed = rng.exponential(BEGIN, samples) ** power
    falling_edges = crack_bins() ** power
    size = FAILED - np.searchsorted(falling_edges[::-1], transformed, side="right")
    begin = np.bincount(size, minlength=BINS) / samples
    ageing = np.empty((years, BINS, BINS))
    for age in range(years):
        transformed -= yearly
        after = FAILED - np.searchsorted(falling_edges[::-1], transformed, side="right")
        counts = np.bincount(size * BINS + after, minlength=BINS * BINS).reshape(BINS, BINS).astype(float)
        unseen = counts.sum(axis=1) == 0
        counts[unseen, unseen] = 1.0
        ageing[age] = counts / counts.sum(axis=1, keepdims=True)
        size = after
    return begin, ageing


def _matrix(years: int, changes: FloatArray, is_repair: bool = False) -> sparse.csr_array:
    """Return the transition matrix of an action, from the transitions of size classes at each age, shape (years, 30, 30)."""
    over = state_number(years, 0, 0)
    begins, ends, chances = [], [], []
    for year in range(years):
        for age in range(year + 1):
            now, then = np.nonzero(changes[age])
            begins.append(state_number(year, age, 0) + now)
            arrival = state_number(year + 1, 0 if is_repair else age + 1, 0)
            ends.append(np.full_like(then, over) if year == years - 1 else arrival + then)
            chances.append(changes[age][now, then])
    entries = (np.concatenate(begins), np.concatenate(ends))
    return sparse.coo_array((np.concatenate(chances), entries), (over + 1, over + 1)).tocsr()


def _rewards(years: int, ageing: FloatArray, begin: FloatArray, repair: float, failure: float) -> FloatArray:
    """Return expected rewards, shape (S, 2): minus the costs of repairs, and of failures in the year."""
    failing = np.zeros((years, BINS, len(ACTIONS)))
    failing[:, :FAILED, 0] = ageing[:, :FAILED, FAILED]
    failing[:, :FAILED, 1] = begin[FAILED]
    rewards = -failure * failing - np.array([0.0, repair])
    by_year = [rewards[: year + 1].reshape(-1, len(ACTIONS)) for year in range(years)]
    return np.concatenate([*by_year, np.zeros((1, len(ACTIONS)))])


def size_names() -> list[str]:
    """Return the names of the size classes, such as "1 to 1.55 mm"."""
    edges = [f"{edge:.3g}" for edge in crack_bins()]
    return [f"below {edges[0]} mm", *(f"{a} to {b} mm" for a, b in pairwise(edges)), "failed"]


def _names(years: int) -> list[str]:
    sizes = size_names()
    named = [f"year {year}, age {age}: {size}" for year in range(years) for age in range(year + 1) for size in sizes]
    return [*named, "over"]
