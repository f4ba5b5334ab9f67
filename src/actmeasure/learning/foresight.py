"""Foresight: explore with open eyes, plan with the certified planner, measure again what the plan relies on, then follow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain, cycle, islice
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, ScheduleError
from actmeasure.evaluation import evaluate
from actmeasure.kernels import follow_schedule, foresight, simulate, streams
from actmeasure.kernels.learned_model import Counts, with_more_room
from actmeasure.learning import saving
from actmeasure.learning.agent import CompiledAgent, Task, checked_state
from actmeasure.learning.learning_agent import LearningAgent, chosen, own_discount, settings_signature
from actmeasure.learning.planned import guide_for
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.optimal import solve_within
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.settings import probability, real, whole
from actmeasure.world import ENDINGS, flat_plans, record, world

__all__ = [
    "ROOM",
    "ROUGH",
    "TYPES",
    "Deliberation",
    "FollowedPlan",
    "ForesightAgent",
    "ForesightSettings",
    "Outlook",
    "outlook",
    "redrawn",
    "reliance",
]

# ----------------------------------------------------------------------------------------------------
# What can be set in foresight.
# ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ForesightSettings:
    """What can be set in foresight; one default for all problems.

    Attributes
    ----------
    first : int
        Measurements that an action in a known state needs before it is taken into account as it was measured.
    sure : int
        Measurements that are needed where the plan relies on an action.
    reliance : float
        The plan relies on an action that it is expected to take at least so often in an episode; where it takes one a quarter as
        often, half of the measurements are enough, and so on.
    least_reach : float
        Exploring ends when it would come to something new in less than this share of the episodes.
    discount : float
        For planning; the task's own if that is larger, but 0.999 at most.
    tolerance : float
        Planning ends when the schedule is within this share of the best for the learned model.
    beliefs : int
        The work that the planner's search may do, in beliefs that it comes to; a round of it counts as forty of them. It bounds
        the time of a plan.
    patience : float
        A new plan is made after so many more episodes than before, as a share; after three tenths of that if the plan went wrong
        or exploring is not done.
    optimism : float
        An action that has ended an episode is worth what was measured, and what is hoped for as if that had been measured this
        many times.
    undisturbed : int
        After so many episodes exploring takes turns with following the plan for what is known.
    turns : float
        Share of the episodes that then go into exploring.
    budget : float
        Looks for exploring may cost as much as the largest reward this many times, in all. It does not depend on how many
        episodes are planned, as those may be told in parts.
    """

    first: int = 5
    sure: int = 50
    reliance: float = 0.1
    least_reach: float = 0.01
    discount: float = 0.995
    tolerance: float = 0.01
    beliefs: int = 400_000
    patience: float = 1.0
    optimism: float = 0.5
    undisturbed: int = 1_500
    turns: float = 0.2
    budget: float = 10_000

    def __post_init__(self) -> None:
        for name in ("first", "sure", "beliefs", "undisturbed"):
            object.__setattr__(self, name, whole(getattr(self, name), name, 1, 10**9, AgentError))
        for name in ("reliance", "least_reach", "turns"):
            object.__setattr__(self, name, probability(getattr(self, name), name, AgentError))
        for name in ("reliance", "tolerance", "patience", "optimism", "budget"):
            value = real(getattr(self, name), name, AgentError)
            if not 0 < value < np.inf:
                raise AgentError(f"{name} is {value!r}, expected a number above 0")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "discount", own_discount(self.discount, "discount"))


# ----------------------------------------------------------------------------------------------------
# The plan that foresight follows: what it relies on, and how it is stored.
# ----------------------------------------------------------------------------------------------------


#: The arrays in which a plan is stored, and their types.
TYPES = {
    "plan_offsets": "<i8",
    "plan_actions": "<i8",
    "plan_endings": "<i8",
    "plan_repeats": "<i8",
    "plan_of_state": "<i4",
    "plan_start": "<i8",
    "known_after": "<i8",
}
#: Known states are followed up to this many times; rounds that never end are cut off.
MOST_VISITS = 1_000


@dataclass(frozen=True, eq=False)
class FollowedPlan:
    """A schedule for the learned model, and the arrays by which it is followed."""

    schedule: Schedule
    guide: follow_schedule.Guide

    @classmethod
    def none(cls, n_states: int) -> FollowedPlan:
        """No plan for any state, before there is one."""
        schedule = Schedule({}, n_states)
        plans, start = flat_plans(schedule)
        return cls(schedule, follow_schedule.Guide(plans, start, np.full(n_states + 1, -1, np.int64)))

    @classmethod
    def of(cls, schedule: Schedule, model: Model) -> FollowedPlan:
        """A schedule that was made for a model."""
        return cls(schedule, guide_for(schedule, model))

    def stored(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
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
        """From the arrays, for so many states, and a start that may be hidden; an `AgentError` if they cannot be a plan."""
        try:
            plans, (start,) = _plans(arrays), arrays["plan_start"].tolist()
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


def _plans(arrays: Mapping[str, npt.NDArray[Any]]) -> list[BlindPlan]:
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
    """How often a schedule is expected to take each pair in an episode, shape (S * A,), where that is above about `least`."""
    expected = np.zeros(model.n_states * model.n_actions)
    start = Belief.start(model)
    waiting: dict[int, float] = {}
    if model.start_is_known:
        waiting = dict(zip(start.states.tolist(), start.probabilities.tolist(), strict=True))
    elif schedule.start is not None:
        _walk(model, schedule.start, start, 1.0, expected, waiting)
    for _ in range(MOST_VISITS):
        state = max(waiting, key=lambda known: waiting[known], default=-1)
        if state < 0 or waiting[state] < least:
            break
        chance, plan = waiting.pop(state), schedule.get(state)
        if plan is not None:
            _walk(model, plan, Belief.at(state), chance, expected, waiting)
    return expected


def _walk(
    model: Model, plan: BlindPlan, belief: Belief, chance: float, expected: FloatArray, waiting: dict[int, float]
) -> None:
    """Follow one plan, add what it takes to `expected`, and the states it comes to know to `waiting`."""
    for action in plan.actions:
        expected[belief.states * model.n_actions + action] += chance * belief.probabilities
        chance *= belief.running_probability(model, action)
        belief = belief.predict(model, action)
        if belief.is_over:
            return
    if plan.then in ("measure", "known"):
        for state, share in zip(belief.states.tolist(), belief.probabilities.tolist(), strict=True):
            waiting[state] = waiting.get(state, 0.0) + chance * share


# ----------------------------------------------------------------------------------------------------
# What an agent that plans on measured dynamics may still gain by knowing them better.
# ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outlook:
    """What a schedule may be worth, and what a better one may add; all discounted, from the start.

    Attributes
    ----------
    value : float
        Of the schedule, if the dynamics are exactly as measured.
    low, high : float
        The same over dynamics that agree with what was measured: 5 % and 95 % quantiles.
    gain, most_gain : float
        How much better the best schedule found for such dynamics is: the mean, and the 95 % quantile.
    unexplored : float
        Chance that an episode of exploring comes to something that was measured too little.
    """

    value: float
    low: float
    high: float
    gain: float
    most_gain: float
    unexplored: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was seen: measured transitions, how often each pair was taken in a known state, and ended the episode, (S * A,)."""

    counts: Counts
    taken: npt.NDArray[np.int64]
    ended: npt.NDArray[np.int64]

    @property
    def ends(self) -> FloatArray:
        """How likely each pair ends the episode, NaN for those never taken."""
        return np.where(self.taken > 0, self.ended / np.maximum(self.taken, 1), np.nan)

    def redrawn(self, rng: np.random.Generator) -> tuple[Counts, FloatArray]:
        """Counts and ends as they could be as well, both drawn from their posterior over what was seen to happen.

        Pairs that pay and may end the episode stay as they are: often it is the end that is paid for, and of rewards only their
        mean is known, so that a lower chance of the end would mean to be paid again and again.
        """
        both = (self.ended > 0) & (self.ended < self.taken)
        fixed = both & (self.counts.rewards[: both.size] != 0)
        drawn = rng.beta(np.maximum(self.ended, 1), np.maximum(self.taken - self.ended, 1))
        return redrawn(self.counts, fixed, rng), np.where(both & ~fixed, drawn, self.ends)


def redrawn(counts: Counts, fixed: npt.NDArray[np.bool_], rng: np.random.Generator) -> Counts:
    """Counts as they could be as well: the frequencies of each pair drawn from their posterior, over successors that were seen.

    Those of `fixed` pairs, shape (S * A,), stay. The `times` and `measured` of others are not whole numbers.
    """
    used = int(counts.used[0])
    times = np.zeros(used)
    times[1:] = rng.standard_gamma(counts.times[1:used])
    totals, entries = np.zeros(len(counts.first)), counts.first
    while entries.any():
        stay = entries[: fixed.size][fixed]
        times[stay] = counts.times[stay]
        totals += np.where(entries > 0, times[entries], 0.0)
        entries = np.where(entries > 0, counts.following[entries], 0)
    return counts._replace(times=times, measured=totals)


def outlook(
    evidence: Evidence,
    build: Callable[[Counts, FloatArray], Model],
    schedule: Schedule,
    tolerance: float,
    beliefs: int,
    unexplored: float,
    samples: int,
    rng: np.random.Generator,
) -> Outlook:
    """Weigh a schedule against the best ones for several models that `build` makes of redrawn counts and ends."""
    values, gains = np.zeros(samples), np.zeros(samples)
    for i in range(samples):
        model = build(*evidence.redrawn(rng))
        values[i] = evaluate(model, schedule).discounted_return
        gains[i] = max(0.0, solve_within(model, tolerance, beliefs)[1] - values[i])
    low, high = np.quantile(values, [0.05, 0.95])
    value = evaluate(build(evidence.counts, evidence.ends), schedule).discounted_return
    return Outlook(value, float(low), float(high), float(gains.mean()), float(np.quantile(gains, 0.95)), unexplored)


# ----------------------------------------------------------------------------------------------------
# What foresight does between episodes: whether to explore on, to plan, and to follow the plan.
# ----------------------------------------------------------------------------------------------------


#: Different transitions for which there is room at first.
ROOM = 1 << 10
#: Sweeps over the values at a time, and the change, as a share of the largest reward, at which they are settled.
SWEEPS, PRECISION = 100, 1e-6
#: If later never counted less, waiting would be as good as exploring, and a plan might never come to its end.
MOST_DISCOUNT = 0.999
#: A rough plan is searched for with so much less work.
ROUGH = 8
#: Pairs that are taken so much more seldom than those that the plan relies on are left as they are.
SELDOM = 0.01
#: A plan that went wrong is made anew after this share of the usual pause.
SOONER = 0.3
#: A plan that earns less than this share of what was hoped for is no plan: there must be more to find.
HOPELESS = 0.01


class Deliberation(LearningAgent):
    """What was learned so far, and what to do about it, decided between episodes; see `ForesightAgent`."""

    settings: ForesightSettings
    _mind: foresight.Mind
    _plan: FollowedPlan

    def __init__(self) -> None:
        super().__init__()
        #: Whether episodes follow the plan, exploring is done, the plan went wrong, and it was made with all due work.
        self.follows, self.finished, self.lost, self.careful = False, False, False, False
        self.planned_at, self.explored, self.plans_made = 0, 0, 0
        self.value, self.upper = -np.inf, np.inf

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        self._largest = 1.0 if task.largest_reward is None else float(task.largest_reward)
        self._mind = foresight.make_mind(task.n_states, task.n_actions, self._largest, self.settings.first, ROOM)
        discount = min(max(task.discount, self.settings.discount), MOST_DISCOUNT)
        precision = PRECISION * (abs(self._largest) or 1.0)
        self._rules = foresight.Rules(discount, self.settings.first, self.settings.optimism, SWEEPS, precision)
        self._chances = np.zeros(task.n_states + 1)
        self._progress = follow_schedule.new_progress(task.n_states + 1)
        self._plan = FollowedPlan.none(task.n_states + 1)

    def _consider(self, episode: int) -> None:
        """Between episodes: whether exploring has come to its end, a plan should be made, and whether the next one follows it."""
        memory = self._mind.memory
        self._renew_values()
        self.explored += not self.follows
        self.lost = self.lost or (self.follows and bool(memory[foresight.LOST]))
        if not self.follows and foresight.is_in_vain(self._mind):
            self._give_up()
        pause = self.settings.patience * self.planned_at
        since = episode - self.planned_at
        if self.finished:
            if since >= (SOONER * pause if self.lost else pause):
                self._make_plan(episode)
        elif not foresight.can_afford_a_look(self._mind):
            self._make_plan(episode)
        elif not self.follows and not memory[foresight.MET] and self._reach() < self.settings.least_reach:
            self._plan_what_is_explored(episode)
        elif self.explored >= self.settings.undisturbed and since >= SOONER * pause:
            self._plan_roughly_first(episode)
        self.follows = self.finished or self._takes_turns(episode)

    def _plan_what_is_explored(self, episode: int) -> None:
        """Go on with the last plan if that was confirmed; else plan anew."""
        if self._has_held():
            self.finished = True
        else:
            self._plan_roughly_first(episode)

    def _plan_roughly_first(self, episode: int) -> None:
        """A rough plan tells as well what to measure again; a careful one is worth its time once that is done."""
        self._make_plan(episode, ROUGH)
        if self.finished:
            self._make_plan(episode)

    def _give_up(self) -> None:
        """What was measured but cannot be reached again counts as known, until a plan relies on it."""
        measured = self._mind.counts.measured
        np.copyto(self._mind.needed, measured, where=(measured > 0) & (measured < self._mind.needed))
        self._renew_values()

    def _renew_values(self) -> None:
        """Every measurement shifts them a little; left alone they go stale, and waiting seems better than what is new."""
        self._mind.memory[foresight.CHANGED] = True
        foresight.sweep(self._mind, self._rules, self.prepared().n_actions)

    def _takes_turns(self, episode: int) -> bool:
        """Whether an episode follows the plan although there is more to explore."""
        enough = self.explored >= max(self.settings.undisturbed, self.settings.turns * episode)
        return enough and self.plans_made > 0

    def _is_hopeless(self) -> bool:
        """Where steps cost, a plan that is worth little, or less than nothing, may well be the best."""
        hope, everything_pays = self._mind.hope[0], self._mind.counts.rewards.min() >= 0
        return bool(everything_pays and self.value < HOPELESS * hope and hope > 0)

    def _budget(self) -> float:
        """What looks for exploring may cost: in proportion to what there is to win or lose in a step, as far as is known."""
        stake = max(abs(self._largest), float(np.abs(self._mind.counts.rewards).max()))
        return self.settings.budget * stake if stake > 0 else np.inf

    def _known_start(self) -> int:
        """Where an episode begins that does not show it, if there is only one such state."""
        start = self.prepared().start
        return int(start.states[0]) if start is not None and len(start.states) == 1 else foresight.NOTHING

    def _reach(self) -> float:
        """How likely an episode of exploring comes to something that was measured too little."""
        task = self.prepared()
        foresight.reach(self._mind, self._rules, task.n_actions, self._chances)
        start = self._start(task)
        chances = np.where(self._mind.is_seen[start.states], self._chances[start.states], 1.0)
        return float(start.probabilities @ chances)

    def _start(self, task: Task) -> Belief:
        """As other agents; where no start was told or shown, any state that came up."""
        if task.start is not None or self.starts:
            return super()._start(task)
        seen = np.sort(self._mind.seen[: self._mind.memory[foresight.SEEN]])
        return Belief(seen, np.full(seen.size, 1.0 / max(1, seen.size)))

    def _make_plan(self, episode: int, roughness: int = 1) -> None:
        """Plan by what was measured; go on exploring if the plan relies on what was not measured often enough."""
        model, followed = self.model(), self.finished and self.follows
        work = max(1, self.settings.beliefs // roughness)
        schedule, self.value, self.upper = solve_within(model, self.settings.tolerance, work)
        worth = self._worth_of_the_last_plan(model)
        # Measuring anew costs: a plan that is followed is given up only for one that is better than planning can tell.
        kept = worth >= self.value - followed * self.settings.tolerance * abs(self.value)
        if kept:
            schedule, self.value, self.upper = self._plan.schedule, worth, max(worth, self.upper)
        self._plan = FollowedPlan.of(schedule, model)
        self.planned_at, self.lost, self.plans_made = episode, False, self.plans_made + 1
        self.careful = roughness == 1 or self.upper - self.value <= self.settings.tolerance * abs(self.value)
        if not (kept and followed) or self._is_hopeless():
            self._ask_for_measurements(model, episode)

    def _ask_for_measurements(self, model: Model, episode: int) -> None:
        """Of what the plan relies on, or of anything if the plan is worth nothing; exploring ends when they cannot be had."""
        needed, measured = self._mind.needed, self._mind.counts.measured
        relied = reliance(model, self._plan.schedule, SELDOM * self.settings.reliance)[: needed.size]
        wanted = self.settings.sure * np.sqrt(np.minimum(1.0, relied / self.settings.reliance))
        np.maximum(needed, np.ceil(wanted).astype(np.int64), out=needed)
        # Half of the episodes at most go into the search for a plan that is worth anything, and not for ever.
        if self._is_hopeless() and 2 * self.explored <= episode + 1 and self.explored < self.settings.undisturbed:
            more = np.where(self._mind.ended > 0, 2 * measured, measured + self.settings.first)
            np.copyto(needed, more, where=measured >= needed)
        self._renew_values()
        self.finished = not foresight.can_afford_a_look(self._mind) or self._reach() < self.settings.least_reach

    def _has_held(self) -> bool:
        """Whether no better plan was found when it was made, and it is worth as much by what was measured since."""
        if not self.careful or self._is_hopeless():
            return False
        worth = self._worth_of_the_last_plan(self.model())
        holds = worth >= self.value - self.settings.tolerance * abs(self.value)
        if holds:
            self.value, self.upper = worth, max(worth, self.upper)
        return holds

    def _worth_of_the_last_plan(self, model: Model) -> float:
        """By what is known now; less than any other if it says nothing about, or takes for certain, what turned out otherwise."""
        try:
            return evaluate(model, FollowedPlan.of(self._plan.schedule, model).schedule).discounted_return
        except ScheduleError:
            return -np.inf

    def model(self, discount: float | None = None, initial: Belief | int | None = None) -> Model:
        """The dynamics as measured, by default with the discount for planning; see `LearningAgent.model`.

        That an episode ends is noticed without a look, so the chance of it comes from all times that a pair was taken.
        """
        self.prepared()
        ends = Evidence(self._mind.counts, self._mind.taken, self._mind.ended).ends
        return self._learned_model(self._rules.discount if discount is None else discount, initial, ends)


#: What is kept from episode to episode besides tables, in the order in which it is stored.
KEPT = (
    "follows", "finished", "planned_at", "explored", "lost", "value", "upper", "plans_made", "met", "went_astray", "changed",
    "spent", "vain", "careful",
)  # fmt: skip
#: Those of them that are counts.
WHOLE = ("planned_at", "explored", "plans_made", "vain")


class ForesightAgent(Deliberation, CompiledAgent):
    """Foresight: explores while looking, plans with the certified planner, checks what the plan relies on, and follows it.

    It decides by itself when it knows enough.

    Parameters
    ----------
    **settings
        Any setting of `ForesightSettings`.

    Attributes
    ----------
    value, upper : float
        What the current schedule is worth by the learned model, and a bound on the best there, discounted.
    explored, plans_made : int
        Episodes spent exploring, and how often a plan was made.
    """

    name = "foresight"
    types: ClassVar[dict[str, str]] = (
        saving.TYPES
        | TYPES
        | {
            "needed": "<i8",
            "taken": "<i8",
            "ended": "<i8",
            "state_values": "<f8",
            "seen": "<i8",
            "hope": "<f8",
            "kept": "<f8",
        }
    )

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        super().__init__()
        self.settings = chosen(ForesightSettings, {"default": {}}, preset, settings)
        self._stream = streams.make_stream()

    def reseed(self, seed: int, episode: int) -> None:
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    def begin(self, observation: int | None) -> None:
        self._begin(observation, self.episodes_done)

    def _begin(self, observation: int | None, episode: int) -> None:
        self.note_start(observation)
        self._mind.purse[foresight.AFFORDABLE] = self._budget()
        if episode > 0:
            self._consider(episode)
        self._mind.memory[foresight.CHECKS] = self.follows and not self.finished
        shown = self._known_start() if observation is None else observation
        foresight.begin(self._mind, self._plan.guide, self._progress, self.follows, shown)

    def decide(self) -> Decision:
        action, look = foresight.decide(
            self._mind, self._rules, self._plan.guide, self._progress, self.prepared().n_actions, self._stream
        )
        return Decision(int(action), bool(look))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if foresight.needs_room(self._mind):
            self._make_room()
        seen = foresight.NOTHING if observation is None else checked_state(observation, self.prepared().n_states)
        foresight.observe(
            self._mind, self._rules, self._plan.guide, self._progress, self.prepared().n_actions, float(reward), float(cost),
            seen, bool(terminated),
        )  # fmt: skip

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        entropy, stream, arrays, written = (
            streams.entropy_words(seed),
            streams.make_stream(),
            world(model),
            record(episodes),
        )
        for episode in range(len(episodes)):
            streams.seed_stream(stream, entropy, first_episode + episode, streams.WORLD)
            self.reseed(seed, first_episode + episode)
            state = int(simulate.first_state(arrays, stream))
            self._begin(state if model.reveal_start else None, first_episode + episode)
            while state != foresight.NOTHING:
                if foresight.needs_room(self._mind):
                    self._make_room()
                state = foresight.play(
                    arrays, self._mind, self._rules, self._plan.guide, self._progress, state, max_steps, written, episode,
                    stream, self._stream,
                )  # fmt: skip

    def _make_room(self) -> None:
        self._mind = self._mind._replace(counts=with_more_room(self._mind.counts))

    @property
    def counts(self) -> Counts:
        self.prepared()
        return self._mind.counts

    @property
    def schedule(self) -> Schedule:
        """The schedule that is followed, for `model()`; without plans before there is one."""
        self.prepared()
        return self._plan.schedule

    def outlook(self, samples: int = 20, seed: int = 0) -> Outlook:
        """What the schedule may be worth, and what may still be gained, as far as the measurements tell.

        Where there is none yet, or something measured since contradicts it, it is about the schedule that it would plan now.

        Parameters
        ----------
        samples : int
            Models that agree with what was measured, for each of which a plan is made.
        seed : int
        """
        self.prepared()
        if not self._mind.memory[foresight.SEEN]:
            raise AgentError("nothing was seen yet that could tell what may be gained; train it first")
        model, work = self.model(), max(1, self.settings.beliefs // ROUGH)
        holds = np.isfinite(self._worth_of_the_last_plan(model))
        return outlook(
            Evidence(self._mind.counts, self._mind.taken, self._mind.ended),
            lambda counts, ends: self._learned_model(self._rules.discount, None, ends, counts),
            self._plan.schedule if holds else solve_within(model, self.settings.tolerance, work)[0],
            self.settings.tolerance,
            work,
            self._reach(),
            whole(samples, "samples", 1, error=AgentError),
            np.random.default_rng(seed),
        )

    def q_values(self) -> FloatArray:
        """What actions in known states may be worth if looks were free, hoping where little was measured, shape (S, A)."""
        task = self.prepared()
        pairs = range(task.n_states * task.n_actions)
        values = [foresight.pair_value(self._mind, self._rules, pair) for pair in pairs]
        return np.array(values).reshape(task.n_states, task.n_actions)

    def belief(self) -> Belief:
        """The state, where it is known; else where the plan has led to by the learned model, empty if that is unknown too."""
        task = self.prepared()
        state, (plan, _, origin, taken) = int(self._mind.memory[foresight.STATE]), self._progress.tolist()
        if state != foresight.NOTHING:
            return Belief.at(state)
        if self._mind.memory[foresight.LOST] or plan < 0:
            return Belief(np.zeros(0, np.int64), np.zeros(0))
        model, belief = self.model(), Belief.at(origin) if origin < task.n_states else self._start(task)
        plans = self._plan.guide.plans
        actions = plans.actions[plans.offsets[plan] : plans.offsets[plan + 1]].tolist()
        again = actions[len(actions) - int(plans.repeat[plan]) :]
        for action in islice(chain(actions, cycle(again)), taken):
            belief = belief.predict(model, action)
        return belief

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        mind = self._mind
        kept = (
            self.follows, self.finished, self.planned_at, self.explored, self.lost, self.value, self.upper, self.plans_made,
            mind.memory[foresight.MET], mind.memory[foresight.LOST], mind.memory[foresight.CHANGED],
            mind.purse[foresight.SPENT], mind.memory[foresight.VAIN], self.careful,
        )  # fmt: skip
        seen = mind.seen[: mind.memory[foresight.SEEN]]
        return saving.stored(mind.counts) | self._plan.stored() | {
            "needed": mind.needed, "taken": mind.taken, "ended": mind.ended, "state_values": mind.values, "seen": seen,
            "hope": mind.hope, "kept": np.nan_to_num(np.array(kept, dtype=np.float64)),
        }  # fmt: skip

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        task, mind, seen = self.prepared(), self._mind, arrays["seen"]
        counts = saving.counts_from(arrays, task.n_states, task.n_actions, task.n_states, ROOM)
        copied = {
            "needed": mind.needed,
            "taken": mind.taken,
            "ended": mind.ended,
            "state_values": mind.values,
            "hope": mind.hope,
        }
        shapes = {name: values.shape for name, values in copied.items()} | {"seen": (seen.size,), "kept": (len(KEPT),)}
        saving.check_shapes(arrays, shapes, np.finfo(np.float64).max)  # which stands for infinite
        if np.unique(seen).size != seen.size or (seen < 0).any() or (seen >= task.n_states).any():
            raise AgentError("the states it has seen are not states; the file is damaged")
        if arrays["state_values"][-1] != 0 or (arrays["needed"] < 1).any():
            raise AgentError("its tables contradict each other; the file is damaged")
        hidden = not task.reveal_start and (task.start is None or len(task.start.states) > 1)
        self._plan = FollowedPlan.restored(arrays, task.n_states + 1, task.n_actions, hidden)
        for name, values in copied.items():
            values[:] = arrays[name]
        mind.seen[: seen.size], mind.is_seen[seen] = seen, True
        self._mind = mind._replace(counts=counts)
        if not (np.abs(arrays["kept"][[KEPT.index(name) for name in WHOLE]]) < 2**53).all():
            raise AgentError("what it remembers of its episodes are no counts; the file is damaged")
        kept = dict(zip(KEPT, arrays["kept"].tolist(), strict=True))
        self.follows, self.finished, self.lost, self.careful = (
            bool(kept[n]) for n in ("follows", "finished", "lost", "careful")
        )
        self.planned_at, self.explored, self.plans_made = (
            int(kept[n]) for n in ("planned_at", "explored", "plans_made")
        )
        if self.plans_made:
            self.value, self.upper = kept["value"], kept["upper"]
        memory = self._mind.memory
        memory[foresight.SEEN], memory[foresight.CHANGED] = seen.size, bool(kept["changed"])
        memory[foresight.MET], memory[foresight.LOST] = bool(kept["met"]), bool(kept["went_astray"])
        memory[foresight.VAIN], self._mind.purse[foresight.SPENT] = int(kept["vain"]), kept["spent"]


ForesightAgent.__signature__ = settings_signature(ForesightSettings())  # type: ignore[attr-defined]
