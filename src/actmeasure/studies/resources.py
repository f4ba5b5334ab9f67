"""Estimates of the time and memory of trials: by a rough rule before any has been run, corrected by those that are done.

Used to order trials, to start no more workers than memory allows, and to estimate the time left. No result depends on it.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from actmeasure.learning.train import task_of
from actmeasure.planning.optimal import MOST_GRAPH_BYTES
from actmeasure.planning.solve import is_search
from actmeasure.studies.spec import AgentSpec, Trial, canonical
from actmeasure.studies.trial import build_model, build_world, new_agent

__all__ = ["Pace", "ResourceEstimator", "Resources"]

#: Microseconds of a step, roughly, by agent, or by agent and preset; an episode on a model is taken to have as many steps as the
#: model has states, at most `max_steps`.
WEIGHTS = {
    "random": 0.05, "amrl-q": 0.05, "atmq": 0.3, "dyna-atmq": 0.7, "dyna-atmq published": 10.0, "foresight": 8.0,
    "acno-otp": 500.0, "acno-pomcp": 500.0,
}  # fmt: skip
#: Microseconds that a step of a Gymnasium environment takes in addition.
ENVIRONMENT_STEP = 20.0
#: Microseconds of a plan per state and step of the effective horizon 1 / (1 - discount), and the largest horizon that counts.
PLAN_WEIGHT, LONGEST_HORIZON = 100.0, 1000.0
#: Least number of seconds of a trial.
LEAST_SECONDS = 0.02
#: Bytes of an idle worker, per state-action pair, and per belief of a search.
WORKER_BYTES, PAIR_BYTES, BELIEF_BYTES = 350 << 20, 500, 2500
#: Seconds below which the length of a trial is noise.
NOISE_SECONDS = 1e-3
#: Weight, as a sum of squares of log(work), of the assumption that seconds are proportional to work.
PRIOR_WEIGHT = 1.0
#: Largest power of work that seconds are taken to grow with.
LARGEST_EXPONENT = 2.0
#: Seconds that a trial which has run longer than expected is expected to go on, as a fraction of those it has run.
OVERDUE_FRACTION = 0.2
#: Number of trials, or seconds of trials in all, that are enough for an estimate.
ENOUGH_TRIALS, ENOUGH_SECONDS = 10, 5.0


class Resources(NamedTuple):
    """Computing time and memory that a trial is expected to take.

    Attributes
    ----------
    cell : str
        Common to trials that differ in nothing but their seed.
    kind : str
        Common to trials of the same agent with the same settings, or of the same method with the same settings and discount.
    family : str
        The agent or method.
    work : float
        Seconds, by the rough rule of `WEIGHTS`.
    memory : int
        Bytes that a worker takes for it.
    """

    cell: str
    kind: str
    family: str
    work: float
    memory: int


class ResourceEstimator:
    """Estimates time and memory of trials before any has been run; each problem and agent is built once."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[bool, str], tuple[int, int, float]] = {}
        self._beliefs: dict[str, int] = {}

    def estimate(self, trial: Trial, contents: bytes | None) -> Resources:
        """Return the time and memory of a trial; an error says what is wrong with its problem, agent or method."""
        n_states, n_actions, discount = self._size(trial, contents)
        base = WORKER_BYTES + n_states * n_actions * PAIR_BYTES
        problem = canonical(trial.problem.identity())
        if trial.agent is None:
            beliefs = trial.settings["beliefs"] if is_search(trial.method) else 0
            steps = min(1 / (1 - discount), LONGEST_HORIZON) if discount < 1 else LONGEST_HORIZON
            kind = canonical([trial.method, dict(trial.settings), discount])
            work = LEAST_SECONDS + 1e-6 * PLAN_WEIGHT * n_states * steps
            return Resources(f"{kind} {problem}", kind, trial.method, work, base + _search_bytes(beliefs))
        agent = trial.agent
        kind = canonical(agent.identity())
        is_environment = trial.problem.gymnasium is not None
        steps = trial.max_steps if is_environment else min(n_states, trial.max_steps)
        work = LEAST_SECONDS + 1e-6 * (_weight(agent) + ENVIRONMENT_STEP * is_environment) * trial.episodes * steps
        cell = f"{kind} {problem} {trial.episodes} {trial.max_steps}"
        return Resources(cell, kind, agent.name, work, base + _search_bytes(self._agent_beliefs(agent)))

    def _size(self, trial: Trial, contents: bytes | None) -> tuple[int, int, float]:
        key = trial.agent is None, str(trial.problem.identity())
        if key not in self._sizes:
            task = task_of(build_model(trial.problem, contents) if key[0] else build_world(trial.problem, contents), 1)
            self._sizes[key] = task.n_states, task.n_actions, task.discount
        return self._sizes[key]

    def _agent_beliefs(self, agent: AgentSpec) -> int:
        """Return the largest number of beliefs of the agent's planner, 0 if it has none."""
        key = str(agent.identity())
        if key not in self._beliefs:
            self._beliefs[key] = getattr(getattr(new_agent(agent), "settings", None), "beliefs", 0)
        return self._beliefs[key]


def _weight(agent: AgentSpec) -> float:
    return WEIGHTS.get(f"{agent.name} {agent.settings.get('preset')}", WEIGHTS.get(agent.name, 1.0))


def _search_bytes(beliefs: int) -> int:
    return min(beliefs * BELIEF_BYTES, MOST_GRAPH_BYTES)


class Pace:
    """Estimates how long trials take from those that are done.

    A trial is expected to take what others took that differ in nothing but their seed. Where there are none yet, seconds are
    extrapolated by `Resources.work` from trials of the same kind; then from those of the same agent or method; then from all.
    """

    def __init__(self, resources: Mapping[str, Resources]) -> None:
        self._resources = resources
        self._cells: dict[str, list[float]] = defaultdict(list)
        self._kinds: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._families: dict[str, list[float]] = defaultdict(list)
        self._known: dict[str, list[tuple[Resources, float]]] = defaultdict(list)
        self._loading: set[str] = set()
        self._fits: dict[str, tuple[float, float]] = {}
        self._ratios: dict[str, float] = {}

    @property
    def knows(self) -> bool:
        """Whether enough trials are done for an estimate: the first ones also load compiled code."""
        return (
            sum(map(len, self._cells.values())) >= ENOUGH_TRIALS
            or sum(map(sum, self._cells.values())) >= ENOUGH_SECONDS
        )

    def note(self, trial: Trial, seconds: float, has_loaded: bool = False) -> None:
        """Record the seconds of a trial; one that also loaded compiled code counts until there is another of its kind."""
        needed, taken = self._resources[trial.hash], max(seconds, NOISE_SECONDS)
        if has_loaded:
            if needed.kind in self._kinds:
                return
            self._loading.add(needed.kind)
        elif needed.kind in self._loading:
            self._loading.remove(needed.kind)
            self._forget(needed.kind)
        self._known[needed.kind].append((needed, taken))
        self._cells[needed.cell].append(taken)
        self._kinds[needed.kind].append((math.log(needed.work), math.log(taken)))
        self._families[needed.family].append(math.log(taken / needed.work))
        self._fits.pop(needed.kind, None)
        self._ratios.clear()

    def _forget(self, kind: str) -> None:
        """Forget what trials of a kind have taken."""
        for needed, taken in self._known.pop(kind):
            self._cells.pop(needed.cell, None)
            self._families[needed.family].remove(math.log(taken / needed.work))
        del self._kinds[kind]

    def expected(self, trial: Trial) -> float:
        """Return the seconds that a trial is expected to take; `Resources.work` while none is done."""
        needed = self._resources[trial.hash]
        if needed.cell in self._cells:
            return _typical(self._cells[needed.cell])
        if needed.kind in self._kinds:
            level, slope = self._fit(needed.kind)
            return math.exp(level + slope * math.log(needed.work))
        return needed.work * self._ratio(needed.family)

    def _fit(self, kind: str) -> tuple[float, float]:
        """Return level and slope of a line through log(seconds) against log(work) for the trials of a kind."""
        if kind not in self._fits:
            points = self._kinds[kind]
            middle = sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
            spread = sum((x - middle[0]) ** 2 for x, _ in points)
            common = sum((x - middle[0]) * (y - middle[1]) for x, y in points)
            # Shrunk towards 1, in proportion, while trials are of about the same size.
            slope = min(max((PRIOR_WEIGHT + common) / (PRIOR_WEIGHT + spread), 0.0), LARGEST_EXPONENT)
            # The median: the first trial of a worker also loads compiled code.
            self._fits[kind] = median(y - slope * x for x, y in points), slope
        return self._fits[kind]

    def _ratio(self, family: str) -> float:
        """Return the ratio of seconds to `Resources.work` of an agent or method, or of all trials where it has none."""
        if family not in self._ratios:
            known = self._families.get(family) or [each for logs in self._families.values() for each in logs]
            self._ratios[family] = math.exp(median(known)) if known else 1.0
        return self._ratios[family]

    def finishing(
        self, trials: Sequence[Trial], workers: int, running: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """Return in how many seconds from now each of the trials is expected to be done, by hash.

        Parameters
        ----------
        trials : sequence of Trial
            In the order in which they are run, by whichever worker is free first.
        workers : int
        running : mapping, optional
            Seconds that trials have been running already, by hash.
        """
        free = [0.0] * max(1, min(workers, len(trials)))
        done: dict[str, float] = {}
        for trial in trials:
            own, since = self.expected(trial), (running or {}).get(trial.hash, 0.0)
            left = max(own - since, OVERDUE_FRACTION * since)
            done[trial.hash] = free[0] + left
            heapq.heapreplace(free, done[trial.hash])
        return done


def _typical(seconds: Sequence[float]) -> float:
    """Return the mean, without the longest if there are several: a worker's first trial also loads compiled code."""
    kept = sorted(seconds)[:-1] if len(seconds) > 2 else seconds
    return sum(kept) / len(kept)
