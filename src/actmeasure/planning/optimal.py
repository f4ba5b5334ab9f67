"""The provable optimum: a search over blind plans with bounds that close from both sides.

Every belief that a blind plan can lead to is a node of one graph, shared by all plans. A round follows the schedule that
still looks best, tightens what is known about the states it meets, and digs where its promises are untested. At any moment
the bounds are sound, and the lower one belongs to a schedule.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.errors import PlanError
from actmeasure.evaluation import evaluate
from actmeasure.interrupts import Interrupts, deferred_interrupts
from actmeasure.kernels import belief_graph, graph_search
from actmeasure.kernels.belief_graph import Bounds, Graph, Scratch
from actmeasure.kernels.blind import ROUNDING, Dynamics
from actmeasure.model import Model
from actmeasure.planning import act_then_measure
from actmeasure.planning.belief_graph import (
    extract_schedule,
    lower_upper_bounds,
    make_graph,
    make_scratch,
    start_nodes,
    with_more_room,
)
from actmeasure.planning.bounds import ALMOST_ONE, PROHIBITIVE, first_bounds, informed_bounds, mean_bound, start_bound
from actmeasure.planning.budget import Clock, Stopped
from actmeasure.planning.solution import Plan
from actmeasure.schedule import Schedule
from actmeasure.world import dynamics

__all__ = ["Search", "never", "optimal", "solve_within"]

#: Tips expanded below each action of a state that is tightened, in one round.
TIPS_PER_ACTION = 2
#: For every tip expanded in tightening, so many are expanded in digging.
DIGGING_SHARE = 2.0
#: Tips expanded below a node, at least, where the search digs.
LEAST_TIPS = 4
#: States are tightened where their gap is at least this share of the whole gap.
TIGHTENING_SHARE = 0.003
#: Without progress the threshold for what is worth digging falls, but not below this share of the tolerance.
LEAST_THRESHOLD = 1e-4
#: The share of the gap that is left after a round that was slow, and after one that got nowhere.
SLOW, STILL = 0.999, 1 - 1e-9
#: So many slow rounds in a row lower the threshold; so many that got nowhere, at the least threshold, end the search.
MOST_SLOW, MOST_STILL = 3, 20
#: The graph may take so many bytes, those that are copied while it grows included; then the search ends with what it has.
MOST_BYTES = 4 << 30
#: States tightened between two looks at the clock.
PIECE = 256
#: Rounds before bounds are first solved for together, which takes as long as several: at a discount of at least this, and below.
NEAR_ONE, FIRST_NEAR_ONE, FIRST_BELOW = 0.998, 16, 64
#: Relative error of a back-up that is reckoned with, times 1 / (1 - discount), in a gap that cannot be closed further.
ROUNDED = 256 * ROUNDING
#: The most rounds between two times.
MOST_BETWEEN = 1024
#: Settling is repeated sooner if it left less than this share of the gap, and later otherwise.
WORTH_SETTLING = 0.95


class Search:
    """A search for the optimum of a model that can be stopped at any time.

    Parameters
    ----------
    model : Model
    clock : Clock
    may_look : bool
        False to search for the best schedule that never looks.
    """

    def __init__(self, model: Model, clock: Clock, may_look: bool = True) -> None:
        self.model = model if may_look else model.replace(measuring_cost=PROHIBITIVE)
        self.clock = clock
        self.bounds: Bounds = first_bounds(model, clock, may_look)
        self._arrays: Dynamics = dynamics(self.model)
        self._graph: Graph = make_graph(model)
        self._scratch: Scratch = make_scratch(model.n_states)
        self._starts, self._weights = start_nodes(model, self._graph, self.bounds, self._scratch)
        self._out = np.empty(model.n_states + len(self._starts) + 1, np.int64)
        self._met = np.empty(model.n_states, np.int64)
        self._tips = np.empty_like(self._out)
        #: A value that some schedule is known to have.
        self.at_least = -np.inf
        #: Rounds of the search so far.
        self.rounds = 0
        #: Why the search can go no further, if so.
        self._stop: Stopped | None = None
        self._between = FIRST_NEAR_ONE if model.discount >= NEAR_ONE else FIRST_BELOW
        self._settle_at = self._between
        self._best: tuple[float, Schedule] | None = None
        clock.note(self.lower, self.upper)

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

    def run(self, tolerance: float) -> Stopped:
        """Search until the bounds are within the tolerance, the time is over, or Ctrl-C is pressed; returns why it stopped.

        It may be called again to go on.
        """
        threshold, least = 0.1 * tolerance, LEAST_THRESHOLD * tolerance * (1.1 - self.model.discount)
        slow, still = 0, 0  # rounds in a row
        with deferred_interrupts() as interrupts:
            while not (stopped := self._stopped(tolerance, interrupts)):
                gap = self.upper - self.lower
                expanded = self._round(threshold, gap, interrupts)
                self.rounds += 1
                if self.rounds >= self._settle_at and self.model.discount < 1:
                    self._settle(threshold)
                self.clock.note(self.lower, self.upper)
                left = (self.upper - self.lower) / gap
                slow = slow + 1 if expanded == 0 and left > SLOW else 0
                still = still + 1 if expanded == 0 and left > STILL else 0
                if slow >= MOST_SLOW and threshold > least:
                    threshold, slow, still = max(0.3 * threshold, least), 0, 0
                elif still >= MOST_STILL:
                    self._stop = "exhausted"
        return stopped

    def schedule(self) -> Schedule:
        """The schedule behind the lower bound."""
        schedule = extract_schedule(self.model, self._graph, self.bounds, self._starts, self._scratch)
        if self._best is not None and self._best[0] > evaluate(self.model, schedule).discounted_return:
            return self._best[1]
        return schedule

    def _settle(self, threshold: float) -> None:
        """Solve for the bounds of the best-looking schedule and for the values of the safest one, each as a whole.

        Backing up brings both closer by the share 1 - discount a round where known states lead to each other.
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

    def _stopped(self, tolerance: float, interrupts: Interrupts) -> Stopped | None:
        gap = self.upper - self.lower
        if gap <= tolerance:
            return "closed"
        rounding = ROUNDED * max(abs(self.upper), abs(self.lower)) / max(1 - self.model.discount, ROUNDED)
        if self.model.discount < 1 and gap <= rounding:
            return "exhausted"
        return self._stop or self.clock.stops(interrupts)

    def _round(self, threshold: float, gap: float, interrupts: Interrupts) -> int:
        if not self._make_room():
            return 0
        n_own, count, n_met = self._frontier(threshold)
        met = self._met[:n_met]
        # The most valuable first: they are closest to the reward, and what they promise bounds all others.
        met = met[np.argsort(-self.bounds.upper[met])]
        expanded = 0
        for piece in _pieces(met):
            if self.clock.stops(interrupts):
                return expanded
            expanded += self._tighten(piece, max(threshold, TIGHTENING_SHARE * gap))
        times = max(LEAST_TIPS, int(DIGGING_SHARE * expanded / n_own))
        nodes = self._out[:count].copy()
        for part, tips in ((nodes[n_own:], LEAST_TIPS), (nodes[:n_own], times)):
            for piece in reversed(_pieces(part)):
                if self.clock.stops(interrupts):
                    return expanded
                expanded += self._dig(piece, tips, threshold)
        return expanded

    def _frontier(self, threshold: float) -> tuple[int, int, int]:
        return graph_search.frontier(
            self._graph, self.bounds, self._scratch, self.model.discount, self._starts, threshold, self._out, self._met,
            self._tips,
        )  # fmt: skip

    def _tighten(self, states: npt.NDArray[np.int64], threshold: float) -> int:
        return self._with_room(states, True, TIPS_PER_ACTION, threshold)

    def _dig(self, nodes: npt.NDArray[np.int64], times: int, threshold: float) -> int:
        return self._with_room(nodes, False, times, threshold)

    def _with_room(self, where: npt.NDArray[np.int64], of_states: bool, times: int, threshold: float) -> int:
        """Expand below states or nodes, again with more room if that ran out; returns how many tips were expanded."""
        while True:
            done = graph_search.expand_below(
                self._graph, self._arrays, self.bounds, self._scratch, self.model.discount, where, of_states, times,
                threshold,
            )  # fmt: skip
            if done != graph_search.FULL or not self._make_room():
                return max(done, 0)

    def _make_room(self) -> bool:
        """Enlarge the graph if it is nearly full; False, and the search ends, if it may not grow any more."""
        while not belief_graph.has_room(self._graph):
            larger = with_more_room(self._graph, MOST_BYTES)
            if larger is None:
                self._stop = "memory"
                return False
            self._graph = larger
        return True


def _pieces(items: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    return [items[i : i + PIECE] for i in range(0, len(items), PIECE)]


# ----------------------------------------------------------------------------------------------------
# Planning with a limit on the work instead of the time, so that the same model always gives the same schedule.
# ----------------------------------------------------------------------------------------------------


#: A round of the search takes about as long as so many beliefs; where rounds come to little, they are the work.
ROUND = 40
#: A difference that does not matter, whatever the values are.
SMALLEST = 1e-9


@dataclass
class WorkLimit(Clock):
    """A clock that stands still, and is over when a search has done so much work, or is close enough to the optimum."""

    beliefs: int = 0
    tolerance: float = 0.0
    search: Search | None = None

    @property
    def is_over(self) -> bool:
        if self.search is None:
            return False
        work = self.search.nodes + ROUND * self.search.rounds
        return work >= self.beliefs or self.is_close(self.search.lower)

    def is_close(self, value: float) -> bool:
        """Whether a value is within the tolerance, as a share of it, of the bound on the optimum."""
        return self.search is not None and self.search.upper - value <= self.tolerance * abs(value)


class Undisturbed(Clock):
    """A clock that Ctrl-C does not stop: the work is small, and what it leads to must not depend on when a key was pressed."""

    def stops(self, interrupts: Interrupts) -> Stopped | None:
        return "time" if self.is_over else None


class UndisturbedLimit(Undisturbed, WorkLimit):
    """The same with a limit on the work."""


def solve_within(model: Model, tolerance: float, beliefs: int) -> tuple[Schedule, float, float]:
    """The best schedule found by a search over so many beliefs, its value, and a bound on the optimum.

    The search ends when they differ by less than `tolerance`, as a share of the value. If it does not come to that,
    act-then-measure is tried as well, and the better of the two returned.
    """
    clock = UndisturbedLimit(beliefs=beliefs, tolerance=tolerance)
    clock.search = search = Search(model, clock)
    search.run(SMALLEST)
    schedule = search.schedule()
    value = evaluate(model, schedule).discounted_return
    if not clock.is_close(value):
        other = act_then_measure.exact(model, tolerance, Undisturbed()).schedule
        earns = evaluate(model, other).discounted_return
        if earns > value:
            schedule, value = other, earns
    return schedule, value, max(search.upper, value)


# ----------------------------------------------------------------------------------------------------
# Methods that come with a bound of their own, from a search over blind plans.
# ----------------------------------------------------------------------------------------------------


#: A search that has not closed after so many seconds, or this share of the time, is joined by act-then-measure ...
HEAD_START, HEAD_SHARE = 1.0, 0.25
#: ... which may take this share of the time that is then left.
ATM_SHARE = 2 / 3
#: Without discount, the hurried search may take this share of the time, and so many seconds at most.
HURRIED_SHARE, HURRIED_SECONDS = 0.5, 10.0


def optimal(model: Model, tolerance: float, clock: Clock) -> Plan:
    """The best schedule, with a bound that shows it.

    Where the search is still open after its head start, the schedule is at least as good as act-then-measure's, if that can be
    computed in half of the time that the first bounds left (a quarter without discount).
    """
    with deferred_interrupts():  # so that Ctrl-C in one part also stops the next
        best = _Best(model, Search(model, clock))
        best.hurry(tolerance)
        best.search_until(clock.part(HEAD_SHARE, HEAD_START), tolerance)
        if best.stopped == "time" and not clock.is_over:
            joined = act_then_measure.exact(model, tolerance, clock.part(ATM_SHARE))
            best.offer(joined.schedule)
            best.search_until(clock, tolerance)
    return best.plan(upper=best.search.upper)


def never(model: Model, tolerance: float, clock: Clock) -> Plan:
    """The best schedule that never looks, with a bound on all such; as hard as the optimum."""
    with deferred_interrupts():
        best = _Best(model, Search(model, clock, may_look=False), may_look=False)
        best.hurry(tolerance)
        best.search_until(clock, tolerance)
    upper = start_bound(model, *informed_bounds(model, clock))
    return best.plan(upper, method_upper=best.search.upper)


class _Best:
    """A search, and the best schedule so far."""

    def __init__(self, model: Model, search: Search, may_look: bool = True) -> None:
        self.model, self.search, self._may_look = model, search, may_look
        self.stopped: Stopped = "time"
        self._schedule: Schedule | None = None
        self._value = -math.inf

    def hurry(self, tolerance: float) -> None:
        """Without discount, a hurried search first: its schedule makes progress, and is often the best already.

        Its bounds hold for another discount, so those of the slower search are what is noted meanwhile.
        """
        if self.model.discount < 1:
            return
        clock = self.search.clock
        part = clock.part(HURRIED_SHARE, HURRIED_SECONDS)
        own = Clock(part.limit, lambda _: clock.note(self.search.lower, self.search.upper), part.begun)
        with contextlib.suppress(PlanError):  # there may be no time for it
            hurried = Search(self.model.replace(discount=ALMOST_ONE), own, self._may_look)
            hurried.run(tolerance)
            self.offer(hurried.schedule())

    def search_until(self, clock: Clock, tolerance: float) -> None:
        """Search on, with that clock."""
        self.search.clock = clock
        self.stopped = self.search.run(tolerance)

    def offer(self, schedule: Schedule) -> None:
        """Keep a schedule if it is better than the best so far."""
        value = evaluate(self.model, schedule).discounted_return
        if self._schedule is None or value > self._value:
            self._schedule, self._value = schedule, value
            self.search.at_least = max(self.search.at_least, value)

    def plan(self, upper: float, method_upper: float | None = None) -> Plan:
        """What the method hands back."""
        search = self.search
        return Plan(self._best_schedule(), search.bounds.lower, upper, self.stopped, method_upper=method_upper)

    def _best_schedule(self) -> Schedule:
        """The best that was offered, or the search's own if that is better."""
        if self._schedule is None:
            return self.search.schedule()
        with contextlib.suppress(PlanError):  # it may promise nothing finite, but there is a schedule already
            self.offer(self.search.schedule())
        return self._schedule
