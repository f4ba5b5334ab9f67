"""The method `optimal`: a search over blind plans, with lower and upper bounds on the optimum that approach each other.

Every belief that a blind plan can lead to is a node of one graph, shared by all plans (`kernels/belief_graph.py`). A round of the
search follows the schedule with the highest upper bounds, tightens the bounds of the states on its way, and expands the beliefs
at which it ends. The bounds are sound after every round, and the lower one belongs to a schedule.

`Optimal` and `Never` are the planning methods; `_plan_by_search` is what both do, and what `solve`, the agent `foresight`,
inspection advice and studies share: search, compare with act-then-measure, keep the better schedule. Then come the search, the
graph in Python, and policy iteration on its nodes.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import linalg

from actmeasure.belief import Belief
from actmeasure.errors import PlanError
from actmeasure.evaluation import Evaluation, evaluate
from actmeasure.kernel_arrays import dynamics
from actmeasure.kernels import belief_graph, graph_search
from actmeasure.kernels.belief_graph import Bounds, Graph, Scratch
from actmeasure.kernels.convexity_bounds import insert_all, make_mixing
from actmeasure.kernels.dynamics import EPSILON, Dynamics, relative_error
from actmeasure.markov import RoundingError
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.act_then_measure import ActThenMeasure
from actmeasure.planning.belief_plans import never_plan
from actmeasure.planning.bounds import ALMOST_ONE, PROHIBITIVE, first_bounds, informed_bounds, mean_bound, start_bound
from actmeasure.planning.budget import Budget, Stopped
from actmeasure.planning.outcome_search import outcome_plan
from actmeasure.planning.solution import Plan
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["Never", "Optimal", "Search", "make_graph", "make_scratch"]

IntArray = npt.NDArray[np.int64]

# Planning methods.

#: Act-then-measure joins a search that is still open after this share of the time, or this many seconds.
HEAD_SHARE, HEAD_SECONDS = 0.25, 2.0
#: Share of the remaining time that act-then-measure may take.
ATM_SHARE = 2 / 3
#: Share of the time, and most seconds, for the search at a discount slightly below 1 where the model has none.
WARM_START_SHARE, WARM_START_SECONDS = 0.5, 10.0


@dataclass(frozen=True)
class Optimal:
    """The best schedule, with an upper bound on every schedule.

    Where the search is still open after its head start, the schedule is at least as good as that of act-then-measure, if that
    one can be computed in half of the time that the first bounds left (a quarter without discount).

    Parameters
    ----------
    tolerance : float
        Planning ends when upper - lower is at most this.
    relative_tolerance : float, optional
        It also ends when upper - lower is at most this share of |upper| (and of |lower| where looks are exact); by default 0, and
        1e-3 where looks are not exact.
    """

    tolerance: float = 1e-6
    relative_tolerance: float | None = None

    def solve(self, model: Model, budget: Budget) -> Plan:
        """Return the best schedule found within the budget and bounds on the optimum.

        Where looks are not exact: value vectors, which act in any belief, and the same bounds.
        """
        if not model.is_exact_look_model:
            return outcome_plan(model, budget, self.tolerance, self.relative_tolerance)
        best = _plan_by_search(model, budget, self.tolerance, self.relative_tolerance or 0.0, may_look=True)
        return best.plan(upper=best.search.upper)


@dataclass(frozen=True)
class Never:
    """The best schedule that never looks, with a bound on all such; as hard to find as the optimum.

    Parameters
    ----------
    tolerance, relative_tolerance : float
        As for `Optimal`, for the bounds on schedules that never look.
    """

    tolerance: float = 1e-6
    relative_tolerance: float = 0.0

    def solve(self, model: Model, budget: Budget) -> Plan:
        """Return the best schedule found, an upper bound on the optimum, and one on schedules that never look.

        Where looks are not exact: a policy graph that acts by Q_MDP on what is seen for free.
        """
        if not model.is_exact_look_model:
            return never_plan(model, budget)
        best = _plan_by_search(model, budget, self.tolerance, self.relative_tolerance, may_look=False)
        return best.plan(start_bound(model, *informed_bounds(model, budget)), method_upper=best.search.upper)


def _plan_by_search(model: Model, budget: Budget, tolerance: float, relative: float, may_look: bool) -> _Best:
    """Search, compare with act-then-measure, and keep the better schedule.

    With a limit on seconds, or none, act-then-measure joins after a head start and the search then goes on. With a limit on work
    alone the search spends all of it first, as a head start in seconds would make the result depend on the machine; then
    act-then-measure, whose work is not counted, runs to its end.
    """
    with budget.deferred_interrupts():  # so that Ctrl-C in one part also stops the next
        best = _Best(model, Search(model, budget, may_look), tolerance, relative)
        best.warm_start(budget, may_look)
        best.search_within(budget.part(HEAD_SHARE, HEAD_SECONDS) if may_look else budget)
        best.offer_own()
        is_done = best.stopped in ("closed", "interrupted") or best.search.is_at_rounding
        if not is_done and not budget.is_out_of_time:
            if may_look and not best.is_closed:
                best.offer(cast("Schedule", ActThenMeasure().solve(model, budget.part(ATM_SHARE)).schedule))
            best.search_within(budget)
            best.offer_own()
    budget.spent = best.search.work
    return best


class _Best:
    """A search, and the best schedule found so far by it and by other methods."""

    def __init__(self, model: Model, search: Search, tolerance: float, relative: float) -> None:
        self.model, self.search = model, search
        self.tolerance, self.relative = tolerance, relative
        #: Why the search stopped when it last ran.
        self.stopped: Stopped = "time"
        self.value = -math.inf
        self._schedule: Schedule | None = None
        self._evaluation: Evaluation | None = None

    @property
    def schedule(self) -> Schedule:
        """The best schedule so far; a `PlanError` if the search found none with a finite value."""
        return self.search.schedule() if self._schedule is None else self._schedule

    @property
    def is_closed(self) -> bool:
        """Whether the bounds are within the tolerance."""
        return self.search.is_closed(self.tolerance, self.relative)

    def warm_start(self, budget: Budget, may_look: bool) -> None:
        """At discount 1, search first at a discount slightly below 1 and offer its schedule, which often is the best already.

        Its bounds hold for that discount only, so those of the search without discount are noted meanwhile.
        """
        if self.model.discount < 1:
            return
        part = budget.part(WARM_START_SHARE, WARM_START_SECONDS)
        part.record = []
        part.progress = lambda _: budget.note(self.search.lower, self.search.upper)
        with contextlib.suppress(PlanError):  # there may be no time for it
            discounted = Search(self.model.replace(discount=ALMOST_ONE), part, may_look)
            discounted.run(self.tolerance, self.relative)
            self.offer(discounted.schedule())

    def search_within(self, budget: Budget) -> None:
        """Go on with the search until it is closed or the budget is over."""
        self.search.budget = budget
        self.stopped = self.search.run(self.tolerance, self.relative)

    def offer_own(self) -> None:
        """Offer the search's own schedule, which may earn more than the lower bound says."""
        with contextlib.suppress(PlanError):  # without discount there may be none with a finite value
            self.offer(self.search.schedule())

    def offer(self, schedule: Schedule) -> None:
        """Keep a schedule if it earns more than the best so far; the search then knows of its value."""
        if schedule == self._schedule:
            return
        try:
            evaluation = evaluate(self.model, schedule)
        except RoundingError:  # reported by `solve`, if there is no other schedule
            evaluation = None
        earned = math.nan if evaluation is None else evaluation.discounted_return
        value = -math.inf if math.isnan(earned) else earned
        if self._schedule is None or value > self.value:
            self._schedule, self._evaluation, self.value = schedule, evaluation, value
            self.search.at_least = max(self.search.at_least, value)

    def plan(self, upper: float, method_upper: float | None = None) -> Plan:
        """Return the best schedule with what is known about it."""
        schedule, stopped = self.schedule, self.stopped
        if stopped == "closed" and self._evaluation is not None:
            proved = self.value - self._evaluation.discounted_error
            if not _is_within(proved, self.search.upper, self.tolerance, self.relative):
                stopped = "exhausted"  # by rounding in what the schedule earns
        return Plan(
            schedule=schedule,
            upper=upper,
            values=self.search.bounds.lower,
            stopped=stopped,
            method_upper=method_upper,
            evaluation=self._evaluation,
        )


# The search.

#: Tips (beliefs that are not expanded yet) expanded below each action of a state that is tightened, in one round.
TIPS_PER_ACTION = 2
#: Tips expanded below the schedule's own nodes for each tip expanded in tightening.
EXPANSION_SHARE = 2.0
#: Least number of tips expanded below a node in one round.
LEAST_TIPS = 4
#: States are tightened where their gap is at least this share of the whole gap.
TIGHTENING_SHARE = 0.003
#: Smallest expansion threshold, as a fraction of the tolerance.
LEAST_THRESHOLD = 1e-4
#: Fraction of the gap left after a round above which the round counts as slow, and above which it counts as stalled.
SLOW, STALLED = 0.999, 1 - 1e-9
#: Consecutive slow rounds that lower the threshold; consecutive stalled rounds at the smallest threshold that end the search.
MOST_SLOW, MOST_STALLED = 3, 20
#: Largest size of the graph in bytes, with what is copied while it grows; the search ends there.
MOST_GRAPH_BYTES = 4 << 30
#: States or nodes handled between two checks of the budget.
NODES_PER_CHECK = 256
#: Rounds before `_settle` is first called: at a discount of at least `NEAR_ONE`, and below. A call takes as long as several
#: rounds.
NEAR_ONE, FIRST_NEAR_ONE, FIRST_BELOW = 0.998, 16, 64
#: Rounds between two calls of `_settle` are doubled up to this number. Below `NEAR_ONE` there are as many more as it takes until
#: they have done as much work as the last call did.
MOST_BETWEEN = 1024
#: `_settle` is called sooner again if it left less than this fraction of the gap, and later otherwise.
WORTH_SETTLING = 0.95
#: Relative error of a back-up, times 1 / (1 - discount), below which a gap cannot be closed further.
ROUNDED = 256 * EPSILON
#: Searches that expand more nodes than this bound beliefs by mixtures, inner beliefs and shared plans; most close without.
MANY_EXPANDED = 16384
#: Plans are shared again when the number of expanded nodes has grown by this factor.
PLANS_GROWN = 1.5
#: Most known states whose plans are tried, most plans that are kept, and most that are added at once.
MOST_PLANNED, MOST_PLANS, PLANS_AT_ONCE = 512, 32, 16
#: Nodes on which plans are tried before they are kept; sweeps of backing up afterwards.
SAMPLED, PLAN_SWEEPS = 2048, 2
#: Work of one round, in beliefs: about as long as it takes to add that many. It counts where rounds add few beliefs.
ROUND_WORK = 40


class Search:
    """A search for the optimum of a model that can be stopped and continued at any time.

    Parameters
    ----------
    model : Model
    budget : Budget
        It may be replaced by another one between two calls of `run`.
    may_look : bool
        False to search for the best schedule that never looks.
    """

    def __init__(self, model: Model, budget: Budget, may_look: bool = True) -> None:
        self.model = model if may_look else model.replace(measuring_cost=PROHIBITIVE)
        self.budget = budget
        self.bounds: Bounds = first_bounds(model, budget, may_look)
        self._arrays: Dynamics = dynamics(self.model)
        self._graph: Graph = make_graph(model)
        self._scratch: Scratch = make_scratch(model.n_states)
        self._starts, self._weights = _start_nodes(model, self._graph, self.bounds, self._scratch)
        self._out = np.empty(model.n_states + len(self._starts) + 1, np.int64)
        self._met = np.empty(model.n_states, np.int64)
        self._tips = np.empty_like(self._out)
        self._progress = np.zeros(7, np.int64)
        self._mixing = make_mixing(model.n_states)
        self._is_indexed = False
        #: Beliefs are bounded by mixtures, inner beliefs and shared plans once more nodes than this are expanded; never without
        #: discount.
        self.mixes_above = MANY_EXPANDED if 0 < model.discount < 1 else math.inf
        #: Value of a schedule that is known from elsewhere.
        self.at_least = -np.inf
        #: Rounds so far.
        self.rounds = 0
        self._relative = 0.0
        #: Why the search can go no further, if so.
        self._stop: Stopped | None = None
        self._between = FIRST_NEAR_ONE if model.discount >= NEAR_ONE else FIRST_BELOW
        self._settle_at, self._settle_work = self._between, 0.0
        self._best: tuple[float, Schedule] | None = None
        #: Plans of known states that bound other beliefs from below: their columns are the last of `bounds.lower_vectors`.
        self._plans: list[tuple[int, ...]] = []
        self._share_plans_at = 0.0
        self._upper_before = np.empty(0)
        budget.note(self.lower, self.upper)

    @property
    def lower(self) -> float:
        """Lower bound on the optimum from the start."""
        return max(self.at_least, float(self._weights @ self._graph.lower[self._starts]))

    @property
    def upper(self) -> float:
        """Upper bound on the optimum from the start."""
        return mean_bound(self._weights, self._graph.upper[self._starts])

    @property
    def nodes(self) -> int:
        """Number of beliefs in the graph."""
        return int(self._graph.counts[belief_graph.NODES])

    def is_closed(self, tolerance: float, relative: float = 0.0) -> bool:
        """Return whether upper - lower is at most `tolerance`, or the share `relative` of the smaller of |lower| and |upper|."""
        return _is_within(self.lower, self.upper, tolerance, relative)

    @property
    def is_at_rounding(self) -> bool:
        """Whether the bounds are as close as rounding allows; never so without discount."""
        upper, lower, discount = self.upper, self.lower, self.model.discount
        rounding = ROUNDED * max(abs(upper), abs(lower)) / max(1 - discount, ROUNDED)
        return discount < 1 and upper - lower <= rounding

    def run(self, tolerance: float, relative: float = 0.0) -> Stopped:
        """Search until the bounds are within the tolerance or the budget is over; returns why it stopped.

        It may be called again to go on.

        Parameters
        ----------
        tolerance : float
            Absolute. It also sets which gaps at tips are worth expanding.
        relative : float
            See `is_closed`.
        """
        threshold, least = 0.1 * tolerance, LEAST_THRESHOLD * tolerance * (1.1 - self.model.discount)
        slow, stalled = 0, 0  # rounds in a row
        self._relative = relative
        with self.budget.deferred_interrupts():
            while not (stopped := self._stopped(tolerance)):
                gap = self.upper - self.lower
                expanded = self._round(threshold, gap)
                self.rounds += 1
                if self.rounds >= self._settle_at and self.work >= self._settle_work and self.model.discount < 1:
                    self._settle(threshold)
                if self._graph.counts[belief_graph.EXPANDED] > max(2 * self.mixes_above, self._share_plans_at):
                    self._share_plans()
                self.budget.note(self.lower, self.upper)
                left = (self.upper - self.lower) / gap
                slow = slow + 1 if expanded == 0 and left > SLOW else 0
                stalled = stalled + 1 if expanded == 0 and left > STALLED else 0
                if slow >= MOST_SLOW and threshold > least:
                    threshold, slow, stalled = max(0.3 * threshold, least), 0, 0
                elif stalled >= MOST_STALLED:
                    stalled = 0
                    if not self._fell_since_last_asked(gap):
                        self._stop = self._stop or "exhausted"
        return stopped

    def _fell_since_last_asked(self, gap: float) -> bool:
        """Return whether an upper bound fell noticeably, or beliefs were added, since the last call; the first call says so."""
        upper, before = self._graph.upper[: self.nodes].copy(), self._upper_before
        self._upper_before = upper
        fell = np.max(before - upper[: len(before)], initial=0.0)
        return len(upper) > len(before) or fell > (1 - STALLED) * gap

    def schedule(self) -> Schedule:
        """Return the schedule behind the lower bound."""
        schedule = _extract_schedule(self.model, self._graph, self.bounds, self._starts, self._scratch, self._plans)
        if self._best is not None and self._best[0] > evaluate(self.model, schedule).discounted_return:
            return self._best[1]
        return schedule

    def _stopped(self, tolerance: float) -> Stopped | None:
        """Return why to stop before the next round, or None to go on."""
        if self.is_closed(tolerance, self._relative):
            return "closed"
        if self.is_at_rounding:
            return "exhausted"
        self._count_work()
        return self._stop or self.budget.stops()

    def _halts(self) -> bool:
        """Return whether to stop in the middle of a round."""
        self._count_work()
        return self.budget.is_over or (self._relative > 0 and self.is_closed(-math.inf, self._relative))

    @property
    def work(self) -> int:
        """Work so far, in beliefs."""
        return self.nodes + ROUND_WORK * self.rounds

    def _count_work(self) -> None:
        self.budget.spent = self.work

    def _round(self, threshold: float, gap: float) -> int:
        """Expand tips below the states and nodes of the schedule with the highest upper bounds; returns how many tips."""
        if not self._make_room():
            return 0
        n_own, count, n_met = self._frontier(threshold)
        met = self._met[:n_met]
        # The states with the highest upper bounds first: they are closest to the reward, and the bounds of others rest on theirs.
        met = met[np.argsort(-self.bounds.upper[met])]
        expanded = 0
        for piece in _pieces(met):
            if self._halts():
                return expanded
            expanded += self._expand_below(piece, True, TIPS_PER_ACTION, max(threshold, TIGHTENING_SHARE * gap))
        times = max(LEAST_TIPS, int(EXPANSION_SHARE * expanded / n_own))
        nodes = self._out[:count].copy()
        for part, tips in ((nodes[n_own:], LEAST_TIPS), (nodes[:n_own], times)):
            for piece in reversed(_pieces(part)):
                if self._halts():
                    return expanded
                expanded += self._expand_below(piece, False, tips, threshold)
        return expanded

    def _settle(self, threshold: float) -> None:
        """Solve for the bounds of the schedules with the highest upper and the highest lower bounds, each as a whole.

        Where known states lead to each other, a round of backing up takes only the fraction 1 - discount off their gap.
        """
        gap, graph = self.upper - self.lower, self._graph
        before = int(graph.counts[belief_graph.STAMP])
        self._frontier(threshold)
        on_the_way = (graph.mark[: self.nodes] > before) & graph.expanded[: self.nodes]
        spent = _lower_upper_bounds(graph, self.bounds, self.model.discount, np.flatnonzero(on_the_way))
        schedule = _extract_schedule(self.model, graph, self.bounds, self._starts, self._scratch, self._plans)
        evaluation = evaluate(self.model, schedule)
        if self._best is None or evaluation.discounted_return > self._best[0]:
            self._best = evaluation.discounted_return, schedule
            self.at_least = max(self.at_least, evaluation.discounted_return)
        risen = np.flatnonzero(np.nan_to_num(evaluation.values, nan=-np.inf) > self.bounds.lower)
        self.bounds.lower[risen] = evaluation.values[risen]
        nodes = graph.node_of_state[risen]
        graph.lower[nodes[nodes >= 0]] = evaluation.values[risen[nodes >= 0]]
        left = (self.upper - self.lower) / gap if gap > 0 else 1.0
        self._between = max(1, self._between // 4) if left < WORTH_SETTLING else min(2 * self._between, MOST_BETWEEN)
        self._settle_at = self.rounds + self._between
        self._settle_work = self.work + spent if self.model.discount < NEAR_ONE else 0.0

    def _share_plans(self) -> None:
        """Bound all beliefs from below by the plans of known states, and raise the lower bounds that follow."""
        graph, bounds, model = self._graph, self.bounds, self.model
        n_nodes, n_entries = self.nodes, int(graph.counts[belief_graph.ENTRIES])
        self._share_plans_at = PLANS_GROWN * int(graph.counts[belief_graph.EXPANDED])
        seen = np.bincount(graph.states[:n_entries], graph.probabilities[:n_entries], model.n_states)
        known = graph.node_of_state
        seen[(known < 0) | ~graph.expanded[known]] = 0.0
        candidates = set()
        for state in np.argsort(-seen, kind="stable")[:MOST_PLANNED].tolist():
            if seen[state] > 0:
                plan, _ = _plan(graph, bounds, self._scratch, model, int(known[state]), self._plans)
                if plan.then == "measure" and len(plan.actions) > 1:
                    candidates.add(plan.actions)
        offered = sorted(candidates.difference(self._plans))
        moves = _moves(model)
        if offered and len(self._plans) < MOST_PLANS:
            sample = np.linspace(0, n_nodes - 1, SAMPLED).astype(np.int64)
            beliefs = _beliefs(graph, sample, model.n_states)
            means = np.asarray(beliefs @ _plan_values(model, moves, bounds.lower, offered))
            lower = graph.lower[sample]
            for _ in range(min(PLANS_AT_ONCE, MOST_PLANS - len(self._plans))):
                gains = np.maximum(means - lower[:, None], 0.0).sum(axis=0)
                best = int(gains.argmax())
                if gains[best] <= 0:
                    break
                self._plans.append(offered[best])
                lower = np.maximum(lower, means[:, best])
        if self._plans:
            simple = bounds.lower_vectors[:, : 2 * model.n_actions]
            values = _plan_values(model, moves, bounds.lower, self._plans)
            self.bounds = bounds._replace(lower_vectors=np.ascontiguousarray(np.hstack([simple, values])))
            graph_search.raise_lower_bounds(graph, self.bounds, model.discount, PLAN_SWEEPS)

    def _frontier(self, threshold: float) -> tuple[int, int, int]:
        """Find nodes and states of the schedule with the highest upper bounds; returns how many: see `graph_search.frontier`."""
        while graph_search.frontier(
            self._graph, self.bounds, self._scratch, self.model.discount, self._starts, threshold, self._out, self._met,
            self._tips, self._progress,
        ):  # fmt: skip
            cycle = self._scratch.path[
                self._progress[graph_search.CYCLE_BEGIN] : self._progress[graph_search.CYCLE_END]
            ]
            graph_search.solve_cycle(self._graph, self.bounds, self._scratch, self.model.discount, cycle)
        n_own, count, n_met = self._progress[[graph_search.N_OWN, graph_search.COUNT, graph_search.N_MET]].tolist()
        return n_own, count, n_met

    def _expand_below(self, where: IntArray, of_states: bool, times: int, threshold: float) -> int:
        """Expand below states or nodes, again with a larger graph if it was full; returns how many tips were expanded."""
        while True:
            mixing = self._mixing if self._graph.counts[belief_graph.EXPANDED] > self.mixes_above else None
            if mixing is not None and not self._is_indexed:
                self._is_indexed = True
                insert_all(self._graph, mixing.index)
            done = graph_search.expand_below(
                self._graph, self._arrays, self.bounds, self._scratch, mixing, self.model.discount, where, of_states,
                times, threshold,
            )  # fmt: skip
            if done != graph_search.FULL or not self._make_room():
                return max(done, 0)

    def _make_room(self) -> bool:
        """Enlarge the graph if it is nearly full; False, and the search ends, if it may not grow any more."""
        while not belief_graph.has_room(self._graph):
            larger = _with_more_room(self._graph, MOST_GRAPH_BYTES)
            if larger is None:
                self._stop = "memory"
                return False
            self._graph = larger
        return True


def _is_within(lower: float, upper: float, tolerance: float, relative: float) -> bool:
    """Return whether bounds differ by at most `tolerance`, or the share `relative` of the smaller of their sizes."""
    return upper - lower <= max(tolerance, relative * min(abs(lower), abs(upper)))


def _pieces(items: IntArray) -> list[IntArray]:
    return [items[i : i + NODES_PER_CHECK] for i in range(0, len(items), NODES_PER_CHECK)]


# The graph: its allocation, and the schedule behind its lower bounds.

#: Nodes of a new graph, and entries for each of them.
FIRST_CAPACITY, ENTRIES_PER_NODE = 1 << 12, 16
#: Longest blind path that the search follows.
LONGEST_SEARCH_PATH = 20_000
#: A repeated action that surely ends the episode within this many steps is written out in the schedule.
SOON = 20


def make_graph(model: Model) -> Graph:
    """Return an empty graph, with capacity for a node in which each state is known."""
    # A power of two, as the hash table needs it.
    capacity = max(FIRST_CAPACITY, 1 << (model.n_states + model.n_actions).bit_length())
    entries = max(FIRST_CAPACITY * ENTRIES_PER_NODE, 4 * model.n_states * (model.n_actions + 2))
    return _allocate(model.n_states, model.n_actions, capacity, entries)


def _allocate(n_states: int, n_actions: int, capacity: int, entries: int) -> Graph:
    def floats(*shape: int) -> Any:
        return np.empty(shape)

    return Graph(
        counts=np.zeros(4, np.int64),
        offsets=np.zeros(capacity + 1, np.int64),
        states=np.empty(entries, np.int32),
        probabilities=floats(entries),
        known=np.full(capacity, -1, np.int32),
        upper=floats(capacity),
        lower=floats(capacity),
        reveal_upper=floats(capacity),
        reveal_lower=floats(capacity),
        expanded=np.zeros(capacity, np.bool_),
        child=np.full((capacity, n_actions), -1, np.int32),
        running=floats(capacity, n_actions),
        reward=floats(capacity, n_actions),
        cost=floats(capacity, n_actions),
        error=floats(capacity, n_actions),
        largest_error=np.zeros(1),
        margin=floats(capacity, n_actions),
        scale=floats(capacity),
        exit_choice=np.full(capacity, -1, np.int32),
        lower_choice=np.full(capacity, -1, np.int32),
        parent=np.full(capacity, -1, np.int32),
        parent_action=np.zeros(capacity, np.int32),
        mixed_at=np.zeros(capacity, np.int64),
        inner=np.full(capacity, -1, np.int32),
        inner_share=floats(capacity),
        mark=np.zeros(capacity, np.int64),
        hashes=np.zeros(capacity, np.uint64),
        table=np.full(4 * capacity, -1, np.int32),
        node_of_state=np.full(n_states, -1, np.int32),
    )


def _with_more_room(graph: Graph, most_bytes: int) -> Graph | None:
    """Return the graph with twice the capacity for what is nearly full, or None if that takes more than `most_bytes`.

    The arrays that are copied count twice. Other arrays are those of the old graph, which must not be used any more.
    """
    capacity, n_actions = graph.child.shape
    n_nodes, n_entries = int(graph.counts[belief_graph.NODES]), int(graph.counts[belief_graph.ENTRIES])
    more_nodes, more_entries = belief_graph.is_short_of_nodes(graph), belief_graph.is_short_of_entries(graph)
    for_entries = graph.states.nbytes + graph.probabilities.nbytes
    for_nodes = sum(array.nbytes for array in graph) - for_entries
    if (1 + 2 * more_nodes) * for_nodes + (1 + 2 * more_entries) * for_entries > most_bytes:
        return None
    larger = graph
    if more_nodes:
        larger = _allocate(len(graph.node_of_state), n_actions, 2 * capacity, 0)
        used = {
            "counts": 4,
            "offsets": n_nodes + 1,
            "node_of_state": len(graph.node_of_state),
            "table": 0,
            "largest_error": 1,
        }
        for name, array in (
            graph._replace(states=graph.states[:0], probabilities=graph.probabilities[:0])._asdict().items()
        ):
            size = used.get(name, n_nodes)
            getattr(larger, name)[:size] = array[:size]
        belief_graph.fill_table(larger)
    states, probabilities = graph.states, graph.probabilities
    if more_entries:
        states, probabilities = np.empty(2 * len(states), np.int32), np.empty(2 * len(states))
        states[:n_entries], probabilities[:n_entries] = graph.states[:n_entries], graph.probabilities[:n_entries]
    return larger._replace(states=states, probabilities=probabilities)


def _beliefs(graph: Graph, nodes: IntArray, n_states: int) -> sparse.csr_array[np.float64]:
    """Return the beliefs of some nodes as rows, shape (n, S)."""
    sizes = graph.offsets[nodes + 1] - graph.offsets[nodes]
    entries = np.arange(sizes.sum()) + np.repeat(graph.offsets[nodes] - np.cumsum(sizes) + sizes, sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return sparse.csr_array(
        (graph.probabilities[entries], graph.states[entries], offsets), shape=(len(nodes), n_states)
    )


def _moves(model: Model) -> list[sparse.csr_array[np.float64]]:
    """Return the probabilities to be in a state that is not terminal after each action, shape (S, S), times the discount."""
    stays = sparse.diags_array(np.where(model.terminal, 0.0, model.discount))
    every = sparse.csr_array(model.transitions.stacked() @ stays)
    return [every[action :: model.n_actions] for action in range(model.n_actions)]


def _plan_values(
    model: Model, moves: list[sparse.csr_array[np.float64]], lower: FloatArray, plans: list[tuple[int, ...]]
) -> FloatArray:
    """Return what plans that end with a look earn from each state, shape (S, n), if known states are worth `lower`."""
    values = np.empty((model.n_states, len(plans)))
    for number, plan in enumerate(plans):
        value = np.where(model.terminal, 0.0, lower)
        for back, action in enumerate(reversed(plan)):
            value = model.rewards[:, action] + moves[action] @ value
            if back == 0:
                value -= model.measuring_costs[:, action]
        values[:, number] = np.where(model.terminal, 0.0, value)
    return values


def make_scratch(n_states: int) -> Scratch:
    """Return the work arrays of the kernels."""
    return Scratch(
        states=np.empty(n_states, np.int64),
        weights=np.empty(n_states),
        position=np.full(n_states, -1, np.int64),
        dense=np.zeros(n_states),
        path=np.empty(LONGEST_SEARCH_PATH, np.int64),
        path_weights=np.empty(LONGEST_SEARCH_PATH),
        cycle_values=np.empty(LONGEST_SEARCH_PATH),
        cycle_rewards=np.empty(LONGEST_SEARCH_PATH),
        cycle_factors=np.empty(LONGEST_SEARCH_PATH),
        leaving=np.empty(LONGEST_SEARCH_PATH),
        free=np.empty(LONGEST_SEARCH_PATH, np.bool_),
        used=np.zeros(n_states, np.bool_),
        met=np.zeros(n_states, np.bool_),
        difference=np.zeros(1),
    )


def _start_nodes(model: Model, graph: Graph, bounds: Bounds, scratch: Scratch) -> tuple[IntArray, Any]:
    """Return the nodes at which an episode may begin (known states, or one belief) and their probabilities."""
    if model.start_is_known:
        nodes = [_query(graph, bounds, scratch, belief_graph.NODE_OF_STATE, state) for state in model.initial_states]
        return np.array(nodes, dtype=np.int64), model.initial_probabilities
    count = len(model.initial_states)
    scratch.states[:count] = model.initial_states
    scratch.weights[:count] = model.initial_probabilities
    return np.array([_query(graph, bounds, scratch, belief_graph.NODE_OF_BELIEF, count)], dtype=np.int64), np.ones(1)


def _query(graph: Graph, bounds: Bounds, scratch: Scratch, what: int, number: int, discount: float = 1.0) -> int:
    """Return the number that `belief_graph.query` answers."""
    return int(belief_graph.query(graph, bounds, scratch, discount, what, int(number))[1])


def _extract_schedule(
    model: Model, graph: Graph, bounds: Bounds, starts: IntArray, scratch: Scratch, shared: list[tuple[int, ...]]
) -> Schedule:
    """Return the schedule behind the lower bounds: at every node the choice with the highest lower bound."""
    plans: dict[int, BlindPlan] = {}
    start_plan, waiting = None, []
    for node in starts:
        if graph.known[node] >= 0:
            waiting.append(int(graph.known[node]))
        else:
            start_plan, waiting = _plan(graph, bounds, scratch, model, int(node), shared)
    while waiting:
        state = waiting.pop()
        if state not in plans:
            node = _query(graph, bounds, scratch, belief_graph.NODE_OF_STATE, state)
            plans[state], further = _plan(graph, bounds, scratch, model, node, shared)
            waiting += further
    return Schedule(plans, model.n_states, start_plan)


def _plan(
    graph: Graph, bounds: Bounds, scratch: Scratch, model: Model, node: int, shared: list[tuple[int, ...]]
) -> tuple[BlindPlan, list[int]]:
    """Return the plan behind the lower bound of a node, and the states that it may come to know."""
    actions: list[int] = []
    seen = {node: 0}
    while graph.expanded[node] and (model.discount < 1 or graph.lower_choice[node] >= 0):
        # Without discount, a choice of equal value may lead round in a cycle; the stored choices do not (see `back_up`).
        if model.discount < 1:
            value, choice = belief_graph.query(graph, bounds, scratch, model.discount, belief_graph.LOWER_CHOICE, node)
            if shared and belief_graph.query(graph, bounds, scratch, 1.0, belief_graph.LOWER_VECTOR, node)[0] > value:
                break
        else:
            choice = int(graph.lower_choice[node])
        actions.append(choice // 2)
        node = int(graph.child[node, choice // 2])
        if node < 0:
            return BlindPlan(tuple(actions), then="measure" if choice % 2 else "end"), []
        if choice % 2 == 1:
            return BlindPlan(tuple(actions), then="measure"), _support(graph, node)
        if graph.known[node] >= 0:
            return BlindPlan(tuple(actions), then="known"), _support(graph, node)
        if node in seen:
            return BlindPlan(tuple(actions), then="repeat", repeat=len(actions) - seen[node]), []
        seen[node] = len(actions)
    return _plan_of_vector(graph, bounds, scratch, model, node, actions, shared)


def _plan_of_vector(
    graph: Graph, bounds: Bounds, scratch: Scratch, model: Model, node: int, actions: list[int],
    shared: list[tuple[int, ...]],
) -> tuple[BlindPlan, list[int]]:  # fmt: skip
    """Return the plan that goes on after `actions` with the one of `Bounds.lower_vectors` that is best at a node, as `_plan`."""
    value, column = belief_graph.query(graph, bounds, scratch, model.discount, belief_graph.LOWER_VECTOR, node)
    if not np.isfinite(value):
        raise PlanError("no schedule with a finite value was found in time; allow more time, or use a discount below 1")
    if column < model.n_actions:
        actions.append(int(column))
        return BlindPlan(tuple(actions), then="measure"), _successors(graph, model, node, int(column))
    if column >= 2 * model.n_actions:
        return _shared_plan(model, _belief(graph, node), actions, shared[int(column) - 2 * model.n_actions])
    return _repeating(model, _belief(graph, node), actions, int(column) - model.n_actions), []


def _shared_plan(
    model: Model, belief: Belief, actions: list[int], shared: tuple[int, ...]
) -> tuple[BlindPlan, list[int]]:
    """Return the plan that goes on with a shared one, which ends with a look, and the states that it may come to know."""
    for action in shared:
        belief = belief.predict(model, action)
        if belief.is_over:
            break
    return BlindPlan((*actions, *shared), then="measure"), [] if belief.is_over else belief.states.tolist()


def _repeating(model: Model, belief: Belief, actions: list[int], action: int) -> BlindPlan:
    """Return the plan that repeats an action without end, or as often as it takes where the episode is soon over."""
    for times in range(1, SOON + 1):
        belief = belief.predict(model, action)
        if belief.is_over:
            return BlindPlan((*actions, *[action] * times), then="end")
    return BlindPlan((*actions, action), then="repeat", repeat=1)


def _belief(graph: Graph, node: int) -> Belief:
    """Return the belief of a node."""
    entries = slice(graph.offsets[node], graph.offsets[node + 1])
    order = np.argsort(graph.states[entries])
    return Belief(graph.states[entries][order].astype(np.int64), graph.probabilities[entries][order])


def _support(graph: Graph, node: int) -> list[int]:
    """Return the states of a node's belief."""
    return [int(state) for state in graph.states[graph.offsets[node] : graph.offsets[node + 1]]]


def _successors(graph: Graph, model: Model, node: int, action: int) -> list[int]:
    """Return the non-terminal states that an action may lead to from a node that has not been expanded."""
    reached = {int(to) for state in _support(graph, node) for to in model.transitions.row(state, action)[0]}
    return [state for state in reached if not model.terminal[state]]


# Policy iteration on a part of the graph.
#
# Near discount 1 the upper bounds of known states rest on each other: a plan looks, comes to know a state whose plan looks, and
# so on, and a round of backing up takes only the fraction 1 - g off a gap. Some expanded nodes, all of them or those on the way
# of the schedule with the highest bounds, are a decision problem of their own, in which the value of every other node is its
# present upper bound, or that of its `reveal` if that is less. With T the back-up of these nodes, monotone and a contraction with
# factor g,
#
#     T u <= u + d in every node  implies  V <= u + d / (1 - g),
#
# so `u` may come from anywhere. Here it comes from policy iteration, a sparse linear solve a step. T is rounded upwards as in
# `kernels/belief_graph.py`, and so is u + d / (1 - g).

#: Most steps of policy iteration, and most restarts with other bounds for blind choices; usually a handful of each.
MOST_STEPS, MOST_ROUNDS = 50, 5
#: Work of a step of policy iteration, in beliefs: about as long as it takes to add that many; and for each of its nodes.
STEP_WORK, NODE_WORK = 60, 0.1
#: Relative change of the values that ends policy iteration.
SETTLED = 1e-14
#: A part of the graph with more entries of beliefs than this is left to backing up.
MOST_BELIEF_ENTRIES = 200_000


def _lower_upper_bounds(graph: Graph, bounds: Bounds, discount: float, on_the_way: IntArray) -> float:
    """Lower the upper bounds of all expanded nodes by policy iteration, or of some, shape (n,), if all are too many.

    The discount is below 1. Returns the work, in the unit of `Search.work`, which it is not part of.
    """
    n_nodes = int(graph.counts[belief_graph.NODES])
    for nodes in (np.flatnonzero(graph.expanded[:n_nodes]), on_the_way):
        equations = _OptimalityEquations.of(graph, bounds, discount, nodes)
        if equations is not None:
            break
    else:
        return 0.0
    proved = graph.upper[nodes].copy()
    for _ in range(MOST_ROUNDS):
        equations.choose_shown(proved)
        solved = equations.solve(proved, discount)
        lowered = float(np.max(proved - solved))
        proved = np.minimum(proved, solved)
        if lowered <= SETTLED * float(np.abs(proved).max()):
            break
    graph.upper[nodes] = np.minimum(graph.upper[nodes], proved)
    known = nodes[graph.known[nodes] >= 0]
    bounds.upper[graph.known[known]] = graph.upper[known]
    return equations.steps * (STEP_WORK + NODE_WORK * len(nodes))


class _OptimalityEquations:
    """The optimality equations of some nodes: blind choices lead to one node, looks to all states that are possible there."""

    def __init__(
        self, rewards: FloatArray, costs: FloatArray, factors: FloatArray, blind: IntArray, blind_constants: FloatArray,
        shown: sparse.csr_array[np.float64], shown_constants: FloatArray, roundings: FloatArray, scales: FloatArray,
        beliefs: IntArray,
    ) -> None:  # fmt: skip
        self.rewards, self.costs, self.factors = rewards, costs, factors  # (n, A)
        self.blind, self.blind_constants = blind, blind_constants  # (n, A): the part's node, or -1 and its bound
        self.shown, self.shown_constants = shown, shown_constants  # (m, n), (m,): mean over the states of a belief
        self.may_be_shown = np.unique(shown.indices)
        self.roundings, self.scales = roundings, scales  # (m,)
        self.beliefs = beliefs  # (n, A): the belief's number, or -1 where the episode is over
        self.counts_as_shown = np.zeros(beliefs.shape, dtype=bool)
        #: Steps of policy iteration so far.
        self.steps = 0

    @classmethod
    def of(cls, graph: Graph, bounds: Bounds, discount: float, nodes: IntArray) -> _OptimalityEquations | None:
        """Return the equations of expanded nodes, or None if they are too many."""
        position = np.full(int(graph.counts[belief_graph.NODES]), -1)
        position[nodes] = np.arange(len(nodes))
        children = graph.child[nodes].astype(np.int64)
        running = children >= 0
        unique, numbers = np.unique(children[running], return_inverse=True)
        sizes = graph.offsets[unique + 1] - graph.offsets[unique]
        if sizes.sum() > MOST_BELIEF_ENTRIES:
            return None
        beliefs = np.full(children.shape, -1)
        beliefs[running] = numbers
        rows = np.repeat(np.arange(len(unique)), sizes)
        entries = np.arange(sizes.sum()) + np.repeat(graph.offsets[unique] - np.cumsum(sizes) + sizes, sizes)
        states, probabilities = graph.states[entries], graph.probabilities[entries]
        own = graph.node_of_state[states]
        own = np.where(own >= 0, position[own], -1)
        inside = own >= 0
        shape = (len(unique), len(nodes))
        shown = sparse.csr_array((probabilities[inside], (rows[inside], own[inside])), shape=shape)
        outside = np.where(inside, 0.0, probabilities * bounds.upper[states])
        blind = np.where(running, position[children], -1)
        return cls(
            rewards=graph.reward[nodes] + graph.margin[nodes],
            costs=graph.cost[nodes],
            factors=discount * graph.running[nodes],
            blind=blind,
            blind_constants=np.where(running & (blind < 0), graph.upper[children], 0.0),
            shown=shown,
            shown_constants=np.bincount(rows, weights=outside, minlength=len(unique)).astype(np.float64),
            roundings=relative_error(sizes) * (sizes > 1),
            scales=graph.scale[unique],
            beliefs=beliefs,
        )

    def _if_shown(self, values: FloatArray) -> FloatArray:
        """Return the value of `reveal` at the belief after each action, rounded upwards, shape (n, A)."""
        mean = self.shown_constants + self.shown @ values
        shown = mean + self.roundings * (2 * self.scales + np.abs(mean))
        return np.where(self.beliefs >= 0, shown[self.beliefs], 0.0)

    def _unseen(self, values: FloatArray) -> FloatArray:
        """Return the bound of the node that each action leads to, shape (n, A)."""
        return np.where(self.blind >= 0, values[self.blind], self.blind_constants)

    def choose_shown(self, values: FloatArray) -> None:
        """Bound blind choices by `reveal` of their child from now on, where that is less at these values; either is sound."""
        self.counts_as_shown = self._if_shown(values) < self._unseen(values)

    def solve(self, values: FloatArray, discount: float) -> FloatArray:
        """Return upper bounds from policy iteration, which begins with the best choices at `values`, both of shape (n,)."""
        proved = np.full(len(values), np.inf)
        _, choices = self.back_up(values)
        for _ in range(MOST_STEPS):
            self.steps += 1
            before, former, values = choices, values, self.evaluate(choices)
            if not np.isfinite(values).all():
                break
            backed_up, choices = self.back_up(values)
            excess = max(0.0, float(np.max(backed_up - values)))
            above = excess / (1 - discount) * (1 + 1e-9) + EPSILON * np.abs(values) * (excess > 0)
            proved = np.minimum(proved, values + above)
            settled = SETTLED * float(np.abs(values).max())
            # Choices of equal value may take turns without end.
            changed = float(np.abs(values - former).max())
            if excess <= settled or changed <= settled or np.array_equal(choices, before):
                break
        return proved

    def back_up(self, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return T u, rounded upwards, shape (n,), and the best choices: 2 a blind, 2 a + 1 with a look."""
        if_shown = self._if_shown(values)
        blind = self.rewards + self.factors * np.where(self.counts_as_shown, if_shown, self._unseen(values))
        looking = self.rewards - self.costs + self.factors * if_shown
        both = np.stack([blind, looking], axis=2).reshape(len(values), -1)
        choices = both.argmax(axis=1)
        return both[np.arange(len(values)), choices], choices

    def evaluate(self, choices: IntArray) -> FloatArray:
        """Return the values of the nodes, shape (n,), if these choices are always made; NaN where rounding leaves none.

        Blind choices lead from node to node, up to a look, an end or a bound from outside. These chains are followed first, so
        that the linear system only has the nodes that a look may show, those on cycles of blind choices, and the ends of chains
        that begin there.
        """
        n_nodes = len(choices)
        every, actions, pays = np.arange(n_nodes), choices // 2, choices % 2 == 1
        looks = pays | self.counts_as_shown[every, actions]
        factors, beliefs, blind = self.factors[every, actions], self.beliefs[every, actions], self.blind[every, actions]
        goes_on, looking = ~looks & (blind >= 0), looks & (beliefs >= 0)
        constants = self.rewards[every, actions] - np.where(pays, self.costs[every, actions], 0.0)
        constants += np.where(looks, 0.0, factors * self.blind_constants[every, actions])
        constants[looking] += factors[looking] * self.shown_constants[beliefs[looking]]
        # A node's value is `totals` + `shares` times that of the node at which its chain ends.
        onward, ends_here = np.where(goes_on, blind, every), ~goes_on
        ends_here[self.may_be_shown] = True
        ends = _follow(np.where(ends_here, every, onward), constants, factors)[0]
        ends_here[ends] = True  # nodes on cycles
        ends, totals, shares = _follow(
            np.where(ends_here, every, onward), np.where(ends_here, 0.0, constants), np.where(ends_here, 1.0, factors)
        )
        begins = np.flatnonzero(ends_here & goes_on)
        after = onward[begins]
        is_unknown = np.zeros(n_nodes, dtype=bool)
        is_unknown[self.may_be_shown], is_unknown[begins], is_unknown[ends[after]] = True, True, True
        unknowns, number = np.flatnonzero(is_unknown), np.cumsum(is_unknown) - 1
        moves = _matrix(
            factors[begins] * shares[after], number[begins], number[ends[after]], len(unknowns), len(unknowns)
        )
        seeing = unknowns[looking[unknowns]]
        spread = _matrix(factors[seeing], number[seeing], beliefs[seeing], len(unknowns), self.shown.shape[0])
        matrix = sparse.eye_array(len(unknowns)) - moves - (spread @ self.shown)[:, unknowns]
        constants[begins] += factors[begins] * totals[after]
        values = np.zeros(n_nodes)
        try:
            values[unknowns] = linalg.splu(sparse.csc_array(matrix)).solve(constants[unknowns])
        except RuntimeError:  # "exactly singular", by rounding
            return np.full(n_nodes, np.nan)
        seen = np.asarray(self.shown @ values)
        values[~goes_on] = constants[~goes_on]
        values[looking] += factors[looking] * seen[beliefs[looking]]
        return np.asarray(totals + shares * values[ends])


def _matrix(entries: FloatArray, rows: IntArray, columns: IntArray, height: int, width: int) -> Any:
    """Return a sparse matrix of these entries."""
    return sparse.csr_array((entries, (rows, columns)), shape=(height, width))


def _follow(onward: IntArray, totals: FloatArray, shares: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return where chains of nodes end, each node leading to one other or to itself, and discounted sums and products on the way.

    Each round doubles the steps that were taken. Chains that enter a cycle end somewhere on it.
    """
    for _ in range(len(onward).bit_length()):
        totals, shares = totals + shares * totals[onward], shares * shares[onward]
        before, onward = onward, onward[onward]
        if np.array_equal(before, onward):
            break
    return onward, totals, shares
