"""An agent that follows a schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, PlanError, ScheduleError, quoted
from actmeasure.kernels import act_randomly, follow_schedule, streams
from actmeasure.learning.agent import Agent, CompiledAgent, Task, checked_state
from actmeasure.model import Model
from actmeasure.planning.pomcp import POMCP
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.settings import probability
from actmeasure.world import flat_plans, record, world

__all__ = ["PomcpAgent", "RandomAgent", "ScheduleAgent", "guide_for"]


class ScheduleAgent(CompiledAgent):
    """Follows a schedule, and learns nothing.

    Parameters
    ----------
    schedule : Schedule
    model : Model
        The model that the schedule was made for: it tells where plans lead that end in a known state without a look.
    """

    def __init__(self, schedule: Schedule, model: Model) -> None:
        if not isinstance(schedule, Schedule):
            raise AgentError(f"schedule is {quoted(schedule)}, expected a Schedule")
        if not isinstance(model, Model):
            raise AgentError(f"model is {quoted(model)}, expected the Model that the schedule was made for")
        schedule.check_fits(model)
        self.schedule, self.model = schedule, model
        self._guide = guide_for(schedule, model)
        self._progress = follow_schedule.new_progress(model.n_states)

    def prepare(self, task: Task) -> None:
        # `Model.from_gymnasium` adds an end state behind the environment's own, which the environment never shows.
        ends_behind = bool(self.model.terminal[-1]) and task.n_states == self.model.n_states - 1
        if task.n_actions != self.model.n_actions or not (task.n_states == self.model.n_states or ends_behind):
            raise AgentError(
                f"the schedule is for {self.model.n_states} states and {self.model.n_actions} actions, the task has "
                f"{task.n_states} and {task.n_actions}; use it on the model it was made for"
            )
        super().prepare(task)

    def reseed(self, seed: int, episode: int) -> None:
        """A schedule leaves nothing to chance."""

    def begin(self, observation: int | None) -> None:
        follow_schedule.begin(self._guide, self._progress, self._number(observation))

    def decide(self) -> Decision:
        if self._progress[follow_schedule.PLAN] < 0:
            raise self._lost()
        action, measure = follow_schedule.decide(self._guide, self._progress)
        return Decision(int(action), bool(measure))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if not terminated:
            follow_schedule.observe(self._guide, self._progress, self._number(observation))

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        played = follow_schedule.run(
            world(model), self._guide, self._progress, streams.entropy_words(seed), first_episode, max_steps,
            record(episodes), streams.make_stream(),
        )  # fmt: skip
        if not played:
            raise self._lost()

    def __repr__(self) -> str:
        return f"ScheduleAgent({self.schedule!r})"

    def _number(self, observation: int | None) -> int:
        return follow_schedule.NOTHING if observation is None else checked_state(observation, self.model.n_states)

    def _lost(self) -> ScheduleError:
        """Why the schedule does not say what to do next."""
        number, _, origin, _ = self._progress.tolist()
        start = origin == self.model.n_states
        where = "a start that is not shown" if start else self.model.describe_state(origin)
        if number == follow_schedule.NO_PLAN:
            return ScheduleError(f"the schedule has no plan for {where}, which came up; add a BlindPlan for it")
        plan = _start(self.schedule, self.model) if start else self.schedule[origin]
        claim = {
            "end": "says that the episode is over after it",
            "known": "says that the episode is over, or the state known, after it",
            "measure": "looks at its end, but nothing was shown",
        }[plan.then if plan else "end"]
        return ScheduleError(
            f"the plan for {where} {claim}, but the episode still runs; use the schedule on the model it was made for, or "
            "correct the plan"
        )


def guide_for(schedule: Schedule, model: Model) -> follow_schedule.Guide:
    """The arrays by which a schedule for a model is followed."""
    start = _start(schedule, model)
    plans, start_number = flat_plans(schedule, start)
    known_after = np.full(model.n_states + 1, -1, dtype=np.int64)
    known = [number for number, plan in enumerate(schedule.plans) if plan.then == "known"]
    for state in np.flatnonzero(np.isin(schedule.plan_of_state, known)):
        known_after[state] = _led_to(model, Belief.at(int(state)), schedule[int(state)])
    if start is not None and start.then == "known":
        known_after[-1] = _led_to(model, Belief.start(model), start)
    return follow_schedule.Guide(plans, start_number, known_after)


def _start(schedule: Schedule, model: Model) -> BlindPlan | None:
    """The plan for a start that is not shown: its own, or that of the only state it can be."""
    if len(model.initial_states) == 1:
        return schedule.get(int(model.initial_states[0]), schedule.start)
    return None if model.reveal_start else schedule.start


def _led_to(model: Model, belief: Belief, plan: BlindPlan) -> int:
    """The state that a plan with a known end leads to, -1 if the episode is over by then."""
    for action in plan.actions:
        belief = belief.predict(model, action)
    if len(belief.states) > 1:
        raise ScheduleError(
            f"a plan ends with then='known', but may lead to {len(belief.states)} states; use then='measure'"
        )
    return -1 if belief.is_over else int(belief.states[0])


# ----------------------------------------------------------------------------------------------------
# An agent that plans on a known model.
# ----------------------------------------------------------------------------------------------------


class PomcpAgent(Agent):
    """Plans every decision with POMCP on a known model, and learns nothing.

    Parameters
    ----------
    model : Model
    simulations, depth, exploration, particles, discount, rollout, clamp, share, nodes
        As those of `actmeasure.planning.POMCP`.

    Attributes
    ----------
    planner : POMCP
    """

    def __init__(
        self,
        model: Model,
        simulations: int = 25_000,
        depth: int = 25,
        exploration: float | None = None,
        particles: int = 2_000,
        discount: float | None = None,
        rollout: str = "looking",
        clamp: bool = False,
        share: bool = True,
        nodes: int = 100_000,
    ) -> None:
        try:
            self.planner = POMCP(
                model, simulations, depth, exploration, particles, discount, rollout, clamp, share, nodes
            )
        except PlanError as error:
            raise AgentError(str(error)) from error
        self._last = Decision(0, False)

    def prepare(self, task: Task) -> None:
        model = self.planner.model
        # `Model.from_gymnasium` adds an end state behind the environment's own, which the environment never shows.
        ends_behind = bool(model.terminal[-1]) and task.n_states == model.n_states - 1
        if task.n_actions != model.n_actions or not (task.n_states == model.n_states or ends_behind):
            raise AgentError(
                f"the model has {model.n_states} states and {model.n_actions} actions, the task has {task.n_states} and "
                f"{task.n_actions}; plan on the model of the task"
            )
        super().prepare(task)

    def reseed(self, seed: int, episode: int) -> None:
        self.planner.reseed(seed, episode)

    def begin(self, observation: int | None) -> None:
        self.planner.begin(Belief.start(self.planner.model) if observation is None else Belief.at(observation))

    def decide(self) -> Decision:
        self._last = self.planner.decide()
        return self._last

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if terminated:
            return
        if observation is not None:
            model = self.planner.model
            if model.terminal[checked_state(observation, model.n_states)]:
                raise AgentError(
                    f"{model.describe_state(observation)} was shown and the episode goes on, but it ends there in the model that "
                    "the agent plans on; plan on the model of the task"
                )
        self.planner.observe(self._last, observation)

    def q_values(self) -> Any:
        """What each action was found to be worth at the last decision, shape (A, 2): without a look, with one."""
        return np.array(self.planner.q_values())

    def __repr__(self) -> str:
        return f"PomcpAgent({self.planner.model!r}, simulations={self.planner.simulations})"


# ----------------------------------------------------------------------------------------------------
# An agent that acts at random: the least any other should beat.
# ----------------------------------------------------------------------------------------------------


class RandomAgent(CompiledAgent):
    """Acts at random, and looks with a given probability.

    Parameters
    ----------
    measure_probability : float
        Chance of looking at each step.
    """

    def __init__(self, measure_probability: float = 0.5) -> None:
        self.measure_probability = probability(measure_probability, "measure_probability", AgentError)
        self._stream = streams.make_stream()
        self._n_actions = 0

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        self._n_actions = task.n_actions

    def reseed(self, seed: int, episode: int) -> None:
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    def begin(self, observation: int | None) -> None:
        """Nothing to remember."""

    def decide(self) -> Decision:
        return Decision(*act_randomly.decide(self._n_actions, self.measure_probability, self._stream))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        """Nothing to learn."""

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        entropy = streams.entropy_words(seed)
        act_randomly.run(
            world(model), self.measure_probability, entropy, first_episode, max_steps, record(episodes),
            streams.make_stream(), self._stream,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"RandomAgent(measure_probability={self.measure_probability:g})"
