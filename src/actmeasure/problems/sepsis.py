"""Treatment of sepsis with a price on blood tests."""

from __future__ import annotations

from functools import reduce
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray

__all__ = ["HORIZON", "sepsis", "state_number"]

HORIZON = 5
#: Heart rate, blood pressure, oxygen, glucose: number of levels, normal level, and start distribution.
LEVELS, NORMAL = (3, 3, 2, 5), (1, 1, 1, 2)
BEGIN = ((0.25, 0.5, 0.25), (0.25, 0.5, 0.25), (0.2, 0.8), (0.05, 0.15, 0.6, 0.15, 0.05))
TREATMENTS = ("antibiotic", "vasopressor", "ventilation")
#: All combinations of treatments, which are also the actions; the last treatment changes fastest.
CHOICES = tuple(product((0, 1), repeat=len(TREATMENTS)))
VITALS = tuple(product(*map(range, LEVELS)))
PATIENTS = len(VITALS) * len(CHOICES)
#: The terminal states, after all others: too ill, healthy, and the horizon is reached.
DEAD, CURED, OVER = (HORIZON * PATIENTS + k for k in range(3))
FATAL, STAY = 3, 0.25
DRIFT, RELAPSE = 0.1, 0.1


def state_number(step: int, vitals: tuple[int, int, int, int], on: tuple[int, int, int] = (0, 0, 0)) -> int:
    """Return the number of a state: the step 0 to 4, the levels of the four vitals, and which treatments are on."""
    return (step * len(VITALS) + VITALS.index(vitals)) * len(CHOICES) + CHOICES.index(on)


def sepsis(measuring_cost: npt.ArrayLike = 0.05, discount: float = 0.95) -> Model:
    """Treat a patient with sepsis for five steps; after the simulator of Oberst and Sontag (2019), with a price on looking.

    A patient has a heart rate and a blood pressure from 0 to 2 (normal: 1), oxygen 0 or 1 (normal: 1), glucose from 0 to 4
    (normal: 2), and three treatments that are on or off: 720 states. Each of the eight actions says which treatments are on
    from now on. With three or more vitals abnormal the episode ends and pays nothing. With none abnormal and no treatment on
    it ends and pays 1. Any other step pays 0.25. After five steps it is over, so the state has the step, 0 to 4, as well:
    3,600 states, and three in which episodes end.

    In a step, antibiotics that are on bring heart rate and blood pressure from 2 to 1 with 0.5 each; just switched off, from
    1 to 2 with 0.1 each. Ventilation brings oxygen to 1 with 0.7; just switched off, to 0 with 0.1. Vasopressors raise blood
    pressure by 1 with 0.7; just switched off, they lower it by 1 with 0.1. Vitals that no treatment touches go up and down by 1
    with 0.1 each, and so does glucose. The patient begins with random vitals, not too ill and not healthy, and all treatments
    off. The certified optimum at c = 0.05 is 1.2006 at discount 0.95, with 0.08 looks in an episode.

    Assumptions: what is paid depends on the patient after the step; a treatment that is on, or was just switched off, touches
    its vitals whether or not they change; antibiotics act on blood pressure before vasopressors; levels are clipped.

    Parameters
    ----------
    measuring_cost : float, or array of shape (3603, 8)
    discount : float
    """
    n_states = OVER + 1
    terminal = np.arange(n_states) >= DEAD
    paid = np.full(n_states, STAY)
    paid[DEAD], paid[CURED] = 0.0, 1.0
    P = [_matrix(action, n_states) for action in range(len(CHOICES))]
    R = [sparse.csr_array((paid[matrix.indices], matrix.indices, matrix.indptr), matrix.shape) for matrix in P]
    names = ["+".join(name for name, is_on in zip(TREATMENTS, on, strict=True) if is_on) or "nothing" for on in CHOICES]
    return Model.from_arrays(
        P, R, measuring_cost=measuring_cost, discount=discount, initial=_initial(n_states), terminal=terminal,
        state_names=(*_names(names), "dead", "cured", "over"), action_names=names,
    )  # fmt: skip


def _names(treatments: list[str]) -> list[str]:
    return [
        f"step {step}: heart {heart}, pressure {pressure}, oxygen {oxygen}, glucose {glucose}, {on}"
        for step in range(HORIZON) for (heart, pressure, oxygen, glucose) in VITALS for on in treatments
    ]  # fmt: skip


def _abnormal() -> npt.NDArray[np.int64]:
    """Return the number of abnormal vitals for each combination of levels, shape (90,)."""
    counted: npt.NDArray[np.int64] = (np.array(VITALS) != NORMAL).sum(axis=1)
    return counted


def _initial(n_states: int) -> FloatArray:
    chances = reduce(_kron, (np.array(chances) for chances in BEGIN))
    chances[(_abnormal() >= FATAL) | (_abnormal() == 0)] = 0.0
    initial = np.zeros(n_states)
    initial[: PATIENTS : len(CHOICES)] = chances / chances.sum()  # step 0, nothing on
    return initial


def _matrix(action: int, n_states: int) -> sparse.csr_array:
    """Return the transition matrix of an action, shape (S, S)."""
    begins, ends, chances = [], [], []
    for before, was_on in enumerate(CHOICES):
        vitals = reduce(_kron, _changes(was_on, CHOICES[action]))
        now, then = np.nonzero(vitals)
        for step in range(HORIZON):
            begins.append((step * len(VITALS) + now) * len(CHOICES) + before)
            ends.append(_arrivals(step, action)[then])
            chances.append(vitals[now, then])
    entries = (np.concatenate(begins), np.concatenate(ends))
    matrix = sparse.coo_array((np.concatenate(chances), entries), (n_states, n_states)).tocsr()
    matrix.sum_duplicates()
    return matrix


def _arrivals(step: int, action: int) -> npt.NDArray[np.int64]:
    """Return the state that is entered with each combination of levels, shape (90,)."""
    arrivals = ((step + 1) * len(VITALS) + np.arange(len(VITALS))) * len(CHOICES) + action
    if step == HORIZON - 1:
        arrivals[:] = OVER
    arrivals[_abnormal() >= FATAL] = DEAD
    if not any(CHOICES[action]):
        arrivals[_abnormal() == 0] = CURED
    return arrivals


def _changes(was_on: tuple[int, ...], is_on: tuple[int, ...]) -> tuple[FloatArray, ...]:
    """Return the transition matrices of the levels of each vital in a step, given the treatments before and now."""
    antibiotic, vasopressor, ventilation = (
        "on" if now else "stopped" if before else "off" for before, now in zip(was_on, is_on, strict=True)
    )
    drift = [_move(n, {(k, k + d): DRIFT for k in range(n) for d in (-1, 1)}) for n in LEVELS]
    cooling = {"on": _move(3, {(2, 1): 0.5}), "stopped": _move(3, {(1, 2): RELAPSE}), "off": np.eye(3)}[antibiotic]
    raising = {
        "on": _move(3, {(0, 1): 0.7, (1, 2): 0.7}),
        "stopped": _move(3, {(1, 0): RELAPSE, (2, 1): RELAPSE}),
        "off": np.eye(3),
    }[vasopressor]
    breathing = {"on": _move(2, {(0, 1): 0.7}), "stopped": _move(2, {(1, 0): RELAPSE}), "off": drift[2]}[ventilation]
    heart = drift[0] if antibiotic == "off" else cooling
    pressure = drift[1] if antibiotic == vasopressor == "off" else cooling @ raising
    return heart, pressure, breathing, drift[3]


def _kron(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the joint transitions of independent vitals; the levels of the second change fastest."""
    together: FloatArray = np.kron(one, other).astype(np.float64)
    return together


def _move(levels: int, chances: dict[tuple[int, int], float]) -> FloatArray:
    """Return the transition matrix that changes levels with these probabilities, where such levels exist."""
    matrix = np.zeros((levels, levels))
    for (level, other), chance in chances.items():
        if 0 <= other < levels:
            matrix[level, other] = chance
    return matrix + np.diag(1 - matrix.sum(axis=1))
