"""Exact evaluation: the expected return, measurements and steps of a schedule, policy graph or policy, by linear systems.

`evaluate` follows the schedule from the model's start (`plan_chain`), which gives a Markov chain over the moments at which
the state is known, and solves for discounted sums, undiscounted sums and long-run averages on it. The chain of a policy graph
(`graph_chain`) is one over pairs of node and state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure import markov
from actmeasure.errors import ModelError, ScheduleError, counted, quoted
from actmeasure.kernel_arrays import dynamics, flat_plans
from actmeasure.kernels import schedule_chain
from actmeasure.kernels.dynamics import Dynamics, relative_error
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.policy import BeliefFunction, Policy, unroll
from actmeasure.policy_graph import GraphPolicy, PolicyGraph, bind, trace_pairs
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.settings import whole

__all__ = ["LONGEST", "Evaluation", "GraphChain", "PlanChain", "evaluate", "graph_chain", "plan_chain", "values_of"]

IntArray = npt.NDArray[np.int64]

#: Columns of arrays of shape (..., c). More follow where measurements of several kinds are made: the number of each kind.
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
    """The exact expected results of following a schedule or policy graph from the start.

    Attributes
    ----------
    discounted_return : float
        Discounted reward minus measuring cost, over an infinite horizon.
    discounted_error : float
        Bound on the rounding error of `discounted_return`; infinite where, at discount 1, the way to the end is so long that none
        can be computed.
    discounted_reward, discounted_measurements : float
        Discounted reward alone, and discounted number of measurements.
    scalarized_return, reward, measurements, steps : float
        Undiscounted sums over `horizon` steps. Over an infinite horizon if it is None: then infinite where the episode need
        not end and the sums diverge, NaN where they oscillate or the probability of an end is lost in rounding.
    horizon : int or None
    ending_probability : float
        Probability that the episode ever ends; NaN where it is lost in rounding.
    average_return, average_reward, average_measurements : float or None
        Long-run averages per step, given that the episode never ends; None if it surely ends, NaN where lost in rounding.
    values : float64 array, shape (S,)
        Discounted return from each state when it is known; NaN for states that the schedule never comes to know. Of a policy
        graph: from each state in which an episode may begin, in its first node; NaN for other states.
    looks : float64 array, shape (k,)
        Number of measurements of each kind, in the order of `model.measurements`, which add up to `measurements`.
    discounted_looks : float64 array, shape (k,)
        Discounted number of measurements of each kind.
    average_looks : float64 array, shape (k,), or None
        Long-run average of each kind per step, given that the episode never ends; None if it surely ends.
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
    looks: FloatArray
    discounted_looks: FloatArray
    average_looks: FloatArray | None
    #: Value of each pair of a policy graph: numbers of nodes, numbers of states, values, and the shape of `node_values`.
    _pairs: tuple[IntArray, IntArray, FloatArray, tuple[int, int]] | None = None

    @property
    def node_values(self) -> FloatArray:
        """Discounted return of a policy graph from each node in each state, shape (N, S); NaN for pairs never reached."""
        if self._pairs is None:
            raise ScheduleError(
                "node_values are those of a policy graph, and this is the evaluation of a schedule; use values"
            )
        nodes, states, values, shape = self._pairs
        table = np.full(shape, np.nan)
        table[nodes, states] = values
        return table

    def __repr__(self) -> str:
        span = "all time" if self.horizon is None else counted(self.horizon, "step")
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
    policy: Schedule | PolicyGraph | Policy | BeliefFunction,
    horizon: int | None = None,
    *,
    depth: int = 1000,
) -> Evaluation:
    """Return the exact return, number of measurements and number of steps of a schedule, policy graph or deterministic policy.

    Parameters
    ----------
    model : Model
    policy : Schedule, PolicyGraph, Policy, or function from Belief to Decision
        A policy graph can be evaluated on every model. The others need a model with one exact measurement; a policy or function
        is unrolled into a schedule first, following at most `depth` blind steps after each known state, as `unroll` describes.
        It must be deterministic, and depend on nothing that happened before the state was last known.
    horizon : int, optional
        Number of steps of the undiscounted sums; infinite by default. Up to 10**18 for schedules of at most 500 steps in
        all and graphs of at most 500 pairs of node and state; for longer ones, a horizon that takes more than a minute or two is
        a `ScheduleError`.
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
    chain = _chain(model, policy, depth)
    recurrent = markov.recurrence(chain.moves, chain.ending, chain.start, chain.krylov)
    totals = chain.totals()
    if horizon is None:
        sums = _over_all_time(chain, recurrent, totals)
    else:
        sums = _finite(chain, recurrent, totals, horizon)
    values, first = chain.discounted(recurrent, model.discount)
    averages = _averages(recurrent, totals)
    pairs = None
    if isinstance(chain, GraphChain):
        pairs = (chain.nodes, chain.states, values[:, RETURN], (chain.n_graph_nodes, model.n_states))
    return Evaluation(
        discounted_return=float(first[RETURN]),
        discounted_error=_rounding(chain, recurrent, values[:, RETURN], model.discount),
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
        looks=chain.looks(sums, model),
        discounted_looks=chain.looks(first, model),
        average_looks=None if averages is None else chain.looks(averages, model),
        _pairs=pairs,
    )


def values_of(model: Model, schedule: Schedule) -> FloatArray:
    """Return a schedule's discounted return from each known state, shape (S,): 0 if terminal, -infinity without a plan.

    The same numbers as `values` of an evaluation that may begin in all of these states, without the sums over all time.
    """
    planned = schedule.plan_of_state >= 0
    values = np.where(model.terminal, 0.0, -np.inf)
    if planned.any():
        anywhere = model.replace(initial=planned / planned.sum(), reveal_start=True)
        chain = _chain(anywhere, schedule, depth=0)
        recurrent = None
        if model.discount == 1:
            recurrent = markov.recurrence(chain.moves, chain.ending, chain.start, chain.krylov)
        sums, _ = chain.discounted(recurrent, model.discount)
        values[planned] = _per_state(chain, sums[:, RETURN], model.n_states)[planned]
    return values


def _chain(model: Model, policy: Schedule | PolicyGraph | Policy | BeliefFunction, depth: int) -> PlanChain:
    """Return the Markov chain of a schedule, policy graph or policy on a model."""
    if isinstance(policy, GraphPolicy):
        policy = policy.graph
    if isinstance(policy, PolicyGraph):
        return graph_chain(model, policy)
    remedy = "write the rule as a PolicyGraph, which can be evaluated on every model, or let the policy act in simulated episodes"
    if isinstance(policy, Schedule):
        model.require_exact_looks("the evaluation of a Schedule", remedy)
        return plan_chain(model, policy)
    if isinstance(policy, Policy) or callable(policy):
        model.require_exact_looks("the evaluation of a policy, which is unrolled into a Schedule,", remedy)
        return plan_chain(model, unroll(model, policy, depth=depth))
    raise ScheduleError(
        f"the policy is of type {type(policy).__name__}, expected a Schedule, a PolicyGraph, a Policy (with start, decide and "
        "observe) or a function from Belief to Decision"
    )


def _over_all_time(chain: PlanChain, recurrent: markov.Recurrence, totals: FloatArray) -> FloatArray:
    """Return undiscounted sums from the start over an infinite horizon, shape (c,)."""
    try:
        return _from_start(chain, markov.undiscounted_values(chain.moves, recurrent, totals, chain.krylov))
    except markov.RoundingError:
        return np.full(totals.shape[1], np.nan)


def _rounding(chain: PlanChain, recurrent: markov.Recurrence, values: FloatArray, discount: float) -> float:
    """Return a bound on the rounding error of the mean of the discounted returns, `values` of shape (n_nodes,), from the start.

    With v = t + F v the equations of the chain, F contracting by the discount, an error d in each equation means one of
    d / (1 - discount) at most in v, and without discount the sum of d over the visits to each node. The terms t and F have
    themselves been added up in as many steps as a node lasts.
    """
    if not np.isfinite(values).all():
        return 0.0  # only without discount, where the return is not finite either
    factors = np.float64(discount) ** chain.durations
    ahead = factors * (chain.moves @ values)
    totals = chain.totals(discount)[:, RETURN]
    magnitudes = chain.per_node(chain.step_sizes) + chain.costs
    sizes = magnitudes + factors * (chain.moves @ np.abs(values)) + np.abs(values)
    terms = np.diff(chain.moves.indptr) + chain.start.size * (chain.start > 0) + chain.outcome_terms
    relative = relative_error(terms) * chain.durations
    errors = np.abs(values - totals - ahead) + relative * sizes
    if discount < 1:
        return float(errors.max() / (1 - discount)) * 1.01
    bounds = markov.errors_of_undiscounted(
        chain.moves, recurrent, errors, magnitudes, float(relative.max()), chain.krylov
    )
    return float(_from_start(chain, bounds[:, None])[0])


def _from_start(chain: PlanChain, values: FloatArray) -> FloatArray:
    """Return the expectation over the start of values per node, shape (c,); NaN where infinities of both signs meet."""
    begins = chain.start > 0
    with np.errstate(invalid="ignore"):
        return np.asarray(chain.start[begins] @ values[begins])


def _finite(chain: PlanChain, recurrent: markov.Recurrence, totals: FloatArray, horizon: int) -> FloatArray:
    """Return undiscounted sums from the start over `horizon` steps, shape (c,)."""
    # Inside a node no measurement is taken before the last step, so return and reward are the same until then.
    none = np.zeros_like(chain.step_rewards)
    n_kinds = totals.shape[1] - 4
    per_step = np.column_stack([chain.step_rewards, chain.step_rewards, none, chain.step_running, *[none] * n_kinds])
    nodes = schedule_chain.Nodes(
        durations=chain.durations,
        totals=totals,
        step_offsets=chain.step_offsets,
        so_far=np.concatenate([np.zeros((1, totals.shape[1])), np.cumsum(per_step, axis=0)]),
        move_offsets=chain.moves.indptr.astype(np.int64),
        targets=chain.moves.indices.astype(np.int64),
        weights=chain.moves.data,
    )
    work = WORK_OF_NODE * len(chain.durations) + chain.moves.nnz
    small, never_ends = len(per_step) <= MOST_DOUBLED, bool(recurrent.probability.sum() > 0)
    limit = (DOUBLED_FROM if small else MOST_WORK) // work
    if never_ends and horizon > limit:
        if not small:
            raise _too_long(horizon, limit, "need not end")
        limit = 0
    arrivals = np.zeros((min(int(chain.durations.max()), horizon) + 1, len(chain.durations)))
    arrivals[0] = chain.start
    sums = np.zeros(totals.shape[1])
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
        [-chain.costs, np.zeros_like(chain.costs), chain.measured, np.zeros_like(chain.costs), *chain.per_kind()]
    )
    ends = np.zeros(len(per_step), dtype=bool)
    ends[chain.step_offsets[1:] - 1] = chain.ending > 0
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
    """Return long-run averages per step given that the episode never ends, shape (c,), None if it surely ends."""
    if recurrent.probability.sum() <= 0:
        return None
    averages = np.zeros(totals.shape[1])
    for number, probability in enumerate(recurrent.probability):
        per_move = recurrent.visits[number] @ totals[recurrent.members(number)]
        averages += probability * per_move / per_move[STEPS]
    return np.asarray(averages / recurrent.probability.sum())


def _per_state(chain: PlanChain, values: FloatArray, n_states: int) -> FloatArray:
    per_state = np.full(n_states, np.nan)
    known = np.flatnonzero(chain.start > 0) if isinstance(chain, GraphChain) else np.flatnonzero(chain.states >= 0)
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
    ending : float64 array, shape (n_nodes,)
        Probability that the episode ends inside the node; above 0 wherever it may.
    step_offsets : int64 array, shape (n_nodes + 1,)
        The steps of node `n` are `step_offsets[n]:step_offsets[n + 1]` of the two arrays below.
    step_rewards, step_sizes, step_running : float64 arrays, shape (n_steps,)
        Expected reward of a step, its expected size, and the probability that the step is still taken.
    costs, measured : float64 arrays, shape (n_nodes,)
        Expected price of the measurement with the last step, and the probability of taking it.
    """

    states: IntArray
    start: FloatArray
    moves: sparse.csr_array[np.float64]
    ending: FloatArray
    step_offsets: IntArray
    step_rewards: FloatArray
    step_sizes: FloatArray
    step_running: FloatArray
    costs: FloatArray
    measured: FloatArray

    #: Numbers that are added up for the probabilities of outcomes of a move; an exact look shows one.
    outcome_terms: int = 0
    #: Whether large systems are first tried by a Krylov method.
    krylov: ClassVar[bool] = False

    @property
    def durations(self) -> IntArray:
        """Number of steps of each node, shape (n_nodes,)."""
        return np.diff(self.step_offsets)

    def per_node(self, per_step: FloatArray) -> FloatArray:
        """Return the sum of a value per step over each node, shape (n_nodes,)."""
        return np.add.reduceat(per_step, self.step_offsets[:-1])

    def totals(self, discount: float = 1.0) -> FloatArray:
        """Return the expected return, reward, measurements and steps inside each node, and looks per kind, shape (n_nodes, c)."""
        durations = self.durations
        age = np.arange(len(self.step_rewards)) - np.repeat(self.step_offsets[:-1], durations)
        decay = discount**age
        at_end = discount ** (durations - 1)
        rewards = self.per_node(decay * self.step_rewards)
        steps = self.per_node(decay * self.step_running)
        looks = [at_end * made for made in self.per_kind()]
        return np.column_stack([rewards - at_end * self.costs, rewards, at_end * self.measured, steps, *looks])

    def discounted(self, recurrent: markov.Recurrence | None, discount: float) -> tuple[FloatArray, FloatArray]:
        """Return discounted sums from each node, shape (n_nodes, c), and from the start, shape (c,).

        The recurrence of the chain is needed at discount 1 only.
        """
        totals = self.totals(discount)
        if recurrent is None or discount < 1:
            factors = np.float64(discount) ** self.durations
            values = markov.discounted_sums(self.moves, factors, totals, self.krylov)
        else:
            values = markov.undiscounted_values(self.moves, recurrent, totals, self.krylov)
        return values, _from_start(self, values)

    def per_kind(self) -> list[FloatArray]:
        """Return the probability of each kind of measurement with the last step of each node, where there are several kinds."""
        return []

    def looks(self, sums: FloatArray, model: Model) -> FloatArray:
        """Return the number of measurements of each kind, shape (k,), from sums or averages of shape (c,)."""
        return np.array([sums[MEASUREMENTS]])


@dataclass(frozen=True, eq=False)
class GraphChain(PlanChain):
    """A policy graph on a model as a Markov chain over pairs of node and state, of one step each.

    Attributes
    ----------
    states, nodes : int64 arrays, shape (n_pairs,)
        State and node of each pair.
    kinds : int64 array, shape (n_pairs,)
        The measurement that is made, 0 for none.
    n_graph_nodes : int
    """

    krylov: ClassVar[bool] = True
    nodes: IntArray = field(kw_only=True)
    kinds: IntArray = field(kw_only=True)
    n_graph_nodes: int = field(kw_only=True)

    @cached_property
    def kinds_made(self) -> list[int]:
        """The measurements that are made in some pair, ascending."""
        return [int(kind) for kind in np.unique(self.kinds[self.kinds > 0])]

    def discounted(self, recurrent: markov.Recurrence | None, discount: float) -> tuple[FloatArray, FloatArray]:
        """Return discounted returns from each pair, shape (n_pairs, 1), and all sums from the start, shape (c,).

        The latter are those of the visits to each pair: two linear systems, however many sums there are.
        """
        if discount == 1:
            return super().discounted(recurrent, discount)
        totals = self.totals()
        factors = np.full(len(totals), discount)
        values = markov.discounted_sums(self.moves, factors, totals[:, [RETURN]], self.krylov)
        first = markov.discounted_visits(self.moves, discount, self.start, self.krylov) @ totals
        first[RETURN] = _from_start(self, values)[0]
        return values, first

    def per_kind(self) -> list[FloatArray]:
        """Return for each kind that is made whether a pair makes it; nothing if there is only one."""
        if len(self.kinds_made) < 2:
            return []
        return [(self.kinds == kind).astype(np.float64) for kind in self.kinds_made]

    def looks(self, sums: FloatArray, model: Model) -> FloatArray:
        """Return the number of measurements of each kind, shape (k,), from sums or averages of shape (c,)."""
        looks = np.zeros(len(model.measurements))
        made = np.array(self.kinds_made, dtype=np.int64) - 1
        looks[made] = sums[[MEASUREMENTS]] if len(made) == 1 else sums[STEPS + 1 :]
        return looks


def graph_chain(model: Model, graph: PolicyGraph) -> GraphChain:
    """Return the chain of a policy graph from the model's start; a node that does not fit the model is a `ScheduleError`."""
    bound = bind(graph, model)
    pairs = trace_pairs(model, bound)
    actions, kinds = bound.actions[pairs.nodes], bound.measurements[pairs.nodes]
    size = len(pairs.nodes)
    costs = np.zeros(size)
    laws = [model.passive.law] if model.passive is not None else []
    for kind in np.unique(kinds[kinds > 0]).tolist():
        measurement = model.measurements[kind - 1]
        made = kinds == kind
        costs[made] = measurement.table(model.n_states, model.n_actions)[pairs.states[made], actions[made]]
        laws.append(measurement.law)
    return GraphChain(
        states=pairs.states,
        start=pairs.start,
        moves=pairs.moves,
        ending=pairs.ending,
        step_offsets=np.arange(size + 1),
        step_rewards=model.rewards[pairs.states, actions],
        step_sizes=np.abs(model.rewards[pairs.states, actions]),
        step_running=np.ones(size),
        costs=costs,
        measured=(kinds > 0).astype(np.float64),
        outcome_terms=max((int(np.diff(law.offsets).max(initial=0)) for law in laws if law is not None), default=0),
        nodes=pairs.nodes,
        kinds=kinds,
        n_graph_nodes=len(graph),
    )


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
    ending, rewards, sizes = [traced.ending], [traced.step_rewards], [traced.step_sizes]
    n_nodes = n_known
    for actions, entries in tails.items():
        first_states, position = np.unique(traced.entry_states[entries], return_inverse=True)
        targets[entries] = n_nodes + position
        tail = schedule_chain.trace_tail(arrays, np.array(actions, dtype=np.int64), first_states)
        sources.append(tail.entry_nodes + n_nodes)
        targets_all.append(tail.entry_targets + n_nodes)
        weights.append(tail.entry_weights)
        ending.append(tail.ending)
        rewards.append(model.rewards[tail.states, np.array(actions)[tail.phases]])
        sizes.append(np.abs(rewards[-1]))
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
        ending=np.concatenate(ending),
        step_offsets=np.concatenate([traced.step_offsets, traced.step_offsets[-1] + np.arange(1, n_tail + 1)]),
        step_rewards=np.concatenate(rewards),
        step_sizes=np.concatenate(sizes),
        step_running=np.concatenate([traced.step_running, np.ones(n_tail)]),
        costs=np.concatenate([traced.costs, np.zeros(n_tail)]),
        measured=np.concatenate([traced.measured, np.zeros(n_tail)]),
    )
