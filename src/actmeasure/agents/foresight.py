"""Foresight: explore with open eyes, plan with the certified planner, measure again what the plan relies on, then follow it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, cycle, islice
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.agents import foresight_plan, stored_counts
from actmeasure.agents.base import CompiledAgent, checked_state
from actmeasure.agents.foresight_deliberation import ROOM, ROUGH, Deliberation
from actmeasure.agents.foresight_plan import FollowedPlan
from actmeasure.agents.foresight_settings import ForesightSettings
from actmeasure.agents.outlook import Evidence, Outlook, outlook
from actmeasure.agents.presets import chosen, settings_signature
from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError
from actmeasure.kernels import foresight, learn_foresight, simulate, streams
from actmeasure.kernels.learned_model import Counts, with_more_room
from actmeasure.model import Model
from actmeasure.planners.limited import solve_within
from actmeasure.schedule import Schedule
from actmeasure.settings import whole
from actmeasure.transitions import FloatArray
from actmeasure.world import record, world

__all__ = ["ForesightAgent", "ForesightSettings"]

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
        learn_foresight.begin(self._mind, self._plan.guide, self._progress, self.follows, shown)

    def decide(self) -> Decision:
        action, look = learn_foresight.decide(
            self._mind, self._rules, self._plan.guide, self._progress, self.prepared().n_actions, self._stream
        )
        return Decision(int(action), bool(look))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if foresight.needs_room(self._mind):
            self._make_room()
        seen = foresight.NOTHING if observation is None else checked_state(observation, self.prepared().n_states)
        learn_foresight.observe(
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
                state = learn_foresight.play(
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
        stored_counts.check_shapes(arrays, shapes, np.finfo(np.float64).max)  # which stands for infinite
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
