"""What a trial is expected to cost, so that the longest come first and no more workers are started than memory allows."""

from __future__ import annotations

from typing import NamedTuple

from actmeasure.experiments.planning import SEARCHES
from actmeasure.experiments.spec import AgentSpec, Trial
from actmeasure.experiments.trial import build_model, new_agent
from actmeasure.planners.optimal import MOST_BYTES
from actmeasure.planners.solve import method_of

__all__ = ["Appraiser", "Expense"]

#: Microseconds, very roughly, for each state and episode by agent, and for each state of a plan. They only order trials, and
#: are corrected by what trials turn out to take.
WEIGHTS = {
    "random": 0.3, "amrl-q": 0.3, "atmq": 1.0, "dyna-atmq": 5.0, "foresight": 40.0, "acno-otp": 2e3, "acno-pomcp": 2e3,
}  # fmt: skip
PLAN_WEIGHT = 3e3
#: Bytes of a worker that does nothing, for each state and action, and for each belief of a search.
WORKER_BYTES, PAIR_BYTES, BELIEF_BYTES = 350 << 20, 500, 2500


class Expense(NamedTuple):
    """What a trial costs: work in units of its `kind`, which is that of trials with the same agent or method; bytes."""

    kind: str
    work: float
    memory: int


class Appraiser:
    """Checks that trials can be run, and says what they cost; each problem and agent is made once."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int]] = {}
        self._beliefs: dict[str, int] = {}

    def appraise(self, trial: Trial, contents: bytes | None) -> Expense:
        """The expense of a trial; whatever is wrong with its problem, agent or method is an error that says so."""
        n_states, n_actions = self._size(trial, contents)
        base = WORKER_BYTES + n_states * n_actions * PAIR_BYTES
        if trial.agent is None:
            method_of(trial.method)
            beliefs = trial.settings["beliefs"] if trial.method in SEARCHES else 0
            return Expense(trial.method, PLAN_WEIGHT * n_states, base + _search_bytes(beliefs))
        work = WEIGHTS.get(trial.agent.name, 1.0) * trial.episodes * n_states
        return Expense(trial.agent.name, work, base + _search_bytes(self._agent_beliefs(trial.agent)))

    def _size(self, trial: Trial, contents: bytes | None) -> tuple[int, int]:
        key = str(trial.problem.identity())
        if key not in self._sizes:
            model = build_model(trial.problem, contents)
            self._sizes[key] = model.n_states, model.n_actions
        return self._sizes[key]

    def _agent_beliefs(self, agent: AgentSpec) -> int:
        """How many beliefs the agent's planner may come to, if it has one."""
        key = str(agent.identity())
        if key not in self._beliefs:
            self._beliefs[key] = getattr(getattr(new_agent(agent), "settings", None), "beliefs", 0)
        return self._beliefs[key]


def _search_bytes(beliefs: int) -> int:
    return min(beliefs * BELIEF_BYTES, MOST_BYTES)
