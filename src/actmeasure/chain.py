"""A schedule on a model as a Markov chain over the moments at which the state becomes known.

Between two such moments a plan runs blind, so its expected reward, duration and outcome are numbers. Repeating tails never
lead back to a known state; their (state, phase) pairs are further nodes that last one step each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.errors import ScheduleError
from actmeasure.kernels import trace
from actmeasure.kernels.blind import Dynamics
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.transitions import FloatArray
from actmeasure.world import dynamics, flat_plans

__all__ = ["PlanChain", "plan_chain"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PlanChain:
    """Nodes are known states (first), then the (state, phase) pairs of repeating tails.

    Attributes
    ----------
    states : int64 array, shape (n_known,)
        The known state of each of the first nodes; -1 for a start that is not known.
    start : float64 array, shape (n_nodes,)
        Probability of beginning in each node.
    moves : sparse array, shape (n_nodes, n_nodes)
        Probability of being in another node when this one is over; the rest has ended.
    ends : bool array, shape (n_nodes,)
        Whether the episode may end inside the node.
    step_offsets : int64 array, shape (n_nodes + 1,)
        The steps of node `n` are `step_offsets[n]:step_offsets[n + 1]` of the two arrays below.
    step_rewards, step_running : float64 arrays, shape (n_steps,)
        Expected reward of a step, and the probability that it is still taken.
    costs, measured : float64 arrays, shape (n_nodes,)
        Expected price of the measurement with the last step, and the probability of taking it.
    """

    states: IntArray
    start: FloatArray
    moves: sparse.csr_array[np.float64]
    ends: npt.NDArray[np.bool_]
    step_offsets: IntArray
    step_rewards: FloatArray
    step_running: FloatArray
    costs: FloatArray
    measured: FloatArray

    @property
    def durations(self) -> IntArray:
        """Steps that a node lasts, shape (n_nodes,)."""
        return np.diff(self.step_offsets)

    def per_node(self, per_step: FloatArray) -> FloatArray:
        """Sum of a value per step over each node, shape (n_nodes,)."""
        return np.add.reduceat(per_step, self.step_offsets[:-1])

    def totals(self, discount: float = 1.0) -> FloatArray:
        """Expected return, reward, measurements and steps inside each node, shape (n_nodes, 4)."""
        durations = self.durations
        age = np.arange(len(self.step_rewards)) - np.repeat(self.step_offsets[:-1], durations)
        decay = discount**age
        at_end = discount ** (durations - 1)
        rewards = self.per_node(decay * self.step_rewards)
        steps = self.per_node(decay * self.step_running)
        return np.column_stack([rewards - at_end * self.costs, rewards, at_end * self.measured, steps])


def plan_chain(model: Model, schedule: Schedule) -> PlanChain:
    """Follow a schedule from the model's start; a plan that does not fit the model is a `ScheduleError`."""
    schedule.check_fits(model)
    start = _start_plan(model, schedule)
    plans, start_number = flat_plans(schedule, start)
    arrays = dynamics(model)
    traced = trace.trace_plans(arrays, plans, model.initial_states, model.initial_probabilities, start_number)
    _check(model, traced)
    return _assemble(model, arrays, traced, [*schedule.plans, *([] if start is None else [start])])


def _start_plan(model: Model, schedule: Schedule) -> BlindPlan | None:
    """The plan to begin with, unless it is that of a known state."""
    if model.reveal_start:
        return None
    plan = schedule.start_plan(model)
    if plan is None and not model.start_is_known:
        raise ScheduleError(
            "the model's first state is not shown, but the schedule has no plan for that; give it start=BlindPlan(...)"
        )
    return plan


def _check(model: Model, traced: trace.Trace) -> None:
    if traced.problem == trace.FITS:
        return
    state = traced.problem_state
    where = "the start" if state < 0 else model.describe_state(state)
    match traced.problem:
        case trace.NO_PLAN:
            raise ScheduleError(
                f"the schedule comes to know {where}, but has no plan for it; add a BlindPlan for that state"
            )
        case trace.NOT_KNOWN:
            raise ScheduleError(
                f"the plan for {where} ends with then='known', but more than one state is possible after it; "
                "use then='measure'"
            )
        case _:
            raise ScheduleError(
                f"the plan for {where} ends with then='end', but the episode may still be running after it; "
                "use then='measure' or then='repeat'"
            )


def _assemble(model: Model, arrays: Dynamics, traced: trace.Trace, plans: list[BlindPlan]) -> PlanChain:
    n_known = len(traced.states)
    node_of_state = np.full(model.n_states, -1, dtype=np.int64)
    node_of_state[traced.states[traced.states >= 0]] = np.flatnonzero(traced.states >= 0)
    targets = node_of_state[traced.entry_states]
    tails: dict[tuple[int, ...], IntArray] = {}
    for number, plan in enumerate(plans):
        if plan.then == "repeat":
            entries = np.flatnonzero(traced.plans[traced.entry_nodes] == number)
            key = plan.actions[-plan.repeat :]
            tails[key] = np.concatenate([tails.get(key, np.zeros(0, np.int64)), entries])
    sources, targets_all, weights = [traced.entry_nodes], [targets], [traced.entry_weights]
    ends, rewards = [traced.ends], [traced.step_rewards]
    n_nodes = n_known
    for actions, entries in tails.items():
        first_states, position = np.unique(traced.entry_states[entries], return_inverse=True)
        targets[entries] = n_nodes + position
        tail = trace.trace_tail(arrays, np.array(actions, dtype=np.int64), first_states)
        sources.append(tail.entry_nodes + n_nodes)
        targets_all.append(tail.entry_targets + n_nodes)
        weights.append(tail.entry_weights)
        ends.append(tail.ends)
        rewards.append(model.rewards[tail.states, np.array(actions)[tail.phases]])
        n_nodes += len(tail.states)
    n_tail = n_nodes - n_known
    start = np.zeros(n_nodes)
    if traced.states[0] < 0:
        start[0] = 1.0
    else:
        start[node_of_state[model.initial_states]] = model.initial_probabilities
    coordinates = (np.concatenate(sources), np.concatenate(targets_all))
    return PlanChain(
        states=traced.states,
        start=start,
        moves=sparse.csr_array((np.concatenate(weights), coordinates), shape=(n_nodes, n_nodes)),
        ends=np.concatenate(ends),
        step_offsets=np.concatenate([traced.step_offsets, traced.step_offsets[-1] + np.arange(1, n_tail + 1)]),
        step_rewards=np.concatenate(rewards),
        step_running=np.concatenate([traced.step_running, np.ones(n_tail)]),
        costs=np.concatenate([traced.costs, np.zeros(n_tail)]),
        measured=np.concatenate([traced.measured, np.zeros(n_tail)]),
    )
