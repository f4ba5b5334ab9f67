"""The method `optimal`: a search over blind plans, with lower and upper bounds on the optimum that approach each other.

Every belief that a blind plan can lead to is a node of one graph, shared by all plans (`kernels/belief_graph.py`). A round of the
search follows the schedule with the highest upper bounds, tightens the bounds of the states on its way, and expands the beliefs
at which it ends. The bounds are sound after every round, and the lower one belongs to a schedule.

`Optimal` and `Never` are the planning methods; `_plan_by_search` is what both do, and what `solve`, the agent `foresight`,
inspection advice and studies share: search, compare with act-then-measure, keep the better schedule.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from actmeasure.errors import PlanError
from actmeasure.evaluation import Evaluation, evaluate
from actmeasure.kernel_arrays import dynamics
from actmeasure.kernels import belief_graph, graph_search
from actmeasure.kernels.belief_graph import Bounds, Graph, Scratch
from actmeasure.kernels.dynamics import EPSILON, Dynamics
from actmeasure.kernels.mixture_bound import MOST_BACK, Mixing
from actmeasure.markov import RoundingError
from actmeasure.model import Model
from actmeasure.planning.act_then_measure import ActThenMeasure
from actmeasure.planning.belief_graph import (
    extract_schedule,
    lower_upper_bounds,
    make_graph,
    make_scratch,
    start_nodes,
    with_more_room,
)
from actmeasure.planning.belief_plans import never_plan
from actmeasure.planning.bounds import ALMOST_ONE, PROHIBITIVE, first_bounds, informed_bounds, mean_bound, start_bound
from actmeasure.planning.budget import Budget, Stopped
from actmeasure.planning.outcome_search import outcome_plan
from actmeasure.planning.solution import Plan
from actmeasure.schedule import Schedule

__all__ = ["NEGLIGIBLE_GAP", "Never", "Optimal", "Search"]

# Planning methods.

#: Act-then-measure joins a search that is still open after this share of the time, or this many seconds.
HEAD_SHARE, HEAD_SECONDS = 0.25, 1.0
#: Share of the remaining time that act-then-measure may take.
ATM_SHARE = 2 / 3
#: Share of the time, and most seconds, for the search at a discount slightly below 1 where the model has none.
WARM_START_SHARE, WARM_START_SECONDS = 0.5, 10.0
#: An absolute gap that counts as closed where the tolerance is relative.
NEGLIGIBLE_GAP = 1e-9


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
        It also ends when upper - lower is at most this share of |lower| (of |upper| where looks are not exact); by default 0, and
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
        return Plan(
            schedule=self.schedule,
            upper=upper,
            values=self.search.bounds.lower,
            stopped=self.stopped,
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
#: Largest number of rounds between two calls of `_settle`.
MOST_BETWEEN = 1024
#: `_settle` is called sooner again if it left less than this fraction of the gap, and later otherwise.
WORTH_SETTLING = 0.95
#: Relative error of a back-up, times 1 / (1 - discount), below which a gap cannot be closed further.
ROUNDED = 256 * EPSILON
#: Searches that expand more nodes than this bound beliefs by mixtures, which most searches close without.
MANY_EXPANDED = 32768
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
        self._starts, self._weights = start_nodes(model, self._graph, self.bounds, self._scratch)
        self._out = np.empty(model.n_states + len(self._starts) + 1, np.int64)
        self._met = np.empty(model.n_states, np.int64)
        self._tips = np.empty_like(self._out)
        self._progress = np.zeros(7, np.int64)
        self._mixing = Mixing(np.empty(MOST_BACK, np.int64), np.empty(1, np.int64))
        #: Beliefs are bounded by mixtures once more nodes than this are expanded; without discount they never are.
        self.mixes_above = MANY_EXPANDED if 0 < model.discount < 1 else math.inf
        #: Value of a schedule that is known from elsewhere.
        self.at_least = -np.inf
        #: Rounds so far.
        self.rounds = 0
        self._relative = 0.0
        #: Why the search can go no further, if so.
        self._stop: Stopped | None = None
        self._between = FIRST_NEAR_ONE if model.discount >= NEAR_ONE else FIRST_BELOW
        self._settle_at = self._between
        self._best: tuple[float, Schedule] | None = None
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
        """Whether upper - lower is at most `tolerance`, or the share `relative` of |lower|."""
        lower = self.lower
        gap = self.upper - lower
        return gap <= tolerance or (relative > 0 and gap <= relative * abs(lower))

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
                if self.rounds >= self._settle_at and self.model.discount < 1:
                    self._settle(threshold)
                self.budget.note(self.lower, self.upper)
                left = (self.upper - self.lower) / gap
                slow = slow + 1 if expanded == 0 and left > SLOW else 0
                stalled = stalled + 1 if expanded == 0 and left > STALLED else 0
                if slow >= MOST_SLOW and threshold > least:
                    threshold, slow, stalled = max(0.3 * threshold, least), 0, 0
                elif stalled >= MOST_STALLED:
                    self._stop = "exhausted"
        return stopped

    def schedule(self) -> Schedule:
        """Return the schedule behind the lower bound."""
        schedule = extract_schedule(self.model, self._graph, self.bounds, self._starts, self._scratch)
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
        """Whether to stop in the middle of a round."""
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
            expanded += self._expand_below_states(piece, max(threshold, TIGHTENING_SHARE * gap))
        times = max(LEAST_TIPS, int(EXPANSION_SHARE * expanded / n_own))
        nodes = self._out[:count].copy()
        for part, tips in ((nodes[n_own:], LEAST_TIPS), (nodes[:n_own], times)):
            for piece in reversed(_pieces(part)):
                if self._halts():
                    return expanded
                expanded += self._expand_below_nodes(piece, tips, threshold)
        return expanded

    def _settle(self, threshold: float) -> None:
        """Solve for the bounds of the schedules with the highest upper and the highest lower bounds, each as a whole.

        Where known states lead to each other, a round of backing up takes only the fraction 1 - discount off their gap.
        """
        gap, graph = self.upper - self.lower, self._graph
        before = int(graph.counts[belief_graph.STAMP])
        self._frontier(threshold)
        on_the_way = (graph.mark[: self.nodes] > before) & graph.expanded[: self.nodes]
        lower_upper_bounds(graph, self.bounds, self.model.discount, np.flatnonzero(on_the_way))
        schedule = extract_schedule(self.model, graph, self.bounds, self._starts, self._scratch)
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

    def _expand_below_states(self, states: npt.NDArray[np.int64], threshold: float) -> int:
        return self._with_room(states, True, TIPS_PER_ACTION, threshold)

    def _expand_below_nodes(self, nodes: npt.NDArray[np.int64], times: int, threshold: float) -> int:
        return self._with_room(nodes, False, times, threshold)

    def _with_room(self, where: npt.NDArray[np.int64], of_states: bool, times: int, threshold: float) -> int:
        """Expand below states or nodes, again with a larger graph if it was full; returns how many tips were expanded."""
        while True:
            mixing = self._mixing if self._graph.counts[belief_graph.EXPANDED] > self.mixes_above else None
            done = graph_search.expand_below(
                self._graph, self._arrays, self.bounds, self._scratch, mixing, self.model.discount, where, of_states,
                times, threshold,
            )  # fmt: skip
            if done != graph_search.FULL or not self._make_room():
                return max(done, 0)

    def _make_room(self) -> bool:
        """Enlarge the graph if it is nearly full; False, and the search ends, if it may not grow any more."""
        while not belief_graph.has_room(self._graph):
            larger = with_more_room(self._graph, MOST_GRAPH_BYTES)
            if larger is None:
                self._stop = "memory"
                return False
            self._graph = larger
        return True


def _pieces(items: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    return [items[i : i + NODES_PER_CHECK] for i in range(0, len(items), NODES_PER_CHECK)]
