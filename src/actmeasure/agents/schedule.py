"""An agent that follows a schedule."""

from __future__ import annotations

import numpy as np

from actmeasure.agents.base import CompiledAgent, Task, checked_state
from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, ScheduleError, quoted
from actmeasure.kernels import follow_schedule, streams
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.world import flat_plans, record, world

__all__ = ["ScheduleAgent", "guide_for"]


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
