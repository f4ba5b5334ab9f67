"""What foresight does between episodes: whether to explore on, to plan, and to follow the plan."""

from __future__ import annotations

import numpy as np

from actmeasure.agents.base import Task
from actmeasure.agents.foresight_plan import FollowedPlan, reliance
from actmeasure.agents.foresight_settings import ForesightSettings
from actmeasure.agents.learning import LearningAgent
from actmeasure.agents.outlook import Evidence
from actmeasure.belief import Belief
from actmeasure.errors import ScheduleError
from actmeasure.evaluation import evaluate
from actmeasure.kernels import follow_schedule, foresight
from actmeasure.model import Model
from actmeasure.planners.limited import solve_within

__all__ = ["ROOM", "ROUGH", "Deliberation"]

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
