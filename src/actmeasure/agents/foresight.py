"""Foresight: explore with open eyes, plan with the certified planner, measure again what the plan relies on, then follow it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.agents import foresight_plan, stored_counts
from actmeasure.agents.base import CompiledAgent, Task
from actmeasure.agents.foresight_plan import FollowedPlan, reliance
from actmeasure.agents.foresight_settings import ForesightSettings
from actmeasure.agents.learning import LearningAgent
from actmeasure.agents.outlook import Outlook, outlook
from actmeasure.agents.presets import chosen, settings_signature
from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, ScheduleError
from actmeasure.evaluation import evaluate
from actmeasure.kernels import follow_schedule, foresight, learn_foresight, simulate, streams
from actmeasure.kernels.learned_model import Counts, with_more_room
from actmeasure.model import Model
from actmeasure.planners.limited import solve_within
from actmeasure.schedule import Schedule
from actmeasure.settings import whole
from actmeasure.transitions import FloatArray
from actmeasure.world import record, world

__all__ = ["ForesightAgent", "ForesightSettings"]

#: Different transitions for which there is room at first.
ROOM = 1 << 10
#: Sweeps over the values at a time, and the change at which they are settled.
SWEEPS, PRECISION = 100, 1e-6
#: A rough plan is searched for with so much less work.
ROUGH = 8
#: Pairs that are taken so much more seldom than those that the plan relies on are left as they are.
SELDOM = 0.01
#: A plan that went wrong is made anew after this share of the usual pause.
SOONER = 0.3
#: A plan that earns less than this share of what was hoped for is no plan: there must be more to find.
HOPELESS = 0.01
#: What is kept from episode to episode besides tables, in the order in which it is stored.
KEPT = (
    "follows", "finished", "planned_at", "explored", "lost", "value", "upper", "plans_made", "met", "went_astray", "changed",
    "spent", "vain", "careful",
)  # fmt: skip


class ForesightAgent(LearningAgent, CompiledAgent):
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
        stored_counts.TYPES
        | foresight_plan.TYPES
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
        self.settings: ForesightSettings = chosen(ForesightSettings, {"default": {}}, preset, settings)
        self._stream = streams.make_stream()
        self.follows, self.finished, self.lost, self.careful = False, False, False, False
        self.planned_at, self.explored, self.plans_made = 0, 0, 0
        self.value, self.upper = -np.inf, np.inf
        self._mind: foresight.Mind
        self._plan: FollowedPlan

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        hope = 1.0 if task.largest_reward is None else task.largest_reward
        self._mind = foresight.make_mind(task.n_states, task.n_actions, float(hope), self.settings.first, ROOM)
        self._rules = foresight.Rules(
            max(task.discount, self.settings.discount), self.settings.first, self.settings.optimism, SWEEPS, PRECISION
        )
        self._chances = np.zeros(task.n_states + 1)
        self._progress = follow_schedule.new_progress(task.n_states + 1)
        self._plan = FollowedPlan.none(task.n_states + 1)

    def reseed(self, seed: int, episode: int) -> None:
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    def begin(self, observation: int | None) -> None:
        self._begin(observation, self.episodes_done)

    def _begin(self, observation: int | None, episode: int) -> None:
        self.note_start(observation)
        self._mind.memory[foresight.AFFORDABLE] = self._affordable(self.prepared())
        if episode > 0:
            self._consider(episode)
        self._mind.memory[foresight.CHECKS] = self.follows and not self.finished
        shown = foresight.NOTHING if observation is None else observation
        learn_foresight.begin(self._mind, self._plan.guide, self._progress, self.follows, shown)

    def decide(self) -> Decision:
        action, look = learn_foresight.decide(
            self._mind, self._rules, self._plan.guide, self._progress, self.prepared().n_actions, self._stream
        )
        return Decision(int(action), bool(look))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if foresight.needs_room(self._mind):
            self._make_room()
        seen = foresight.NOTHING if observation is None else observation
        learn_foresight.observe(
            self._mind, self._rules, self._plan.guide, self._progress, self.prepared().n_actions, float(reward), seen,
            bool(terminated),
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
                state = learn_foresight.play(
                    arrays, self._mind, self._rules, self._plan.guide, self._progress, state, max_steps, written, episode,
                    stream, self._stream,
                )  # fmt: skip

    def _make_room(self) -> None:
        self._mind = self._mind._replace(counts=with_more_room(self._mind.counts))

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
        elif memory[foresight.SPENT] >= memory[foresight.AFFORDABLE]:
            self._make_plan(episode)
        elif not self.follows and not memory[foresight.MET] and self._reach() < self.settings.least_reach:
            self._plan_what_is_explored(episode)
        elif self.explored >= self.settings.undisturbed and since >= SOONER * pause:
            self._make_plan(episode, ROUGH)
        self.follows = self.finished or self._takes_turns(episode)

    def _plan_what_is_explored(self, episode: int) -> None:
        """A rough plan tells as well what to measure again; a careful one is worth its time once that is done."""
        if self._has_held():
            self.finished = True
            return
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
        """Where everything costs there is no hope above 0, and a plan worth less than nothing may be the best."""
        return bool(self.value < HOPELESS * self._mind.hope[0] and self._mind.hope[0] > 0)

    def _affordable(self, task: Task) -> int:
        """How many looks exploring may take in all: their price is weighed against what there is to win, as far as is known."""
        price = float(np.max(task.measuring_cost))
        stake = max(abs(float(self._mind.hope[0])), float(np.abs(self._mind.counts.rewards).max()))
        unlimited = np.iinfo(np.int64).max
        if price <= 0 or stake == 0:
            return unlimited
        return int(min(unlimited, 1 + stake * self.settings.budget / price))

    def _reach(self) -> float:
        """How likely an episode of exploring comes to something that was measured too little."""
        task = self.prepared()
        foresight.reach(self._mind, self._rules, task.n_actions, self._chances)
        start = self._start(task)
        return float(start.probabilities @ self._chances[start.states])

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
            schedule, self.value = self._plan.schedule, worth
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
        broke = self._mind.memory[foresight.SPENT] >= self._mind.memory[foresight.AFFORDABLE]
        self.finished = broke or self._reach() < self.settings.least_reach

    def _has_held(self) -> bool:
        """Whether no better plan was found when it was made, and it is worth as much by what was measured since."""
        if not self.careful or self._is_hopeless():
            return False
        worth = self._worth_of_the_last_plan(self.model())
        return worth >= self.value - self.settings.tolerance * abs(self.value)

    def _worth_of_the_last_plan(self, model: Model) -> float:
        """By what is known now; less than any other if it says nothing about, or takes for certain, what turned out otherwise."""
        try:
            return evaluate(model, FollowedPlan.of(self._plan.schedule, model).schedule).discounted_return
        except ScheduleError:
            return -np.inf

    @property
    def counts(self) -> Counts:
        self.prepared()
        return self._mind.counts

    @property
    def schedule(self) -> Schedule:
        """The schedule that is followed, for `model()`; without plans before there is one."""
        self.prepared()
        return self._plan.schedule

    def model(self, discount: float | None = None, initial: Belief | int | None = None) -> Model:
        """The dynamics as measured, by default with the discount for planning; see `LearningAgent.model`.

        That an episode ends is noticed without a look, so the chance of it comes from all times that a pair was taken.
        """
        self.prepared()
        taken = self._mind.taken
        ends = np.where(taken > 0, self._mind.ended / np.maximum(taken, 1), np.nan)
        return self._learned_model(self._rules.discount if discount is None else discount, initial, ends)

    def outlook(self, samples: int = 20, seed: int = 0) -> Outlook:
        """What the schedule may be worth, and what may still be gained, as far as the measurements tell.

        Parameters
        ----------
        samples : int
            Models that agree with what was measured, for each of which a plan is made.
        seed : int
        """
        self.prepared()
        if not len(self._plan.schedule) and self._plan.schedule.start is None:
            raise AgentError("there is no schedule yet: the agent is still exploring; train it further")
        return outlook(
            self._mind.counts,
            lambda counts: self._learned_model(self._rules.discount, None, counts=counts),
            self._plan.schedule,
            self.settings.tolerance,
            max(1, self.settings.beliefs // ROUGH),
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
        state, (plan, step, origin) = int(self._mind.memory[foresight.STATE]), self._progress.tolist()
        nowhere = Belief(np.zeros(0, np.int64), np.zeros(0))
        if state != foresight.NOTHING:
            return Belief.at(state)
        if self._mind.memory[foresight.LOST] or plan < 0 or origin > task.n_states:
            return nowhere
        model, belief = self.model(), Belief.at(origin) if origin < task.n_states else self._start(task)
        offset = self._plan.guide.plans.offsets[plan]
        for action in self._plan.guide.plans.actions[offset : offset + step].tolist():
            belief = belief.predict(model, action)
        return belief

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        mind = self._mind
        kept = (
            self.follows, self.finished, self.planned_at, self.explored, self.lost, self.value, self.upper, self.plans_made,
            mind.memory[foresight.MET], mind.memory[foresight.LOST], mind.memory[foresight.CHANGED],
            mind.memory[foresight.SPENT], mind.memory[foresight.VAIN], self.careful,
        )  # fmt: skip
        seen = mind.seen[: mind.memory[foresight.SEEN]]
        return stored_counts.stored(mind.counts) | self._plan.stored() | {
            "needed": mind.needed, "taken": mind.taken, "ended": mind.ended, "state_values": mind.values, "seen": seen,
            "hope": mind.hope, "kept": np.nan_to_num(np.array(kept, dtype=np.float64)),
        }  # fmt: skip

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        task, mind, seen = self.prepared(), self._mind, arrays["seen"]
        counts = stored_counts.counts_from(arrays, task.n_states, task.n_actions, task.n_states, ROOM)
        copied = {
            "needed": mind.needed,
            "taken": mind.taken,
            "ended": mind.ended,
            "state_values": mind.values,
            "hope": mind.hope,
        }
        shapes = {name: values.shape for name, values in copied.items()} | {"seen": (seen.size,), "kept": (len(KEPT),)}
        stored_counts.check_shapes(arrays, shapes)
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
        kept = dict(zip(KEPT, arrays["kept"].tolist(), strict=True))
        self.follows, self.finished, self.lost, self.careful = (
            bool(kept[n]) for n in ("follows", "finished", "lost", "careful")
        )
        self.planned_at, self.explored, self.plans_made = (
            int(kept[n]) for n in ("planned_at", "explored", "plans_made")
        )
        self.value, self.upper = kept["value"], kept["upper"]
        memory = self._mind.memory
        memory[foresight.SEEN], memory[foresight.CHANGED] = seen.size, bool(kept["changed"])
        memory[foresight.MET], memory[foresight.LOST] = bool(kept["met"]), bool(kept["went_astray"])
        memory[foresight.SPENT], memory[foresight.VAIN] = int(kept["spent"]), int(kept["vain"])


ForesightAgent.__signature__ = settings_signature(ForesightSettings())  # type: ignore[attr-defined]
