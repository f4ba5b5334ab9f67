"""An agent that follows a schedule."""

from __future__ import annotations

import numpy as np

from actmeasure.agents.base import CompiledAgent, Task
from actmeasure.belief import Belief
from actmeasure.chain import ENDINGS
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, ScheduleError
from actmeasure.kernels import follow_schedule, streams
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.world import record, world

__all__ = ["ScheduleAgent"]


class ScheduleAgent(CompiledAgent):
    """Follows a schedule, and learns nothing.

    Parameters
    ----------
    schedule : Schedule
    model : Model
        The model that the schedule was made for: it tells where plans lead that end in a known state without a look.
    """

    def __init__(self, schedule: Schedule, model: Model) -> None:
        schedule.check_fits(model)
        self.schedule, self.model = schedule, model
        self._guide = _guide(schedule, model)
        self._progress = np.zeros(3, dtype=np.int64)

    def prepare(self, task: Task) -> None:
        if (task.n_states, task.n_actions) != (self.model.n_states, self.model.n_actions):
            raise AgentError(
                f"the schedule is for {self.model.n_states} states and {self.model.n_actions} actions, the task has "
                f"{task.n_states} and {task.n_actions}; use it on the model it was made for"
            )
        super().prepare(task)

    def reseed(self, seed: int, episode: int) -> None:
        """A schedule leaves nothing to chance."""

    def begin(self, observation: int | None) -> None:
        follow_schedule.begin(self._guide, self._progress, _number(observation))

    def decide(self) -> Decision:
        if self._progress[follow_schedule.PLAN] < 0:
            self._raise_no_plan(int(self._progress[follow_schedule.ORIGIN]))
        action, measure = follow_schedule.decide(self._guide, self._progress)
        return Decision(int(action), bool(measure))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        if not terminated:
            follow_schedule.observe(self._guide, self._progress, _number(observation))

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        entropy = streams.entropy_words(seed)
        stuck = follow_schedule.run(world(model), self._guide, entropy, first_episode, max_steps, record(episodes))
        if stuck >= 0:
            self._raise_no_plan(stuck)

    def __repr__(self) -> str:
        return f"ScheduleAgent({self.schedule!r})"

    def _raise_no_plan(self, state: int) -> None:
        where = "a start that is not shown" if state == self.model.n_states else self.model.describe_state(state)
        raise ScheduleError(f"the schedule has no plan for {where}, which came up; add a BlindPlan for it")


def _number(observation: int | None) -> int:
    return follow_schedule.NOTHING if observation is None else observation


def _guide(schedule: Schedule, model: Model) -> follow_schedule.Guide:
    plans = list(schedule.plans)
    start, start_plan = _start(schedule, model), -1
    if start is not None:
        start_plan = len(plans)
        plans.append(start)
    known_after = np.full(model.n_states + 1, -1, dtype=np.int64)
    known = [number for number, plan in enumerate(schedule.plans) if plan.then == "known"]
    for state in np.flatnonzero(np.isin(schedule.plan_of_state, known)):
        known_after[state] = _led_to(model, Belief.at(int(state)), schedule[int(state)])
    if start is not None and start.then == "known":
        known_after[-1] = _led_to(model, Belief.start(model), start)
    return follow_schedule.Guide(
        offsets=np.concatenate([[0], np.cumsum([len(plan) for plan in plans])]).astype(np.int64),
        actions=np.array([action for plan in plans for action in plan.actions], dtype=np.int64),
        then=np.array([ENDINGS[plan.then] for plan in plans], dtype=np.int64),
        repeat=np.array([plan.repeat for plan in plans], dtype=np.int64),
        plan_of_state=schedule.plan_of_state,
        start_plan=start_plan,
        known_after=known_after,
    )


def _start(schedule: Schedule, model: Model) -> BlindPlan | None:
    """The plan for a start that is not shown: its own, or that of the only state it can be."""
    if not model.start_is_known:
        return schedule.start
    return schedule.get(int(model.initial_states[0])) if len(model.initial_states) == 1 else None


def _led_to(model: Model, belief: Belief, plan: BlindPlan) -> int:
    """The state that a plan with a known end leads to, -1 if the episode is over by then."""
    for action in plan.actions:
        belief = belief.predict(model, action)
    if len(belief.states) > 1:
        raise ScheduleError(
            f"a plan ends with then='known', but may lead to {len(belief.states)} states; use then='measure'"
        )
    return -1 if belief.is_over else int(belief.states[0])
