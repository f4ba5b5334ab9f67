r"""Measurements: what they cost, when they can be made, and the law of their outcomes.

The timing of a step is always the same. An action `a` and a measurement `m` are decided in state `s`; the reward and the price
`cost(s, a)` are paid; the state becomes `t` with probability `P(t | s, a)`; if the episode still runs, the outcome `o` is seen
with probability `Z(o | a, t)`, which depends on the state that was reached and perhaps on the action. An exact measurement is the
law `Z(o | a, t) = 1` for `o = t`.

A `Measurement` is made without a model, from names, prices and probabilities as they are given. `Measurement.bound` checks it
against the sizes and names of a model and returns the form that models hold: prices of shape (S, A) or a number, actions as
numbers, and the law as compressed rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.errors import ModelError, ModelWarning, first_repeated, quoted, shown, unknown_name
from actmeasure.model.transitions import ACCEPTED_ERROR, ROUNDING_ERROR, FloatArray
from actmeasure.settings import real

__all__ = ["DEFAULT_NAME", "Law", "Measurement", "Sizes", "checked_price"]

#: Name of the measurement that `measuring_cost=` stands for.
DEFAULT_NAME = "look"
#: Most outcomes of a measurement, unless it has one for every state.
MOST_OUTCOMES = 100_000
#: Largest number of entries of a law that is computed from others (`combined`).
MOST_ENTRIES = 50_000_000


@dataclass(frozen=True, eq=False)
class Law:
    """Probabilities of outcomes given the state that was reached, and perhaps the action, as compressed rows.

    Row `t`, or row `a * S + t` where the law depends on the action, has the outcomes of positive probability in ascending order.
    Rows of terminal states are empty.

    Attributes
    ----------
    n_outcomes : int
    by_action : bool
        Whether there is a row for every action and state, not only for every state.
    offsets : int64 array, shape (S + 1,) or (A * S + 1,)
    outcomes : int32 array, shape (n_entries,)
    probabilities : float64 array, shape (n_entries,)
    n_states : int
        Of the model that it was checked for; 0 if there is none yet.
    """

    n_outcomes: int
    by_action: bool
    offsets: npt.NDArray[np.int64]
    outcomes: npt.NDArray[np.int32]
    probabilities: FloatArray
    n_states: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows: S, or A * S."""
        return len(self.offsets) - 1

    def matrix(self) -> sparse.csr_array[np.float64]:
        """Return the law as a sparse matrix, shape (S, O) or (A * S, O)."""
        shape = (self.n_rows, self.n_outcomes)
        return sparse.csr_array((self.probabilities, self.outcomes, self.offsets), shape=shape)

    def of_action(self, action: int, n_states: int) -> sparse.csr_array[np.float64]:
        """Return the law given one action, shape (S, O)."""
        return self.matrix()[action * n_states : (action + 1) * n_states] if self.by_action else self.matrix()


@dataclass(frozen=True)
class Sizes:
    """What of a model a measurement is checked against."""

    n_states: int
    n_actions: int
    terminal: npt.NDArray[np.bool_]
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None

    def state(self, state: int) -> str:
        """Return `state 3`, or `state 3 ('broken')` where states have names."""
        return f"state {state}" if self.state_names is None else f"state {state} ({self.state_names[state]!r})"


@dataclass(frozen=True, eq=False)
class Measurement:
    """A measurement: a name, a price, its outcomes, and the probability of each outcome in the state that was reached.

    Made by `exact`, `noisy`, `detection`, `partial` or `combined`, and given to `Model.from_arrays(measurements=[...])`. What is
    checked against the model (shapes, rows, names of actions) is checked there.

    Attributes
    ----------
    name : str
    cost : float, or float64 array of shape (S, A)
        Price of the measurement together with action `a` in state `s` before the action.
    outcomes : tuple of str, or None
        Names of the outcomes; None for the numbers "0", "1", ... and for exact measurements, whose outcomes are the states.
    with_actions : tuple of int or str, or None
        Actions with which it can be made; None for all. Numbers, ascending, in a measurement of a model.
    law : Law, or None
        In a measurement of a model: the law of its outcomes; None where it is exact.

    Examples
    --------
    >>> import actmeasure as am
    >>> am.Measurement.detection("visual", cost=10.0, pod=[0.0, 0.1, 0.6, 0.95])
    Measurement('visual', cost=10, outcomes miss and hit)
    """

    name: str
    cost: float | FloatArray
    outcomes: tuple[str, ...] | None = None
    with_actions: tuple[int | str, ...] | None = None
    law: Law | None = None
    #: The law as it was given: None where it is exact, arrays or sparse matrices, or the measurements that are combined.
    given: Any = None
    #: Whether the law was derived, from labels or another model, so that impossible outcomes are no mistake.
    is_derived: bool = False

    @classmethod
    def exact(
        cls, name: str = DEFAULT_NAME, cost: npt.ArrayLike = 0.0, *, with_actions: Iterable[int | str] | None = None
    ) -> Measurement:
        """Return a measurement that shows the state that was reached; its outcomes are the states.

        Parameters
        ----------
        name : str
        cost : float, or array of shape (S, A)
            Price, paid together with the action.
        with_actions : names or numbers of actions, optional
            The actions with which it can be made; all by default.

        Examples
        --------
        >>> import actmeasure as am
        >>> am.Measurement.exact("opening", cost=500.0)
        Measurement('opening', cost=500, exact)
        """
        return cls(_checked_name(name), _given_cost(cost, name), None, _given_actions(with_actions, name))

    @classmethod
    def noisy(
        cls,
        name: str,
        cost: npt.ArrayLike = 0.0,
        *,
        probabilities: Any,
        outcomes: Sequence[str] | None = None,
        with_actions: Iterable[int | str] | None = None,
    ) -> Measurement:
        """Return a measurement with any law of outcomes.

        Parameters
        ----------
        name : str
        cost : float, or array of shape (S, A)
        probabilities : array of shape (S, O) or (A, S, O), a sparse matrix of shape (S, O), or A of these
            Probability of each outcome in the state that was reached (by an action). Rows of terminal states are ignored.
        outcomes : sequence of str, optional
            Names of the outcomes; "0", "1", ... by default.
        with_actions : names or numbers of actions, optional

        Examples
        --------
        >>> import actmeasure as am
        >>> Z = [[0.9, 0.1], [0.2, 0.8]]
        >>> am.Measurement.noisy("ultrasound", cost=40.0, outcomes=("clear", "echo"), probabilities=Z)
        Measurement('ultrasound', cost=40, outcomes clear and echo)
        """
        checked = _checked_name(name)
        given = _given_probabilities(probabilities, checked)
        n_outcomes = (given[0] if isinstance(given, tuple) else given).shape[-1]
        names = _outcome_names(outcomes, n_outcomes, checked)
        return cls(checked, _given_cost(cost, name), names, _given_actions(with_actions, name), given=given)

    @classmethod
    def detection(
        cls,
        name: str,
        cost: npt.ArrayLike = 0.0,
        *,
        pod: npt.ArrayLike,
        outcomes: Sequence[str] = ("miss", "hit"),
        with_actions: Iterable[int | str] | None = None,
    ) -> Measurement:
        """Return a measurement that either detects something or does not.

        Parameters
        ----------
        name : str
        cost : float, or array of shape (S, A)
        pod : array of shape (S,) or (A, S)
            Probability of detection: of the second outcome, in each state.
        outcomes : two strings
        with_actions : names or numbers of actions, optional
        """
        checked = _checked_name(name)
        chances = _array(pod, f"pod of the measurement {checked!r} is", "a probability for every state")
        if chances.ndim not in (1, 2):
            raise ModelError(
                f"pod of the measurement {checked!r} has shape {chances.shape}, expected (S,): a probability for every state; "
                "or (A, S), where it depends on the action"
            )
        bad = ~((chances >= 0) & (chances <= 1))
        if bad.any():
            at = [int(i) for i in np.unravel_index(int(np.argmax(bad)), chances.shape)]
            raise ModelError(
                f"pod of the measurement {checked!r} in state {at[-1]} is {chances[tuple(at)]}, expected a probability between 0 "
                "and 1; correct this entry"
            )
        return cls.noisy(
            name,
            cost,
            probabilities=np.stack([1 - chances, chances], axis=-1),
            outcomes=outcomes,
            with_actions=with_actions,
        )

    @classmethod
    def partial(
        cls,
        name: str,
        cost: npt.ArrayLike = 0.0,
        *,
        shows: Sequence[Hashable],
        with_actions: Iterable[int | str] | None = None,
    ) -> Measurement:
        """Return a measurement that shows a label of the state without error: a part of it, or a class.

        Parameters
        ----------
        name : str
        cost : float, or array of shape (S, A)
        shows : sequence of S labels
            What is seen in each state; the outcomes are the different labels, in order of first appearance.
        with_actions : names or numbers of actions, optional

        Examples
        --------
        >>> import actmeasure as am
        >>> am.Measurement.partial("pump A", cost=5.0, shows=["ok", "ok", "worn", "worn"])
        Measurement('pump A', cost=5, outcomes ok and worn)
        """
        checked = _checked_name(name)
        try:
            labels = [] if isinstance(shows, str) else list(shows)
            number = {label: position for position, label in enumerate(dict.fromkeys(labels))}
        except TypeError:
            labels = []
        if not labels:
            raise ModelError(
                f"shows of the measurement {checked!r} is {quoted(shows)}, expected a label for every state, such as "
                "['ok', 'ok', 'worn']"
            )
        names = tuple(str(label) for label in number)
        twice = first_repeated(names)
        if twice is not None:
            raise ModelError(
                f"shows of the measurement {checked!r} has different labels that are both written {twice!r}; use strings"
            )
        columns = np.array([number[label] for label in labels])
        rows = sparse.csr_array(
            (np.ones(len(labels)), (np.arange(len(labels)), columns)), shape=(len(labels), len(number))
        )
        return cls(checked, _given_cost(cost, name), names, _given_actions(with_actions, name), None, rows, True)

    @classmethod
    def combined(
        cls,
        measurements: Sequence[Measurement],
        name: str | None = None,
        cost: npt.ArrayLike | None = None,
        *,
        with_actions: Iterable[int | str] | None = None,
    ) -> Measurement:
        """Return several measurements made at once, whose outcomes are independent given the state that was reached.

        Outcomes are all combinations, those of the last measurement changing fastest: `combined([m1, m2])` shows outcome `o1` of
        `m1` and `o2` of `m2` as the number `o1 * O2 + o2`.

        Parameters
        ----------
        measurements : sequence of Measurement
        name : str, optional
            "m1 + m2" by default.
        cost : float, or array of shape (S, A), optional
            The sum of their prices by default.
        with_actions : names or numbers of actions, optional
            Those with which all of them can be made, by default.
        """
        parts = tuple(measurements) if isinstance(measurements, Iterable) else ()
        if not parts or not all(isinstance(part, Measurement) for part in parts):
            raise ModelError(
                f"combined measurements are {quoted(measurements)}, expected a list of at least one Measurement"
            )
        checked = _checked_name(" + ".join(part.name for part in parts) if name is None else name)
        if cost is None:
            try:
                total = sum((np.asarray(part.cost) for part in parts), np.zeros(()))
            except (TypeError, ValueError):
                raise ModelError(
                    f"the prices of {checked!r} are not numbers or have different shapes; give all of them as (S, A)"
                ) from None
            price = float(total) if total.ndim == 0 else total
        else:
            price = _given_cost(cost, checked)
        return cls(checked, price, None, _given_actions(with_actions, checked), given=parts)

    @property
    def is_exact(self) -> bool:
        """Whether it shows the state itself; its outcomes are then the states."""
        return self.law is None and self.given is None

    def _with_cost(self, cost: Any, sizes: Sizes) -> Measurement:
        """Return a measurement of a model with another price."""
        given = _given_cost(cost, self.name, f"({sizes.n_states}, {sizes.n_actions})")
        return replace(self, cost=_bound_cost(given, self.name, sizes))

    def of(self, state: int, action: int) -> float:
        """Return the price of the measurement together with `action` in `state`."""
        return self.cost if isinstance(self.cost, float) else float(self.cost[state, action])

    def table(self, n_states: int, n_actions: int) -> FloatArray:
        """Return the prices as an array, shape (S, A); a view where there is one price only."""
        return np.broadcast_to(np.asarray(self.cost, dtype=np.float64), (n_states, n_actions))

    def outcome_name(self, outcome: int) -> str:
        """Return the name of an outcome for display, or its number; that of an exact measurement is its state's number."""
        return str(outcome) if self.outcomes is None else shown(self.outcomes[outcome])

    def equals(self, other: Measurement) -> bool:
        """Return whether two measurements of models are equal to the last bit, names included."""
        if not isinstance(other, Measurement):
            return False
        if self.given is not None or other.given is not None:
            raise ModelError("only measurements of models can be compared; compare model.measurements")
        mine, theirs = self._contents(), other._contents()
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[key], theirs[key]) for key in mine)

    def _contents(self) -> dict[str, Any]:
        contents: dict[str, Any] = {
            "name": self.name, "cost": self.cost, "outcomes": self.outcomes or (),
            "with_actions": () if self.with_actions is None else self.with_actions,
            "all_actions": self.with_actions is None,
        }  # fmt: skip
        if self.law is not None:
            law = self.law
            contents |= {
                "size": (law.n_outcomes, law.by_action), "offsets": law.offsets, "numbers": law.outcomes,
                "probabilities": law.probabilities,
            }  # fmt: skip
        return contents

    def bound(self, sizes: Sizes, warn: bool = True) -> Measurement:
        """Return the measurement as a model of these sizes holds it; a `ModelError` says what does not fit.

        With `warn`, an outcome that no state can produce is a `ModelWarning`.
        """
        if self.law is not None:  # of another model: check everything again
            shape = (-1, sizes.n_states, self.law.n_outcomes) if self.law.by_action else None
            rows = self.law.matrix()
            made_for = self.law.n_states or sizes.n_states
            n_actions = rows.shape[0] // made_for
            if (
                rows.shape[0] % made_for
                or made_for != sizes.n_states
                or (shape is not None and n_actions != sizes.n_actions)
            ):
                raise ModelError(
                    f"the measurement {self.name!r} was made for a model of {made_for} states"
                    f"{f' and {n_actions} actions' if self.law.by_action else ''}, and this one has {sizes.n_states}"
                    f"{f' and {sizes.n_actions}' if self.law.by_action else ''}; make it for this model"
                )
            stacked = tuple(rows[a * sizes.n_states : (a + 1) * sizes.n_states] for a in range(sizes.n_actions))
            return replace(self, law=None, given=rows if shape is None else stacked).bound(sizes, warn=False)
        actions = _bound_actions(self, sizes)
        cost = _bound_cost(self.cost, self.name, sizes)
        if self.given is None:
            return replace(self, cost=cost, with_actions=actions)
        if isinstance(self.given, tuple) and isinstance(self.given[0], Measurement):
            law, names = _combined_law(self, [part.bound(sizes, warn) for part in self.given], sizes)
            law = _checked_rows(law, self, sizes, np.tile(sizes.terminal, law.n_rows // sizes.n_states))
            return replace(self, cost=cost, outcomes=names, with_actions=actions, law=law, given=None)
        law = _bound_law(self, sizes)
        if warn and not self.is_derived:
            _warn_of_impossible_outcomes(self, law)
        return replace(self, cost=cost, with_actions=actions, law=law, given=None)

    def __repr__(self) -> str:
        price = f"{self.cost:g}" if isinstance(self.cost, float) else "per state and action"
        if self.is_exact:
            shows = "exact"
        elif self.outcomes is not None:
            names = [shown(name) for name in self.outcomes]
            listed = " and ".join(names) if len(names) == 2 else ", ".join(names[:6])
            shows = f"outcomes {listed}{', ...' if len(names) > 6 else ''}"
        elif isinstance(self.given, tuple) and isinstance(self.given[0], Measurement):
            shows = f"combines {len(self.given)} measurements"
        else:
            law = self.law
            count = (
                law.n_outcomes
                if law is not None
                else (self.given[0] if isinstance(self.given, tuple) else self.given).shape[-1]
            )
            shows = f"{count:,} outcomes"
        limited = (
            "" if self.with_actions is None else f", with {', '.join(str(action) for action in self.with_actions)}"
        )
        return f"Measurement({shown(self.name)!r}, cost={price}, {shows}{limited})"


def checked_price(cost: Any, name: str = "measuring_cost", otherwise: str = "") -> float:
    """Return a price as a finite float of 0 or more; `otherwise` says in the message what else is accepted."""
    value = real(cost, name, expected=f"a number that is 0 or more{otherwise}")
    if not np.isfinite(value) or value < 0:
        raise ModelError(
            f"{name} is {value}, expected a finite number that is 0 or more; a look earns nothing by itself"
        )
    return value


# As they are given, without a model


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ModelError(f"the name of a measurement is {quoted(name)}, expected a string such as 'visual'")
    return str(name)


def _price_name(name: str) -> str:
    """Return what the price of a measurement is called in messages."""
    return "measuring_cost" if name == DEFAULT_NAME else f"the cost of the measurement {name!r}"


def _given_cost(cost: Any, name: str, shape: str = "(S, A)") -> Any:
    """Return a number as a float after checking it, and arrays as they are: their shape is checked with the model."""
    try:
        dimensions = np.ndim(cost)
    except ValueError:  # rows of different lengths
        dimensions = 0
    return (
        checked_price(cost, _price_name(name), f", or an array of shape {shape}") if dimensions == 0 else np.array(cost)
    )


def _given_actions(with_actions: Any, name: str) -> tuple[int | str, ...] | None:
    if with_actions is None:
        return None
    given = () if isinstance(with_actions, str) or not isinstance(with_actions, Iterable) else tuple(with_actions)
    if not given:
        raise ModelError(
            f"with_actions of the measurement {name!r} is {quoted(with_actions)}, expected names or numbers of actions, such as "
            "('nothing',)"
        )
    return given


def _array(values: Any, what: str, expected: str) -> FloatArray:
    """Return numbers as an array; `what`, in messages, is singular or plural: "pod of ... is", "the probabilities of ... are"."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ModelError(f"there are masked entries where {what} {quoted(values)}, expected {expected}; fill them")
    try:
        array = np.array(values)
        if array.dtype.kind not in "biuf":
            raise ValueError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} {quoted(values)}, expected {expected}") from None


def _given_probabilities(probabilities: Any, name: str) -> Any:
    """Return an array with two or three dimensions, a sparse matrix, or a tuple of sparse matrices of one shape."""
    what = f"the probabilities of the measurement {name!r}"
    given: Any = probabilities
    listed = given if isinstance(given, (list, tuple)) else [given]
    if len(listed) and all(sparse.issparse(one) for one in listed):
        shapes = {one.shape for one in listed}
        if len(shapes) > 1 or len(listed[0].shape) != 2:
            raise ModelError(
                f"{what} are sparse arrays of shape {', '.join(str(shape) for shape in sorted(shapes))}, expected one of shape "
                "(S, O): states, outcomes; or one such for every action"
            )
        copies = tuple(sparse.csr_array(one, dtype=np.float64, copy=True) for one in listed)
        return copies if listed is given else copies[0]
    array = _array(probabilities, f"{what} are", "an array of shape (S, O) or (A, S, O)")
    if array.ndim not in (2, 3) or not array.size:
        raise ModelError(f"{what} have shape {array.shape}, expected (S, O) or (A, S, O): (actions,) states, outcomes")
    return array


def _outcome_names(outcomes: Any, count: int, name: str) -> tuple[str, ...] | None:
    if outcomes is None:
        return None
    given = () if isinstance(outcomes, str) or not isinstance(outcomes, Iterable) else tuple(outcomes)
    if not given or not all(isinstance(one, str) for one in given):
        raise ModelError(f"outcomes of the measurement {name!r} are {quoted(outcomes)}, expected {count} strings")
    if len(given) != count:
        raise ModelError(
            f"the measurement {name!r} has {len(given)} names of outcomes, but probabilities of {count}; give each a name"
        )
    twice = first_repeated(given)
    if twice is not None:
        raise ModelError(f"the measurement {name!r} has the outcome {twice!r} more than once; give each its own name")
    return tuple(str(one) for one in given)


# Checked against a model


def _bound_actions(measurement: Measurement, sizes: Sizes) -> tuple[int, ...] | None:
    """Return the numbers of the actions with which a measurement can be made, ascending; None for all."""
    allowed = set(range(sizes.n_actions))
    if measurement.with_actions is not None:
        allowed = {_action_number(action, measurement.name, sizes) for action in measurement.with_actions}
    elif isinstance(measurement.given, tuple) and isinstance(measurement.given[0], Measurement):
        for part in measurement.given:
            own = _bound_actions(part, sizes)
            allowed &= allowed if own is None else set(own)
        if not allowed:
            raise ModelError(
                f"there is no action with which all parts of the measurement {measurement.name!r} can be made; leave it out"
            )
    return None if len(allowed) == sizes.n_actions else tuple(sorted(allowed))


def _action_number(action: Any, name: str, sizes: Sizes) -> int:
    if isinstance(action, str):
        if sizes.action_names is None:
            raise ModelError(
                f"with_actions of the measurement {name!r} has {action!r}, but the actions have no names; give action_names, or "
                "numbers"
            )
        if action not in sizes.action_names:
            raise ModelError(
                f"with_actions of the measurement {name!r}: {unknown_name('action', action, sizes.action_names)}"
            )
        return sizes.action_names.index(action)
    if isinstance(action, bool) or not isinstance(action, (int, np.integer)) or not 0 <= action < sizes.n_actions:
        raise ModelError(
            f"with_actions of the measurement {name!r} has {quoted(action)}, expected names of actions or numbers from 0 to "
            f"{sizes.n_actions - 1}"
        )
    return int(action)


def _bound_cost(cost: Any, name: str, sizes: Sizes) -> float | FloatArray:
    """Return a price, or prices of shape (S, A) that are finite, 0 or more, and 0 in terminal states."""
    if isinstance(cost, float):
        return cost
    what, shape = _price_name(name), (sizes.n_states, sizes.n_actions)
    costs = np.array(cost)
    if costs.shape != shape:
        remedy = f"; for a cost per action pass np.tile(cost, ({shape[0]}, 1))" if costs.shape == shape[1:] else ""
        remedy = "; it looks like (A, S): pass cost.T" if costs.shape == shape[::-1] else remedy
        raise ModelError(
            f"{what} has shape {costs.shape}, expected a number or shape ({shape[0]}, {shape[1]}) (states, actions){remedy}"
        )
    if costs.dtype.kind not in "biuf":
        raise ModelError(f"{what} is an array of type {costs.dtype}, expected real numbers")
    costs = costs.astype(np.float64)
    bad = ~np.isfinite(costs) | (costs < 0)
    if bad.any():
        state, action = np.unravel_index(int(np.argmax(bad)), costs.shape)
        raise ModelError(
            f"{what}[state {state}, action {action}] is {costs[state, action]}, "
            "expected a finite number that is 0 or more; correct this entry"
        )
    costs[sizes.terminal] = 0.0
    costs.setflags(write=False)
    return costs


def _bound_law(measurement: Measurement, sizes: Sizes) -> Law:
    """Return the law that was given as compressed rows, after checking its shape and rows."""
    given, name, n_states = measurement.given, measurement.name, sizes.n_states
    what = f"the probabilities of the measurement {name!r}"
    by_action = isinstance(given, tuple) or given.ndim == 3
    shape = (len(given), *given[0].shape) if isinstance(given, tuple) else given.shape
    expected = (sizes.n_actions, n_states) if by_action else (n_states,)
    if shape[:-1] != expected:
        remedy = ""
        if measurement.is_derived:
            raise ModelError(
                f"the measurement {name!r} has a label for {shape[0]} states, expected one for each of {n_states}"
            )
        if measurement.outcomes is not None and shape[-1] == 2 and shape[:-1] == expected[::-1]:
            remedy = "; a probability of detection that depends on the action has shape (A, S): pass pod.T"
        elif not by_action and shape[1] == n_states and shape[1] != shape[0]:
            remedy = "; it looks like (outcomes, states): pass the transpose"
        elif by_action and shape[:2] == (n_states, sizes.n_actions):
            remedy = "; it looks like (S, A, O): pass probabilities.transpose(1, 0, 2)"
        elif by_action and shape[::2] == (sizes.n_actions, n_states):
            remedy = "; it looks like (A, O, S): pass probabilities.transpose(0, 2, 1)"
        wanted = f"({sizes.n_actions}, {n_states}, O): actions, states" if by_action else f"({n_states}, O): states"
        raise ModelError(f"{what} have shape {shape}, expected {wanted}, outcomes{remedy}")
    n_outcomes = int(shape[-1])
    if n_outcomes > max(MOST_OUTCOMES, n_states):
        raise ModelError(
            f"the measurement {name!r} has {n_outcomes:,} outcomes, expected at most {MOST_OUTCOMES:,}; merge outcomes "
            "whose probabilities are proportional in all states, which give the same belief"
        )
    if isinstance(given, tuple):
        rows = sparse.csr_array(sparse.vstack(given, format="csr"))
    else:
        rows = sparse.csr_array(given.reshape(-1, n_outcomes) if by_action else given)
    rows.sum_duplicates()
    rows.sort_indices()
    ended = np.tile(sizes.terminal, sizes.n_actions if by_action else 1)
    keep = (rows.data != 0) & ~np.repeat(ended, np.diff(rows.indptr))
    offsets = np.concatenate([[0], np.cumsum(keep)])[rows.indptr].astype(np.int64)
    law = _law(n_outcomes, by_action, n_states, offsets, rows.indices[keep], rows.data[keep].astype(np.float64))
    return _checked_rows(law, measurement, sizes, ended)


def _law(n_outcomes: int, by_action: bool, n_states: int, offsets: Any, outcomes: Any, probabilities: Any) -> Law:
    arrays = (
        np.ascontiguousarray(offsets, dtype=np.int64),
        np.ascontiguousarray(outcomes, dtype=np.int32),
        np.ascontiguousarray(probabilities, dtype=np.float64),
    )
    for array in arrays:
        array.setflags(write=False)
    return Law(n_outcomes, by_action, *arrays, n_states)


def _checked_rows(law: Law, measurement: Measurement, sizes: Sizes, ended: npt.NDArray[np.bool_]) -> Law:
    """Return a law whose rows sum to 1, but for those of terminal states (`ended`); a `ModelError` names a row that does not."""
    name, values = measurement.name, law.probabilities

    def where(row: int) -> str:
        action, state = divmod(row, sizes.n_states)
        return sizes.state(state) + (f" after action {action}" if law.by_action else "")

    bad = ~np.isfinite(values) | (values < 0) | (values > 1 + ACCEPTED_ERROR)
    if bad.any():
        entry = int(np.argmax(bad))
        row = int(np.searchsorted(law.offsets, entry, side="right")) - 1
        raise ModelError(
            f"the probability of outcome {measurement.outcome_name(int(law.outcomes[entry]))!r} of the measurement {name!r} in "
            f"{where(row)} is {values[entry]}, expected a probability between 0 and 1; correct this entry"
        )
    sums: FloatArray = law.matrix().sum(axis=1)
    error = np.abs(sums - 1.0)
    wrong = (error > ACCEPTED_ERROR) & ~ended
    if wrong.any():
        row = int(np.argmax(wrong))
        entries = slice(law.offsets[row], law.offsets[row + 1])
        listed = [
            f"{measurement.outcome_name(outcome)} {chance:.6g}"
            for outcome, chance in zip(law.outcomes[entries][:5].tolist(), values[entries][:5].tolist(), strict=True)
        ]
        shows = f" ({', '.join(listed)}{', ...' if entries.stop - entries.start > 5 else ''})" if listed else ""
        columns: FloatArray = law.matrix().sum(axis=0)
        square = not law.by_action and law.n_outcomes == sizes.n_states and not sizes.terminal.any()
        turned = square and bool(np.all(np.abs(columns - 1) <= ACCEPTED_ERROR))
        remedy = "the columns sum to 1: pass the transpose" if turned else "correct them, or divide the row by its sum"
        raise ModelError(
            f"the probabilities of outcomes of the measurement {name!r} in {where(row)} sum to {sums[row]:.6g}{shows}, "
            f"expected 1; {remedy}"
        )
    rescale = (error > ROUNDING_ERROR * np.maximum(4, np.diff(law.offsets))) & (sums > 0)
    if not rescale.any():
        return law
    factors = np.repeat(np.where(rescale, sums, 1.0), np.diff(law.offsets))
    return _law(law.n_outcomes, law.by_action, law.n_states, law.offsets, law.outcomes, values / factors)


def _warn_of_impossible_outcomes(measurement: Measurement, law: Law) -> None:
    possible = np.zeros(law.n_outcomes, dtype=bool)
    possible[law.outcomes] = True
    if not possible.all():
        first = measurement.outcome_name(int(np.argmin(possible)))
        more = int((~possible).sum()) - 1
        others = f" (and {more} more)" if more else ""
        warnings.warn(
            f"no state can produce the outcome {first!r}{others} of the measurement {measurement.name!r}; leave it out, or "
            "correct the probabilities",
            ModelWarning,
            stacklevel=7,  # the line that calls Model.from_arrays
        )


def _combined_law(whole: Measurement, parts: list[Measurement], sizes: Sizes) -> tuple[Law, tuple[str, ...] | None]:
    """Return the law of measurements made at once, and the names of its outcomes: products of theirs."""
    n_states = sizes.n_states
    laws = [part.law if part.law is not None else exact_law(sizes) for part in parts]
    n_outcomes = 1
    for law in laws:
        n_outcomes *= law.n_outcomes
    if n_outcomes > max(MOST_OUTCOMES, n_states):
        raise ModelError(
            f"the measurement {whole.name!r} has {n_outcomes:,} combinations of outcomes, expected at most {MOST_OUTCOMES:,}; "
            "combine fewer measurements"
        )
    by_action = any(law.by_action for law in laws)
    result = laws[0]
    for law in laws[1:]:
        result = _row_products(result, law, by_action, sizes)
    if by_action and not result.by_action:
        result = _repeated(result, sizes.n_actions)
    names = None
    shows_states = sizes.state_names is not None and any(part.is_exact for part in parts)
    if len(parts) > 1 and (shows_states or any(part.outcomes is not None for part in parts)):
        of_parts = [
            part.outcomes or _numbers_or_states(part, law.n_outcomes, sizes)
            for part, law in zip(parts, laws, strict=True)
        ]
        names = tuple(" + ".join(combination) for combination in product(*of_parts))
        names = names if len(set(names)) == len(names) else None
    elif len(parts) == 1:
        names = parts[0].outcomes
    return result, names


def _numbers_or_states(part: Measurement, count: int, sizes: Sizes) -> tuple[str, ...]:
    if part.is_exact and sizes.state_names is not None:
        return sizes.state_names
    return tuple(str(number) for number in range(count))


def exact_law(sizes: Sizes) -> Law:
    """Return the law of an exact measurement as compressed rows: in each state its own number."""
    offsets = np.concatenate([[0], np.cumsum(~sizes.terminal)])
    running = np.flatnonzero(~sizes.terminal)
    return _law(sizes.n_states, False, sizes.n_states, offsets, running, np.ones(len(running)))


def _repeated(law: Law, n_actions: int) -> Law:
    """Return a law with the same rows for every action."""
    size = len(law.outcomes)
    offsets = (law.offsets[:-1][None, :] + size * np.arange(n_actions)[:, None]).ravel()
    offsets = np.append(offsets, size * n_actions)
    return _law(
        law.n_outcomes,
        True,
        law.n_states,
        offsets,
        np.tile(law.outcomes, n_actions),
        np.tile(law.probabilities, n_actions),
    )


def _row_products(first: Law, second: Law, by_action: bool, sizes: Sizes) -> Law:
    """Return the law of two outcomes that are independent given the row."""
    one = first if first.by_action or not by_action else _repeated(first, sizes.n_actions)
    two = second if second.by_action or not by_action else _repeated(second, sizes.n_actions)
    counts_one, counts_two = np.diff(one.offsets), np.diff(two.offsets)
    counts = counts_one * counts_two
    if int(counts.sum()) > MOST_ENTRIES:
        raise ModelError(
            f"combined measurements have {int(counts.sum()):,} probabilities, too many; combine fewer of them"
        )
    offsets = np.concatenate([[0], np.cumsum(counts)])
    row = np.repeat(np.arange(len(counts)), counts)
    inside = np.arange(offsets[-1]) - offsets[row]
    entry_one = one.offsets[row] + inside // np.maximum(counts_two[row], 1)
    entry_two = two.offsets[row] + inside % np.maximum(counts_two[row], 1)
    outcomes = one.outcomes[entry_one].astype(np.int64) * two.n_outcomes + two.outcomes[entry_two]
    chances = one.probabilities[entry_one] * two.probabilities[entry_two]
    return _law(one.n_outcomes * two.n_outcomes, by_action, sizes.n_states, offsets, outcomes, chances)
