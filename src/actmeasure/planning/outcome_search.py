"""The general search, where looks are imperfect, partial or several; see `kernels/outcome_search.py` for the derivation.

`OutcomeSearch` prepares a model (rows over decisions, slices, informed bounds, first vectors) and alternates trials and sweeps
within a budget; both bounds are sound at any time. It starts from the model's start belief, or from each state of it where the
start is shown. A life of a stationary model (`am.lifetime`) is searched on that model, with a layer of bounds for each number of
periods left.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from actmeasure import markov
from actmeasure.belief import Belief, running_belief
from actmeasure.decision import Decision
from actmeasure.errors import PlanError
from actmeasure.kernels import decision_rows, outcome_search
from actmeasure.kernels.decision_rows import Rows
from actmeasure.kernels.dynamics import EPSILON
from actmeasure.kernels.interpolation import make_programme
from actmeasure.kernels.outcome_search import Points, Vectors, Work
from actmeasure.kernels.tensor_grid import Grid
from actmeasure.model import Model
from actmeasure.model.finite_life import Lifetime
from actmeasure.model.system import Factors
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.bounds import mdp_values, repeat_values
from actmeasure.planning.budget import Budget, Stopped
from actmeasure.planning.solution import Plan
from actmeasure.planning.tensor_grid import tensor_grid
from actmeasure.policy import BeliefPolicy
from actmeasure.policy_graph import PolicyGraph

__all__ = ["RELATIVE_TOLERANCE", "DecisionRows", "OutcomeSearch", "outcome_plan"]

IntArray = npt.NDArray[np.int64]

#: Relative tolerance of searches where looks are not exact, unless another is asked for.
RELATIVE_TOLERANCE = 1e-3
#: Largest policy graph, in nodes and in pairs of node and state, that is made of the value vectors.
MOST_GRAPH_NODES, MOST_GRAPH_PAIRS = 20_000, 1_000_000
#: Largest number of entries of rows over (state, decision).
MOST_ENTRIES = 200_000_000
#: Largest size of the search in bytes, with what is copied while it grows.
MOST_BYTES = 6 << 30
#: All decisions of a node are followed at once where a model has at most this many.
MOST_EAGER = 30
#: Steps of the longest trial.
LONGEST_TRIAL = 2000
#: Sweeps of the informed bound end at this change, relative to the largest bound, or after this number.
INFORMED_PRECISION, MOST_INFORMED_SWEEPS = 1e-7, 2000
#: Stands for minus infinity where no plan with a finite value is known: a bound that is true, and can be computed with.
VERY_LOW = -1e250
#: Share of the time, and most seconds, for the grid of a system of components.
GRID_SHARE, GRID_SECONDS = 0.5, 40.0
#: Trials between two checks of the budget, at most, and the seconds that they should take.
MOST_TRIALS, FEW_SECONDS = 1000, 0.05
#: Most seconds, and trials for each decision, of the search that goes on where a belief is explained.
EXPLAINING_SECONDS, MOST_EXPLAINING_TRIALS = 2.0, 1000
#: Share of the time of trials that sweeps take.
SWEEP_SHARE = 0.15
#: Share of the time of trials that renewals take, and nodes between two looks at the clock.
RENEWAL_SHARE, RENEWED_AT_ONCE = 0.5, 2000


def outcome_plan(model: Model, budget: Budget, tolerance: float, relative: float | None = None) -> Plan:
    """Return the plan of a search: a policy of value vectors, bounds on the optimum, and the vectors as a policy graph."""
    with budget.deferred_interrupts():  # so that Ctrl-C while the first bounds are computed ends the search with these
        search = OutcomeSearch(model, budget)
        stopped = search.run(tolerance, RELATIVE_TOLERANCE if relative is None else relative)
    budget.spent = search.n_nodes
    return Plan(
        None,
        upper=search.upper,
        lower=search.lower,
        stopped=stopped,
        graph=search.policy_graph(),
        policy=BeliefPolicy(model, search.decide_at),
        search=search,
    )


@dataclass(frozen=True, eq=False)
class DecisionRows:
    """Rows over (state, decision) of a model, before any bounds; see `kernels/decision_rows.py`.

    Attributes
    ----------
    decisions : list of Decision
    outcomes : int64 array, shape (n_groups,)
        The outcome of each group, -1 for nothing seen.
    n_slices : int
    arrays : dict
        The fields of `Rows`.
    """

    decisions: list[Decision]
    outcomes: IntArray
    n_slices: int
    arrays: dict[str, Any]

    @classmethod
    def of(cls, model: Model) -> DecisionRows:
        """Return the rows of a model."""
        decisions = [Decision(int(a), int(m)) for a, m in np.argwhere(model.allowed_decisions)]
        n, n_states = len(decisions), model.n_states
        parts = [_entries(model, number, decision) for number, decision in enumerate(decisions)]
        if sum(len(part.states) for part in parts) > MOST_ENTRIES:
            raise PlanError(
                f"the model has more than {MOST_ENTRIES:,} combinations of state, decision, successor and outcome, too many to "
                "search; use POMCP, or a model with fewer outcomes"
            )
        states, number, outcomes, successors, chances = (
            np.concatenate([getattr(part, name) for part in parts]) for name in _Entries._fields
        )
        order = np.argsort(states * n + number, kind="stable")
        states, number, outcomes, successors, chances = (
            array[order] for array in (states, number, outcomes, successors, chances)
        )
        counts = np.bincount(states * n + number, minlength=n_states * n)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        slice_of, n_slices = _slices(model, n, offsets, outcomes, successors)
        # Entries of states that are never reached are left out.
        keep = slice_of[states] >= 0
        states, number, outcomes, successors, chances = (
            array[keep] for array in (states, number, outcomes, successors, chances)
        )
        index = slice_of[states] * n + number
        order = np.lexsort((successors, outcomes, index))
        different = np.zeros(len(order), dtype=bool)
        other_group = np.zeros(len(order), dtype=bool)
        if len(order):
            different[0] = other_group[0] = True
            for key in (index, outcomes):
                other_group[1:] |= key[order][1:] != key[order][:-1]
            different |= other_group
            different[1:] |= successors[order][1:] != successors[order][:-1]
        slot_of = np.empty(len(order), dtype=np.int64)
        slot_of[order] = np.cumsum(different) - 1
        first = order[different]  # an entry of each slot
        slot_state = successors[first]
        group_first = order[other_group]
        group_slots = np.append(slot_of[group_first], len(first))
        groups = np.searchsorted(index[group_first], np.arange(n_slices * n + 1))
        rows = np.lexsort((slot_of, states * n + number))
        counts = np.bincount(states * n + number, minlength=n_states * n)
        members = np.flatnonzero(slice_of >= 0)
        members = members[np.argsort(slice_of[members], kind="stable")]
        sizes = np.bincount(slice_of[members], minlength=n_slices)
        slice_offsets = np.concatenate([[0], np.cumsum(sizes)])
        position = np.full(n_states, -1, dtype=np.int32)
        position[members] = np.arange(len(members)) - slice_offsets[slice_of[members]]
        rewards = np.column_stack([_rewards(model, decision) for decision in decisions])
        return cls(
            decisions,
            outcomes[group_first],
            n_slices,
            {
                "n_decisions": n,
                "rewards": np.ascontiguousarray(rewards).ravel(),
                "offsets": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
                "slots": slot_of[rows],
                "probabilities": chances[rows],
                "groups": groups.astype(np.int64),
                "group_slots": group_slots.astype(np.int64),
                "group_slice": slice_of[slot_state[group_slots[:-1]]].astype(np.int64),
                "slot_state": slot_state.astype(np.int32),
                "slice_of": slice_of.astype(np.int32),
                "position": position,
                "slice_offsets": slice_offsets.astype(np.int64),
                "slice_states": members.astype(np.int32),
            },
        )


class _Entries(NamedTuple):
    states: IntArray
    numbers: IntArray
    outcomes: IntArray
    successors: IntArray
    chances: FloatArray


def _entries(model: Model, number: int, decision: Decision) -> _Entries:
    """Return state, decision, outcome, successor and probability of all entries of one decision."""
    table, n_actions = model.transitions, model.n_actions
    first = np.arange(model.n_states) * n_actions + decision.action
    sizes = table.offsets[first + 1] - table.offsets[first]
    entries = _ranges(table.offsets[first], sizes)
    states = np.repeat(np.arange(model.n_states), sizes)
    successors, chances = table.successors[entries].astype(np.int64), table.probabilities[entries]
    running = ~model.terminal[successors] & (chances > 0)
    states, successors, chances = states[running], successors[running], chances[running]
    shows = model.shown_by(decision.measurement)
    if shows is None:
        outcomes = np.full(len(states), -1, dtype=np.int64)
    elif shows.law is None:
        outcomes = successors
    else:
        law = shows.law
        seen = successors + (decision.action * model.n_states if law.by_action else 0)
        sizes = law.offsets[seen + 1] - law.offsets[seen]
        entries = _ranges(law.offsets[seen], sizes)
        outcomes = law.outcomes[entries].astype(np.int64)
        states, successors = np.repeat(states, sizes), np.repeat(successors, sizes)
        chances = np.repeat(chances, sizes) * law.probabilities[entries]
        possible = chances > 0
        states, successors, outcomes, chances = (
            states[possible],
            successors[possible],
            outcomes[possible],
            chances[possible],
        )
    return _Entries(states, np.full(len(states), number), outcomes, successors, chances)


def _ranges(first: npt.NDArray[Any], sizes: npt.NDArray[Any]) -> IntArray:
    """Return first[i], first[i] + 1, ... for sizes[i] numbers each, one after the other."""
    inside = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(np.repeat(first, sizes) + inside, dtype=np.int64)


def _rewards(model: Model, decision: Decision) -> FloatArray:
    rewards = model.rewards[:, decision.action].copy()
    if decision.measurement:
        prices = model.measurements[decision.measurement - 1].table(model.n_states, model.n_actions)
        rewards -= prices[:, decision.action]
    return rewards


def _slices(model: Model, n: int, offsets: IntArray, outcomes: IntArray, successors: IntArray) -> tuple[IntArray, int]:
    """Return the slice of each state, -1 for states that are never reached, and the number of slices."""
    n_states, starts = model.n_states, model.initial_states
    capacity = 1 << max(10, int(4 * len(outcomes)).bit_length())
    while True:
        parents = np.arange(n_states)
        following, last, size = np.full(n_states, -1), np.arange(n_states), np.zeros(n_states, dtype=np.int64)
        size[starts] = 1
        if not model.reveal_start:
            parents[starts] = starts[0]
            following[starts[:-1]] = starts[1:]
            last[starts[0]], size[starts[0]] = starts[-1], len(starts)
        queue = np.zeros(int(n_states * (math.log2(n_states + 1) + 3)), dtype=np.int64)
        queue[: len(starts)] = starts
        reached = decision_rows.merge_slices(
            n,
            offsets,
            outcomes,
            successors,
            parents,
            following,
            last,
            size,
            queue,
            np.full(capacity, -1),
            np.zeros(capacity, dtype=np.int64),
            len(starts),
        )
        if reached >= 0:
            break
        capacity *= 4
    while not np.array_equal(parents, parents[parents]):
        parents = parents[parents]
    slice_of = np.full(n_states, -1, dtype=np.int64)
    found = size > 0
    roots, slice_of[found] = np.unique(parents[found], return_inverse=True)
    return slice_of, len(roots)


class OutcomeSearch:
    """A search for the optimum of any model that can be stopped and continued at any time.

    Parameters
    ----------
    model : Model
    budget : Budget
        It may be replaced by another one between two calls of `run`.
    """

    def __init__(self, model: Model, budget: Budget) -> None:
        self.model, self.budget = model, budget
        origin = model.origin
        #: The model that is searched, the number of decisions (0 for an unlimited horizon) and the values at their end.
        self.base, self.periods, self.final = model, 0, np.zeros(model.n_states)
        if isinstance(origin, Lifetime) and origin.is_stationary:
            self.base, self.periods = origin.models[0], origin.periods
            self.final = np.zeros(self.base.n_states) if origin.final is None else origin.final
        self.made = DecisionRows.of(self.base)
        self._first_bounds(budget)
        self._make_room_for_search()
        self._first_vectors()
        #: The bound of independent components, where the model is a system of these.
        self.grid: Grid | None = None
        if isinstance(model.origin, Factors):
            self.grid = tensor_grid(model, budget.part(GRID_SHARE, GRID_SECONDS)).kernel
        self.starts, self.weights = self._start_nodes()
        self._trials, self._sweep_row, self._work = 1, -1, 0
        self._stop: Stopped | None = None
        self._renewal_place = 0
        budget.note(self.lower, self.upper)

    # Preparation

    def _first_bounds(self, budget: Budget) -> None:
        """Compute the informed bounds, the values of repeating an action, and from them the slack."""
        base, discount, arrays = self.base, self.model.discount, self.made.arrays
        n, n_states = arrays["n_decisions"], base.n_states
        rewards = arrays["rewards"].reshape(n_states, n)
        shift, layers = (1, self.periods + 1) if self.periods else (0, 1)
        informed = np.zeros((layers, n_states * n))
        rows = Rows(discount=discount, shift=shift, slack=0.0, floor=0.0, informed=informed, **arrays)
        running = arrays["slice_of"] >= 0
        sums = np.zeros(n)
        if self.periods:
            self.blind = np.zeros((layers, n_states, base.n_actions))
            informed[0] = np.repeat(np.where(running, self.final, 0.0), n)
            self.blind[0] = self.final[:, None]
            for layer in range(1, layers):
                self.blind[layer] = self._repeated_once(self.blind[layer - 1])
            rows = rows._replace(floor=self._least_value())
            for layer in range(1, layers):
                informed[layer] = np.inf
                scale = float(np.abs(informed[layer - 1]).max())
                decision_rows.informed_sweep(rows, n_states, layer, layer - 1, scale, sums)
                informed[layer][~np.isfinite(informed[layer])] = 0.0
        else:
            values = mdp_values(base, budget)
            budget.note(-math.inf, float(base.initial_probabilities @ values[base.initial_states]))
            table = base.transitions.stacked() @ np.where(base.terminal, 0.0, values)
            following = np.asarray(table).reshape(n_states, base.n_actions)
            actions = [decision.action for decision in self.made.decisions]
            error = EPSILON * 4 * (16 + int(np.diff(base.transitions.offsets).max()))
            first = rewards + discount * following[:, actions]
            first += error * (np.abs(rewards) + discount * np.abs(values).max())
            self.blind = self._repeated()[None]
            rows = rows._replace(floor=self._least_value())
            first = np.maximum(first, rows.floor)
            first[base.terminal] = 0.0
            informed[0] = first.ravel()
            for _ in range(MOST_INFORMED_SWEEPS):
                scale = float(np.abs(informed).max())
                change = decision_rows.informed_sweep(rows, n_states, 0, 0, scale, sums)
                if change <= INFORMED_PRECISION * scale or budget.is_out_of_time:
                    break
        # What is added up to a bound above the floor is at most this in absolute value, negative rewards included.
        size = (
            2 * max(float(informed.max()), 0.0)
            - rows.floor
            + max(float(rewards.max()), 0.0)
            + float(np.abs(informed).max())
        )
        terms = 4 * int(np.diff(arrays["offsets"]).max()) + 4 * int(np.diff(arrays["slice_offsets"]).max()) + 64
        slack = (outcome_search.DELTA + EPSILON * terms) * size
        self.rows = rows._replace(slack=slack)

    def _least_value(self) -> float:
        """Return a number, 0 or less, that the value of no belief is below: each slice has an action to repeat that earns it."""
        lowest, members = 0.0, self.made.arrays["slice_states"]
        for values in self.blind:
            least = np.full((self.made.n_slices, self.base.n_actions), np.inf)
            np.minimum.at(least, self.made.arrays["slice_of"][members], values[members])
            lowest = min(lowest, float(least.max(axis=1).min()))
        if lowest <= VERY_LOW / 2:  # without discount: nothing can be said about rounding, then
            raise PlanError(
                "without discount, no action that is repeated is sure to end the episode from every state that beliefs mix, so "
                "that no bound can be proved; use a discount below 1, or a finite life (am.lifetime)"
            )
        return lowest

    def _repeated(self) -> FloatArray:
        """Return lower bounds on the values of repeating an action without end, shape (S, A)."""
        if self.model.discount < 1:
            return repeat_values(self.base, self.budget)
        return self._repeated_undiscounted()

    def _repeated_undiscounted(self) -> FloatArray:
        """Return the same without discount: proved by v <= R + P v, where the episode surely ends; otherwise `VERY_LOW`."""
        model = self.base
        running = np.flatnonzero(~model.terminal)
        values = np.full((model.n_states, model.n_actions), VERY_LOW)
        values[model.terminal] = 0.0
        for action in range(model.n_actions):
            taken = model.transitions.stacked()[running * model.n_actions + action]
            moves = taken[:, running]
            leaks: FloatArray = np.asarray(taken[:, np.flatnonzero(model.terminal)].sum(axis=1)).ravel()
            rewards = model.rewards[running, action]
            try:
                recurrent = markov.recurrence(moves, leaks, np.full(len(running), 1 / len(running)))
                sums = markov.undiscounted_values(moves, recurrent, np.column_stack([rewards, np.ones(len(running))]))
            except markov.RoundingError:
                continue
            finite = np.isfinite(sums).all(axis=1)
            # A margin for each step that is expected, so that the inequality survives rounding.
            scale = 1e-12 * (float(np.abs(rewards).max()) + float(np.abs(sums[finite]).max(initial=0.0)))
            claimed = np.where(finite, sums[:, 0] - scale * sums[:, 1], VERY_LOW)
            ahead = np.asarray(moves @ claimed).ravel() + rewards
            proved = finite & (claimed <= ahead - 1e-14 * (np.abs(rewards) + moves @ np.abs(claimed)))
            # A state from which one that is not proved is reached is not proved either.
            while True:
                lost = proved & (np.asarray(moves @ (~proved).astype(float)).ravel() > 0)
                if not lost.any():
                    break
                proved &= ~lost
            values[running, action] = np.where(proved, claimed, VERY_LOW)
        return values

    def _repeated_once(self, before: FloatArray) -> FloatArray:
        """Return lower bounds on the values of repeating an action once more than in `before`, shape (S, A)."""
        model = self.base
        after = np.where(model.terminal[:, None], 0.0, before)
        result = np.empty_like(before)
        table = model.transitions.stacked()
        terms = 16 + int(np.diff(model.transitions.offsets).max())
        for action in range(model.n_actions):
            rows = table[np.arange(model.n_states) * model.n_actions + action]
            size = np.abs(model.rewards[:, action]) + np.asarray(rows @ np.abs(after[:, action])).ravel()
            ahead = model.rewards[:, action] + self.model.discount * np.asarray(rows @ after[:, action]).ravel()
            result[:, action] = ahead - 4 * EPSILON * terms * size
        result[model.terminal] = 0.0
        return result

    def _make_room_for_search(self) -> None:
        """Allocate nodes, vectors and scratch memory."""
        arrays, layers = self.made.arrays, len(self.rows.informed)
        n, n_slices = arrays["n_decisions"], self.made.n_slices
        sizes = np.diff(arrays["slice_offsets"])
        groups, slots = arrays["groups"], arrays["group_slots"]
        most_groups = int(np.diff(groups).max())
        most_slots = int(np.diff(slots[groups]).max())
        most_states = int(sizes.max())
        self.work = Work(
            mass=np.zeros(max(most_slots, 1)),
            states=np.zeros(max(most_states, 1), np.int32),
            probabilities=np.zeros(max(most_states, 1)),
            place=np.full(self.base.n_states, -1, np.int32),
            slot_value=np.zeros(max(most_slots, 1)),
            vector=np.zeros(most_states),
            chosen=np.zeros(max(most_groups, 1), np.int32),
            path=np.zeros((LONGEST_TRIAL if not self.periods else self.periods + 1, 2), np.int64),
            bounds=np.zeros((n, layers)),
            linear=np.zeros((n, layers)),
            mixed=np.zeros(n),
            order=np.zeros(n, bool),
            totals=np.zeros(layers),
            highest=np.zeros(layers),
            matched=np.zeros(256, np.int32),
            ratio=np.zeros(256),
            tally=np.zeros(129, np.int64),
        )
        self.eager = n <= MOST_EAGER
        followed = n if self.eager else 2
        nodes, node_entries = 2048 + 2 * followed * most_groups, 8192 + 2 * followed * most_slots
        n_rows = 256
        self.points = Points(
            counts=np.zeros(6, np.int64),
            begin=np.zeros(nodes + 1, np.int64),
            states=np.zeros(node_entries, np.int32),
            probabilities=np.zeros(node_entries),
            slice_of=np.zeros(nodes, np.int32),
            mask=np.zeros(nodes, np.int64),
            table=np.full(_table_size(nodes), -1, np.int32),
            upper=np.zeros((nodes, layers)),
            lower=np.zeros((nodes, layers)),
            best=np.zeros((nodes, layers), np.int32),
            checked=np.zeros((nodes, layers), np.int32),
            interpolated=np.zeros(nodes, np.int64),
            visited=np.zeros(nodes, np.int64),
            row=np.zeros(nodes, np.int32),
            last_row=np.full(n_slices, -1, np.int32),
            node_of_row=np.zeros(n_rows, np.int32),
            row_before=np.zeros(n_rows, np.int32),
            row_mask=np.zeros(n_rows, np.int64),
            bound=np.zeros((n_rows * n, layers)),
            linear=np.zeros((n_rows * n, layers)),
            reward=np.zeros(n_rows * n),
            child=np.zeros(n_rows * n, np.int64),
            child_node=np.zeros(2 * followed * most_groups + 4096, np.int32),
            child_chance=np.zeros(2 * followed * most_groups + 4096),
            mix_first=np.zeros(nodes, np.int64),
            mix_number=np.zeros(nodes, np.int32),
            mix_others=np.zeros((nodes, layers)),
            mix_decision=np.zeros(256 + 4 * n, np.int32),
            mix_linear=np.zeros((256 + 4 * n, layers)),
            mix_begin=np.zeros(256 + 4 * n, np.int64),
            mix_end=np.zeros(256 + 4 * n, np.int64),
            mix_row=np.zeros(4096 + 4 * n * most_states, np.int32),
            mix_weight=np.zeros(4096 + 4 * n * most_states),
        )
        n_first = n_slices * self.base.n_actions * layers
        n_values = int(sizes.sum()) * self.base.n_actions * layers
        blind = [self._decision_number(action, 0) for action in range(self.base.n_actions)]
        n_plans = layers * int(sum(np.diff(groups)[d::n].sum() for d in blind))
        capacity = n_first + 1024
        # A chunk has columns for several vectors of a slice and layer.
        width, per_slice = outcome_search.WIDTH, -(-self.base.n_actions // outcome_search.WIDTH) * layers
        n_chunks, n_columns = per_slice * n_slices + 128, width * (per_slice * int(sizes.sum()) + 128 * most_states)
        self.vectors = Vectors(
            counts=np.zeros(5, np.int64),
            begin=np.zeros(capacity, np.int64),
            values=np.zeros(n_values + 1024 * most_states),
            slice_of=np.zeros(capacity, np.int32),
            layer=np.zeros(capacity, np.int32),
            decision=np.zeros(capacity, np.int32),
            plan=np.zeros(capacity, np.int64),
            plans=np.zeros(n_plans + 64 * most_groups + 4096, np.int32),
            last=np.full((n_slices, layers), -1, np.int32),
            before=np.zeros(capacity, np.int32),
            column=np.zeros(capacity, np.int64),
            last_chunk=np.full((n_slices, layers), -1, np.int32),
            spare_chunk=np.full((n_slices, layers), -1, np.int32),
            n_columns=np.zeros((n_slices, layers), np.int32),
            n_alive=np.zeros((n_slices, layers), np.int32),
            chunk_before=np.zeros(n_chunks, np.int32),
            chunk_begin=np.zeros(n_chunks, np.int64),
            chunk_vector=np.zeros(width * n_chunks, np.int32),
            chunk_values=_aligned(n_columns),
        )
        self.interpolates = True
        most = outcome_search.MOST_CANDIDATES
        self.programme = make_programme(most_states, most, most * min(most_states, 1000) + most_states)

    def _decision_number(self, action: int, measurement: int) -> int:
        return self.made.decisions.index(Decision(action, measurement))

    def _first_vectors(self) -> None:
        """Add the vectors of repeating an action, for each slice and layer, and those of the end of a finite life."""
        rows, vectors, base = self.rows, self.vectors, self.base
        n_actions, n, n_slices = base.n_actions, rows.n_decisions, self.made.n_slices
        sizes = np.diff(rows.slice_offsets)
        for layer in range(len(rows.informed)):
            is_end = bool(self.periods) and layer == 0
            for action in range(1 if is_end else n_actions):
                decision = self._decision_number(action, 0)
                first = int(vectors.counts[outcome_search.VECTORS])
                numbers = first + np.arange(n_slices)
                begin = int(vectors.counts[outcome_search.VALUES])
                vectors.begin[numbers] = begin + rows.slice_offsets[:-1]
                vectors.values[begin : begin + sizes.sum()] = self.blind[layer][rows.slice_states, action]
                vectors.slice_of[numbers] = np.arange(n_slices)
                vectors.layer[numbers] = layer
                vectors.decision[numbers] = -1 if is_end else decision
                vectors.before[numbers] = vectors.last[:, layer]
                vectors.last[:, layer] = numbers
                plans = int(vectors.counts[outcome_search.PLANS])
                vectors.plan[numbers] = plans
                if not is_end:
                    index = np.arange(n_slices) * n + decision
                    counts = rows.groups[index + 1] - rows.groups[index]
                    vectors.plan[numbers] = plans + np.cumsum(counts) - counts
                    # The same action, in the slice that follows; behind the last period the only vector of its slice.
                    goal = rows.group_slice[_ranges(rows.groups[index], counts)]
                    of_layer = first if not self.periods else self._first_of(layer - 1, action)
                    vectors.plans[plans : plans + len(goal)] = of_layer + goal
                    vectors.counts[outcome_search.PLANS] += len(goal)
                vectors.counts[outcome_search.VECTORS] += n_slices
                vectors.counts[outcome_search.VALUES] += int(sizes.sum())
        outcome_search.chunk_vectors(rows, vectors)
        #: Number of vectors that repeat an action, which make no measurement.
        self._n_first = int(vectors.counts[outcome_search.VECTORS])

    def _first_of(self, layer: int, action: int) -> int:
        """Return the number of the first of the vectors that repeat an action in a layer of a finite life."""
        return 0 if layer == 0 else self.made.n_slices * (1 + (layer - 1) * self.base.n_actions + action)

    def _start_nodes(self) -> tuple[IntArray, FloatArray]:
        base = self.base
        if base.start_is_known:
            beliefs = [(np.array([s]), np.ones(1)) for s in base.initial_states]
            weights = base.initial_probabilities
        else:
            beliefs, weights = [(base.initial_states, base.initial_probabilities)], np.ones(1)
        nodes = []
        for states, probabilities in beliefs:
            self._ensure_room()
            nodes.append(self._node(states.astype(np.int64), probabilities))
        return np.array(nodes, dtype=np.int64), np.array(weights, dtype=np.float64)

    def _node(self, states: IntArray, probabilities: FloatArray) -> int:
        return outcome_search.add_node(self.rows, self.points, self.grid, self.work, states, probabilities)

    # State of the search

    @property
    def layer(self) -> int:
        """The layer of the start: the number of decisions, 0 for an unlimited horizon."""
        return self.periods

    @property
    def _horizon(self) -> float:
        """The number of steps over which slack adds up, at most 100."""
        return min(self.periods or math.inf, 1 / max(1 - self.rows.discount, 0.01))

    @property
    def lower(self) -> float:
        """Lower bound on the optimum from the start."""
        if not hasattr(self, "starts"):
            return -math.inf
        value = float(self.weights @ np.maximum(self.points.lower[self.starts, self.layer], VERY_LOW))
        return value - self.rows.slack

    @property
    def upper(self) -> float:
        """Upper bound on the optimum from the start."""
        return float(self.weights @ self.points.upper[self.starts, self.layer]) + self.rows.slack

    @property
    def n_nodes(self) -> int:
        """Number of beliefs in the graph."""
        return int(self.points.counts[outcome_search.NODES])

    @property
    def n_vectors(self) -> int:
        """Number of value vectors that are not dominated by another one."""
        return int(self.vectors.n_alive.sum())

    def is_closed(self, tolerance: float, relative: float) -> bool:
        """Whether upper - lower is at most `tolerance`, or the share `relative` of |upper|."""
        upper = self.upper
        return upper - self.lower <= max(tolerance, relative * abs(upper))

    def run(self, tolerance: float, relative: float = 0.0) -> Stopped:
        """Search until the bounds are within the tolerance or the budget is over; returns why it stopped."""
        self._raise_lower()
        credit, before = 0.0, ""
        with self.budget.deferred_interrupts():
            while not (stopped := self._stopped(tolerance, relative)):
                begun = self.budget.elapsed
                closed = max(tolerance, relative * abs(self.upper))
                if not self._ensure_room():
                    continue
                full = outcome_search.run_trials(
                    self.rows,
                    self.points,
                    self.vectors,
                    self.programme,
                    self.grid,
                    self.work,
                    self.starts,
                    self.weights,
                    self.layer,
                    self._trials,
                    0.5 * closed,
                    self.eager,
                    self.interpolates,
                )
                spent = self.budget.elapsed - begun
                if full != outcome_search.FULL and spent < FEW_SECONDS:
                    self._trials = min(2 * self._trials, MOST_TRIALS)
                elif spent > 4 * FEW_SECONDS:
                    self._trials = max(1, self._trials // 2)
                credit += SWEEP_SHARE * spent
                self._renew(RENEWAL_SHARE * spent)
                if credit > 0.02:
                    credit -= self._sweep(credit)
                self._raise_lower()
                self.budget.note(self.lower, self.upper)
                found = self._state()
                if found == before and not self._stop:  # nothing new at the start: is there elsewhere?
                    found = self._state(whole=True)
                    self._sweep(math.inf, once=True)
                    self._raise_lower()
                    self._stop = "exhausted" if found == self._state(whole=True) else None
                    found = ""
                before = found
        return stopped

    def _state(self, whole: bool = False) -> str:
        """Return what changes when anything does: sizes and bounds at the start; of all nodes if `whole`."""
        points, n = self.points, self.n_nodes
        parts = [self.lower, self.upper, points.counts.tolist(), self.vectors.counts.tolist()]
        if whole:
            cells = int(points.counts[outcome_search.ROWS]) * self.rows.n_decisions
            parts += [float(points.upper[:n].sum()), float(points.bound[:cells].sum())]
        return repr(parts)

    def _sweep(self, seconds: float, once: bool = False) -> float:
        """Sweep for some seconds, or over all rows once; returns the seconds it took."""
        begun = self.budget.elapsed
        if once:
            self._sweep_row = -1
        while self.budget.elapsed - begun < seconds:
            if not self._ensure_room():
                break
            if self._sweep_row < 0:
                self._sweep_row = int(self.points.counts[outcome_search.ROWS]) - 1
            row = outcome_search.sweep(
                self.rows,
                self.points,
                self.vectors,
                self.programme,
                self.grid,
                self.work,
                self._sweep_row,
                50,
                self.upper - self.lower,
                self.interpolates,
            )
            self._sweep_row = self._sweep_row if row == -2 else row
            if once and (row == -1 or self.budget.is_over):
                break
        return self.budget.elapsed - begun

    def _renew(self, seconds: float) -> None:
        """Go on with a renewal of all bounds from above for some seconds, or until it is done."""
        begun = self.budget.elapsed
        if self._renewal_place == 0:
            self._renewal_place = self.n_nodes + int(self.points.counts[outcome_search.ROWS])
        while self._renewal_place > 0 and self.budget.elapsed - begun < seconds:
            self._renewal_place = outcome_search.renew(
                self.rows, self.points, self.work, self._renewal_place, RENEWED_AT_ONCE
            )

    def _raise_lower(self) -> None:
        """Compare the starts with the latest vectors."""
        outcome_search.run_trials(
            self.rows,
            self.points,
            self.vectors,
            self.programme,
            self.grid,
            self.work,
            self.starts,
            self.weights,
            self.layer,
            1,
            np.inf,
            self.eager,
            self.interpolates,
        )

    def _stopped(self, tolerance: float, relative: float) -> Stopped | None:
        if self.is_closed(tolerance, relative):
            return "closed"
        if self.upper - self.lower <= 4 * self.rows.slack * self._horizon:
            return "exhausted"  # as close as rounding allows
        self.budget.spent = self.n_nodes
        return self._stop or self.budget.stops()

    # What is returned

    def belief_and_layer(self, belief: Belief) -> tuple[Belief, int]:
        """Return a belief over the states that are searched, and the number of periods left; 0 for an unlimited horizon."""
        running_belief(self.model, belief)
        if not self.periods:
            return belief, 0
        running = np.flatnonzero(~self.base.terminal)
        period, number = np.divmod(belief.states, len(running))
        if len(np.unique(period)) != 1 or period[0] >= self.periods:
            raise PlanError(
                f"the belief {belief!r} mixes periods, or is not one of a running episode; the period is always known"
            )
        return Belief(running[number], belief.probabilities), self.periods - int(period[0])

    def decision_bounds(self, belief: Belief) -> FloatArray:
        """Return lower bounds on the value of each decision in a belief, then going on with the best vectors, shape (D,).

        In a belief that mixes slices, or has states that are not reached from the start, these are the linear bounds from above.
        """
        own, layer = self.belief_and_layer(belief)
        slices = self.rows.slice_of[own.states]
        result = np.empty(self.rows.n_decisions)
        if slices[0] < 0 or (slices != slices[0]).any():
            table = self.rows.informed[layer].reshape(self.base.n_states, -1)
            return np.asarray(own.probabilities @ table[own.states])
        outcome_search.look_ahead(
            self.rows, self.vectors, self.work, own.states.astype(np.int64), own.probabilities, layer, result
        )
        return result

    def decision_bounds_at(self, belief: Belief) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds on the value of each decision in a belief, each of shape (D,).

        A search bounds the decisions that are best closely, and others only as far as that needs. So a copy of it goes on for a
        short time from what may be seen after each decision, until the bounds are as close as at the start. The lower bounds are
        then those of `decision_bounds`, the upper ones one step ahead of those of the beliefs that follow, or linear; both are
        rounded outwards. Only beliefs that may come up have value vectors: others are refused.
        """
        own, layer = self.belief_and_layer(belief)
        slices = self.rows.slice_of[own.states]
        if (slices < 0).any() or (slices != slices[0]).any():
            raise PlanError(
                f"the belief {belief!r} cannot come up from the start of this model: it has states that are never reached, or "
                "that can always be told apart; give a belief that follows from the start, by Belief.update"
            )
        table = self.rows.informed[layer].reshape(self.base.n_states, -1)
        upper = np.asarray(own.probabilities @ table[own.states])
        rewards = own.probabilities @ self.rows.rewards.reshape(self.base.n_states, -1)[own.states]
        further = self._copied()
        if not self.periods or layer > 1:
            budget = Budget(EXPLAINING_SECONDS)
            for number, decision in enumerate(self.made.decisions):
                ahead = further._bound_after(own, decision, layer - self.rows.shift, budget)
                upper[number] = min(upper[number], rewards[number] + self.rows.discount * ahead)
        else:  # after the last decision, the values at the end are known
            upper = np.minimum(upper, self.decision_bounds(belief))
        lower = further.decision_bounds(belief) - self.rows.slack
        return lower, np.maximum(upper + 2 * self.rows.slack, lower)

    def _copied(self) -> OutcomeSearch:
        """Return a search that can go on without changing this one."""
        result = copy.copy(self)
        result.points = Points(*(array.copy() for array in self.points))
        result.vectors = Vectors(*(array.copy() for array in self.vectors))
        return result

    def _bound_after(self, belief: Belief, decision: Decision, layer: int, budget: Budget) -> float:
        """Search from what may be seen after a decision, for a short time; returns an upper bound on what follows."""
        base, (action, measurement) = self.base, (decision.action, decision.measurement)
        running = belief.running_probability(base, action)
        chances = belief.outcomes(base, action, measurement)
        possible = np.flatnonzero(chances).tolist()
        sees = base.shown_by(measurement) is not None
        nodes = []
        for outcome in possible:
            if not self._ensure_room():
                return math.inf
            after = belief.update(base, action, measurement, outcome if sees else None)
            nodes.append(self._node(after.states.astype(np.int64), after.probabilities))
        if not nodes:
            return 0.0
        starts, weights = np.array(nodes, dtype=np.int64), running * chances[possible]
        for _ in range(MOST_EXPLAINING_TRIALS):
            gap = float(weights @ (self.points.upper[starts, layer] - self.points.lower[starts, layer]))
            if gap <= self.upper - self.lower or budget.is_over or not self._ensure_room():
                break
            outcome_search.run_trials(
                self.rows, self.points, self.vectors, self.programme, self.grid, self.work, starts, weights, layer, 1,
                0.5 * (self.upper - self.lower), self.eager, self.interpolates,
            )  # fmt: skip
        return float(weights @ self.points.upper[starts, layer])

    def decide_at(self, belief: Belief) -> Decision:
        """Return the decision with the highest lower bound: it is worth at least the best vector, and so is what follows."""
        return self.made.decisions[int(np.argmax(self.decision_bounds(belief)))]

    def value_vectors(self) -> Iterator[tuple[Decision, IntArray, FloatArray]]:
        """Yield decision, states of the model, and values in them, of all vectors that are not dominated; rounded downwards."""
        vectors, rows, running = self.vectors, self.rows, np.flatnonzero(~self.base.terminal)
        place = np.zeros(self.base.n_states, dtype=np.int64)
        place[running] = np.arange(len(running))
        for in_slice in range(self.made.n_slices):
            states = rows.slice_states[rows.slice_offsets[in_slice] : rows.slice_offsets[in_slice + 1]].astype(np.int64)
            for layer in range(rows.shift, len(rows.informed)):
                # The states of a life are numbered by period, those of an ended episode come last.
                own = place[states] + (self.periods - layer) * len(running) if self.periods else states
                vector = int(vectors.last[in_slice, layer])
                while vector >= 0:
                    begin = int(vectors.begin[vector])
                    values = vectors.values[begin : begin + len(states)] - rows.slack
                    yield self.made.decisions[int(vectors.decision[vector])], own, values
                    vector = int(vectors.before[vector])

    def looks_of(self, weights: FloatArray, measurement: int) -> float:
        """Return the expected discounted sum of `weights`, shape (S, A), over the times that a measurement is made.

        It is that of the plans of the vectors that are best at the starts, of which `lower` is a bound: an upper bound on it and
        a lower bound differ by rounding only. Plans go on with earlier vectors, and the first vectors make no measurement.
        """
        vectors, rows = self.vectors, self.rows
        n, found = rows.n_decisions, dict[int, FloatArray]()
        points = self.points
        needed = {int(vector) for vector in points.best[self.starts, self.layer]}
        order, waiting = set(needed), list(needed)
        while waiting:
            vector = waiting.pop()
            if vector < self._n_first:
                continue
            for after in self._continuations(vector):
                if after not in order:
                    order.add(after)
                    waiting.append(after)
        for vector in sorted(order):
            in_slice = int(vectors.slice_of[vector])
            states = rows.slice_states[rows.slice_offsets[in_slice] : rows.slice_offsets[in_slice + 1]]
            found[vector] = np.zeros(len(states))
            if vector < self._n_first:
                continue
            number = int(vectors.decision[vector])
            decision, index = self.made.decisions[number], in_slice * n + number
            first, last = int(rows.groups[index]), int(rows.groups[index + 1])
            origin, end = int(rows.group_slots[first]), int(rows.group_slots[last])
            worth = np.zeros(end - origin)
            for group, after in zip(range(first, last), self._continuations(vector), strict=True):
                slots = slice(int(rows.group_slots[group]), int(rows.group_slots[group + 1]))
                worth[slots.start - origin : slots.stop - origin] = found[after][rows.position[rows.slot_state[slots]]]
            row = states.astype(np.int64) * n + number
            sizes = rows.offsets[row + 1] - rows.offsets[row]
            entries = _ranges(rows.offsets[row], sizes)
            ahead = rows.probabilities[entries] * worth[rows.slots[entries] - origin]
            sums = np.bincount(np.repeat(np.arange(len(states)), sizes), weights=ahead, minlength=len(states))
            found[vector] = np.asarray(rows.discount * sums, dtype=np.float64)
            if decision.measurement == measurement:
                found[vector] += weights[states, decision.action]
        total = 0.0
        for start, weight in zip(self.starts.tolist(), self.weights.tolist(), strict=True):
            belief = slice(int(points.begin[start]), int(points.begin[start + 1]))
            looks = found[int(points.best[start, self.layer])]
            total += weight * float(points.probabilities[belief] @ looks[rows.position[points.states[belief]]])
        return total

    def _continuations(self, vector: int) -> list[int]:
        """Return the vectors with which a vector goes on, one per group of its decision."""
        index = int(self.vectors.slice_of[vector]) * self.rows.n_decisions + int(self.vectors.decision[vector])
        count, plan = int(self.rows.groups[index + 1] - self.rows.groups[index]), int(self.vectors.plan[vector])
        return [int(after) for after in self.vectors.plans[plan : plan + count]]

    def policy_graph(self) -> PolicyGraph | None:
        """Return the controller whose nodes are the vectors that the best ones at the start lead to; None if it is too large."""
        vectors, groups = self.vectors, self.rows.groups
        number: dict[int, int] = {}
        order: list[int] = []

        def node_of(vector: int) -> int:
            if vector not in number:
                number[vector] = len(order)
                order.append(vector)
            return number[vector]

        starts = [node_of(int(vector)) for vector in self.points.best[self.starts, self.layer]]
        decisions: list[Decision] = []
        edges: list[dict[int | str | None, int]] = []
        pairs = 0
        while len(decisions) < len(order):
            vector = order[len(decisions)]
            x, d = int(vectors.slice_of[vector]), int(vectors.decision[vector])
            pairs += int(self.rows.slice_offsets[x + 1] - self.rows.slice_offsets[x])
            if len(order) > MOST_GRAPH_NODES or pairs > MOST_GRAPH_PAIRS:
                return None
            first, last = int(groups[x * self.rows.n_decisions + d]), int(groups[x * self.rows.n_decisions + d + 1])
            following = vectors.plans[int(vectors.plan[vector]) : int(vectors.plan[vector]) + last - first].tolist()
            outcomes = self.outcome_numbers(
                self.made.outcomes[first:last], self.made.decisions[d], int(vectors.layer[vector])
            )
            edges.append(
                {
                    None if outcome < 0 else outcome: node_of(int(after))
                    for outcome, after in zip(outcomes.tolist(), following, strict=True)
                    if vectors.decision[after] >= 0
                }
                or {None: len(decisions)}
            )
            decisions.append(self.made.decisions[d])
        if self.model.start_is_known and len(self.starts) > 1:
            return PolicyGraph(decisions, edges, dict(zip(self.model.initial_states.tolist(), starts, strict=True)))
        return PolicyGraph(decisions, edges, starts[0])

    def outcome_numbers(self, outcomes: IntArray, decision: Decision, layer: int) -> IntArray:
        """Return outcomes of a decision in a layer as numbers of the model: in a life, an exact look shows the period as well."""
        shows = self.base.shown_by(decision.measurement)
        if not self.periods or layer <= 1 or shows is None or shows.law is not None:
            return outcomes
        running = np.flatnonzero(~self.base.terminal)
        return np.searchsorted(running, outcomes) + (self.periods - layer + 1) * len(running)

    def _room_for_mixtures(self) -> dict[str, int]:
        """Drop mixtures that were replaced if there is little room; returns new sizes if that does not free half of it."""
        points, grown = self.points, dict[str, int]()
        n, most = 4 * self.rows.n_decisions, 4 * self.rows.n_decisions * len(self.work.vector)
        counts, numbers = points.counts, [outcome_search.MIXTURES, outcome_search.WEIGHTS]
        if (counts[numbers] + [n, most] < [len(points.mix_decision), len(points.mix_row)]).all():
            return grown
        self._drop_old_mixtures()
        mixtures, weights = counts[numbers].tolist()
        if 2 * (mixtures + n) >= len(points.mix_decision):
            size = 2 * len(points.mix_decision) + n
            grown |= dict.fromkeys(("mix_decision", "mix_linear", "mix_begin", "mix_end"), size)
        if 2 * (weights + most) >= len(points.mix_row):
            grown |= dict.fromkeys(("mix_row", "mix_weight"), 2 * len(points.mix_row) + most)
        return grown

    def _drop_old_mixtures(self) -> None:
        """Move the mixtures that nodes have now to the front, over those that were replaced."""
        points = self.points
        nodes = np.flatnonzero(points.mix_number[: self.n_nodes])
        nodes = nodes[np.argsort(points.mix_first[nodes], kind="stable")]
        numbers = points.mix_number[nodes].astype(np.int64)
        kept = _ranges(points.mix_first[nodes], numbers)
        first = np.cumsum(numbers) - numbers
        begins = points.mix_begin[kept]
        sizes = points.mix_end[kept] - begins
        weights = _ranges(begins, sizes)
        moved = begins - (np.cumsum(sizes) - sizes)
        points.mix_first[nodes] = first
        points.mix_row[: len(weights)] = points.mix_row[weights]
        points.mix_weight[: len(weights)] = points.mix_weight[weights]
        for array in (points.mix_begin, points.mix_end):
            array[: len(kept)] = array[kept] - moved
        for array in (points.mix_decision, points.mix_linear):
            array[: len(kept)] = array[kept]
        points.counts[outcome_search.MIXTURES] = len(kept)
        points.counts[outcome_search.WEIGHTS] = len(weights)

    def _room_for_vectors(self) -> dict[str, int]:
        """Return new sizes of the arrays of vectors that are nearly full."""
        vectors, work, more = self.vectors, self.work, dict[str, int]()
        n_vectors, values, plans, chunks, columns = vectors.counts.tolist()
        if n_vectors + 64 >= len(vectors.begin):
            size = 2 * len(vectors.begin)
            more |= dict.fromkeys(("begin", "slice_of", "layer", "decision", "plan", "before", "column"), size)
        if chunks + 64 >= len(vectors.chunk_begin):
            size = 2 * len(vectors.chunk_begin)
            more |= dict.fromkeys(("chunk_begin", "chunk_before"), size)
            more["chunk_vector"] = outcome_search.WIDTH * size
        most = 64 * outcome_search.WIDTH * len(work.vector)
        if columns + most >= len(vectors.chunk_values):
            more["chunk_values"] = 2 * len(vectors.chunk_values) + 2 * most
        if values + 64 * len(work.vector) >= len(vectors.values):
            more["values"] = 2 * len(vectors.values) + 128 * len(work.vector)
        if plans + 64 * len(work.chosen) >= len(vectors.plans):
            more["plans"] = 2 * len(vectors.plans) + 128 * len(work.chosen)
        return more

    def _ensure_room(self) -> bool:
        """Enlarge what is nearly full; False, and the search ends, if it may not grow any more."""
        points, vectors, work = self.points, self.vectors, self.work
        followed = self.rows.n_decisions if self.eager else 2
        groups, slots = 4 * followed * len(work.chosen), 4 * followed * len(work.mass)
        n, grown = self.rows.n_decisions, self._room_for_mixtures()
        nodes, entries, n_rows, children, *_ = points.counts.tolist()
        if nodes + groups + 64 >= len(points.slice_of):
            size = 2 * len(points.slice_of) + groups
            grown |= dict.fromkeys(
                (
                    "slice_of",
                    "mask",
                    "upper",
                    "lower",
                    "best",
                    "checked",
                    "interpolated",
                    "visited",
                    "row",
                    "mix_first",
                    "mix_number",
                    "mix_others",
                ),
                size,
            )
            grown["begin"] = size + 1
        if entries + slots + 64 >= len(points.states):
            grown |= dict.fromkeys(("states", "probabilities"), 2 * len(points.states) + slots)
        if n_rows + 16 >= len(points.node_of_row):
            size = 2 * len(points.node_of_row)
            grown |= dict.fromkeys(("bound", "linear", "reward", "child"), size * n)
            grown |= dict.fromkeys(("node_of_row", "row_before", "row_mask"), size)
            self.work = work._replace(matched=np.zeros(size, np.int32), ratio=np.zeros(size))
        if children + groups >= len(points.child_node):
            grown |= dict.fromkeys(("child_node", "child_chance"), 2 * len(points.child_node) + groups)
        more = self._room_for_vectors()
        if not grown and not more:
            return True
        present = sum(array.nbytes for array in (*points, *vectors))
        added = sum(getattr(points, name).nbytes / len(getattr(points, name)) * size for name, size in grown.items())
        added += sum(getattr(vectors, name).nbytes / len(getattr(vectors, name)) * size for name, size in more.items())
        if present + added > MOST_BYTES:
            self._stop = "memory"
            return False
        if grown:
            self.points = points._replace(
                **{name: _longer(getattr(points, name), size) for name, size in grown.items()}
            )
            if "slice_of" in grown:
                self.points = self.points._replace(table=np.full(_table_size(grown["slice_of"]), -1, np.int32))
                outcome_search.rehash(self.points)
        if more:
            self.vectors = vectors._replace(
                **{name: _longer(getattr(vectors, name), size) for name, size in more.items()}
            )
        return True


def _table_size(nodes: int) -> int:
    return 1 << (2 * nodes).bit_length()


def _aligned(size: int, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Return zeros of 8 bytes that begin at a multiple of 64 bytes: a chunk has one cache line per state, then, and not two."""
    array = np.zeros(size + 8, dtype)
    first = -(array.ctypes.data // 8) % 8
    return array[first : first + size]


def _longer(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    is_line = array.ndim == 1 and array.itemsize == 8
    larger = _aligned(size, array.dtype) if is_line else np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
