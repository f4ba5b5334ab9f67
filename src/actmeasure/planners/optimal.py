"""The provable optimum: a search over blind plans with bounds that close from both sides.

Every belief that a blind plan can lead to is a node of one graph, shared by all plans. A round follows the schedule that
still looks best, tightens what is known about the states it meets, and digs where its promises are untested. At any moment
the bounds are sound, and the lower one belongs to a schedule.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.evaluation import evaluate
from actmeasure.interrupts import Interrupts, deferred_interrupts
from actmeasure.kernels import belief_graph, graph_search
from actmeasure.kernels.belief_graph import Bounds, Graph, Scratch
from actmeasure.kernels.blind import ROUNDING, Dynamics
from actmeasure.model import Model
from actmeasure.planners.bounds import PROHIBITIVE, first_bounds, mean_bound
from actmeasure.planners.clock import Clock, Stopped
from actmeasure.planners.graph import extract_schedule, make_graph, make_scratch, start_nodes, with_more_room
from actmeasure.planners.graph_iteration import lower_upper_bounds
from actmeasure.schedule import Schedule
from actmeasure.world import dynamics

__all__ = ["Search"]

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
