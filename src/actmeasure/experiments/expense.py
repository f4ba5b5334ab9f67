"""What a trial is expected to cost, before any has been run: to order trials, and to start no more workers than memory allows."""

from __future__ import annotations

from typing import NamedTuple

from actmeasure.experiments.plain import canonical
from actmeasure.experiments.planning import SEARCHES
from actmeasure.experiments.spec import AgentSpec, Trial
from actmeasure.experiments.trial import build_model, new_agent
from actmeasure.model import Model
from actmeasure.planners.optimal import MOST_BYTES
from actmeasure.planners.solve import method_of

__all__ = ["Appraiser", "Expense"]

#: Microseconds, roughly, for each state and episode by agent (by agent and preset, where that matters), and for each state of a
#: plan and step that counts at its discount, up to a largest number. They are corrected by what trials turn out to take.
WEIGHTS = {
    "random": 0.05, "amrl-q": 0.05, "atmq": 0.3, "dyna-atmq": 0.7, "dyna-atmq published": 10.0, "foresight": 8.0,
    "acno-otp": 500.0, "acno-pomcp": 500.0,
}  # fmt: skip
PLAN_WEIGHT, FAR = 100.0, 1000.0
#: Seconds that any trial takes.
LEAST = 0.02
#: Bytes of a worker that does nothing, for each state and action, and for each belief of a search.
WORKER_BYTES, PAIR_BYTES, BELIEF_BYTES = 350 << 20, 500, 2500


class Expense(NamedTuple):
    """What a trial is expected to cost.

    Attributes
    ----------
    cell : str
        Common to trials that differ in nothing but their seed.
    kind : str
        Common to trials of the same agent with the same settings, or of the same method with the same settings and discount.
    family : str
        The agent or method.
    work : float
        Seconds, by a rough rule.
    memory : int
        Bytes that a worker takes for it.
    """

    cell: str
    kind: str
    family: str
    work: float
    memory: int


class Appraiser:
    """Checks that trials can be run, and says what they cost; each problem and agent is made once."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int, float]] = {}
        self._beliefs: dict[str, int] = {}

    def appraise(self, trial: Trial, contents: bytes | None) -> Expense:
        """The expense of a trial; whatever is wrong with its problem, agent or method is an error that says so."""
        n_states, n_actions, discount = self._size(trial, contents)
        base = WORKER_BYTES + n_states * n_actions * PAIR_BYTES
        problem = canonical(trial.problem.identity())
        if trial.agent is None:
            method_of(trial.method)
            beliefs = trial.settings["beliefs"] if trial.method in SEARCHES else 0
            steps = min(1 / (1 - discount), FAR) if discount < 1 else FAR
            kind = canonical([trial.method, dict(trial.settings), discount])
            work = LEAST + 1e-6 * PLAN_WEIGHT * n_states * steps
            return Expense(f"{kind} {problem}", kind, trial.method, work, base + _search_bytes(beliefs))
        agent = trial.agent
        kind = canonical(agent.identity())
        work = LEAST + 1e-6 * _weight(agent) * trial.episodes * n_states
        cell = f"{kind} {problem} {trial.episodes} {trial.max_steps}"
        return Expense(cell, kind, agent.name, work, base + _search_bytes(self._agent_beliefs(agent)))

    def _size(self, trial: Trial, contents: bytes | None) -> tuple[int, int, float]:
        key = str(trial.problem.identity())
        if key not in self._sizes:
            model: Model = build_model(trial.problem, contents)
            self._sizes[key] = model.n_states, model.n_actions, model.discount
        return self._sizes[key]

    def _agent_beliefs(self, agent: AgentSpec) -> int:
        """How many beliefs the agent's planner may come to, if it has one."""
        key = str(agent.identity())
        if key not in self._beliefs:
            self._beliefs[key] = getattr(getattr(new_agent(agent), "settings", None), "beliefs", 0)
        return self._beliefs[key]


def _weight(agent: AgentSpec) -> float:
    return WEIGHTS.get(f"{agent.name} {agent.settings.get('preset')}", WEIGHTS.get(agent.name, 1.0))


def _search_bytes(beliefs: int) -> int:
    return min(beliefs * BELIEF_BYTES, MOST_BYTES)
