"""`Economics`: prices and discount of an inspection problem, in Python or from a TOML file.

currency = "EUR"
period = "year"
interest = "3 %/year"                # or discount = 0.97, per period
inspection = "120 EUR"               # or a table: price, by_state or by_action
terminal = []

[actions]                            # every action has a price, also where it is 0
nothing = "0 EUR"
repair = { "3" = "700 EUR", otherwise = "900 EUR" }

[running]                            # cost of a period that begins in the state
"4" = "50 EUR/year"

[failure]                            # paid once, on entering one of the states
states = ["5"]
price = "20000 EUR"

In place of `inspection` there may be several methods, and there may be a service life, limits, components and a present rule:

life = "30 years"
longest_interval = "24 months"       # between any two inspections
failures_per_year = 1e-3             # at most
start = "1"                          # the state at the beginning, or a table of probabilities

[inspections.visual]
price = "60 EUR"
pod = { "4" = 0.4, "5" = 0.95 }      # probability of detection; 0 in other states
[inspections.ultrasonic]
price = "200 EUR"
errors = [[0.9, 0.1, 0, 0, 0], ...]  # a row for every state: the probability of each state that is reported; or from = "fit"
with = ["nothing"]                   # the actions with which it can be made; all unless told

[final]                              # cost of the state at the end of the life
"5" = "4000 EUR"

[components]                         # a system of equal components that needs some of them
number = 3
needed = 2
down = "5000 EUR/year"
mobilisation = "300 EUR"

[rule.routine]                       # your present rule, step by step; it begins with the first one
do = "nothing"
lasts = "4 years"
inspect = "visual"                   # at the end
if = { "defect" = "repair" }
then = "routine"
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, shown, unknown_name
from actmeasure.file_access import explain
from actmeasure.files.checks import validation_path
from actmeasure.files.toml_lines import KeyLines, KeyPath
from actmeasure.model import Model
from actmeasure.settings import discount_factor, real, whole
from actmeasure.text import plain_number

__all__ = ["DAYS", "OTHERWISE", "Components", "Economics", "InspectionMethod", "RuleStep", "Units", "read_economics"]

FloatArray = npt.NDArray[np.float64]
Table = TypeVar("Table", bound=msgspec.Struct)
Entry = TypeVar("Entry")
Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
#: The key of a table of prices per state for the states that it does not name.
OTHERWISE = "otherwise"
#: Largest size of a file of prices.
MOST_BYTES = 1 << 20
#: Keys of a file for the attributes that have another name there.
FILE_KEYS = {
    "inspection_by_state": ("inspection", "by_state"),
    "inspection_by_action": ("inspection", "by_action"),
    "failure_states": ("failure", "states"),
}
#: Length in days of the periods that can be converted into each other; a year is the mean one of the calendar.
DAYS = {"day": 1.0, "week": 7.0, "month": 365.2425 / 12, "quarter": 365.2425 / 4, "year": 365.2425}
AMOUNT = re.compile(r"\s*([+-]?[\d.,_'eE+-]*\d)\s*([^\d\s/%]+|%)?\s*(?:(?:/|per\s)\s*(\S+))?\s*")
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([^\W\d_][\w-]*?)(s?)\s*")
#: Largest relative distance of a duration from a whole number of periods.
NEARLY_WHOLE = 1e-9
#: Outcomes of an inspection method with probabilities of detection, unless others are given.
DETECTION_OUTCOMES = ("no defect", "defect")
#: Averages of at least this many periods are rounded to whole periods.
ROUGH = 100


@dataclass(frozen=True)
class InspectionMethod:
    """A way to inspect: its price and what it reports. At most one of `pod`, `errors` and `from_fit`; else it shows the state.

    Attributes
    ----------
    price : float
    pod : mapping from the name of a state to a probability, or None
        Probability of detection; "otherwise" stands for the states that are not named, which else have 0.
    errors : rows of probabilities, or None
        A row for every state, in order, with the probability of each outcome there.
    from_fit : bool
        Whether it reports wrong states as the records of the fit do.
    outcomes : tuple of str
        Names of the outcomes; by default "no defect" and "defect" with `pod`, otherwise the states.
    with_actions : tuple of str, or None
        The actions with which it can be made; None for all.
    """

    price: float
    pod: Mapping[str, float] | None = None
    errors: Sequence[Sequence[float]] | None = None
    from_fit: bool = False
    outcomes: tuple[str, ...] = ()
    with_actions: tuple[str, ...] | None = None

    def law(self, states: Sequence[str], recorded: FloatArray | None, where: str) -> tuple[tuple[str, ...], FloatArray]:
        """Return the names of the outcomes and their probabilities in each state, shape (S, O).

        `recorded`, (S, S), are the probabilities of recorded states of a fit; `where` begins messages.
        """
        if self.pod is not None:
            found = np.array([self.pod.get(state, self.pod.get(OTHERWISE, 0.0)) for state in states], dtype=np.float64)
            return self.outcomes or DETECTION_OUTCOMES, np.stack([1 - found, found], axis=1)
        if self.from_fit and recorded is None:
            raise FitError(
                f"{where}the method takes its errors from the fit, but in this fit records are right; fit with "
                "errors={...} (--error 1:2), or give pod = {...} or errors = [...]"
            )
        rows = np.eye(len(states)) if self.errors is None else np.array(self.errors, dtype=np.float64)
        if self.from_fit and recorded is not None:
            rows = recorded
        count = len(self.outcomes) or len(states)
        if rows.shape != (len(states), count):
            raise FitError(
                f"{where}errors have the shape {rows.shape}, expected {len(states)} rows, one for each of the states "
                f"{', '.join(map(shown, states))}, of {count} probabilities each, one for each outcome"
            )
        return self.outcomes or tuple(states), rows


@dataclass(frozen=True)
class Components:
    """A system of equal, independent components, which is down while fewer than `needed` of them are not in a failure state.

    Attributes
    ----------
    number, needed : int
    down : float
        Cost of a period that begins with the system down.
    mobilisation : float
        Paid once in a period in which something is done to a component or one is inspected.
    """

    number: int
    needed: int
    down: float = 0.0
    mobilisation: float = 0.0


@dataclass(frozen=True)
class RuleStep:
    """A step of a present rule: do an action for some periods, inspect at the end, and go on by what is reported.

    Attributes
    ----------
    name, action : str
    periods : int
    inspection : str or None
        The name of an inspection method.
    branches : mapping from outcome to the name of a step
    then : str
        The step after other outcomes, or without an inspection.
    """

    name: str
    action: str
    periods: int = 1
    inspection: str | None = None
    branches: Mapping[str, str] = field(default_factory=dict)
    then: str = ""


@dataclass(frozen=True)
class Economics:
    """Prices of an inspection problem as positive numbers, all in one currency; a model has them as negative rewards.

    Read it from a TOML file with `Economics.load`.

    Attributes
    ----------
    currency : str
        Such as "EUR".
    period : str
        Length of a step of the model, such as "year".
    discount : float
        Discount factor per period, above 0 and at most 1.
    inspection : float, or None
        Price of an inspection, for states and actions that the next two do not name; None where there are `inspections`.
    inspection_by_state, inspection_by_action : mappings from name to price
        At most one of them. The state is that at the beginning of the period at the end of which the unit is inspected.
    actions : mapping from the name of an action to its price
        A price, or a mapping from states to prices; there, "otherwise" stands for the states that are not named.
    running : mapping from the name of a state to its cost per period
        Cost of a period that begins in the state; 0 for states that are not named.
    failure_states : tuple of str
    failure_price : float
        Paid once, when a unit goes from a state that is not a failure to one that is.
    terminal : tuple of str
        States in which an episode ends, which is noticed without an inspection.
    inspections : mapping from name to InspectionMethod
        Several methods, or imperfect ones, in place of `inspection`.
    life : int, or None
        Number of periods after which everything ends; None for no end.
    final : mapping from the name of a state to a cost
        Cost of the state in which a unit is at the end of the life; 0 for states that are not named.
    longest_interval : int, or None
        Largest number of periods between two inspections, and from the start to the first one.
    failures_per_year : float, or None
        Largest expected number of failures per year.
    components : Components, or None
    start : str, mapping from the name of a state to a probability, or None
        The state at the beginning; by default distributed as at the first inspections of the records.
    rule : tuple of RuleStep
        The present rule, which the plan is compared with; it begins with the first step.
    """

    currency: str
    period: str
    discount: float
    inspection: float | None = None
    inspection_by_state: Mapping[str, float] = field(default_factory=dict)
    inspection_by_action: Mapping[str, float] = field(default_factory=dict)
    actions: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)
    running: Mapping[str, float] = field(default_factory=dict)
    failure_states: tuple[str, ...] = ()
    failure_price: float = 0.0
    terminal: tuple[str, ...] = ()
    inspections: Mapping[str, InspectionMethod] = field(default_factory=dict)
    life: int | None = None
    final: Mapping[str, float] = field(default_factory=dict)
    longest_interval: int | None = None
    failures_per_year: float | None = None
    components: Components | None = None
    start: str | Mapping[str, float] | None = None
    rule: tuple[RuleStep, ...] = ()
    #: The file it was read from and the line of every key, for messages.
    source: KeyLines = field(default_factory=lambda: KeyLines("", {}), repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("currency", "period"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise FitError(f"{name} is {quoted(getattr(self, name))}, expected its name, such as EUR or year")
        discount_factor(self.discount, "discount", FitError)
        if self.inspection_by_state and self.inspection_by_action:
            raise FitError("the inspection has prices by state and by action; give only one of the two")
        self._check_settings()
        for what, prices in (
            ("inspection", 0.0 if self.inspection is None else self.inspection),
            ("inspection_by_state", self.inspection_by_state),
            ("inspection_by_action", self.inspection_by_action), ("actions", self.actions),
            ("running", self.running), ("failure_price", self.failure_price), ("final", self.final),
            *((f"inspections[{name!r}]", method.price) for name, method in self.inspections.items()),
        ):  # fmt: skip
            self._check_prices(prices, what)

    def _check_settings(self) -> None:
        """Raise a `FitError` if life, limits, methods, components or start are not valid, or do not go together."""
        if (self.inspection is None) == (not self.inspections):
            given = (
                "no price of an inspection and no methods"
                if not self.inspections
                else "a price of an inspection and methods"
            )
            raise FitError(f"there are {given}; give one of the two: inspection=120.0, or inspections={{...}}")
        if self.inspections and (self.inspection_by_state or self.inspection_by_action):
            raise FitError(
                "prices of an inspection by state or action go with `inspection`, not with methods; leave them out"
            )
        for name, method in self.inspections.items():
            _check_method(method, f"{self.location(('inspections', name))}the inspection method {name!r}")
        for key in ("life", "longest_interval"):
            if getattr(self, key) is not None:
                whole(
                    getattr(self, key), f"{self.location((key,))}{key}", 1, error=FitError, what="a number of periods"
                )
        if self.final and self.life is None:
            raise FitError(f'{self.location(("final",))}costs at the end of life need a life; add life = "30 years"')
        limit = self.failures_per_year
        if limit is not None:
            where = f"{self.location(('failures_per_year',))}failures_per_year"
            if not 0 < real(limit, where, FitError, "a number above 0, such as 1e-3") < math.inf:
                raise FitError(f"{where} is {limit!r}, expected a number above 0, such as 1e-3")
            if not self.failure_states:
                raise FitError(f"{where} needs to know what a failure is; add [failure] with states and a price")
        if self.components is not None:
            self._check_components(self.components)
        if isinstance(self.start, Mapping):
            total = sum(real(value, f"start[{name!r}]", FitError) for name, value in self.start.items())
            if not abs(total - 1) <= 1e-6 or min(self.start.values()) < 0:
                raise FitError(
                    f"{self.location(('start',))}the probabilities of start are {dict(self.start)}, expected numbers from 0 up "
                    "with the sum 1"
                )

    def _check_components(self, parts: Components) -> None:
        """Raise a `FitError` if components are not valid."""
        where = f"{self.location(('components',))}components"
        whole(parts.number, f"{where}.number", 2, 4, FitError, "a number of components from 2 to 4")
        whole(
            parts.needed, f"{where}.needed", 1, parts.number, FitError, f"a number of components up to {parts.number}"
        )
        for key in ("down", "mobilisation"):
            amount(getattr(parts, key), f"{where}.{key}", self.currency)
        if not self.failure_states:
            raise FitError(f"{where} need to know when one of them has failed; add [failure] with states and a price")
        if self.terminal:
            raise FitError(f"{where} do not end one by one; leave the terminal states out")
        if self.longest_interval is not None:
            raise FitError(
                f"{where} and longest_interval cannot be combined: it is not said which components an inspection must cover; "
                "leave one of them out"
            )

    @property
    def needs_policy_graph(self) -> bool:
        """Whether plans are policy graphs: with inspection methods, a life, limits or components."""
        settings = (self.life, self.longest_interval, self.failures_per_year, self.components)
        return bool(self.inspections) or any(one is not None for one in settings)

    @property
    def failures_per_period(self) -> float | None:
        """The largest expected number of failures per period; None without a limit."""
        if self.failures_per_year is None:
            return None
        share = 1.0 if self.period == "year" else _days(self.period, "period") / _days("year", "period")
        return self.failures_per_year * share

    @property
    def has_price_of_failure(self) -> bool:
        """Whether a failure, or a system that is down, has a price above 0, or failures are limited."""
        is_down_priced = self.components is not None and self.components.down > 0
        is_failure_priced = bool(self.failure_states) and self.failure_price > 0
        return is_down_priced or is_failure_priced or self.failures_per_year is not None

    @property
    def has_cost_of_states(self) -> bool:
        """Whether a state costs something by itself, per period or at the end of life."""
        return any(cost > 0 for cost in (*self.running.values(), *self.final.values()))

    def _check_prices(self, prices: Any, what: str) -> None:
        if isinstance(prices, Mapping):
            for name, price in prices.items():
                self._check_prices(price, f"{what}[{name!r}]")
        elif isinstance(prices, str):
            raise FitError(f"{what} is {quoted(prices)}, expected a number; prices with units go in a file")
        else:
            amount(prices, what, self.currency)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Economics:
        """Read prices from a TOML file; anything wrong is a `FitError` that names the line."""
        return read_economics(path)

    def per(self, period: str) -> Economics:
        """Return the prices for another period: running costs and the discount are converted, prices for one time stay."""
        if period == self.period:
            return self
        share = _days(period, "period") / _days(self.period, "period")
        running = {state: share * price for state, price in self.running.items()}
        parts = self.components
        return replace(
            self,
            period=period,
            running=running,
            discount=self.discount**share,
            life=None if self.life is None else _whole_periods(self.life / share, "life", period),
            longest_interval=None
            if self.longest_interval is None
            else _whole_periods(self.longest_interval / share, "longest_interval", period),
            components=None if parts is None else replace(parts, down=share * parts.down),
            rule=tuple(
                replace(step, periods=_whole_periods(step.periods / share, f"rule.{step.name}", period))
                for step in self.rule
            ),
        )

    def check_names(self, states: Sequence[str], actions: Sequence[str], dropped: Sequence[str] = ()) -> None:
        """Raise a `FitError` if a name is not that of a state or action (also a dropped one), or an action has no price."""
        for key in ("running", "inspection_by_state"):
            self._known("state", getattr(self, key), states, key)
        self._known("state", self.failure_states, states, "failure_states")
        self._known("state", self.terminal, states, "terminal")
        self._known("action", self.inspection_by_action, [*actions, *dropped], "inspection_by_action")
        self._known("state", self.final, states, "final")
        if self.start is not None:
            self._known("state", [self.start] if isinstance(self.start, str) else self.start, states, "start")
        self._check_methods(states, actions, dropped)
        self._check_action_prices(states, actions, dropped)
        for state in self.terminal:
            if self.running.get(state):
                raise FitError(
                    f"{self.location(('running', state))}the state {state!r} has running costs, but it is terminal: "
                    "episodes end there, so they are never paid; give the end a price with [failure]"
                )

    def _check_methods(self, states: Sequence[str], actions: Sequence[str], dropped: Sequence[str]) -> None:
        """Raise a `FitError` if a method or a present rule names a state or action that is not known."""
        for name, method in self.inspections.items():
            known = [state for state in method.pod or () if state != OTHERWISE]
            self._known("state", known, states, "inspections", name, "pod")
            self._known("action", method.with_actions or (), [*actions, *dropped], "inspections", name, "with")
            if method.with_actions is not None and not set(method.with_actions) & set(actions):
                raise FitError(
                    f"{self.location(('inspections', name, 'with'))}the inspection method {name!r} goes with no action of the "
                    f"model, which are {', '.join(map(shown, actions))}; name one of them"
                )
        for step in self.rule:
            self._known("action", [step.action], actions, "rule", step.name, "do")

    def _check_action_prices(self, states: Sequence[str], actions: Sequence[str], dropped: Sequence[str]) -> None:
        """Raise a `FitError` if an action is not known or has no price."""
        for action in self.actions:
            if action not in (*actions, *dropped):
                raise FitError(
                    f"{self.location(('actions', action))}{unknown_name('action', action, [*actions, *dropped])}; if the records "
                    f"contain none, say what it does when fitting: assume={{{action!r}: {states[0]!r}}} (actmeasure fit --assume "
                    f"{action}:{states[0]}), or leave its price out"
                )
        for action in actions:
            if action not in self.actions:
                raise FitError(
                    f"{self.location(('actions',))}the action {action!r} has no price; add it to the prices of actions, "
                    f"with 0 if it costs nothing"
                )
            prices = self.actions[action]
            if isinstance(prices, Mapping):
                self._known("state", [name for name in prices if name != OTHERWISE], states, "actions", action)
                missing = [state for state in states if state not in prices]
                if missing and OTHERWISE not in prices and set(missing) - set(self.terminal):
                    raise FitError(
                        f"{self.location(('actions', action))}the action {action!r} has no price in state {missing[0]!r}; "
                        f"add it, or {OTHERWISE} = ... for all others"
                    )

    def location(self, key: tuple[str, ...]) -> str:
        """Return file and line of a key, for the beginning of a message; empty if the prices were not read from a file."""
        return self.source.location(FILE_KEYS.get(key[0], (key[0],)) + key[1:])

    def _known(self, kind: str, names: Iterable[str], choices: Sequence[str], *key: str) -> None:
        for name in names:
            if name not in choices:
                raise FitError(f"{self.location((*key, name))}{unknown_name(kind, name, choices)}")

    def measuring_costs(self, states: Sequence[str], actions: Sequence[str]) -> float | FloatArray:
        """Return the price of an inspection: a number, or an array of shape (S, A); 0 where there are methods."""
        if self.inspection is None:
            return 0.0
        if not self.inspection_by_state and not self.inspection_by_action:
            return float(self.inspection)
        by_state, by_action = self.inspection_by_state, self.inspection_by_action
        return np.array(
            [[by_state.get(s, by_action.get(a, self.inspection)) for a in actions] for s in states], dtype=np.float64
        )

    def rewards(self, states: Sequence[str], actions: Sequence[str]) -> FloatArray:
        """Return the rewards of transitions, shape (S, A, S): minus the costs of a period without an inspection."""
        running = np.array([self.running.get(state, 0.0) for state in states])
        doing = np.array([[self.price(action, state) for action in actions] for state in states])
        failed = np.isin(states, list(self.failure_states))
        failing = self.failure_price * (~failed[:, None] & failed[None, :])
        rewards: FloatArray = -(running[:, None, None] + doing[:, :, None] + failing[:, None, :])
        rewards[np.isin(states, list(self.terminal))] = 0.0
        return rewards

    def price(self, action: str, state: str) -> float:
        """Return the price of an action in a state."""
        prices = self.actions[action]
        if isinstance(prices, Mapping):
            # In terminal states no action is taken, so that they need no price.
            return float(prices.get(state, prices.get(OTHERWISE, 0.0)))
        return float(prices)


class _InspectionTable(msgspec.Struct, forbid_unknown_fields=True):
    """The table `inspection` of a file; prices are checked by `amount`."""

    price: Any
    by_state: dict[str, Any] = {}
    by_action: dict[str, Any] = {}


class _FailureTable(msgspec.Struct, forbid_unknown_fields=True):
    """The table `failure` of a file."""

    states: tuple[str, ...]
    price: Any


class _MethodTable(msgspec.Struct, forbid_unknown_fields=True):
    """A table below `inspections` of a file."""

    price: Any
    pod: dict[str, Probability] | None = None
    errors: tuple[tuple[Probability, ...], ...] | None = None
    source: Literal["fit"] | None = msgspec.field(default=None, name="from")
    outcomes: tuple[str, ...] = ()
    with_actions: tuple[str, ...] | None = msgspec.field(default=None, name="with")


class _ComponentsTable(msgspec.Struct, forbid_unknown_fields=True):
    """The table `components` of a file."""

    number: int
    needed: int
    down: Any = 0
    mobilisation: Any = 0


class _StepTable(msgspec.Struct, forbid_unknown_fields=True):
    """A table below `rule` of a file."""

    do: str
    then: str | None = None
    lasts: Any = 1
    inspect: str | None = None
    branches: dict[str, str] = msgspec.field(default_factory=dict, name="if")


class _PricesFile(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a file; prices are checked by `amount`, with the currency and period."""

    currency: Annotated[str, msgspec.Meta(pattern=r"\S")]
    period: Annotated[str, msgspec.Meta(pattern=r"\S")]
    inspection: Any = None
    inspections: dict[str, dict[str, Any]] = {}
    life: Any = None
    longest_interval: Any = None
    failures_per_year: Annotated[float, msgspec.Meta(gt=0)] | None = None
    start: str | dict[str, Probability] | None = None
    final: dict[str, Any] = {}
    components: dict[str, Any] | None = None
    rule: dict[str, dict[str, Any]] = {}
    discount: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    interest: Any = None
    terminal: tuple[str, ...] = ()
    actions: dict[str, Any] = {}
    running: dict[str, Any] = {}
    failure: _FailureTable | None = None


#: The struct of every table with fixed keys.
TABLES: dict[KeyPath, type[msgspec.Struct]] = {
    (): _PricesFile,
    ("inspection",): _InspectionTable,
    ("failure",): _FailureTable,
    ("inspections", "*"): _MethodTable,
    ("components",): _ComponentsTable,
    ("rule", "*"): _StepTable,
}
#: What is expected as the value of a key, for messages.
EXPECTED: dict[KeyPath, str] = {
    ("currency",): 'text such as "EUR"',
    ("period",): 'text such as "year"',
    ("discount",): "a number above 0 and at most 1, such as 0.97",
    ("terminal",): 'a list of states such as ["5"]',
    ("failure", "states"): 'a list of states such as ["5"]',
    ("failures_per_year",): "a number above 0, such as 1e-3",
    ("start",): 'a state such as "1", or a table of states and probabilities',
    ("inspections",): "a table for every method, such as [inspections.visual]",
    ("inspections", "*"): "a table with a price",
    ("inspections", "*", "pod"): "probabilities from 0 to 1, such as {crack = 0.4, failed = 0.95}",
    (
        "inspections",
        "*",
        "errors",
    ): "a row of probabilities from 0 to 1 for every state, such as [[0.9, 0.1], [0.2, 0.8]]",
    ("inspections", "*", "from"): '"fit", for the errors of the records',
    ("inspections", "*", "outcomes"): 'a list of names such as ["clear", "echo"]',
    ("inspections", "*", "with"): 'a list of actions such as ["nothing"]',
    ("components", "number"): "a whole number from 2 to 4",
    ("components", "needed"): "a whole number, of components that have to work",
    ("rule",): "a table for every step, such as [rule.routine]",
    ("rule", "*"): "a table with the action that is done",
    ("rule", "*", "do"): "the name of an action",
    ("rule", "*", "then"): "the name of a step",
    ("rule", "*", "inspect"): "the name of an inspection method",
    ("rule", "*", "if"): 'outcomes and steps, such as {"defect" = "repair"}',
}
#: Keys whose values are lists of states.
STATE_LISTS = {("terminal",), ("failure", "states")}
#: What to do about a key that is missing.
MISSING: dict[KeyPath, str] = {
    ("currency",): 'there is no currency, so that the prices have no unit; add currency = "EUR" at the top',
    ("period",): 'there is no period, so that the prices have no unit; add period = "year" at the top',
    (
        "inspection",
    ): 'there is no price of an inspection; add inspection = "120 EUR" at the top, or methods, [inspections.visual]',
    ("inspections", "*", "price"): 'the method has no price; add price = "60 EUR" to its table',
    ("components", "number"): "components have a number, and a number that is needed; give both",
    ("components", "needed"): "components have a number, and a number that is needed; give both",
    ("rule", "*", "do"): 'the step has no action; add do = "nothing" to its table',
    ("inspection", "price"): "the inspection has no price; add price = ... to its table",
    ("failure", "states"): "a failure has states and a price; give both",
    ("failure", "price"): "a failure has states and a price; give both",
}


def read_economics(path: str | os.PathLike[str]) -> Economics:
    """Read and check a file of prices; anything wrong is a `FitError` that names the line."""
    file_path = Path(path)
    try:
        with file_path.open("rb") as file:
            contents = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise FitError(str(explain(error, file_path, "read"))) from error
    if len(contents) > MOST_BYTES:
        raise FitError(
            f"{file_path} is larger than {MOST_BYTES >> 20} MiB, too large for a file of prices; check the path"
        )
    try:
        text = contents.decode("utf-8-sig")
        table = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = contents[: error.start].count(b"\n") + 1
        raise FitError(f"{file_path}, line {line}: this is not UTF-8 text; save the file as UTF-8") from error
    except RecursionError as error:
        raise FitError(f"{file_path} is nested too deeply for a file of prices; check the path") from error
    except tomllib.TOMLDecodeError as error:
        raise FitError(
            f"{file_path} is not valid TOML: {error}; names with other signs than letters, digits, - and _ go in quotes"
        ) from error
    except ValueError as error:  # of `int`
        raise FitError(f"{file_path} has a number of too many digits; write it in a shorter way") from error
    return _economics(table, KeyLines.of(text, str(file_path)))


def _economics(table: dict[str, Any], lines: KeyLines) -> Economics:
    """Return the prices of a parsed file."""
    file = _converted(table, _PricesFile, (), lines)
    currency, period = file.currency.strip(), file.period.strip()

    def price(value: Any, *key: str, per: str | None = None) -> float:
        return amount(value, f"{lines.location(key)}{'.'.join(key)}", currency, per)

    def prices(table: Mapping[str, Any], *key: str, per: str | None = None) -> dict[str, float]:
        return {name: price(value, *key, name, per=per) for name, value in table.items()}

    if file.inspection is None and not file.inspections:
        raise FitError(f"{lines.location(())}{MISSING['inspection',]}")
    if file.inspection is not None and file.inspections:
        raise FitError(
            f"{lines.location(('inspection',))}there are a price of an inspection and methods, [inspections...]; give one"
        )
    is_table = isinstance(file.inspection, dict)
    inspection = _InspectionTable(file.inspection)
    if is_table:
        inspection = _converted(file.inspection, _InspectionTable, ("inspection",), lines)
    if inspection.by_state and inspection.by_action:
        raise FitError(f"{lines.location(('inspection',))}the inspection has prices by_state and by_action; give one")
    return Economics(
        currency=currency,
        period=period,
        discount=_discount(file, period, lines),
        inspection=None
        if file.inspections
        else price(inspection.price, "inspection", *(["price"] if is_table else [])),
        inspection_by_state=prices(inspection.by_state, "inspection", "by_state"),
        inspection_by_action=prices(inspection.by_action, "inspection", "by_action"),
        actions={
            name: prices(value, "actions", name) if isinstance(value, dict) else price(value, "actions", name)
            for name, value in file.actions.items()
        },
        running=prices(file.running, "running", per=period),
        failure_states=() if file.failure is None else file.failure.states,
        failure_price=0.0 if file.failure is None else price(file.failure.price, "failure", "price"),
        terminal=file.terminal,
        inspections={name: _method(name, table, lines, price) for name, table in file.inspections.items()},
        life=_duration(file.life, ("life",), period, lines),
        final=prices(file.final, "final"),
        longest_interval=_duration(file.longest_interval, ("longest_interval",), period, lines),
        failures_per_year=file.failures_per_year,
        components=None if file.components is None else _components(file.components, period, lines, price),
        start=file.start,
        rule=_rule(file.rule, period, lines),
        source=lines,
    )


def _method(name: str, table: dict[str, Any], lines: KeyLines, price: Callable[..., float]) -> InspectionMethod:
    """Return the inspection method of a table."""
    found = _converted(table, _MethodTable, ("inspections", name), lines)
    return InspectionMethod(
        price(found.price, "inspections", name, "price"), found.pod, found.errors, found.source == "fit", found.outcomes,
        found.with_actions,
    )  # fmt: skip


def _components(table: dict[str, Any], period: str, lines: KeyLines, price: Callable[..., float]) -> Components:
    """Return the components of a table."""
    found = _converted(table, _ComponentsTable, ("components",), lines)
    down = price(found.down, "components", "down", per=period)
    return Components(found.number, found.needed, down, price(found.mobilisation, "components", "mobilisation"))


def _rule(tables: dict[str, dict[str, Any]], period: str, lines: KeyLines) -> tuple[RuleStep, ...]:
    """Return the steps of a present rule; a `FitError` names a step that is missing."""
    steps = []
    for name, table in tables.items():
        found = _converted(table, _StepTable, ("rule", name), lines)
        targets = [("then", found.then), *(("if", to) for to in found.branches.values())]
        for key, target in targets:
            if target is not None and target not in tables:
                raise FitError(f"{lines.location(('rule', name, key))}{unknown_name('step', target, list(tables))}")
        if found.branches and found.inspect is None:
            raise FitError(
                f"{lines.location(('rule', name, 'if'))}the step {name!r} depends on what is reported, but nothing is inspected; "
                'add inspect = "visual", or what the method is called'
            )
        periods = _duration(found.lasts, ("rule", name, "lasts"), period, lines) or 1
        steps.append(RuleStep(name, found.do, periods, found.inspect, found.branches, found.then or next(iter(tables))))
    return tuple(steps)


def _duration(value: Any, key: tuple[str, ...], period: str, lines: KeyLines) -> int | None:
    """Return a duration such as "30 years" in periods; a number is one of periods, and None stays."""
    if value is None:
        return None
    what = f"{lines.location(key)}{'.'.join(key)}"
    expected = f'a duration such as "30 {period}s"'
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    match = DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise FitError(f"{what} is {quoted(value)}, expected {expected}")
    unit = match[2] if match[2] + match[3] != period else period
    count = float(match[1]) * (1.0 if unit == period else _days(unit, what) / _days(period, what))
    return _whole_periods(count, f"{what}, {quoted(value)},", period)


def _whole_periods(count: float, what: str, period: str) -> int:
    """Return a number of periods, which has to be whole and above 0."""
    nearest = round(count)
    if nearest < 1 or abs(count - nearest) > NEARLY_WHOLE * count:
        raise FitError(
            f"{what} is {count:.6g} periods of a {period}, expected a whole number above 0; use other periods"
        )
    return nearest


def _check_method(method: InspectionMethod, what: str) -> None:
    """Raise a `FitError` if an inspection method is not valid."""
    given = [key for key in ("pod", "errors", "from_fit") if getattr(method, key)]
    if len(given) > 1:
        raise FitError(f"{what} has {' and '.join(given).replace('from_fit', 'from')}; give one of them")
    if method.pod is not None:
        for state, chance in method.pod.items():
            if not 0 <= real(chance, f"{what}: pod[{state!r}]", FitError, "a probability from 0 to 1") <= 1:
                raise FitError(f"{what}: pod[{state!r}] is {chance!r}, expected a probability from 0 to 1")
        if method.outcomes and len(method.outcomes) != len(DETECTION_OUTCOMES):
            raise FitError(f"{what} has {len(method.outcomes)} outcomes, expected two: not detected and detected")
    if len(set(method.outcomes)) < len(method.outcomes):
        raise FitError(
            f"{what} has an outcome twice, {', '.join(map(quoted, method.outcomes))}; give each its own name"
        )
    for number, row in enumerate(method.errors or ()):
        if len(row) != len((method.errors or ((),))[0]) or not abs(sum(row) - 1) <= 1e-6 or min(row, default=-1) < 0:
            raise FitError(
                f"{what}: row {number + 1} of errors is {list(row)}, expected probabilities with the sum 1, as many as in "
                "the first row"
            )


def _discount(file: _PricesFile, period: str, lines: KeyLines) -> float:
    """Return the discount per period, as given or from the interest rate."""
    if (file.discount is None) == (file.interest is None):
        given = "neither discount nor interest" if file.discount is None else "both discount and interest"
        raise FitError(
            f'{lines.location(())}it has {given}; give one of the two, such as interest = "3 %/year" or discount = 0.97 '
            "(per period)"
        )
    if file.discount is not None:
        return file.discount
    return discount_of_rate(file.interest, f"{lines.location(('interest',))}interest", period)


def _converted(contents: dict[str, Any], kind: type[Table], table: tuple[str, ...], lines: KeyLines) -> Table:
    """Return a table of the file as a struct; raise a `FitError` with the line of what does not fit.

    Parameters
    ----------
    contents : dict
    kind : subclass of msgspec.Struct
    table : tuple of str
        The keys that lead to the table.
    lines : KeyLines
    """
    try:
        return msgspec.convert(contents, kind)
    except msgspec.ValidationError as error:
        at, key = validation_path(error, contents)
        value: Any = contents
        for part in at:
            value = value[part]
        at = (*table, *at)
        if key is None:
            names = tuple(part for part in at if isinstance(part, str))
            expected = _entry(EXPECTED, names, "a table of names and prices")
            index = ""
            if isinstance(at[-1], int):  # an element of a list
                index = f"[{at[-1]}]"
                if names in STATE_LISTS:
                    expected = 'the name of a state in quotes, such as "5"'
            problem = f"{'.'.join(names)}{index} is {quoted(value)}, expected {expected}"
        elif key in value:
            at = (*at, key)
            problem = unknown_name("key", key, _fields(TABLES, at[:-1], kind))
        else:
            problem = _entry(MISSING, (*at, key), "")
        raise FitError(f"{lines.location(at)}{problem}") from error


def _fields(
    tables: Mapping[KeyPath, type[msgspec.Struct]], path: KeyPath, otherwise: type[msgspec.Struct]
) -> tuple[str, ...]:
    """Return the keys of the table at a path."""
    return _entry(tables, path, otherwise).__struct_encode_fields__


def _entry(entries: Mapping[KeyPath, Entry], path: KeyPath, otherwise: Entry) -> Entry:
    """Return the entry of a path or of the longest path above it, where "*" stands for the name of a method or step."""
    known = (path[0], "*", *path[2:]) if len(path) > 1 and path[0] in ("inspections", "rule") else path
    while known and known not in entries:
        known = known[:-1]
    return entries[known] if known else otherwise


def amount(value: Any, what: str, currency: str, period: str | None = None) -> float:
    """Return an amount of money, 0 or more, in the currency, or in the currency per period if a `period` is given.

    A number is in these units already. Text has to name them: "50 EUR", or "600 EUR/year", which with a period of a month is 50.
    Raises a `FitError` if the price is negative, in another currency, or per period where none is expected.
    """
    expected = f'"50 {currency}"' if period is None else f'"50 {currency}/{period}"'
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise FitError(f"{what} is {quoted(value)}, expected a price such as {expected}")
    if isinstance(value, str):
        price, unit, each = _split(value, what, expected)
        expected = expected.replace("50", f"{price:.15g}", 1)  # the remedy is about the price that was given
        if unit != currency:
            raise FitError(f"{what} is {quoted(value)}, but the currency of the file is {currency}; write {expected}")
        price *= _per(each, period, what, value, expected)
    else:
        price = float(value)
    if not math.isfinite(price) or price < 0:
        raise FitError(
            f"{what} is {quoted(value)}, expected a price that is 0 or more; costs are written as positive numbers"
        )
    return price


def discount_of_rate(value: Any, what: str, period: str) -> float:
    """Return the discount per period of an interest rate such as "3 %/year"."""
    expected = f'a rate such as "3 %/{period}"'
    if not isinstance(value, str):
        raise FitError(f"{what} is {quoted(value)}, which has no unit; expected {expected}")
    rate, unit, each = _split(value, what, expected)
    if unit != "%" or each is None:
        raise FitError(f"{what} is {quoted(value)}, expected {expected}")
    if not 0 <= rate < 1000:
        raise FitError(f"{what} is {quoted(value)}, expected {expected} from 0 up")
    share = 1.0 if each == period else _days(period, what) / _days(each, what)
    return float((1 + rate / 100) ** -share)


def _split(value: str, what: str, expected: str) -> tuple[float, str, str | None]:
    """Return the number of an amount, its unit, and the period after the slash."""
    match = AMOUNT.fullmatch(value)
    if match is None:
        raise FitError(f"{what} is {quoted(value)}, expected {expected}")
    try:
        number = float(match[1])
    except ValueError:
        raise FitError(
            f"{what} is {quoted(value)}, and {quoted(match[1])} is not a number; write it without separators of thousands "
            f"and with a decimal point, expected {expected}"
        ) from None
    if match[2] is None:
        raise FitError(f"{what} is {quoted(value)}, which has no unit; expected {expected}")
    return number, match[2], match[3]


def _per(each: str | None, period: str | None, what: str, value: str, expected: str) -> float:
    """Return the factor that converts a price per `each` into one per `period`."""
    if period is None and each is not None:
        raise FitError(
            f"{what} is {quoted(value)}, a price per {each}, expected a price for one time such as {expected}"
        )
    if period is not None and each is None:
        raise FitError(f"{what} is {quoted(value)}, expected a price per {period} such as {expected}")
    if each is None or period is None or each == period:
        return 1.0
    return _days(period, what) / _days(each, what)


def _days(period: str, what: str) -> float:
    """Return the length of a period in days."""
    if period not in DAYS:
        raise FitError(f"{what}: {unknown_name('period', period, DAYS)}; only these can be converted")
    return DAYS[period]


@dataclass(frozen=True)
class Units:
    """Currency and period of results, and whether they are shown as costs.

    Attributes
    ----------
    currency : str
        Such as EUR; empty if it is not known.
    period : str
        The name of a step, such as year.
    is_cost : bool
        Whether no reward is positive: then figures are shown as costs, with the opposite sign.
    """

    currency: str = ""
    period: str = "period"
    is_cost: bool = False

    @classmethod
    def of(cls, model: Model, currency: str = "", period: str = "period") -> Units:
        """Return the units of a model: costs if no reward is above 0 and some are below."""
        return cls(shown(currency), shown(period), bool(model.rewards.max() <= 0 > model.rewards.min()))

    @property
    def figure(self) -> str:
        """The word for a sum of money: cost or value."""
        return "cost" if self.is_cost else "value"

    def shown(self, value: float) -> float:
        """Return a discounted return as it is shown: with the opposite sign for costs."""
        return (-value if self.is_cost else value) + 0.0

    def money(self, value: float) -> str:
        """Return a discounted return in words, such as `1,234 EUR`."""
        return self.amount(self.shown(value))

    def amount(self, value: float) -> str:
        """Return a sum of money in words, with its sign."""
        if math.isinf(value) or math.isnan(value):
            return "infinite" if math.isinf(value) else "unknown"
        return f"{plain_number(value)} {self.currency}".rstrip()

    def periods(self, count: float) -> str:
        """Return `1 year` or `2.5 years`."""
        text = plain_number(count)
        return f"{text} {self.period}{'' if text == '1' else 's'}"

    def about(self, count: float) -> str:
        """Return an average time with one decimal, or none if it is long: `5.9 years`."""
        return self.periods(round(count, 1) if count < ROUGH else round(count))
