r"""Verify the bounds of a certificate: `python -m actmeasure.check_certificate model.json certificate.npz`.

A separate program that needs NumPy only and shares no code with the search. It reads the model's numbers as they
stand in the file and checks a finite list of inequalities, each with a bound on what rounding can have done to it. In
state s, decision d (an action with a measurement) earns r(s, d) and leads with probability T(s, t) Z(o | t) to state
t, where outcome o is seen; g is the discount.

**Lower bound.** Each value vector v has a decision d and for every outcome o a vector v_o to go on with. If

    v(s) <= r(s, d) + g * sum over (o, t) of T(s, t) Z(o | t) v_o(t)  for all v and s (1)

then v(s) is at most what this controller earns from s.

**Upper bound.** Linear bounds c_d(s), beliefs b_i, and for pairs (i, d) numbers q_{i,d}. For any unnormalised belief
b let

    Q_d(b) = min over weights w >= 0 with sum_i w_i b_i <= b of c_d . b - sum_i w_i (c_d . b_i - q_{i,d}) ,
    U(b) = max_d Q_d(b) .

With b M_{d,o} the unnormalised belief after decision d and outcome o, U is an upper bound on the optimal value if

    c_d(s) >= r(s, d) + g * sum over o of max over d' of sum over t of T(s, t) Z(o | t) c_d'(t)  for all s and d (2)
    q_{i,d} >= r(b_i, d) + g * sum over o of U(b_i M_{d,o})  for all pairs (i, d) (3)

because by convexity the right side of Bellman's equation with U is then at most Q_d in every belief, and so at most
U. U is bounded from above by weights that are stored: a *mixture* has the weights of Q_d at belief k; after an
outcome the belief b' = b_i M_{d,o} is compared with a stored belief k, and m times the weights of k are feasible in
b' where m b_k <= b'.

(1) to (3) prove bounds where the discount is below 1, or where no state can come again, by induction. Other models
are not covered. Exit codes: 0 verified, 1 refused, 2 bad input, 4 not covered.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
import sys
import tokenize
import zipfile
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "FORMAT",
    "TYPES",
    "VERSION",
    "BadInputError",
    "Children",
    "Contents",
    "Law",
    "Look",
    "Problem",
    "RefusedError",
    "UncoveredError",
    "check",
    "children",
    "digest",
    "gains",
    "is_acyclic",
    "linear_backup",
    "lower_backup",
    "lower_bound",
    "main",
    "outcome_bounds",
    "pair_backup",
    "read_certificate",
    "read_model",
    "share",
]

FORMAT, VERSION = "actmeasure certificate", 1
VERIFIED, REFUSED, BAD_INPUT, NOT_COVERED = 0, 1, 2, 4
#: Twice the unit roundoff. A sum of n products, each with a few roundings, is wrong by at most (n + 16) UNIT
#: times the sum of absolute
#: values, as long as n UNIT is small; TINY for each term covers underflow.
UNIT, TINY = 2.0**-52, 2.0**-1070
#: Rows of probabilities have to sum to 1 up to this; actmeasure rescales those that do not when it reads a model.
ROW_ERROR = 1e-12
#: Entries that are expanded at once.
CHUNK = 1_000_000
#: Bytes that any archive may unpack to, and the largest ratio of unpacked to packed size above that.
ALWAYS_UNPACKED, LARGEST_RATIO = 1 << 26, 100
#: Largest model, in pairs of state and action.
MOST_ROWS = 10_000_000
#: Arrays of a certificate and their types.
TYPES = {
    "vector_offsets": "<i8",
    "vector_states": "<i4",
    "vector_values": "<f8",
    "vector_decisions": "<i4",
    "plan_offsets": "<i8",
    "plan_outcomes": "<i4",
    "plan_vectors": "<i4",
    "start_vectors": "<i4",
    "linear": "<f8",
    "belief_offsets": "<i8",
    "belief_states": "<i4",
    "belief_values": "<f8",
    "pair_beliefs": "<i4",
    "pair_decisions": "<i4",
    "pair_bounds": "<f8",
    "child_offsets": "<i8",
    "child_outcomes": "<i4",
    "child_beliefs": "<i4",
    "mixture_beliefs": "<i4",
    "mixture_decisions": "<i4",
    "mixture_offsets": "<i8",
    "mixture_pairs": "<i4",
    "mixture_weights": "<f8",
    "start_beliefs": "<i4",
}

Array = npt.NDArray[Any]


class RefusedError(Exception):
    """An inequality does not hold, or the certificate is not what it says."""


class BadInputError(Exception):
    """A file cannot be read as a model or a certificate."""


class UncoveredError(Exception):
    """The model is outside of what is proved by these inequalities."""


# The model


class Law(NamedTuple):
    """Probabilities of outcomes: compressed rows over states, or over actions and states."""

    by_action: bool
    offsets: Array
    outcomes: Array
    probabilities: Array


class Look(NamedTuple):
    """A measurement: prices (S, A), the actions it can be made with (A,), and its law; None if it shows the state."""

    prices: Array
    allowed: Array
    law: Law | None


class Contents(NamedTuple):
    """All numbers of a model. Terminal states have empty rows and prices of 0."""

    discount: float
    terminal: Array  # bool (S,)
    start_states: Array  # int64, ascending
    start_probabilities: Array
    start_is_shown: bool
    offsets: Array  # int64 (S * A + 1,)
    successors: Array
    probabilities: Array
    rewards: Array  # of entries, like `successors`
    by_successor: bool  # whether the reward of a row is the expectation over its entries, not that of any of them
    looks: tuple[Look, ...]
    passive: Law | bool | None  # False where nothing is seen without a measurement, None where the state is


class _Rows(NamedTuple):
    """A decision: entries by state, ascending in outcome and successor; rewards and bounds on their errors."""

    offsets: Array
    outcomes: Array  # -1: nothing is seen
    successors: Array
    probabilities: Array
    rewards: Array
    radii: Array


def margin(terms: Any, absolute: Any, largest: float = 1.0) -> Any:
    """Return a bound on the error of a sum of `terms` products whose absolute values sum to `absolute`."""
    return (terms + 16) * (UNIT * absolute + TINY * (1.0 + largest))


def _ranges(first: Array, sizes: Array) -> Array:
    """Return first[i], first[i] + 1, ... for sizes[i] numbers each, one after the other."""
    return np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))


class Problem:
    """A model as the list of its decisions."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.n_states = len(contents.terminal)
        self.n_actions = (len(contents.offsets) - 1) // self.n_states
        self.decisions = [
            (action, number)
            for action in range(self.n_actions)
            for number in range(len(contents.looks) + 1)
            if number == 0 or contents.looks[number - 1].allowed[action]
        ]
        self.n_outcomes = self.n_states + 1
        laws = [look.law for look in contents.looks] + [contents.passive]
        for law in laws:
            if isinstance(law, Law):
                self.n_outcomes = max(self.n_outcomes, int(law.outcomes.max(initial=0)) + 1)
        self._rows: dict[int, _Rows] = {}

    @property
    def discount(self) -> float:
        """The discount."""
        return self.contents.discount

    def starts(self) -> list[tuple[float, Array, Array]]:
        """Return weight, states and probabilities of each belief an episode can begin with."""
        states, chances = self.contents.start_states, self.contents.start_probabilities
        if self.contents.start_is_shown:
            return [(float(p), np.array([s]), np.ones(1)) for s, p in zip(states, chances, strict=True)]
        return [(1.0, states, chances)]

    def rows(self, decision: int) -> _Rows:
        """Return the entries of a decision."""
        if decision not in self._rows:
            self._rows[decision] = self._make_rows(*self.decisions[decision])
        return self._rows[decision]

    def _make_rows(self, action: int, number: int) -> _Rows:
        given, n_states = self.contents, self.n_states
        first = np.arange(n_states) * self.n_actions + action
        sizes = given.offsets[first + 1] - given.offsets[first]
        entries, states = _ranges(given.offsets[first], sizes), np.repeat(np.arange(n_states), sizes)
        goals, chances = given.successors[entries], given.probabilities[entries]
        if given.by_successor:
            paid = chances * given.rewards[entries]
            rewards: Array = np.bincount(states, paid, n_states)
            radii = margin(sizes, np.bincount(states, np.abs(paid), n_states))
        else:
            rewards = np.zeros(n_states)
            radii = np.zeros(n_states)
            rewards[states] = given.rewards[entries]
        if number:
            prices = given.looks[number - 1].prices[:, action]
            radii = radii + margin(0, np.abs(rewards) + np.abs(prices))
            rewards = rewards - prices
        running = ~given.terminal[goals]
        states, goals, chances = states[running], goals[running], chances[running]
        law = given.looks[number - 1].law if number else given.passive
        if law is False:
            outcomes: Array = np.full(len(states), -1)
        elif isinstance(law, Law):
            seen = goals + (action * n_states if law.by_action else 0)
            sizes = law.offsets[seen + 1] - law.offsets[seen]
            entries = _ranges(law.offsets[seen], sizes)
            outcomes = law.outcomes[entries]
            states, goals = np.repeat(states, sizes), np.repeat(goals, sizes)
            chances = np.repeat(chances, sizes) * law.probabilities[entries]
        else:
            outcomes = goals
        order = np.lexsort((goals, outcomes, states))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(states, minlength=n_states))])
        return _Rows(offsets, outcomes[order], goals[order], chances[order], rewards, radii)

    def hash(self) -> str:
        """Return a hash of all numbers of the model; names are not part of it."""
        code = hashlib.sha256()
        for array in _flattened(self.contents):
            code.update(str((array.dtype.kind, array.shape)).encode())
            kind = {"f": "<f8", "b": "|u1"}.get(array.dtype.kind, "<i8")
            code.update(np.ascontiguousarray(array, dtype=kind).tobytes())
        return code.hexdigest()

    def check_covered(self) -> None:
        """Raise `UncoveredError` unless (1) to (3) prove bounds."""
        given = self.contents
        largest = float(
            np.bincount(np.repeat(np.arange(len(given.offsets) - 1), np.diff(given.offsets)), given.probabilities).max()
        )
        seen = 1.0
        for law in [look.law for look in given.looks] + [given.passive]:
            if isinstance(law, Law) and len(law.outcomes):
                seen = max(
                    seen,
                    float(
                        np.bincount(
                            np.repeat(np.arange(len(law.offsets) - 1), np.diff(law.offsets)), law.probabilities
                        ).max()
                    ),
                )
        terms = len(given.successors) + 16
        if given.discount * largest * seen * (1.0 + terms * UNIT) < 1.0 or is_acyclic(given):
            return
        raise UncoveredError(
            f"the discount is {given.discount!r} and states can come again: certificates of such models "
            f"are not covered yet; use a "
            "discount below 1, or a finite life"
        )


def _flattened(value: Any) -> list[Array]:
    """Return all arrays and numbers in nested tuples, in order, as arrays."""
    if isinstance(value, tuple):
        return [np.array(len(value)), *(array for one in value for array in _flattened(one))]
    return [np.array(-1) if value is None else np.asarray(value)]


def is_acyclic(contents: Contents) -> bool:
    """Return whether no state that is not terminal can come again."""
    n_states = len(contents.terminal)
    n_actions = (len(contents.offsets) - 1) // n_states
    origins = np.repeat(np.repeat(np.arange(n_states), n_actions), np.diff(contents.offsets))
    goals, left = contents.successors, ~contents.terminal
    while left.any():
        inside = left[origins] & left[goals]
        final = left & (np.bincount(origins[inside], minlength=n_states) == 0)
        if not final.any():
            return False
        left = left & ~final
    return True


# Inequalities: the functions return the other sides, rounded outwards


def lower_backup(problem: Problem, data: dict[str, Array]) -> Array:
    """Return the right side of (1) for every state of every vector, rounded downwards; like `vector_values`."""
    states, values, n_states = data["vector_states"].astype(np.int64), data["vector_values"], problem.n_states
    sizes = np.diff(data["vector_offsets"])
    owners = np.repeat(np.arange(len(sizes)), sizes)
    keys = owners * n_states + states
    plan_owners = np.repeat(np.arange(len(sizes)), np.diff(data["plan_offsets"]))
    plan_keys = plan_owners * (problem.n_outcomes + 1) + data["plan_outcomes"] + 1
    decisions, result, largest = (
        data["vector_decisions"][owners],
        np.empty(len(values)),
        float(np.abs(values).max(initial=0.0)),
    )
    for decision in np.unique(decisions):
        rows = problem.rows(int(decision))
        members = np.flatnonzero(decisions == decision)
        counts = rows.offsets[states[members] + 1] - rows.offsets[states[members]]
        for part in _parts(counts):
            chosen, size = members[part], counts[part]
            entries, own = _ranges(rows.offsets[states[chosen]], size), np.repeat(np.arange(len(chosen)), size)
            wanted = owners[chosen][own] * (problem.n_outcomes + 1) + rows.outcomes[entries] + 1
            places = _found(plan_keys, wanted)
            if (places < 0).any():
                bad = int(own[np.argmax(places < 0)])
                raise RefusedError(
                    f"vector {owners[chosen[bad]]} does not say how to go on after an outcome that is possible "
                    f"in state {states[chosen[bad]]}"
                )
            following = data["plan_vectors"][places].astype(np.int64)
            places = _found(keys, following * n_states + rows.successors[entries])
            if (places < 0).any():
                bad = int(own[np.argmax(places < 0)])
                raise RefusedError(
                    f"vector {owners[chosen[bad]]} goes on with a vector that has no value in a state that can "
                    f"follow state {states[chosen[bad]]}"
                )
            terms = rows.probabilities[entries] * values[places]
            total, absolute = np.bincount(own, terms, len(chosen)), np.bincount(own, np.abs(terms), len(chosen))
            rewards = rows.rewards[states[chosen]]
            error = margin(size, np.abs(rewards) + absolute, largest) + 2.0 * rows.radii[states[chosen]]
            result[chosen] = rewards + problem.discount * total - 2.0 * error
    return result


def _parts(counts: Array) -> list[slice]:
    """Return slices of about CHUNK entries each."""
    ends = np.cumsum(counts)
    cuts = [0]
    while cuts[-1] < len(counts):
        done = ends[cuts[-1] - 1] if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ends, done + CHUNK, side="right"))))
    return [slice(first, last) for first, last in pairwise(cuts)]


def _found(keys: Array, wanted: Array) -> Array:
    """Return the positions of numbers in an ascending array, -1 where they are not in it."""
    places = np.searchsorted(keys, wanted)
    if not len(keys):
        return np.full(len(wanted), -1)
    return np.where(keys[np.minimum(places, len(keys) - 1)] == wanted, places, -1)


def lower_bound(problem: Problem, data: dict[str, Array]) -> float:
    """Return what the vectors of the start prove, rounded downwards."""
    total = absolute = 0.0
    terms = 0
    for number, (weight, states, chances) in enumerate(problem.starts()):
        vector = int(data["start_vectors"][number])
        own = slice(int(data["vector_offsets"][vector]), int(data["vector_offsets"][vector + 1]))
        places = _found(data["vector_states"][own], states)
        if (places < 0).any():
            raise RefusedError(f"vector {vector}, that of the start, has no value in a state in which episodes begin")
        products = chances * data["vector_values"][own][places]
        total += weight * float(products.sum())
        absolute += weight * float(np.abs(products).sum())
        terms += len(states) + 2
    return total - 2.0 * float(margin(terms, absolute))


def linear_backup(problem: Problem, linear: Array) -> Array:
    """Return the right side of (2), rounded upwards, shape (S, D)."""
    result = np.zeros_like(linear)
    sizes_of_rows = np.abs(linear).max(axis=1)
    largest = float(sizes_of_rows.max(initial=0.0))
    for decision in range(len(problem.decisions)):
        rows = problem.rows(decision)
        counts = np.diff(rows.offsets)
        total, absolute = np.zeros(problem.n_states), np.zeros(problem.n_states)
        for part in _parts(counts * len(problem.decisions)):
            entries = slice(int(rows.offsets[part.start]), int(rows.offsets[part.stop]))
            if entries.start == entries.stop:
                continue
            states = np.repeat(np.arange(part.start, part.stop), counts[part])
            outcomes, goals, chances = rows.outcomes[entries], rows.successors[entries], rows.probabilities[entries]
            first = np.flatnonzero(
                np.concatenate([[True], (states[1:] != states[:-1]) | (outcomes[1:] != outcomes[:-1])])
            )
            best = np.add.reduceat(chances[:, None] * linear[goals], first, axis=0).max(axis=1)
            total += np.bincount(states[first], best, problem.n_states)
            absolute += np.bincount(states, chances * sizes_of_rows[goals], problem.n_states)
        error = margin(counts, np.abs(rows.rewards) + absolute, largest) + 2.0 * rows.radii
        result[:, decision] = rows.rewards + problem.discount * total + 2.0 * error
    result[problem.contents.terminal] = 0.0
    return result


class Children(NamedTuple):
    """The unnormalised beliefs after a decision: one for each outcome (O,), with their linear bounds (O, D)."""

    reward: float  # rounded upwards
    outcomes: Array
    offsets: Array  # (O + 1,)
    states: Array
    masses: Array  # rounded downwards, 0 or more
    linear: Array  # c_d' . b', rounded upwards


def children(problem: Problem, linear: Array, states: Array, chances: Array, decision: int) -> Children:
    """Return the beliefs after a decision in a belief."""
    rows = problem.rows(decision)
    sizes = rows.offsets[states + 1] - rows.offsets[states]
    entries = _ranges(rows.offsets[states], sizes)
    keys, own = np.unique(
        (rows.outcomes[entries] + 1) * problem.n_states + rows.successors[entries], return_inverse=True
    )
    masses = np.bincount(own, np.repeat(chances, sizes) * rows.probabilities[entries], len(keys))
    paid = chances * rows.rewards[states]
    reward = float(paid.sum()) + 2.0 * float(
        margin(len(states), np.abs(paid).sum() + (chances * rows.radii[states]).sum())
    )
    reward += 2.0 * float((chances * rows.radii[states]).sum())
    seen, goals = np.divmod(keys, problem.n_states)
    return _bounded(reward, seen - 1, goals, masses, linear, len(entries))


def _bounded(reward: float, outcomes: Array, states: Array, masses: Array, linear: Array, terms: int) -> Children:
    """Return unnormalised beliefs with their linear bounds; each mass is a sum of at most `terms` products."""
    first = (
        np.flatnonzero(np.concatenate([[True], outcomes[1:] != outcomes[:-1]]))
        if len(outcomes)
        else np.zeros(0, np.int64)
    )
    if len(first):
        bounds = np.add.reduceat(masses[:, None] * linear[states], first, axis=0)
        sizes = np.add.reduceat(masses[:, None] * np.abs(linear[states]), first, axis=0)
        bounds += 2.0 * margin(terms + len(states), sizes, float(np.abs(linear).max()))
    else:
        bounds = np.zeros((0, linear.shape[1]))
    low = np.maximum(masses * (1.0 - 2.0 * (terms + 16) * UNIT) - (terms + 16) * TINY, 0.0)
    return Children(reward, outcomes[first], np.append(first, len(states)), states, low, bounds)


def share(after: Children, place: int, states: Array, chances: Array) -> float:
    """Return a number m such that m times a belief is at most that after the outcome at `place`, in every state."""
    own = slice(int(after.offsets[place]), int(after.offsets[place + 1]))
    places = _found(after.states[own], states)
    if (places < 0).any():
        return 0.0
    return float((after.masses[own][places] / chances).min()) * (1.0 - 4.0 * UNIT)


def outcome_bounds(linear: Array, shares: Array, gained: Array) -> tuple[Array, Array]:
    """Return max over d' of c_d' . b' - m gain, for each outcome, and the sizes of the terms; gained is (O, D)."""
    lowered = shares[:, None] * gained
    return (linear - lowered).max(axis=1, initial=-np.inf), (np.abs(linear) + lowered).max(axis=1, initial=0.0)


def pair_backup(problem: Problem, reward: float, linear: Array, shares: Array, gained: Array) -> float:
    """Return the right side of (3) for a pair, rounded upwards."""
    best, size = outcome_bounds(linear, shares, gained)
    total, absolute = (float(best.sum()), float(size.sum())) if len(best) else (0.0, 0.0)
    return reward + problem.discount * total + 2.0 * float(margin(len(best), abs(reward) + absolute))


def gains(problem: Problem, data: dict[str, Array]) -> Array:
    """Return c_d . b_k - Q_d(b_k), rounded downwards and at least 0, for each belief and decision, shape (K, D)."""
    offsets, states, values, linear = (
        data[name] for name in ("belief_offsets", "belief_states", "belief_values", "linear")
    )
    result = np.zeros((len(offsets) - 1, linear.shape[1]))
    for number, (belief, decision, bound) in enumerate(
        zip(data["pair_beliefs"].tolist(), data["pair_decisions"].tolist(), data["pair_bounds"].tolist(), strict=True)
    ):
        own = slice(int(offsets[belief]), int(offsets[belief + 1]))
        products = values[own] * linear[states[own], decision]
        size = float(np.abs(products).sum()) + abs(bound)
        gain = float(products.sum()) - bound - 2.0 * float(margin(len(products), size, float(np.abs(linear).max())))
        if not math.isfinite(gain):
            raise RefusedError(f"the bound of pair {number} is too large to compute with")
        result[belief, decision] = max(gain, 0.0)
    of_pairs = result[data["pair_beliefs"], data["pair_decisions"]]
    for number in range(len(data["mixture_beliefs"])):
        own = slice(int(data["mixture_offsets"][number]), int(data["mixture_offsets"][number + 1]))
        belief, decision = int(data["mixture_beliefs"][number]), int(data["mixture_decisions"][number])
        pairs, weights = data["mixture_pairs"][own], data["mixture_weights"][own]
        if (data["pair_decisions"][pairs] != decision).any():
            raise RefusedError(f"mixture {number} has a pair of another decision")
        total = float((weights * of_pairs[pairs]).sum())
        gain = total - 2.0 * float(margin(len(pairs), total))
        result[belief, decision] = max(result[belief, decision], gain)
    return result


# Checking


def check(problem: Problem, about: dict[str, Any], data: dict[str, Array]) -> list[str]:
    """Verify all inequalities and return what was verified; raises `RefusedError` where one fails."""
    problem.check_covered()
    if about["model"] != problem.hash():
        raise RefusedError(
            "the certificate is for another model: the numbers of the model file differ from those it "
            "was made for; a file that was "
            "written by hand is to be saved by actmeasure first (Model.load(...).save(...))"
        )
    if about["digest"] != digest(about, data):
        raise RefusedError("the certificate was changed after it was made: its contents do not fit their digest")
    _check_arrays(problem, data)
    return [_check_lower(problem, about["lower"], data), _check_upper(problem, about["upper"], data)]


def _check_lower(problem: Problem, claimed: float, data: dict[str, Array]) -> str:
    right = lower_backup(problem, data)
    failed = ~(data["vector_values"] <= right)
    if failed.any():
        entry = int(np.argmax(failed))
        vector = int(np.searchsorted(data["vector_offsets"], entry, side="right")) - 1
        raise RefusedError(
            f"lower bound, inequality (1) fails in vector {vector}, state {data['vector_states'][entry]}: "
            f"{data['vector_values'][entry]!r} is above {right[entry]!r}"
        )
    value = lower_bound(problem, data)
    if not claimed <= value:
        raise RefusedError(f"the certificate claims the lower bound {claimed!r}, its vectors prove {value!r}")
    return (
        f"lower bound {claimed!r} proved by {len(data['vector_decisions']):,} vectors and {len(right):,} inequalities"
    )


def _check_upper(problem: Problem, claimed: float, data: dict[str, Array]) -> str:
    linear = data["linear"]
    need = linear_backup(problem, linear)
    failed = ~(need <= linear)
    if failed.any():
        state, decision = np.unravel_index(int(np.argmax(failed)), linear.shape)
        raise RefusedError(
            f"upper bound, inequality (2) fails in state {state}, decision {decision}: {linear[state, decision]!r} is below "
            f"{need[state, decision]!r}"
        )
    offsets, states, values = data["belief_offsets"], data["belief_states"].astype(np.int64), data["belief_values"]
    _check_mixtures(problem, data)
    gained = gains(problem, data)

    def belief(number: int) -> tuple[Array, Array]:
        own = slice(int(offsets[number]), int(offsets[number + 1]))
        return states[own], values[own]

    for pair, (point, decision) in enumerate(
        zip(data["pair_beliefs"].tolist(), data["pair_decisions"].tolist(), strict=True)
    ):
        after = children(problem, linear, *belief(point), decision)
        own = slice(int(data["child_offsets"][pair]), int(data["child_offsets"][pair + 1]))
        named = dict(zip(data["child_outcomes"][own].tolist(), data["child_beliefs"][own].tolist(), strict=True))
        compared = [named.get(outcome, -1) for outcome in after.outcomes.tolist()]
        shares = np.array([share(after, i, *belief(k)) if k >= 0 else 0.0 for i, k in enumerate(compared)])
        need_q = pair_backup(
            problem,
            after.reward,
            after.linear,
            shares,
            gained[compared] if compared else np.zeros((0, linear.shape[1])),
        )
        if not need_q <= data["pair_bounds"][pair]:
            raise RefusedError(
                f"upper bound, inequality (3) fails in pair {pair} (belief {point}, decision {decision}): "
                f"{data['pair_bounds'][pair]!r} is below {need_q!r}"
            )
    value = start_upper(problem, data, gained)
    if not value <= claimed:
        raise RefusedError(f"the certificate claims the upper bound {claimed!r}, its beliefs prove {value!r}")
    count = (
        int((~problem.contents.terminal).sum()) * linear.shape[1]
        + len(data["pair_bounds"])
        + len(data["mixture_beliefs"])
    )
    return f"upper bound {claimed!r} proved by {len(offsets) - 1:,} beliefs and {count:,} inequalities"


def start_upper(problem: Problem, data: dict[str, Array], gained: Array) -> float:
    """Return the upper bound at the start, rounded upwards."""
    total = absolute = 0.0
    for (weight, states, chances), k in zip(problem.starts(), data["start_beliefs"].tolist(), strict=True):
        after = _bounded(0.0, np.zeros(len(states), np.int64), states, chances, data["linear"], 1)
        own = slice(int(data["belief_offsets"][k]), int(data["belief_offsets"][k + 1])) if k >= 0 else slice(0, 0)
        part = share(after, 0, data["belief_states"][own], data["belief_values"][own]) if k >= 0 else 0.0
        best, size = outcome_bounds(
            after.linear, np.array([part]), gained[k : k + 1] if k >= 0 else np.zeros((1, gained.shape[1]))
        )
        total += weight * float(best[0])
        absolute += weight * float(size[0])
    return total + 2.0 * float(margin(len(problem.contents.start_states), absolute))


def _check_mixtures(problem: Problem, data: dict[str, Array]) -> None:
    """Check that weights are feasible: the weighted sum of beliefs is at most the belief, in every state."""
    offsets, states, values = data["belief_offsets"], data["belief_states"].astype(np.int64), data["belief_values"]
    for number in range(len(data["mixture_beliefs"])):
        own = slice(int(data["mixture_offsets"][number]), int(data["mixture_offsets"][number + 1]))
        points, weights = data["pair_beliefs"][data["mixture_pairs"][own]], data["mixture_weights"][own]
        sizes = offsets[points + 1] - offsets[points]
        entries = _ranges(offsets[points], sizes)
        total: Array = np.bincount(states[entries], np.repeat(weights, sizes) * values[entries], problem.n_states)
        total = total + 2.0 * np.where(total > 0, margin(len(points), total), 0.0)
        k = int(data["mixture_beliefs"][number])
        room = np.zeros(problem.n_states)
        room[states[offsets[k] : offsets[k + 1]]] = values[offsets[k] : offsets[k + 1]]
        failed = ~(total <= room)
        if failed.any():
            raise RefusedError(
                f"upper bound: the weights of mixture {number} are not feasible in state "
                f"{int(np.argmax(failed))} of belief {k}"
            )


def _check_arrays(problem: Problem, data: dict[str, Array]) -> None:  # noqa: PLR0912 - a list of checks
    """Check that all numbers are in range and arrays fit together; raises `RefusedError`."""
    n_states, n_decisions, n_starts = problem.n_states, len(problem.decisions), len(problem.starts())
    for name, array in data.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise RefusedError(f"{name} has a number that is not finite")
        if array.ndim != (2 if name == "linear" else 1):
            raise RefusedError(f"{name} has {array.ndim} axes")
    if data["linear"].shape != (n_states, n_decisions) or data["linear"][problem.contents.terminal].any():
        raise RefusedError(
            f"linear has shape {data['linear'].shape}, expected {(n_states, n_decisions)}, with 0 in terminal states"
        )
    n_vectors, n_beliefs = len(data["vector_decisions"]), len(data["belief_offsets"]) - 1
    n_pairs, n_mixtures = len(data["pair_beliefs"]), len(data["mixture_beliefs"])
    for name, size, contents in (
        ("vector_offsets", n_vectors, "vector_states"),
        ("vector_offsets", n_vectors, "vector_values"),
        ("plan_offsets", n_vectors, "plan_outcomes"),
        ("plan_offsets", n_vectors, "plan_vectors"),
        ("belief_offsets", n_beliefs, "belief_states"),
        ("belief_offsets", n_beliefs, "belief_values"),
        ("child_offsets", n_pairs, "child_outcomes"),
        ("child_offsets", n_pairs, "child_beliefs"),
        ("mixture_offsets", n_mixtures, "mixture_pairs"),
        ("mixture_offsets", n_mixtures, "mixture_weights"),
    ):
        array = data[name]
        if (
            len(array) != size + 1
            or size < 0
            or array[0] != 0
            or (array[1:] < array[:-1]).any()
            or array[-1] != len(data[contents])
        ):
            raise RefusedError(f"{name} and {contents} do not fit together")
    for name, size in (
        ("pair_decisions", n_pairs),
        ("pair_bounds", n_pairs),
        ("mixture_decisions", n_mixtures),
        ("start_vectors", n_starts),
        ("start_beliefs", n_starts),
    ):
        if len(data[name]) != size:
            raise RefusedError(f"{name} has {len(data[name])} numbers, expected {size}")
    for name, low, high in (
        ("vector_states", 0, n_states),
        ("vector_decisions", 0, n_decisions),
        ("plan_outcomes", -1, problem.n_outcomes),
        ("plan_vectors", 0, n_vectors),
        ("start_vectors", 0, n_vectors),
        ("belief_states", 0, n_states),
        ("pair_beliefs", 0, n_beliefs),
        ("pair_decisions", 0, n_decisions),
        ("child_outcomes", -1, problem.n_outcomes),
        ("child_beliefs", 0, n_beliefs),
        ("mixture_beliefs", 0, n_beliefs),
        ("mixture_decisions", 0, n_decisions),
        ("mixture_pairs", 0, n_pairs),
        ("start_beliefs", -1, n_beliefs),
    ):
        if len(data[name]) and (data[name].min() < low or data[name].max() >= high):
            raise RefusedError(f"{name} has a number that is not from {low} to {high - 1}")
    for name, contents in (
        ("vector_offsets", "vector_states"),
        ("plan_offsets", "plan_outcomes"),
        ("belief_offsets", "belief_states"),
        ("child_offsets", "child_outcomes"),
    ):
        inside = np.ones(max(len(data[contents]) - 1, 0), bool)
        ends = data[name][1:-1] - 1
        inside[ends[(ends >= 0) & (ends < len(inside))]] = False
        if (inside & (data[contents][1:] <= data[contents][:-1])).any():
            raise RefusedError(f"{contents} is not ascending")
    if problem.contents.terminal[data["belief_states"]].any() or problem.contents.terminal[data["vector_states"]].any():
        raise RefusedError("a belief or vector has a terminal state")
    if (data["belief_values"] <= 0).any() or (np.diff(data["belief_offsets"]) == 0).any():
        raise RefusedError("belief_values has a number that is not above 0, or a belief is empty")
    if (data["mixture_weights"] < 0).any():
        raise RefusedError("mixture_weights has a number below 0")
    codes = data["pair_beliefs"].astype(np.int64) * n_decisions + data["pair_decisions"]
    if (codes[1:] <= codes[:-1]).any():
        raise RefusedError("pairs are not ascending")


def digest(about: dict[str, Any], data: dict[str, Array]) -> str:
    """Return a hash of everything in a certificate but the digest itself."""
    head = {key: value for key, value in about.items() if key != "digest"}
    code = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for name, kind in TYPES.items():
        code.update(f"{name} {data[name].shape}".encode())
        code.update(np.ascontiguousarray(data[name], dtype=kind).tobytes())
    return code.hexdigest()


# Files


def read_certificate(contents: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a certificate; raises `BadInputError`."""
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if len(members) != len(archive.infolist()) or set(members) != {"about", *TYPES}:
                raise BadInputError("it does not have the arrays of a certificate; make it again")
            if sum(info.file_size for info in members.values()) > max(ALWAYS_UNPACKED, LARGEST_RATIO * len(contents)):
                raise BadInputError("it unpacks to more than a certificate of its size can hold")
            if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in members.values()):
                raise BadInputError("it is compressed in another way than actmeasure does; make it again")
            data = {name: _read_array(archive, members[name], kind) for name, kind in TYPES.items()}
            text = _read_array(archive, members["about"], "|u1").tobytes().decode()
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        ValueError,
        KeyError,
        OverflowError,
        NotImplementedError,
        RuntimeError,
        SyntaxError,
        tokenize.TokenError,  # as the header of an array is Python
    ) as error:
        raise BadInputError(f"it is not a sound certificate ({error or 'it ends too early'}); make it again") from error
    about = _parse(text)
    expected = {"format": str, "version": int, "model": str, "lower": float, "upper": float, "digest": str}
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise BadInputError("it is not a certificate of actmeasure")
    if about.get("version") != VERSION:
        raise BadInputError(
            f"it has version {str(about.get('version'))[:20]}, and this program reads version {VERSION}"
        )
    if set(about) != set(expected) or not all(type(about[key]) is kind for key, kind in expected.items()):
        raise BadInputError("its header 'about' does not have the keys of a certificate; make it again")
    return about, data


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, kind: str) -> Array:
    """Return an array of the type `kind`; nothing is read unless its size is what its header says."""
    with archive.open(info) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise BadInputError(f"{info.filename} is not a NumPy array of format version 1.0")
        shape, is_fortran, found = np.lib.format.read_array_header_1_0(member)
        if is_fortran or found.str != kind or min(shape, default=0) < 0:
            raise BadInputError(f"{info.filename} is not of type {kind} in C order")
        size = math.prod(shape) * np.dtype(kind).itemsize
        if member.tell() + size != info.file_size:
            raise BadInputError(f"{info.filename} has not the size of its shape {shape}")
        read = member.read(size)
        if len(read) != size or member.read(1):
            raise BadInputError(f"{info.filename} ends too early")
    return np.frombuffer(read, dtype=kind).reshape(shape)


def _parse(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not a number")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a key is there twice")
        return dict(pairs)

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"it is not sound JSON ({error})") from error


class _Names:
    """States, actions or outcomes of a file: a count, or a list of names."""

    def __init__(self, value: Any, most: int) -> None:
        self.count = len(value) if isinstance(value, list) else value
        if type(self.count) is not int or not 0 < self.count <= most:
            raise BadInputError("a number of states, actions or outcomes is not one that the file describes")
        self.names = {name: number for number, name in enumerate(value)} if isinstance(value, list) else None

    def number(self, key: Any) -> int:
        """Return the number of a name."""
        found = self.names.get(key) if self.names is not None else int(key)
        if found is None or not 0 <= found < self.count:
            raise BadInputError(f"{str(key)[:60]!r} is not one of the states, actions or outcomes of the model")
        return found


def read_model(text: str) -> Problem:
    """Return the model in a file as actmeasure writes it, `.json`; raises `BadInputError`."""
    try:
        data = _parse(text)
    except BadInputError as error:
        raise BadInputError(f"{error}; save the model as .json: am.Model.load(file).save('model.json')") from error
    if not isinstance(data, dict) or data.get("format") != "actmeasure model" or data.get("version", 1) not in (1, 2):
        raise BadInputError("it is not a model of actmeasure in JSON, version 1 or 2; save the model as .json")
    try:
        return _read_model(data)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        raise BadInputError(
            f"a part of the model is missing or has another form than actmeasure writes "
            f"({type(error).__name__}: {error})"
        ) from error


def _read_model(data: dict[str, Any]) -> Problem:
    lines = data["transitions"]
    states = _Names(data["states"], len(lines) + len(data.get("terminal", [])))
    actions = _Names(data["actions"], len(lines))
    if states.count * actions.count > MOST_ROWS:
        raise BadInputError("the model has too many states and actions")
    terminal = np.zeros(states.count, bool)
    for state in data.get("terminal", []):
        terminal[states.number(state)] = True
    rows: list[list[tuple[int, float, float]]] = [[] for _ in range(states.count * actions.count)]
    own_prices = np.zeros((states.count, actions.count))
    by_successor = False
    for line in lines:
        state, action = states.number(line["state"]), actions.number(line["action"])
        row, paid = rows[state * actions.count + action], line["reward"]
        if row or terminal[state]:
            raise BadInputError(f"state {state} and action {action} are there twice, or the state is terminal")
        by_successor |= isinstance(paid, dict)
        row += sorted(
            (states.number(name), _real(chance), _real(paid[name] if isinstance(paid, dict) else paid))
            for name, chance in line["to"].items()
            if chance != 0
        )
        own_prices[state, action] = _real(line.get("measuring_cost", 0.0))
    counts = np.array([len(row) for row in rows])
    if (counts.reshape(terminal.size, -1)[~terminal] == 0).any():
        raise BadInputError("a state that is not terminal has no transitions for an action")
    entries = [entry for row in rows for entry in row]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    probabilities = np.array([entry[1] for entry in entries])
    _check_sums(probabilities, offsets, "transitions")
    begin = {states.number(name): _real(chance) for name, chance in data.get("start", {}).items() if chance != 0} or {
        0: 1.0
    }
    starts = np.array(sorted(begin))
    chances = np.array([begin[state] for state in starts.tolist()])
    _check_sums(chances, np.array([0, len(chances)]), "start")
    if terminal[starts].any():
        raise BadInputError("an episode begins in a terminal state")
    if data.get("measurements") is None and data.get("passive") is None:
        cost = data.get("measuring_cost")
        prices = own_prices if cost is None else np.full_like(own_prices, _real(cost))
        looks: tuple[Look, ...] = (Look(prices, np.ones(actions.count, bool), None),)
    else:
        looks = tuple(_read_look(look, states, actions, terminal) for look in data.get("measurements") or [])
    for look in looks:
        look.prices[terminal] = 0.0
    passive = data.get("passive")
    free = False if passive is None else _read_look(passive, states, actions, terminal).law
    shown = data.get("reveal_start")
    if shown is None:
        shown = len(looks) == 1 and looks[0].law is None and free is False
    discount = _real(data["discount"])
    if not 0 < discount <= 1:
        raise BadInputError(f"the discount is {discount}")
    return Problem(
        Contents(
            discount,
            terminal,
            starts,
            chances,
            bool(shown) or len(starts) == 1,
            offsets,
            np.array([entry[0] for entry in entries]),
            probabilities,
            np.array([entry[2] for entry in entries]),
            by_successor,
            looks,
            free,
        )
    )


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadInputError(f"{str(value)[:60]!r} is not a finite number")
    return float(value)


def _check_sums(probabilities: Array, offsets: Array, what: str, skipped: Array | None = None) -> None:
    """Check that rows are distributions, as they are in files that actmeasure wrote."""
    sums = np.bincount(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), probabilities, len(offsets) - 1)
    wrong = (np.abs(sums - 1.0) > ROW_ERROR) & (np.diff(offsets) > 0)
    if (probabilities < 0).any() or wrong.any():
        raise BadInputError(
            f"probabilities of {what} are below 0 or sum to {sums[wrong].max(initial=1.0)!r}, expected "
            f"1; a file that was written by hand is to be "
            "saved by actmeasure first (Model.load(...).save(...)), which rescales them"
        )


def _read_look(given: dict[str, Any], states: _Names, actions: _Names, terminal: Array) -> Look:
    prices, cost = np.zeros((states.count, actions.count)), given.get("cost", 0.0)
    if isinstance(cost, dict):
        for name, row in cost.items():
            for action, price in row.items():
                prices[states.number(name), actions.number(action)] = _real(price)
    else:
        prices[:] = _real(cost)
    allowed = np.zeros(actions.count, bool)
    allowed[
        [actions.number(action) for action in given["with_actions"]]
        if given.get("with_actions") is not None
        else slice(None)
    ] = True
    if given["kind"] == "exact":
        return Look(prices, allowed, None)
    outcomes = _Names(given["outcomes"], max(states.count, 10_000_000))
    by_action = given.get("probabilities_by_action") is not None
    laws = (
        {actions.number(name): law for name, law in given["probabilities_by_action"].items()}
        if by_action
        else {0: given["probabilities"]}
    )
    rows: list[list[tuple[int, float]]] = [[] for _ in range(states.count * (actions.count if by_action else 1))]
    for action, law in laws.items():
        for name, row in law.items():
            state = states.number(name)
            if not terminal[state]:
                rows[action * states.count + state] = sorted(
                    (outcomes.number(outcome), _real(chance)) for outcome, chance in row.items() if chance != 0
                )
    counts = np.array([len(row) for row in rows])
    if (counts.reshape(-1, terminal.size)[:, ~terminal] == 0).any():
        raise BadInputError("a measurement has no outcomes in a state that is not terminal")
    entries = [entry for row in rows for entry in row]
    offsets, chances = np.concatenate([[0], np.cumsum(counts)]), np.array([entry[1] for entry in entries])
    _check_sums(chances, offsets, "outcomes")
    return Look(prices, allowed, Law(by_action, offsets, np.array([entry[0] for entry in entries]), chances))


def main(arguments: list[str] | None = None) -> int:
    """Run the program and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if "--help" in given or "-h" in given:
        print(
            "usage: python -m actmeasure.check_certificate model.json certificate.npz\n\n"
            "Verify the bounds of a certificate (am.certificate(solution).save(path), actmeasure solve --certificate path)\n"
            "against a model (Model.save), with NumPy alone.\n\n"
            "Exit codes: 0 verified; 1 refused; 2 bad input; 4 not covered."
        )
        return VERIFIED
    if len(given) != 2:
        print("expected two files: model.json certificate.npz; see --help", file=sys.stderr)
        return BAD_INPUT
    place = given[0]
    try:
        problem = read_model(Path(place).read_bytes().decode("utf-8-sig"))
        place = given[1]
        about, data = read_certificate(Path(place).read_bytes())
        with np.errstate(all="ignore"):  # numbers that are not finite fail every inequality
            verified = check(problem, about, data)
    except (OSError, UnicodeDecodeError, MemoryError, BadInputError) as error:
        print(f"{place!r} cannot be read: {error or 'it is too large for the memory of this machine'}", file=sys.stderr)
        return BAD_INPUT
    except UncoveredError as error:
        print(f"not covered: {error}", file=sys.stderr)
        return NOT_COVERED
    except RefusedError as error:
        print(f"refused: {error}", file=sys.stderr)
        return REFUSED
    print("\n".join(verified))
    return VERIFIED


if __name__ == "__main__":
    sys.exit(main())
