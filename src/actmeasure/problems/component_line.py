"""A line of components that wear each other out."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy import sparse

from actmeasure.model import Measurement, Model
from actmeasure.settings import amount, whole

__all__ = ["component_line"]

#: Levels of wear of a component; the last is failed.
LEVELS = 4
FAILED = LEVELS - 1
#: Probability that the level of a component rises, by the number of its neighbours that have failed.
RISE = (0.2, 0.5, 0.9)


def component_line(
    n: int = 3,
    failure: float = 0.5,
    repair: float = 0.25,
    measuring_cost: float = 0.05,
    discount: float = 0.95,
) -> Model:
    """A line of components that wear each other out, each to be left alone, repaired or inspected; after Krale and others (2025).

    Each of n components is at a level from 0 to 3, where 3 is failed. In a step the level of a component that is not repaired
    rises by one with probability 0.2, 0.5 or 0.9 where none, one or two of its neighbours have failed before the step; level 3
    stays. A repair (0.25) leads to level 0 for sure, so that the level of a repaired component is known. An inspection (0.05)
    shows the level that was reached. Every component that has failed before the step costs 0.5. All begin at level 1.

    There are 4^n states. An action is the set of components that are repaired; a measurement is the set of those that are
    inspected, and can be made with the actions that repair none of them: 3^n decisions, each of them once. Costs are negative
    rewards; the optimum is between -1.74901 and -1.74804 for two components, and about -2.62875 for three.

    Parameters
    ----------
    n : int
        Number of components, 1 to 5.
    failure, repair : float
        Cost of a step that begins with a failed component, and of a repair; for each component.
    measuring_cost : float
        Price of the inspection of one component.
    discount : float
        Below 1, as the horizon is infinite.

    Examples
    --------
    >>> import actmeasure as am
    >>> model = am.problems.component_line(n=2)
    >>> model
    Model(16 states, 4 actions, measurements inspect 1 (0.05), inspect 2 (0.05), inspect 1 2 (0.1), discount=0.95, never ends)
    >>> int(model.allowed_decisions.sum())
    9
    """
    n = whole(n, "n", 1, 5)
    failure, repair = amount(failure, "failure"), amount(repair, "repair")
    price = amount(measuring_cost, "measuring_cost")
    levels = np.array(list(product(range(LEVELS), repeat=n)))  # (S, n); the last component changes fastest
    subsets = [[k for k in range(n) if mask >> k & 1] for mask in range(2**n)]
    failed = levels == FAILED
    rewards = -failure * failed.sum(axis=1)[:, None] - repair * np.array([len(subset) for subset in subsets])
    return Model.from_arrays(
        [_matrix(levels, subset) for subset in subsets],
        rewards,
        measurements=[
            Measurement.partial(
                f"inspect {_listed(seen)}",
                price * len(seen),
                shows=[" ".join(f"{k + 1}:{level[k]}" for k in seen) for level in levels.tolist()],
                with_actions=[a for a, repaired in enumerate(subsets) if not set(seen) & set(repaired)],
            )
            for seen in subsets[1:]
        ],
        discount=discount,
        initial=int((LEVELS ** np.arange(n)).sum()),
        state_names=[" ".join(map(str, level)) for level in levels.tolist()],
        action_names=["nothing", *(f"repair {_listed(subset)}" for subset in subsets[1:])],
    )


def _matrix(levels: np.ndarray, repaired: list[int]) -> sparse.csr_array[np.float64]:
    """Return the transition matrix of an action: components change independently of each other, given the state before."""
    n_states, n = levels.shape
    failed = np.pad(levels == FAILED, ((0, 0), (1, 1)))
    rising = np.array(RISE)[failed[:, :-2].astype(int) + failed[:, 2:]]
    rising[levels == FAILED] = 0.0
    after = levels.copy()
    after[:, repaired], rising[:, repaired] = 0, 0.0
    base = LEVELS ** np.arange(n)[::-1]
    begins, ends, chances = [], [], []
    for rises in product((0, 1), repeat=n):
        begins.append(np.arange(n_states))
        ends.append(np.minimum(after + rises, FAILED) @ base)
        chances.append(np.where(rises, rising, 1 - rising).prod(axis=1))
    entries = (np.concatenate(begins), np.concatenate(ends))
    return sparse.coo_array((np.concatenate(chances), entries), (n_states, n_states)).tocsr()


def _listed(components: list[int]) -> str:
    """Return the numbers of components from 1, such as "1 3"."""
    return " ".join(str(k + 1) for k in components)
