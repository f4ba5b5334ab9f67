"""Foresight: an agent that learns a model by optimistic exploration and follows the certified planner's schedule for it.

It counts measured transitions. A pair (state, action) with fewer measurements than it needs is *under-sampled*. An exploring
episode looks at every step and maximises optimistic values, in which under-sampled pairs have the largest value of all
(`actmeasure.kernels.foresight`). When exploring is unlikely to visit an under-sampled pair, a schedule is searched for the
learned model. Pairs that the schedule relies on need more measurements, so that exploring goes on until they have them. A
schedule whose pairs are all measured often enough is followed, and searched anew when the number of episodes has doubled.

Before each episode the agent chooses its phase (`ForesightAgent._choose_phase`):

==============  =======================================================================================================
phase           what an episode does
==============  =======================================================================================================
`EXPLORING`     explores, with a look at every step
`CONFIRMING`    follows the schedule, and also looks after its under-sampled pairs; exploring is not done yet
`FOLLOWING`     follows the schedule
==============  =======================================================================================================

==============  =================================================================================  ====================
from            if                                                                                 to
==============  =================================================================================  ====================
`EXPLORING`     the plan was just made, or is confirmed by measurements since, and exploring       `FOLLOWING`
                is done
`EXPLORING`     `undisturbed` episodes, and a fraction `turns` of all, have explored               `CONFIRMING`
`CONFIRMING`    fewer than a fraction `turns` of all episodes have explored                        `EXPLORING`
`CONFIRMING`    the plan was just made, and exploring is done                                      `FOLLOWING`
`FOLLOWING`     a new plan was made that relies on under-sampled pairs, so that exploring is not   `CONFIRMING`, or
                done any more                                                                      `EXPLORING` as above
==============  =================================================================================  ====================

Exploring is done when the budget for exploratory looks is spent, or an exploring episode would visit an under-sampled pair with
a probability below `least_reach`. A plan is made

- when exploring is done and the plan is not confirmed, as there is none yet or its value has changed;
- after `undisturbed` exploring episodes, whenever the number of episodes has grown by 0.3 times `patience`, as a fraction;
- while following, whenever it has grown by `patience`, or by 0.3 times that if an episode has left the schedule.

An episode leaves the schedule when it meets a state for which there is no plan, or runs on where the plan says that it is over;
it explores from there on.

This file defines, in this order: phases, settings and state of the agent; the plan that it follows (`FollowedPlan`); what it may
still gain (`Outlook`); the agent, whose methods come in the order in which a run calls them: an episode, the choice of the next
phase, what it has learned, files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from itertools import chain, cycle, islice
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, ScheduleError
from actmeasure.evaluation import evaluate
from actmeasure.kernel_arrays import ENDINGS, flat_plans, record, world
from actmeasure.kernels import follow_schedule, foresight, simulate, streams
from actmeasure.kernels.learned_model import INITIAL_CAPACITY, Counts
from actmeasure.learning import saving
from actmeasure.learning.agent import Task, checked_state
from actmeasure.learning.learning_agent import (
    NOTHING_KNOWN,
    AgentSettings,
    CompiledLearner,
    count_up_to,
    entries_of_pairs,
    fraction,
    own_discount,
    positive,
    setting,
)
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.solve import solve_by_work
from actmeasure.policy import guide_for
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.settings import LARGEST_EXACT, whole
from actmeasure.statistics import quantile_interval

__all__ = ["FollowedPlan", "ForesightAgent", "ForesightSettings", "ForesightState", "Outlook", "Phase", "reliance"]

#: Most sweeps of value iteration at a time, and the change at which it stops, as a fraction of the largest reward.
SWEEPS, PRECISION = 100, 1e-6
#: Largest discount for planning: at 1, waiting would be as good as exploring, and a schedule might never end an episode.
LARGEST_DISCOUNT = 0.999
#: Factor by which a rough search for a schedule may do less work than a full one.
ROUGH_DIVISOR = 8
#: Pairs taken less often than this fraction of `reliance` need no further measurements.
IRRELEVANT = 0.01
#: Factor on the number of episodes between two plans after a plan has failed, or while exploring.
SHORT_PAUSE = 0.3
#: Fraction of the optimistic value below which a schedule is taken for worthless where no reward is negative.
WORTHLESS = 0.01
#: Most plans that are followed to compute how often a schedule takes each pair.
MOST_PLANS = 1_000


class Phase(Enum):
    """The purpose of an episode; see the table at the top of the module."""

    EXPLORING = 0
    CONFIRMING = 1
    FOLLOWING = 2


@dataclass(frozen=True)
class ForesightSettings(AgentSettings):
    """Settings of the foresight agent; one default for all problems.

    Attributes
    ----------
    first : int
        Measurements that a pair (state, action) needs before its value is as measured.
    sure : int
        Measurements that a pair needs if the plan relies on it.
    reliance : float
        The plan relies on a pair that it is expected to take at least this many times in an episode; one that is taken a
        quarter as often needs half of the measurements, and so on by the square root.
    least_reach : float
        Exploring ends when the probability that an episode visits an under-sampled pair is below this.
    discount : float
        For planning; the task's own if that is larger, but 0.999 at most.
    tolerance : float
        Planning ends when the schedule is within this fraction of the optimum of the learned model.
    beliefs : int
        Largest work of a search for a plan, in beliefs that it expands; a round of the search counts as forty of them.
    patience : float
        A new plan is made after this many more episodes, as a fraction of those before the last plan; after three tenths of that
        if the plan has failed or exploring is not done.
    optimism : float
        Weight of the optimistic value, in measurements, for a pair that has ended an episode.
    undisturbed : int
        Exploring episodes after which exploring alternates with following the plan for what is known.
    turns : float
        Fraction of all episodes that then explore.
    budget : float
        Largest total cost of exploratory looks, in multiples of the largest reward. It does not depend on how many
        episodes are planned, as a run may be told in parts.
    """

    first: int = setting(5, count_up_to(10**9, least=1))
    sure: int = setting(50, count_up_to(10**9, least=1))
    reliance: float = setting(0.1, lambda value, name: positive(fraction(value, name), name))
    least_reach: float = setting(0.01, fraction)
    discount: float = setting(0.995, own_discount)
    tolerance: float = setting(0.01, positive)
    beliefs: int = setting(400_000, count_up_to(10**9, least=1))
    patience: float = setting(1.0, positive)
    optimism: float = setting(0.5, positive)
    undisturbed: int = setting(1_500, count_up_to(10**9, least=1))
    turns: float = setting(0.2, fraction)
    budget: float = setting(10_000.0, positive)


@dataclass
class ForesightState:
    """The numbers on which the phase of the next episode depends, besides the tables of the kernels.

    Attributes
    ----------
    phase : Phase
        Of the last episode.
    explored : int
        Number of `EXPLORING` episodes.
    plans_made : int
        Number of searches for a plan.
    planned_at : int
        Number of the episode before which the last plan was made.
    plan_failed : bool
        Whether an episode has left the schedule since then.
    plan_is_precise : bool
        Whether the search for the plan was a full one, or reached the tolerance.
    value, upper : float
        Value of the schedule for the model at that time, and an upper bound on the optimum there.
    """

    phase: Phase = Phase.EXPLORING
    explored: int = 0
    plans_made: int = 0
    planned_at: int = 0
    plan_failed: bool = False
    plan_is_precise: bool = False
    value: float = -np.inf
    upper: float = np.inf

    def stored(self) -> dict[str, npt.NDArray[Any]]:
        """Return the fields as arrays of shape ()."""
        fields = asdict(self) | {"phase": self.phase.value}
        return {name: np.array(fields[name], dtype=kind) for name, kind in STATE_TYPES.items()}

    @classmethod
    def restored(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> ForesightState:
        """Return the state that `stored` wrote; raise an `AgentError` if the arrays cannot be one."""
        saving.check_shapes(arrays, dict.fromkeys(STATE_TYPES, ()), largest=np.inf)
        fields = {name: arrays[name].item() for name in STATE_TYPES}
        most = {"phase": len(Phase) - 1, "plan_failed": 1, "plan_is_precise": 1}
        for name, kind in STATE_TYPES.items():
            if kind == "<i8" and not 0 <= fields[name] <= most.get(name, LARGEST_EXACT):
                raise AgentError(f"{name!r} is {fields[name]}, which is out of range; the file is damaged")
        flags = {name: bool(fields[name]) for name in ("plan_failed", "plan_is_precise")}
        return cls(**fields | flags | {"phase": Phase(fields["phase"])})


#: The fields of the state in files, and their types.
STATE_TYPES = {
    "phase": "<i8", "explored": "<i8", "plans_made": "<i8", "planned_at": "<i8", "plan_failed": "<i8", "plan_is_precise": "<i8",
    "value": "<f8", "upper": "<f8",
}  # fmt: skip


#: The arrays of a followed plan in files, and their types.
PLAN_TYPES = {
    "plan_offsets": "<i8", "plan_actions": "<i8", "plan_endings": "<i8", "plan_repeats": "<i8", "plan_of_state": "<i4",
    "plan_start": "<i8", "known_after": "<i8",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class FollowedPlan:
    """A schedule for the learned model, and the arrays by which kernels follow it."""

    schedule: Schedule
    guide: follow_schedule.Guide

    @classmethod
    def none(cls, n_states: int) -> FollowedPlan:
        """Return a schedule without plans."""
        schedule = Schedule({}, n_states)
        plans, start = flat_plans(schedule)
        return cls(schedule, follow_schedule.Guide(plans, start, np.full(n_states + 1, -1, np.int64)))

    @classmethod
    def of(cls, schedule: Schedule, model: Model) -> FollowedPlan:
        """Return a schedule with its arrays; raise a `ScheduleError` if it contradicts the model."""
        return cls(schedule, guide_for(schedule, model))

    def stored(self) -> dict[str, npt.NDArray[Any]]:
        """Return the plan as arrays, with the types of `PLAN_TYPES`."""
        plans = self.guide.plans
        return {
            "plan_offsets": plans.offsets, "plan_actions": plans.actions, "plan_endings": plans.then,
            "plan_repeats": plans.repeat, "plan_of_state": plans.plan_of_state,
            "plan_start": np.array([self.guide.start_plan]), "known_after": self.guide.known_after,
        }  # fmt: skip

    @classmethod
    def restored(
        cls, arrays: Mapping[str, npt.NDArray[Any]], n_states: int, n_actions: int, hidden: bool
    ) -> FollowedPlan:
        """Return the plan that `stored` wrote, for a start that is hidden or not; raise an `AgentError` if it cannot be one."""
        try:
            plans, (start,) = _blind_plans(arrays), arrays["plan_start"].tolist()
            if start not in (-1, len(plans) - 1):
                raise ValueError("the plan for the start is not the last")
            distinct, first = (tuple(plans), None) if start < 0 else (tuple(plans[:-1]), plans[-1])
            schedule = Schedule.from_distinct(distinct, arrays["plan_of_state"], first if hidden else None)
            flat, _ = flat_plans(schedule, first)
        except (ScheduleError, ValueError, KeyError) as error:
            raise AgentError(f"its plan is not one ({error}); the file is damaged") from error
        after = arrays["known_after"]
        fits = schedule.n_states == n_states and all(max(plan.actions) < n_actions for plan in plans)
        if not fits or after.shape != (n_states + 1,) or after.min() < -1 or after.max() >= n_states:
            raise AgentError("its plan does not fit its task; the file is damaged")
        return cls(schedule, follow_schedule.Guide(flat, start, after))


def _blind_plans(arrays: Mapping[str, npt.NDArray[Any]]) -> list[BlindPlan]:
    """Return the blind plans that `FollowedPlan.stored` wrote, that of the start last; raise a `ValueError` if they are none."""
    names = {code: name for name, code in ENDINGS.items()}
    offsets, actions = arrays["plan_offsets"].tolist(), arrays["plan_actions"].tolist()
    endings = zip(arrays["plan_endings"].tolist(), arrays["plan_repeats"].tolist(), strict=True)
    if offsets[:1] != [0] or offsets[-1] != len(actions) or offsets != sorted(offsets):
        raise ValueError("its plans overlap")
    return [
        BlindPlan(tuple(actions[begin:end]), then=names[then], repeat=repeat)  # type: ignore[arg-type]
        for begin, end, (then, repeat) in zip(offsets[:-1], offsets[1:], endings, strict=True)
    ]


def reliance(model: Model, schedule: Schedule, least: float) -> FloatArray:
    """Return how often a schedule is expected to take each pair in an episode, shape (S * A,).

    Known states that are expected fewer than `least` times are not followed further, so that rare pairs may be missing.
    """
    expected = np.zeros(model.n_states * model.n_actions)
    start = Belief.start(model)
    waiting: dict[int, float] = {}
    if model.start_is_known:
        waiting = dict(zip(start.states.tolist(), start.probabilities.tolist(), strict=True))
    elif schedule.start is not None:
        _add_plan(model, schedule.start, start, 1.0, expected, waiting)
    for _ in range(MOST_PLANS):
        state = max(waiting, key=lambda known: waiting[known], default=-1)
        if state < 0 or waiting[state] < least:
            break
        times, plan = waiting.pop(state), schedule.get(state)
        if plan is not None:
            _add_plan(model, plan, Belief.at(state), times, expected, waiting)
    return expected


def _add_plan(
    model: Model, plan: BlindPlan, belief: Belief, times: float, expected: FloatArray, waiting: dict[int, float]
) -> None:
    """Add the pairs of a plan that is begun `times` times to `expected`, and the states known after it to `waiting`."""
    for action in plan.actions:
        expected[belief.states * model.n_actions + action] += times * belief.probabilities
        times *= belief.running_probability(model, action)
        belief = belief.predict(model, action)
        if belief.is_over:
            return
    if plan.then in ("measure", "known"):
        for state, share in zip(belief.states.tolist(), belief.probabilities.tolist(), strict=True):
            waiting[state] = waiting.get(state, 0.0) + times * share


@dataclass(frozen=True)
class Outlook:
    """The value of a schedule with its uncertainty, and the gain of a better one; all discounted, from the start.

    Attributes
    ----------
    value : float
        Value of the schedule, if the dynamics are exactly as measured.
    low, high : float
        5 % and 95 % quantiles of its value over dynamics drawn from the posterior of the measurements.
    gain, most_gain : float
        Mean and 95 % quantile of how much better the best schedule found for such dynamics is.
    unexplored : float
        Probability that an exploring episode visits an under-sampled pair.
    """

    value: float
    low: float
    high: float
    gain: float
    most_gain: float
    unexplored: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """Measured transitions, visit counts of pairs in known states, and how many of the visits ended the episode, (S * A,)."""

    counts: Counts
    taken: npt.NDArray[np.int64]
    ended: npt.NDArray[np.int64]

    @property
    def ends(self) -> FloatArray:
        """Probability that each pair ends the episode, NaN for those never taken."""
        return np.where(self.taken > 0, self.ended / np.maximum(self.taken, 1), np.nan)

    def redrawn(self, rng: np.random.Generator) -> tuple[Counts, FloatArray]:
        """Return counts and probabilities of an end drawn from their posterior over the successors that were seen.

        The `times` and `measured` of these counts are not whole numbers. Pairs that pay and may end the episode stay as they are:
        often it is the end that is paid for, and of rewards only their mean is known, so that a lower probability of the end
        would mean to be paid again and again.
        """
        both = (self.ended > 0) & (self.ended < self.taken)
        fixed = both & (self.counts.rewards[: both.size] != 0)
        drawn = rng.beta(np.maximum(self.ended, 1), np.maximum(self.taken - self.ended, 1))
        counts, used = self.counts, int(self.counts.used[0])
        times, totals = np.zeros(used), np.zeros(len(counts.first))
        times[1:] = rng.standard_gamma(counts.times[1:used])
        for pairs, entries in entries_of_pairs(counts.first, counts.following):
            times[entries] = np.where(fixed[pairs], counts.times[entries], times[entries])
            totals[pairs] += times[entries]
        return counts._replace(times=times, measured=totals), np.where(both & ~fixed, drawn, self.ends)


#: What the kernels remember of the last episode, in files, and the entry of `memory` where they have it.
MEMORY = {
    "visited_undersampled": foresight.VISITED_UNDERSAMPLED,
    "off_schedule": foresight.OFF_SCHEDULE,
    "values_outdated": foresight.VALUES_OUTDATED,
    "steps_since_undersampled": foresight.STEPS_SINCE_UNDERSAMPLED,
}
#: Tables of the kernels in files, and the field of `ForesightTables` where they have them.
TABLES = {
    "needed": "needed", "taken": "taken", "ended": "ended", "state_values": "values", "optimistic_value": "optimistic_value"
}  # fmt: skip
#: The arrays that files of all versions have, and their types.
COMMON_TYPES = (
    saving.TYPES | PLAN_TYPES | {"needed": "<i8", "taken": "<i8", "ended": "<i8", "state_values": "<f8", "seen": "<i8"}
)
#: The entries of the array `kept` in files of version 1, by their present names. Two flags told the phase.
VERSION_1_KEPT = (
    "follows", "finished", "planned_at", "explored", "plan_failed", "value", "upper", "plans_made", "visited_undersampled",
    "off_schedule", "values_outdated", "exploration_cost", "steps_since_undersampled", "plan_is_precise",
)  # fmt: skip


class ForesightAgent(CompiledLearner):
    """Foresight: explores while looking, plans with the certified planner, checks what the plan relies on, and follows it.

    It decides by itself when it knows enough.

    Parameters
    ----------
    **settings
        Any setting of `ForesightSettings`.

    Attributes
    ----------
    state : ForesightState
        The phase of the last episode, and the numbers on which that of the next one depends.
    """

    name = "foresight"
    types: ClassVar[dict[str, str]] = (
        COMMON_TYPES
        | STATE_TYPES
        | dict.fromkeys(MEMORY, "<i8")
        | {"optimistic_value": "<f8", "exploration_cost": "<f8"}
    )
    version_1_types: ClassVar[dict[str, str] | None] = COMMON_TYPES | {"hope": "<f8", "kept": "<f8"}
    defaults: ClassVar[ForesightSettings] = ForesightSettings()
    settings: ForesightSettings
    _tables: foresight.ForesightTables
    _plan: FollowedPlan

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        super().__init__(preset, **settings)
        self.state = ForesightState()

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        self._largest_reward = 1.0 if task.largest_reward is None else float(task.largest_reward)
        self._tables = foresight.make_tables(
            task.n_states, task.n_actions, self._largest_reward, self.settings.first, INITIAL_CAPACITY
        )
        self._parameters = foresight.ForesightParameters(
            discount=min(max(task.discount, self.settings.discount), LARGEST_DISCOUNT),
            first=self.settings.first,
            optimism=self.settings.optimism,
            sweeps=SWEEPS,
            precision=PRECISION * (abs(self._largest_reward) or 1.0),
        )
        self._progress = follow_schedule.new_progress(task.n_states + 1)
        self._plan = FollowedPlan.none(task.n_states + 1)

    def begin(self, observation: int | None) -> None:
        self._begin(observation, self.episodes_done)

    def _begin(self, observation: int | None, episode: int) -> None:
        """Choose the phase of an episode by its number, and begin it."""
        self.note_start(observation)
        self._tables.budget[foresight.LIMIT] = self._exploration_budget()
        if episode > 0:
            self._finish_last_episode()
            self.state.phase = self._choose_phase(episode)
        self._tables.memory[foresight.CONFIRMS] = self.phase is Phase.CONFIRMING
        shown = self._known_start() if observation is None else observation
        foresight.begin(self._tables, self._plan.guide, self._progress, self.phase is not Phase.EXPLORING, shown)

    def decide(self) -> Decision:
        action, look = foresight.decide(
            self._tables, self._parameters, self._plan.guide, self._progress, self.prepared().n_actions, self._stream
        )
        return Decision(int(action), bool(look))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        self._grow_if_full()
        seen = simulate.NOTHING if observation is None else checked_state(observation, self.prepared().n_states)
        foresight.observe(
            self._tables, self._parameters, self._plan.guide, self._progress, self.prepared().n_actions, float(reward),
            float(cost), seen, bool(terminated),
        )  # fmt: skip

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        entropy, stream = streams.entropy_words(seed), streams.make_stream()
        arrays, written = world(model), record(episodes)
        for episode in range(len(episodes)):
            streams.seed_stream(stream, entropy, first_episode + episode, streams.WORLD)
            self.reseed(seed, first_episode + episode)
            state = int(simulate.first_state(arrays, stream))
            self._begin(state if model.reveal_start else None, first_episode + episode)
            while state != simulate.NOTHING:
                self._grow_if_full()
                state = foresight.play(
                    arrays, self._tables, self._parameters, self._plan.guide, self._progress, state, max_steps, written,
                    episode, stream, self._stream,
                )  # fmt: skip

    def _finish_last_episode(self) -> None:
        """Update values and counts after an episode."""
        self._update_values()
        if self.phase is Phase.EXPLORING:
            self.state.explored += 1
            if foresight.has_stalled(self._tables):
                self._accept_undersampled()
        elif self._tables.memory[foresight.OFF_SCHEDULE]:
            self.state.plan_failed = True

    def _choose_phase(self, episode: int) -> Phase:
        """Return the phase of an episode, given that of the last one; makes a plan if one is due."""
        state, settings = self.state, self.settings
        pause = settings.patience * state.planned_at
        since = episode - state.planned_at
        exploring_is_done = False
        if state.phase is Phase.FOLLOWING:
            is_due = since >= (SHORT_PAUSE * pause if state.plan_failed else pause)
            exploring_is_done = self._make_plan(episode, is_followed=True) if is_due else True
        elif not foresight.has_budget(self._tables):
            exploring_is_done = self._make_plan(episode)
        elif state.phase is Phase.EXPLORING and self._last_episode_visited_nothing_new():
            exploring_is_done = self._plan_is_confirmed() or self._make_rough_plan_first(episode)
        elif state.explored >= settings.undisturbed and since >= SHORT_PAUSE * pause:
            exploring_is_done = self._make_rough_plan_first(episode)
        if exploring_is_done:
            return Phase.FOLLOWING
        has_explored_enough = state.explored >= max(settings.undisturbed, settings.turns * episode)
        return Phase.CONFIRMING if has_explored_enough and state.plans_made > 0 else Phase.EXPLORING

    def _last_episode_visited_nothing_new(self) -> bool:
        """Return whether the last episode visited no under-sampled pair, and the next one is unlikely to."""
        visited = self._tables.memory[foresight.VISITED_UNDERSAMPLED]
        return not visited and self._reach() < self.settings.least_reach

    def _plan_is_confirmed(self) -> bool:
        """Return whether the plan is precise, and worth as much by what was measured since it was made."""
        if not self.state.plan_is_precise or self._plan_is_worthless():
            return False
        value = self._value_of_plan(self.model())
        is_confirmed = value >= self.value - self.settings.tolerance * abs(self.value)
        if is_confirmed:
            self.state.value, self.state.upper = value, max(value, self.upper)
        return is_confirmed

    def _make_rough_plan_first(self, episode: int) -> bool:
        """Make a rough plan, and a full one if no measurements are missing for that; return whether exploring is done.

        A rough plan tells as well which pairs to measure again, in a fraction of the time.
        """
        is_followed = self.phase is Phase.CONFIRMING
        return self._make_plan(episode, ROUGH_DIVISOR) and self._make_plan(episode, is_followed=is_followed)

    def _make_plan(self, episode: int, divisor: int = 1, is_followed: bool = False) -> bool:
        """Search a schedule for the learned model; return whether exploring is done.

        The present schedule is kept if it is as good. If it is followed, a new one must be better by more than the tolerance, as
        a change would cost measurements of other pairs.
        """
        model, state = self.model(), self.state
        work = max(1, self.settings.beliefs // divisor)
        # An agent that plans as it learns must depend neither on the clock nor on when Ctrl-C was pressed.
        solution = solve_by_work(model, self.settings.tolerance, work, interruptible=False)
        schedule, state.value, state.upper = solution.schedule, solution.value, solution.upper
        present = self._value_of_plan(model)
        is_kept = present >= state.value - is_followed * self.settings.tolerance * abs(state.value)
        if is_kept:
            schedule, state.value, state.upper = self._plan.schedule, present, max(present, state.upper)
        self._plan = FollowedPlan.of(schedule, model)
        state.planned_at, state.plan_failed, state.plans_made = episode, False, state.plans_made + 1
        state.plan_is_precise = divisor == 1 or state.upper - state.value <= self.settings.tolerance * abs(state.value)
        if is_kept and is_followed and not self._plan_is_worthless():
            return True
        self._require_measurements(model, episode)
        return not foresight.has_budget(self._tables) or self._reach() < self.settings.least_reach

    def _require_measurements(self, model: Model, episode: int) -> None:
        """Raise the needed measurements of pairs that the plan relies on; of all pairs if the plan is worthless."""
        needed, measured = self._tables.needed, self._tables.counts.measured
        relied = reliance(model, self._plan.schedule, IRRELEVANT * self.settings.reliance)[: needed.size]
        wanted = self.settings.sure * np.sqrt(np.minimum(1.0, relied / self.settings.reliance))
        np.maximum(needed, np.ceil(wanted).astype(np.int64), out=needed)
        # At most half of the episodes, and no more than `undisturbed`, search for a schedule that is not worthless.
        searches = 2 * self.explored <= episode + 1 and self.explored < self.settings.undisturbed
        if self._plan_is_worthless() and searches:
            more = np.where(self._tables.ended > 0, 2 * measured, measured + self.settings.first)
            np.copyto(needed, more, where=measured >= needed)
        self._update_values()

    def _accept_undersampled(self) -> None:
        """Lower the needed measurements of under-sampled pairs to those made: exploring does not reach the pairs again."""
        measured = self._tables.counts.measured
        np.copyto(self._tables.needed, measured, where=(measured > 0) & (measured < self._tables.needed))
        self._update_values()

    def _update_values(self) -> None:
        """Update the optimistic values also if no pair has reached its needed measurements: every measurement changes them."""
        self._tables.memory[foresight.VALUES_OUTDATED] = True
        foresight.sweep(self._tables, self._parameters, self.prepared().n_actions)

    def _plan_is_worthless(self) -> bool:
        """Return whether the plan earns next to nothing although no reward is negative, so that there must be a better one."""
        optimistic_value = self._tables.optimistic_value[0]
        nothing_costs = self._tables.counts.rewards.min() >= 0
        return bool(nothing_costs and self.value < WORTHLESS * optimistic_value and optimistic_value > 0)

    def _value_of_plan(self, model: Model) -> float:
        """Return the value of the present schedule for a model; -inf if that contradicts the schedule, or needs other plans."""
        try:
            return evaluate(model, FollowedPlan.of(self._plan.schedule, model).schedule).discounted_return
        except ScheduleError:
            return -np.inf

    def _exploration_budget(self) -> float:
        """Return the largest total cost of exploratory looks, in proportion to the largest absolute reward known."""
        largest = max(abs(self._largest_reward), float(np.abs(self._tables.counts.rewards).max()))
        return self.settings.budget * largest if largest > 0 else np.inf

    def _reach(self) -> float:
        """Return the probability that an exploring episode visits an under-sampled pair; starts never seen count as such."""
        task = self.prepared()
        from_state = np.zeros(task.n_states + 1)
        foresight.reach(self._tables, self._parameters, task.n_actions, from_state)
        start = self._start(task)
        from_start = np.where(self._tables.is_seen[start.states], from_state[start.states], 1.0)
        return float(start.probabilities @ from_start)

    def _known_start(self) -> int:
        """Return the state in which episodes begin that do not show it, if there is only one, or else `NOTHING`."""
        start = self.prepared().start
        return int(start.states[0]) if start is not None and len(start.states) == 1 else simulate.NOTHING

    def _start(self, task: Task) -> Belief:
        """Return the start as other agents do; where none was told or shown, the uniform belief over the states seen."""
        if task.start is not None or self.starts:
            return super()._start(task)
        seen = np.sort(self._seen())
        return Belief(seen, np.full(seen.size, 1.0 / max(1, seen.size)))

    def _seen(self) -> npt.NDArray[np.int64]:
        """Return the states seen, in the order of their first appearance."""
        return self._tables.seen[: self._tables.memory[foresight.N_SEEN]]  # type: ignore[no-any-return]

    @property
    def phase(self) -> Phase:
        """The phase of the last episode."""
        return self.state.phase

    @property
    def explored(self) -> int:
        """Number of exploring episodes that are over."""
        return self.state.explored

    @property
    def plans_made(self) -> int:
        """Number of searches for a plan."""
        return self.state.plans_made

    @property
    def value(self) -> float:
        """Value of the current schedule for the learned model, discounted; -inf before there is one."""
        return self.state.value

    @property
    def upper(self) -> float:
        """Upper bound on the optimum of the learned model, discounted."""
        return self.state.upper

    @property
    def schedule(self) -> Schedule:
        """The current schedule, for `model()`; without plans before there is one."""
        self.prepared()
        return self._plan.schedule

    def model(self, discount: float | None = None, initial: Belief | int | None = None) -> Model:
        """Return the dynamics as measured, by default with the discount for planning; see `LearningAgent.model`.

        That an episode ends is noticed without a look, so the probability of an end comes from all visits of a pair.
        """
        self.prepared()
        return self._learned_model(
            self._parameters.discount if discount is None else discount, initial, self._evidence().ends
        )

    def _evidence(self) -> Evidence:
        return Evidence(self._tables.counts, self._tables.taken, self._tables.ended)

    def outlook(self, samples: int = 20, seed: int = 0) -> Outlook:
        """Return the uncertainty of the schedule's value, and the gain of a better one, as far as the measurements tell.

        Before there is a schedule, or if a measurement contradicts it, this is about the schedule that would be planned now.

        Parameters
        ----------
        samples : int
            Number of models that are drawn from the posterior of the measurements; a plan is made for each.
        seed : int
        """
        self.prepared()
        if not self._seen().size:
            raise AgentError("nothing was seen yet that could tell what may be gained; train it first")
        tolerance = self.settings.tolerance
        samples, rng = whole(samples, "samples", 1, error=AgentError), np.random.default_rng(seed)
        model, work = self.model(), max(1, self.settings.beliefs // ROUGH_DIVISOR)
        schedule = self._plan.schedule
        if not np.isfinite(self._value_of_plan(model)):
            schedule = solve_by_work(model, tolerance, work, interruptible=False).schedule
        values, gains = np.zeros(samples), np.zeros(samples)
        for i in range(samples):
            counts, ends = self._evidence().redrawn(rng)
            drawn = self._learned_model(self._parameters.discount, None, ends, counts)
            values[i] = evaluate(drawn, schedule).discounted_return
            best = solve_by_work(drawn, tolerance, work, interruptible=False)
            gains[i] = max(0.0, best.value - values[i])
        value = evaluate(model, schedule).discounted_return
        low, high = quantile_interval(values, 0.9)
        most = quantile_interval(gains, 0.9)[1]
        return Outlook(value, float(low), float(high), float(gains.mean()), float(most), self._reach())

    def q_values(self) -> FloatArray:
        """Return the optimistic values of all actions in known states if looks were free, shape (S, A)."""
        task = self.prepared()
        pairs = range(task.n_states * task.n_actions)
        values = [foresight.pair_value(self._tables, self._parameters, pair) for pair in pairs]
        return np.array(values).reshape(task.n_states, task.n_actions)

    def belief(self) -> Belief:
        """Return the current state if it is known, else the belief after the plan's actions; empty if that is unknown too."""
        task = self.prepared()
        state, (plan, _, origin, taken) = int(self._tables.memory[foresight.STATE]), self._progress.tolist()
        if state != simulate.NOTHING:
            return Belief.at(state)
        if self._tables.memory[foresight.OFF_SCHEDULE] or plan < 0:
            return NOTHING_KNOWN
        model, belief = self.model(), Belief.at(origin) if origin < task.n_states else self._start(task)
        plans = self._plan.guide.plans
        actions = plans.actions[plans.offsets[plan] : plans.offsets[plan + 1]].tolist()
        again = actions[len(actions) - int(plans.repeat[plan]) :]
        for action in islice(chain(actions, cycle(again)), taken):
            belief = belief.predict(model, action)
        return belief

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        tables, memory = self._tables, self._tables.memory
        return (
            saving.stored(tables.counts)
            | self._plan.stored()
            | {name: getattr(tables, field) for name, field in TABLES.items()}
            | {"seen": self._seen(), "exploration_cost": np.array(tables.budget[foresight.SPENT])}
            | {name: np.array(memory[entry]) for name, entry in MEMORY.items()}
            | self.state.stored()
        )

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        task, tables, seen = self.prepared(), self._tables, arrays["seen"]
        counts = saving.counts_from(arrays, task.n_states, task.n_actions, task.n_states)
        shapes = {name: getattr(tables, field).shape for name, field in TABLES.items()}
        saving.check_shapes(arrays, shapes | {"seen": (seen.size,), "exploration_cost": ()} | dict.fromkeys(MEMORY, ()))
        if np.unique(seen).size != seen.size or (seen < 0).any() or (seen >= task.n_states).any():
            raise AgentError("the states it has seen are not states; the file is damaged")
        if arrays["state_values"][-1] != 0 or (arrays["needed"] < 1).any():
            raise AgentError("its tables contradict each other; the file is damaged")
        if not all(0 <= arrays[name] <= LARGEST_EXACT for name in MEMORY):
            raise AgentError("what it remembers of its last episode is out of range; the file is damaged")
        hidden = not task.reveal_start and (task.start is None or len(task.start.states) > 1)
        self.state = ForesightState.restored(arrays)
        self._plan = FollowedPlan.restored(arrays, task.n_states + 1, task.n_actions, hidden)
        for name, field in TABLES.items():
            getattr(tables, field)[:] = arrays[name]
        for name, entry in MEMORY.items():
            tables.memory[entry] = arrays[name]
        tables.seen[: seen.size], tables.is_seen[seen], tables.memory[foresight.N_SEEN] = seen, True, seen.size
        tables.budget[foresight.SPENT] = arrays["exploration_cost"]
        self._tables = tables._replace(counts=counts)

    @classmethod
    def upgrade(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Mapping[str, npt.NDArray[Any]]:
        """Return the arrays of a file of format version 1, which had most of the state in one array, as `learned` does now."""
        saving.check_shapes(arrays, {"kept": (len(VERSION_1_KEPT),)}, largest=np.finfo(np.float64).max)
        kept = dict(zip(VERSION_1_KEPT, arrays["kept"], strict=True))
        follows, finished = bool(kept.pop("follows")), bool(kept.pop("finished"))
        if finished and not follows:
            raise AgentError("its phase contradicts itself; the file is damaged")
        phase = Phase.FOLLOWING if finished else Phase.CONFIRMING if follows else Phase.EXPLORING
        for name in ("plan_failed", "visited_undersampled", "off_schedule", "values_outdated", "plan_is_precise"):
            kept[name] = kept[name] != 0
        for name in ("value", "upper"):  # the largest number stood for infinity
            kept[name] = np.where(
                abs(kept[name]) < np.finfo(np.float64).max, kept[name], np.copysign(np.inf, kept[name])
            )
        with np.errstate(invalid="ignore"):  # what is no count is refused by `restore`
            fields = {name: np.array(value).astype(cls.types[name]) for name, value in kept.items()}
        others = {name: array for name, array in arrays.items() if name not in ("kept", "hope")}
        return others | fields | {"phase": np.array(phase.value), "optimistic_value": arrays["hope"]}
