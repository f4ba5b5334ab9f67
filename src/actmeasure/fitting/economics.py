"""What things cost: prices and discount of a problem of inspection."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.fitting.money import amount
from actmeasure.fitting.toml_lines import KeyLines

__all__ = ["OTHERWISE", "Economics"]

FloatArray = npt.NDArray[np.float64]
#: The key of a table of prices per state that holds for the states it does not name.
OTHERWISE = "otherwise"
#: Where in a file those attributes stand that have another name there.
FILE_KEYS = {
    "inspection_by_state": ("inspection", "by_state"),
    "inspection_by_action": ("inspection", "by_action"),
    "failure_states": ("failure", "states"),
}


@dataclass(frozen=True)
class Economics:
    """Prices, all in one currency, as positive numbers; a model has them as negative rewards.

    Read it from a TOML file with `Economics.load`.

    Attributes
    ----------
    currency : str
        Such as "EUR".
    period : str
        What a step of the model stands for, such as "year".
    discount : float
        Worth of 1 a period later, above 0 and at most 1.
    inspection : float
        Price of an inspection, where the next two do not name another.
    inspection_by_state, inspection_by_action : mappings from name to price
        At most one of them. The state is that at the beginning of the period at whose end the inspection takes place.
    actions : mapping from the name of an action to its price
        A price, or a mapping from states to prices; there, "otherwise" stands for the states that are not named.
    running : mapping from the name of a state to its cost per period
        What a period costs that begins in the state; 0 for states that are not named.
    failure_states : tuple of str
    failure_price : float
        Paid once, when a unit goes from a state that is not a failure to one that is.
    terminal : tuple of str
        States that end the story of a unit, which is noticed without an inspection.
    """

    currency: str
    period: str
    discount: float
    inspection: float
    inspection_by_state: Mapping[str, float] = field(default_factory=dict)
    inspection_by_action: Mapping[str, float] = field(default_factory=dict)
    actions: Mapping[str, float | Mapping[str, float]] = field(default_factory=dict)
    running: Mapping[str, float] = field(default_factory=dict)
    failure_states: tuple[str, ...] = ()
    failure_price: float = 0.0
    terminal: tuple[str, ...] = ()
    #: Where it was read from, and the line of every key there, for messages.
    source: KeyLines = field(default_factory=lambda: KeyLines("", {}), repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("currency", "period"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise FitError(f"{name} is {quoted(getattr(self, name))}, expected its name, such as EUR or year")
        if isinstance(self.discount, bool) or not isinstance(self.discount, (int, float)) or not 0 < self.discount <= 1:
            raise FitError(
                f"discount is {quoted(self.discount)}, expected a number above 0 and at most 1, such as 0.97"
            )
        if self.inspection_by_state and self.inspection_by_action:
            raise FitError("the inspection has prices by state and by action; give only one of the two")
        for what, prices in (
            ("inspection", self.inspection), ("inspection_by_state", self.inspection_by_state),
            ("inspection_by_action", self.inspection_by_action), ("actions", self.actions),
            ("running", self.running), ("failure_price", self.failure_price),
        ):  # fmt: skip
            self._check_prices(prices, what)

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
        from actmeasure.fitting.economics_file import read_economics

        return read_economics(path)

    def check_names(self, states: Sequence[str], actions: Sequence[str], dropped: Sequence[str] = ()) -> None:
        """Raise a `FitError` if a name is not that of a state or action, dropped or not, or an action has no price."""
        for key in ("running", "inspection_by_state"):
            self._known("state", getattr(self, key), states, key)
        self._known("state", self.failure_states, states, "failure_states")
        self._known("state", self.terminal, states, "terminal")
        self._known("action", self.inspection_by_action, [*actions, *dropped], "inspection_by_action")
        self._known("action", self.actions, [*actions, *dropped], "actions")
        for action in actions:
            if action not in self.actions:
                raise FitError(
                    f"{self.place(('actions',))}the action {action!r} has no price; add it to the prices of actions, "
                    f"with 0 if it costs nothing"
                )
            prices = self.actions[action]
            if isinstance(prices, Mapping):
                self._known("state", [name for name in prices if name != OTHERWISE], states, "actions", action)
                missing = [state for state in states if state not in prices]
                if missing and OTHERWISE not in prices and set(missing) - set(self.terminal):
                    raise FitError(
                        f"{self.place(('actions', action))}the action {action!r} has no price in state {missing[0]!r}; "
                        f"add it, or {OTHERWISE} = ... for all others"
                    )
        for state in self.terminal:
            if self.running.get(state):
                raise FitError(
                    f"{self.place(('running', state))}the state {state!r} has running costs, but it is terminal: the "
                    "story ends there and they are never paid; give the end a price with [failure]"
                )

    def place(self, key: tuple[str, ...]) -> str:
        """Where a key stands in the file, for the beginning of a message."""
        return self.source.place(FILE_KEYS.get(key[0], (key[0],)) + key[1:])

    def _known(self, kind: str, names: Collection[str], choices: Sequence[str], *key: str) -> None:
        for name in names:
            if name not in choices:
                raise FitError(f"{self.place((*key, name))}{unknown_name(kind, name, choices)}")

    def measuring_costs(self, states: Sequence[str], actions: Sequence[str]) -> float | FloatArray:
        """The price of an inspection: a number, or an array of shape (S, A)."""
        if not self.inspection_by_state and not self.inspection_by_action:
            return float(self.inspection)
        by_state, by_action = self.inspection_by_state, self.inspection_by_action
        return np.array(
            [[by_state.get(s, by_action.get(a, self.inspection)) for a in actions] for s in states], dtype=np.float64
        )

    def rewards(self, states: Sequence[str], actions: Sequence[str]) -> FloatArray:
        """Minus what a period costs without an inspection, shape (S, A, S)."""
        running = np.array([self.running.get(state, 0.0) for state in states])
        doing = np.array([[self.price(action, state) for action in actions] for state in states])
        failed = np.isin(states, list(self.failure_states))
        failing = self.failure_price * (~failed[:, None] & failed[None, :])
        rewards: FloatArray = -(running[:, None, None] + doing[:, :, None] + failing[:, None, :])
        rewards[np.isin(states, list(self.terminal))] = 0.0
        return rewards

    def price(self, action: str, state: str) -> float:
        """What an action costs in a state."""
        prices = self.actions[action]
        if isinstance(prices, Mapping):
            # In terminal states no action is taken, so that they need no price.
            return float(prices.get(state, prices.get(OTHERWISE, 0.0)))
        return float(prices)
