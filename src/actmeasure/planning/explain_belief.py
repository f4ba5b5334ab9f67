"""Explanations of a belief: the price and value of every decision, its outcomes, and the decision after each outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from actmeasure.belief import Belief, running_belief
from actmeasure.decision import Decision
from actmeasure.errors import PlanError, import_extra, quoted
from actmeasure.model import Model
from actmeasure.planning.explain import LookValues, asked_state, known_values
from actmeasure.text import belief_text, percent, plain_number, text_table

if TYPE_CHECKING:
    import pandas as pd

    from actmeasure.planning.solution import Solution

__all__ = ["BeliefExplanation", "ExplainedDecision", "ExplainedOutcome", "explain_belief"]

#: Decisions, and outcomes of a measurement, that are printed at most; `to_pandas` has all of them.
DECISIONS_SHOWN, OUTCOMES_SHOWN = 20, 8


def explain_belief(solution: Solution, at: Belief | int | str | None = None) -> BeliefExplanation:
    """Return all decisions at a belief, a known state, or the start (None), with their values and outcomes."""
    model = solution.model
    if isinstance(at, Belief):
        belief = running_belief(model, at)
    else:
        state = asked_state(solution, at)
        belief = running_belief(model, Belief.start(model) if state is None else Belief.at(state))
    decisions = [Decision(int(a), int(m)) for a, m in np.argwhere(model.allowed_decisions)]
    if solution.search is not None:
        lower, upper = solution.search.decision_bounds_at(belief)
    elif model.looks_are_exact:
        values = LookValues(model, known_values(solution))
        lower = np.array(
            [
                values.looking(belief, decision.action)
                if decision.measurement
                else values.one_later(belief, decision.action)
                for decision in decisions
            ]
        )
        upper = np.full(len(decisions), np.nan)
    else:
        raise PlanError(
            f"the method {quoted(solution.method)} has no values for beliefs outside its policy graph; explain a solution of the "
            "method 'optimal', or read solution.policy_graph().describe(model)"
        )
    if solution.search is not None:
        best = decisions.index(solution.search.decide_at(belief))
    else:  # where a state is known but no plan was made for it, its value is not known; nothing is decided by it
        best = int(np.argmax(np.where(np.isnan(lower), -np.inf, lower)))
    without = {d.action: i for i, d in enumerate(decisions) if not d.measurement}
    explained = tuple(
        ExplainedDecision(
            decision,
            _price(model, belief, decision),
            float(lower[i]),
            float(upper[i]),
            float(lower[without[decision.action]]),
            float(upper[without[decision.action]]),
            _outcomes(solution, belief, decision),
        )
        for i, decision in enumerate(decisions)
    )
    return BeliefExplanation(model, belief, explained, best)


def _price(model: Model, belief: Belief, decision: Decision) -> float:
    if not decision.measurement:
        return 0.0
    prices = model.measurements[decision.measurement - 1].table(model.n_states, model.n_actions)
    return float(belief.expected(prices[:, decision.action]))


def _outcomes(solution: Solution, belief: Belief, decision: Decision) -> tuple[ExplainedOutcome, ...]:
    """Return the possible outcomes of a decision, the likeliest first, with what is decided after each of them."""
    model = solution.model
    chances = belief.outcomes(model, decision.action, decision.measurement)
    sees = model.shown_by(decision.measurement) is not None
    explained = []
    for outcome in np.argsort(-chances, kind="stable")[: int(np.count_nonzero(chances))].tolist():
        seen = outcome if sees else None
        after = belief.update(model, decision.action, decision.measurement, seen)
        name = model.outcome_name(decision.measurement, outcome)
        explained.append(ExplainedOutcome(seen, name, float(chances[outcome]), after, _decided(solution, after)))
    return tuple(explained)


def _decided(solution: Solution, belief: Belief) -> Decision | None:
    """Return what is decided at a belief; None where a schedule has no plan for it."""
    if solution.search is not None:
        return solution.search.decide_at(belief)
    state = belief.known
    return solution.schedule[state].decision(0) if state is not None and state in solution.schedule else None


@dataclass(frozen=True)
class ExplainedOutcome:
    """An outcome of a measurement, and what follows.

    Attributes
    ----------
    outcome : int or None
        Its number within the measurement; None where nothing is seen.
    name : str
    probability : float
        Given that the episode is still running after the action.
    belief : Belief
        After the action and this outcome.
    decision : Decision or None
        What the solution decides then; None where a schedule has no plan for this belief.
    """

    outcome: int | None
    name: str
    probability: float
    belief: Belief
    decision: Decision | None


@dataclass(frozen=True)
class ExplainedDecision:
    """An action and a measurement at a belief, with their value if everything that follows is decided as planned.

    Attributes
    ----------
    decision : Decision
    price : float
        Expected price of the measurement.
    lower, upper : float
        Bounds on the best value that begins with this decision, by one step of look-ahead: below to value vectors, above to the
        bounds of the search (NaN where there are none). A copy of the search goes on for this, so that they may be closer than
        those of the solution, which does not change.
    lower_without, upper_without : float
        The same for this action without a measurement.
    outcomes : tuple of ExplainedOutcome
        Those of positive probability, the likeliest first; empty where the episode is surely over.
    """

    decision: Decision
    price: float
    lower: float
    upper: float
    lower_without: float
    upper_without: float
    outcomes: tuple[ExplainedOutcome, ...]

    @property
    def measuring_value(self) -> float:
        """Value of the action with this measurement minus that without any, its price paid; 0 without a measurement."""
        return self.lower - self.lower_without if self.decision.measurement else 0.0

    @property
    def measuring_value_bounds(self) -> tuple[float, float]:
        """Bounds on the measuring value if everything after this step is optimal; NaN where there is no upper bound."""
        if not self.decision.measurement:
            return 0.0, 0.0
        return self.lower - self.upper_without, self.upper - self.lower_without


@dataclass(frozen=True, eq=False)
class BeliefExplanation:
    """All decisions at a belief, with their values and outcomes; has `print` and `to_pandas`.

    Attributes
    ----------
    model : Model
    belief : Belief
    decisions : tuple of ExplainedDecision
        By action, then by measurement.
    best_number : int
        The place of the decision that the solution takes.
    """

    model: Model
    belief: Belief
    decisions: tuple[ExplainedDecision, ...]
    best_number: int

    @property
    def best(self) -> ExplainedDecision:
        """The decision that the solution takes."""
        return self.decisions[self.best_number]

    def of(self, action: int | str, measurement: int | str = 0) -> ExplainedDecision:
        """Return one of the decisions, by number or name of the action and of the measurement."""
        names = [self.model.action_name(number) for number in range(self.model.n_actions)]
        number = names.index(action) if isinstance(action, str) and action in names else action
        asked = (number, self.model.measurement_number(measurement))
        for explained in self.decisions:
            if (explained.decision.action, explained.decision.measurement) == asked:
                return explained
        raise PlanError(
            f"there is no decision of the action {quoted(action)} with the measurement {quoted(measurement)}"
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with a row for each decision and outcome (needs the extra `data`)."""
        pandas = import_extra("pandas", "BeliefExplanation.to_pandas", "data")
        rows = [
            {
                "action": self.model.action_name(explained.decision.action),
                "measurement": self._measurement(explained.decision),
                "price": explained.price,
                "lower": explained.lower,
                "upper": explained.upper,
                "measuring_value": explained.measuring_value,
                "best": number == self.best_number,
                "outcome": None if outcome is None else outcome.name,
                "probability": 0.0 if outcome is None else outcome.probability,
                "then": "" if outcome is None else self._then(outcome),
            }
            for number, explained in enumerate(self.decisions)
            for outcome in (explained.outcomes or (None,))
        ]
        frame: pd.DataFrame = pandas.DataFrame(rows)
        return frame

    def _measurement(self, decision: Decision) -> str:
        return self.model.measurement_name(decision.measurement) if decision.measurement else ""

    def _words(self, decision: Decision) -> str:
        with_it = f", with {self._measurement(decision)}" if decision.measurement else ""
        return self.model.action_name(decision.action) + with_it

    def _then(self, outcome: ExplainedOutcome) -> str:
        return "?" if outcome.decision is None else self._words(outcome.decision)

    def __str__(self) -> str:
        order = sorted(range(len(self.decisions)), key=lambda i: (i != self.best_number, -self.decisions[i].lower))
        rows = [self._row(self.decisions[i], i == self.best_number) for i in order[:DECISIONS_SHOWN]]
        head = ("action", "measurement", "price", "worth", "at most", "measuring value", "")
        more = len(order) - len(rows)
        lines = [
            f"In the belief {belief_text(self.model, self.belief)}: {self._words(self.best.decision)}",
            f"Worth {plain_number(self.best.lower)} from here on.",
            "",
            *text_table(head, rows, "<<>>>> "),
            *([f"... and {more} more decisions"] if more else []),
        ]
        follows = self._outcome_rows()
        if follows:
            action = self.model.action_name(self.best.decision.action)
            lines += ["", f"What may be seen with {action}, and what is decided then:", ""]
            lines += text_table(("measurement", "outcome", "chance", "then"), follows, "<<><")
        return "\n".join(lines)

    def _row(self, explained: ExplainedDecision, is_best: bool) -> tuple[str, ...]:
        measured = explained.decision.measurement > 0
        return (
            self.model.action_name(explained.decision.action),
            self._measurement(explained.decision) or "(none)",
            plain_number(explained.price) if measured else "",
            _number(explained.lower),
            _number(explained.upper),
            _number(explained.measuring_value, sign=True) if measured else "",
            "best" if is_best else "",
        )

    def _outcome_rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for explained in self.decisions:
            if explained.decision.action != self.best.decision.action:
                continue
            name = self._measurement(explained.decision) or "(none)"
            for outcome in explained.outcomes[:OUTCOMES_SHOWN]:
                rows.append((name, outcome.name, percent(outcome.probability), self._then(outcome)))
                name = ""
            left = explained.outcomes[OUTCOMES_SHOWN:]
            if left:
                rows.append(("", f"{len(left)} more", percent(sum(outcome.probability for outcome in left)), ""))
        return rows

    def __repr__(self) -> str:
        best = f"{self._words(self.best.decision)}, worth {self.best.lower:.6g}"
        return f"BeliefExplanation({self.belief!r}: {best}; {len(self.decisions)} decisions)"


def _number(value: float, sign: bool = False) -> str:
    if np.isnan(value):
        return "?"
    return ("+" if sign and value > 0 else "") + plain_number(value)
