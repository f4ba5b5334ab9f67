"""Exact evaluation: the expected return, measurements and steps of a schedule or policy, by linear systems.

`evaluate` follows the schedule from the model's start (`plan_chain`), which gives a Markov chain over the moments at which
the state is known, and solves for discounted sums, undiscounted sums and long-run averages on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure import markov
from actmeasure.errors import ModelError, ScheduleError, quoted
from actmeasure.kernel_arrays import dynamics, flat_plans
from actmeasure.kernels import schedule_chain
from actmeasure.kernels.blind import Dynamics, relative_error
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.policy import BeliefFunction, Policy, unroll
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.settings import whole

__all__ = ["LONGEST", "Evaluation", "PlanChain", "evaluate", "plan_chain"]

IntArray = npt.NDArray[np.int64]

#: Columns of arrays of shape (..., 4).
RETURN, REWARD, MEASUREMENTS, STEPS = range(4)

#: Largest horizon, which 64-bit integers can count.
LONGEST = 10**18
#: Time of one step of a node, in units of the time of one move, which is about a nanosecond.
WORK_OF_NODE = 20
#: Work above which a chain of few steps is evaluated by powers of its matrix instead of step by step: some seconds.
DOUBLED_FROM = 10**9
#: Largest number of different steps for which powers of the matrix are computed.
MOST_DOUBLED = 500
#: Work above which a horizon is refused otherwise: a minute or two.
MOST_WORK = 6 * 10**10
#: Work between two points at which Ctrl-C takes effect.
PIECE_OF_WORK = 10**8


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The exact expected results of following a schedule from the start.

    Attributes
    ----------
    discounted_return : float
        Discounted reward minus measuring cost, over an infinite horizon.
    discounted_error : float
        Bound on the rounding error of `discounted_return`; at discount 1 no bound is known, and it is 0.
    discounted_reward, discounted_measurements : float
        Discounted reward alone, and discounted number of measurements.
    scalarized_return, reward, measurements, steps : float
        Undiscounted sums over `horizon` steps. Over an infinite horizon if it is None: then infinite where the episode need
        not end and the sums diverge, NaN where they oscillate or the probability of an end is lost in rounding.
    horizon : int or None
    ending_probability : float
        Probability that the episode ever ends.
    average_return, average_reward, average_measurements : float or None
        Long-run averages per step, given that the episode never ends; None if it surely ends.
    values : float64 array, shape (S,)
        Discounted return from each state when it is known; NaN for states that the schedule never comes to know.
    """

    discounted_return: float
    discounted_error: float
    discounted_reward: float
    discounted_measurements: float
    scalarized_return: float
    reward: float
    measurements: float
    steps: float
    horizon: int | None
    ending_probability: float
    average_return: float | None
    average_reward: float | None
    average_measurements: float | None
    values: FloatArray

    def __repr__(self) -> str:
        span = "all time" if self.horizon is None else f"{self.horizon} step" + "s" * (self.horizon != 1)
        text = (
            f"Evaluation(discounted {self.discounted_return:.6g}; over {span}: return {self.scalarized_return:.6g}, "
            f"reward {self.reward:.6g}, measurements {self.measurements:.6g}, steps {self.steps:.6g}"
        )
        if self.average_return is not None:
            text += (
                f"; per step: return {self.average_return:.6g}, reward {self.average_reward:.6g}, "
                f"measurements {self.average_measurements:.6g}"
            )
        return text + ")"


def evaluate(
    model: Model,
    policy: Schedule | Policy | BeliefFunction,
    horizon: int | None = None,
    *,
    depth: int = 1000,
) -> Evaluation:
    """Return the exact return, number of measurements and number of steps of a schedule or deterministic policy.

    Parameters
    ----------
    model : Model
    policy : Schedule, Policy, or function from Belief to Decision
        A policy or function is unrolled into a schedule first, following at most `depth` blind steps after each known state, as
        `unroll` describes. It must be deterministic, and depend on nothing that happened before the state was last known.
    horizon : int, optional
        Number of steps of the undiscounted sums; infinite by default. Up to 10**18 for schedules of at most 500 steps in
        all; for longer ones, a horizon that takes more than a minute or two is a `ScheduleError`.
    depth : int

    Examples
    --------
    >>> import actmeasure as am
    >>> model = am.problems.measuring_value(p=0.8, measuring_cost=0.1, discount=0.95)
    >>> look = am.BlindPlan((1,), then="measure")
    >>> finish, back = am.BlindPlan((1,), then="end"), am.BlindPlan((0,), then="known")
    >>> result = am.evaluate(model, am.Schedule({0: look, 1: finish, 2: back}, n_states=4), horizon=200)
    >>> round(result.discounted_return, 4), round(result.scalarized_return, 4)
    (0.8054, 0.875)
    """
    if not isinstance(model, Model):
        raise ModelError(f"the model is {quoted(model)}, expected a Model")
    if horizon is not None:
        horizon = whole(horizon, "horizon", 1, LONGEST, ScheduleError, "None for all time, or a whole number of steps")
    if isinstance(policy, Schedule):
        schedule = policy
    elif isinstance(policy, Policy) or callable(policy):
        schedule = unroll(model, policy, depth=depth)
    else:
        raise ScheduleError(
            f"the policy is of type {type(policy).__name__}, expected a Schedule, a Policy (with start, decide and observe) or a "
            "function from Belief to Decision"
        )
    chain = plan_chain(model, schedule)
    recurrent = markov.recurrence(chain.moves, chain.ends, chain.start)
    totals = chain.totals()
    if horizon is None:
        sums = _over_all_time(chain, recurrent, totals)
    else:
        sums = _finite(chain, recurrent, totals, horizon)
    values = _discounted(chain, recurrent, model.discount)
    first = _from_start(chain, values)
    averages = _averages(recurrent, totals)
    return Evaluation(
        discounted_return=float(first[RETURN]),
        discounted_error=_rounding(chain, values[:, RETURN], model.discount),
        discounted_reward=float(first[REWARD]),
        discounted_measurements=float(first[MEASUREMENTS]),
        scalarized_return=float(sums[RETURN]),
        reward=float(sums[REWARD]),
        measurements=float(sums[MEASUREMENTS]),
        steps=float(sums[STEPS]),
        horizon=horizon,
        ending_probability=float(np.clip(1 - recurrent.probability.sum(), 0, 1)),
        average_return=None if averages is None else float(averages[RETURN]),
        average_reward=None if averages is None else float(averages[REWARD]),
        average_measurements=None if averages is None else float(averages[MEASUREMENTS]),
        values=_per_state(chain, values[:, RETURN], model.n_states),
    )


def _over_all_time(chain: PlanChain, recurrent: markov.Recurrence, totals: FloatArray) -> FloatArray:
    """Return undiscounted sums from the start over an infinite horizon, shape (4,)."""
    try:
        return _from_start(chain, markov.undiscounted_values(chain.moves, recurrent, totals))
    except markov.RoundingError:
        return np.full(totals.shape[1], np.nan)


def _discounted(chain: PlanChain, recurrent: markov.Recurrence, discount: float) -> FloatArray:
    """Return discounted sums from each node, shape (n_nodes, 4)."""
    totals = chain.totals(discount)
    if discount < 1:
        return markov.discounted_sums(chain.moves, np.float64(discount) ** chain.durations, totals)
    return markov.undiscounted_values(chain.moves, recurrent, totals)


def _rounding(chain: PlanChain, values: FloatArray, discount: float) -> float:
    """Return a bound on the rounding error of discounted returns from each node, shape (n_nodes,), and of their mean.

    With v = t + F v the equations of the chain, F contracting by the discount, an error d in each equation means one of
    d / (1 - discount) at most in v. The terms t and F have themselves been added up in as many steps as a node lasts.
    """
    if discount == 1:
        return 0.0
    factors = np.float64(discount) ** chain.durations
    ahead = factors * (chain.moves @ values)
    totals = chain.totals(discount)[:, RETURN]
    sizes = (
        chain.per_node(np.abs(chain.step_rewards))
        + chain.costs
        + factors * (chain.moves @ np.abs(values))
        + np.abs(values)
    )
    per_step = relative_error(np.diff(chain.moves.indptr) + chain.start.size * (chain.start > 0))
    errors = np.abs(values - totals - ahead) + per_step * chain.durations * sizes
    return float(errors.max() / (1 - discount)) * 1.01


def _from_start(chain: PlanChain, values: FloatArray) -> FloatArray:
    """Return the expectation over the start of values per node, shape (4,); NaN where infinities of both signs meet."""
    begins = chain.start > 0
    with np.errstate(invalid="ignore"):
        return np.asarray(chain.start[begins] @ values[begins])


def _finite(chain: PlanChain, recurrent: markov.Recurrence, totals: FloatArray, horizon: int) -> FloatArray:
    """Return undiscounted sums from the start over `horizon` steps, shape (4,)."""
    # Inside a node no measurement is taken before the last step, so return and reward are the same until then.
    per_step = np.column_stack(
        [chain.step_rewards, chain.step_rewards, np.zeros_like(chain.step_rewards), chain.step_running]
    )
    nodes = schedule_chain.Nodes(
        durations=chain.durations,
        totals=totals,
        step_offsets=chain.step_offsets,
        so_far=np.concatenate([np.zeros((1, 4)), np.cumsum(per_step, axis=0)]),
        move_offsets=chain.moves.indptr.astype(np.int64),
        targets=chain.moves.indices.astype(np.int64),
        weights=chain.moves.data,
    )
    work = WORK_OF_NODE * len(chain.durations) + chain.moves.nnz
    small, for_ever = len(per_step) <= MOST_DOUBLED, bool(recurrent.probability.sum() > 0)
    limit = (DOUBLED_FROM if small else MOST_WORK) // work
    if for_ever and horizon > limit:
        if not small:
            raise _too_long(horizon, limit, "need not end")
        limit = 0
    arrivals = np.zeros((min(int(chain.durations.max()), horizon) + 1, len(chain.durations)))
    arrivals[0] = chain.start
    sums = np.zeros(4)
    time = latest = 0
    while time < horizon and time <= latest and time < limit:
        # In pieces, between which Ctrl-C takes effect.
        pause = min(horizon, time + max(1, PIECE_OF_WORK // work))
        time, latest = schedule_chain.push_forward(nodes, arrivals, sums, time, latest, horizon, pause)
    if time >= horizon or time > latest:
        return sums
    if not small:
        raise _too_long(horizon, limit, f"still runs with probability {arrivals.sum():.2g} after {time:,} of them")
    per_step[chain.step_offsets[1:] - 1] += np.column_stack(
        [-chain.costs, np.zeros_like(chain.costs), chain.measured, np.zeros_like(chain.costs)]
    )
    ends = np.zeros(len(per_step), dtype=bool)
    ends[chain.step_offsets[1:] - 1] = chain.ends
    return markov.sums_by_doubling(_unit_steps(chain), ends, per_step, _first_steps(chain), horizon)


def _too_long(horizon: int, limit: int, reason: str) -> ScheduleError:
    return ScheduleError(
        f"horizon is {horizon:,} steps, which take too long one by one: the episode {reason}; give at most {limit:,} steps, or "
        "horizon=None for all time (average_return and the discounted figures do not depend on it)"
    )


def _unit_steps(chain: PlanChain) -> sparse.csr_array[np.float64]:
    """Return the chain with one node for every step of its nodes, shape (n_steps, n_steps)."""
    first, last = chain.step_offsets[:-1], chain.step_offsets[1:] - 1
    moves = chain.moves.tocoo()
    inside = np.setdiff1d(np.arange(chain.step_offsets[-1]), last)
    sources = np.concatenate([inside, last[moves.coords[0]]])
    targets = np.concatenate([inside + 1, first[moves.coords[1]]])
    weights = np.concatenate([np.ones(len(inside)), moves.data])
    return sparse.csr_array((weights, (sources, targets)), shape=(len(chain.step_rewards),) * 2)


def _first_steps(chain: PlanChain) -> FloatArray:
    """Return the probability of beginning in each node of `_unit_steps`, shape (n_steps,)."""
    start = np.zeros(len(chain.step_rewards))
    start[chain.step_offsets[:-1]] = chain.start
    return start


def _averages(recurrent: markov.Recurrence, totals: FloatArray) -> FloatArray | None:
    """Return long-run averages per step given that the episode never ends, shape (4,), None if it surely ends."""
    if recurrent.probability.sum() <= 0:
        return None
    averages = np.zeros(4)
    for number, probability in enumerate(recurrent.probability):
        per_move = recurrent.visits[number] @ totals[recurrent.members(number)]
        averages += probability * per_move / per_move[STEPS]
    return np.asarray(averages / recurrent.probability.sum())


def _per_state(chain: PlanChain, values: FloatArray, n_states: int) -> FloatArray:
    per_state = np.full(n_states, np.nan)
    known = np.flatnonzero(chain.states >= 0)
    per_state[chain.states[known]] = values[known]
    return per_state


@dataclass(frozen=True, eq=False)
class PlanChain:
    """A schedule on a model as a Markov chain over the moments at which the state is known.

    Between two such moments a plan is followed blindly, so that its expected reward, duration and outcome are numbers.
    Repeating tails never lead back to a known state; their (state, phase) pairs are further nodes, of one step each, after
    those of known states.

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
        """Number of steps of each node, shape (n_nodes,)."""
        return np.diff(self.step_offsets)

    def per_node(self, per_step: FloatArray) -> FloatArray:
        """Return the sum of a value per step over each node, shape (n_nodes,)."""
        return np.add.reduceat(per_step, self.step_offsets[:-1])

    def totals(self, discount: float = 1.0) -> FloatArray:
        """Return the expected return, reward, measurements and steps inside each node, shape (n_nodes, 4)."""
        durations = self.durations
        age = np.arange(len(self.step_rewards)) - np.repeat(self.step_offsets[:-1], durations)
        decay = discount**age
        at_end = discount ** (durations - 1)
        rewards = self.per_node(decay * self.step_rewards)
        steps = self.per_node(decay * self.step_running)
        return np.column_stack([rewards - at_end * self.costs, rewards, at_end * self.measured, steps])


def plan_chain(model: Model, schedule: Schedule) -> PlanChain:
    """Return the chain of a schedule from the model's start; a plan that does not fit the model is a `ScheduleError`."""
    schedule.check_fits(model)
    start = _start_plan(model, schedule)
    plans, start_number = flat_plans(schedule, start)
    arrays = dynamics(model)
    traced = schedule_chain.trace_plans(arrays, plans, model.initial_states, model.initial_probabilities, start_number)
    _check(model, traced)
    return _assemble(model, arrays, traced, [*schedule.plans, *([] if start is None else [start])])


def _start_plan(model: Model, schedule: Schedule) -> BlindPlan | None:
    """Return the plan for a hidden start, None if episodes begin with the plan of a known state."""
    if model.reveal_start:
        return None
    plan = schedule.start_plan(model)
    if plan is None and not model.start_is_known:
        raise ScheduleError(
            "the model's first state is not shown, but the schedule has no plan for that; give it start=BlindPlan(...)"
        )
    return plan


def _check(model: Model, traced: schedule_chain.Trace) -> None:
    if traced.problem == schedule_chain.FITS:
        return
    state = traced.problem_state
    where = "the start" if state < 0 else model.describe_state(state)
    match traced.problem:
        case schedule_chain.NO_PLAN:
            raise ScheduleError(
                f"the schedule comes to know {where}, but has no plan for it; add a BlindPlan for that state"
            )
        case schedule_chain.NOT_KNOWN:
            raise ScheduleError(
                f"the plan for {where} ends with then='known', but more than one state is possible after it; "
                "use then='measure'"
            )
        case _:
            raise ScheduleError(
                f"the plan for {where} ends with then='end', but the episode may still be running after it; "
                "use then='measure' or then='repeat'"
            )


def _assemble(model: Model, arrays: Dynamics, traced: schedule_chain.Trace, plans: list[BlindPlan]) -> PlanChain:
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
        tail = schedule_chain.trace_tail(arrays, np.array(actions, dtype=np.int64), first_states)
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
