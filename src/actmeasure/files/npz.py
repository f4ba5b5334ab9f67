"""The fast format: a zip archive of NumPy arrays, exact to the last bit, without pickle.

`numpy.load` reads these files too. Their contents go through the same checks as a model built from arrays.

Version 1 has the price of the one exact measurement as `measuring_cost`. Version 2 lists the measurements, then the passive one,
in `about`; their tables of prices and their laws are one after the other in arrays that all of them share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.files.archive import Arrays, Shapes, read_arrays, write_arrays
from actmeasure.files.checks import FORMAT, Count, Number, Strict, check_keys, converted
from actmeasure.files.parts import Parts, file_version, n_law_rows, stored_law, stored_measurement
from actmeasure.model import Measurement, Model
from actmeasure.model.measurement import MOST_OUTCOMES

__all__ = [
    "OF_MEASUREMENTS",
    "about_measurement",
    "check_measurement_shapes",
    "measurement_arrays",
    "most_values",
    "read",
    "read_measurements",
    "write",
]

#: Members of the archive besides `about` and their types; `measuring_cost` has shape () or (S, A). In version 2 `allowed` has the
#: shape (k, A), `price_tables` (tables, S, A), `law_offsets` (rows + 1,), `law_outcomes` and `law_probabilities` (entries,).
MEMBERS = {
    "offsets": "<i8",
    "successors": "<i4",
    "probabilities": "<f8",
    "rewards": "<f8",
    "transition_rewards": "<f8",
    "terminal": "|b1",
    "initial_states": "<i8",
    "initial_probabilities": "<f8",
    "measuring_cost": "<f8",
    "allowed": "|b1",
    "price_tables": "<f8",
    "law_offsets": "<i8",
    "law_outcomes": "<i4",
    "law_probabilities": "<f8",
}
#: Members that only version 2 has, in place of `measuring_cost`; files of agents have them as well.
OF_MEASUREMENTS = ("allowed", "price_tables", "law_offsets", "law_outcomes", "law_probabilities")
#: Number of JSON values that a measurement has in `about` besides the names of its outcomes.
VALUES_OF_MEASUREMENT = 5
OPTIONAL = ("transition_rewards", "measuring_cost", *OF_MEASUREMENTS)


class _About(Strict):
    """The shape of the member `about`: what arrays cannot hold."""

    format: str
    version: Count
    discount: Number
    reveal_start: bool
    state_names: list[str] | None
    action_names: list[str] | None
    measurements: list[Any] | None = None  # each of them a `_Measurement`; None in version 1
    passive: Any = None


class _Measurement(Strict):
    """The shape of an element of `measurements` in `about`, and of `passive`."""

    name: str
    cost: Number | None  # None: the next one of `price_tables`
    outcomes: Count | list[str] | None  # None: exact
    by_action: bool


def write(model: Model, file: BinaryIO) -> None:
    """Write the model into an open file."""
    table = model.transitions
    version = file_version(model)
    about = {
        "format": FORMAT, "version": version, "discount": model.discount, "reveal_start": model.reveal_start,
        "state_names": model.state_names, "action_names": model.action_names,
    }  # fmt: skip
    arrays: dict[str, npt.ArrayLike | None] = {
        "offsets": table.offsets,
        "successors": table.successors,
        "probabilities": table.probabilities,
        "rewards": model.rewards,
        "transition_rewards": model.transition_rewards,
        "terminal": model.terminal,
        "initial_states": model.initial_states,
        "initial_probabilities": model.initial_probabilities,
    }
    if version == 1:
        arrays["measuring_cost"] = model.measuring_cost
    else:
        about |= {
            "measurements": [about_measurement(measurement) for measurement in model.measurements],
            "passive": None if model.passive is None else about_measurement(model.passive),
        }
        arrays |= measurement_arrays(model.measurements, model.passive, model.n_states, model.n_actions)
    write_arrays(file, about, arrays, MEMBERS)


def about_measurement(measurement: Measurement) -> dict[str, Any]:
    """Return what `about` says of a measurement of a model."""
    law = measurement.law
    return {
        "name": measurement.name, "cost": measurement.cost if isinstance(measurement.cost, float) else None,
        "outcomes": None if law is None else law.n_outcomes if measurement.outcomes is None else measurement.outcomes,
        "by_action": law is not None and law.by_action,
    }  # fmt: skip


def measurement_arrays(
    measurements: Sequence[Measurement], passive: Measurement | None, n_states: int, n_actions: int
) -> dict[str, npt.ArrayLike]:
    """Return the arrays that all measurements of a model share, by the names of `OF_MEASUREMENTS`."""
    tables = [one.cost for one in measurements if not isinstance(one.cost, float)]
    shown = (*measurements, *([] if passive is None else [passive]))
    allowed = [
        np.isin(np.arange(n_actions), one.with_actions or ()) | (one.with_actions is None) for one in measurements
    ]
    laws = [one.law for one in shown if one.law is not None]
    offsets, size = [np.zeros(1, dtype=np.int64)], 0
    for law in laws:
        offsets.append(law.offsets[1:] + size)
        size += len(law.outcomes)
    return {
        "allowed": np.array(allowed, dtype=bool).reshape(len(measurements), n_actions),
        "price_tables": np.array(tables).reshape(len(tables), n_states, n_actions),
        "law_offsets": np.concatenate(offsets),
        "law_outcomes": np.concatenate([np.zeros(0, dtype=np.int32), *(law.outcomes for law in laws)]),
        "law_probabilities": np.concatenate([np.zeros(0), *(law.probabilities for law in laws)]),
    }


def read(contents: bytes) -> Model:
    """Return the model in the bytes of an `.npz` file; a `ModelError` tells what is damaged."""
    about, arrays = read_arrays(contents, FORMAT, MEMBERS, _check_shapes, _check_about, OPTIONAL)
    return _parts(converted(about, _About, "'about'"), arrays).model()


def _parts(about: _About, arrays: Arrays) -> Parts:
    """Return the contents of the archive, whose shapes are already known to fit."""
    n_states, n_actions = arrays["rewards"].shape
    costs = arrays.get("measuring_cost")
    measurements, passive = None, None
    if about.measurements is not None:
        measurements, passive = read_measurements(about.measurements, about.passive, arrays, n_states, n_actions)
    return Parts(
        n_states=n_states,
        n_actions=n_actions,
        offsets=arrays["offsets"],
        successors=arrays["successors"],
        probabilities=arrays["probabilities"],
        rewards=arrays["rewards"],
        transition_rewards=arrays.get("transition_rewards"),
        terminal=arrays["terminal"],
        initial=_start(arrays["initial_states"], arrays["initial_probabilities"], n_states),
        measuring_cost=float(costs) if costs is not None and costs.ndim == 0 else costs,
        discount=about.discount,
        reveal_start=about.reveal_start,
        state_names=about.state_names,
        action_names=about.action_names,
        measurements=measurements,
        passive=passive,
    )


def read_measurements(
    measurements: list[Any], passive: Any, arrays: Mapping[str, npt.NDArray[Any]], n_states: int, n_actions: int
) -> tuple[list[Measurement], Measurement | None]:
    """Return the measurements and the passive one, not yet checked against a model, of what `about` says and the arrays.

    The sizes of the arrays are known to fit (`check_measurement_shapes`).
    """
    offsets, found, tables = arrays["law_offsets"], [], iter(arrays["price_tables"])
    size = len(arrays["law_outcomes"])
    if offsets[0] != 0 or offsets[-1] != size or np.any(offsets[1:] < offsets[:-1]):
        raise ModelError("'law_offsets' are not ascending numbers of entries; the file is damaged")
    row = 0
    for index, (location, given) in enumerate(_described(measurements, passive)):
        is_passive = index == len(measurements)
        with_actions = None
        if not is_passive and not arrays["allowed"][index].all():
            with_actions = tuple(np.flatnonzero(arrays["allowed"][index]).tolist())
        law, names = None, None
        if given.outcomes is not None:
            names = tuple(given.outcomes) if isinstance(given.outcomes, list) else None
            last = row + n_law_rows(given.by_action, n_states, n_actions)
            own = offsets[row : last + 1]
            entries = slice(int(own[0]), int(own[-1]))
            law = stored_law(
                len(given.outcomes) if isinstance(given.outcomes, list) else given.outcomes,
                given.by_action, own - own[0], arrays["law_outcomes"][entries], arrays["law_probabilities"][entries], location,
            )  # fmt: skip
            row = last
        try:
            price = given.cost if given.cost is not None else next(tables)
            found.append(stored_measurement(given.name, price, names, with_actions, law))
        except ModelError as error:
            raise ModelError(f"{location}: {error}") from error
    return (found, None) if passive is None else (found[:-1], found[-1])


def _described(measurements: list[Any], passive: Any) -> list[tuple[str, _Measurement]]:
    """Return what `about` says about the measurements and, last, about the passive one, each with its place in messages."""
    values = [(f"measurements[{index}]", value) for index, value in enumerate(measurements)]
    values += [] if passive is None else [("passive", passive)]
    return [(location, converted(value, _Measurement, f"'about': {location}")) for location, value in values]


def _check_about(about: dict[str, Any], shapes: Shapes) -> None:
    """Raise a `ModelError` if `about` has another shape than `_About`, or its measurements do not fit the arrays."""
    described = converted(about, _About, "'about'")
    if described.measurements is None:
        if described.passive is not None or "measuring_cost" not in shapes:
            raise ModelError("'about' has no 'measurements', but there are arrays of them; the file is damaged")
        return
    if "measuring_cost" in shapes:
        raise ModelError("'about' has 'measurements', but there is an array 'measuring_cost'; the file is damaged")
    check_measurement_shapes(described.measurements, described.passive, shapes, *shapes["rewards"])


def check_measurement_shapes(
    measurements: list[Any], passive: Any, shapes: Shapes, n_states: int, n_actions: int
) -> None:
    """Raise a `ModelError` if the arrays of `OF_MEASUREMENTS` do not have the shapes of what `about` says."""
    described = [one for _, one in _described(measurements, passive)]
    rows = sum(n_law_rows(one.by_action, n_states, n_actions) for one in described if one.outcomes is not None)
    tables = sum(one.cost is None for one in described)
    n_chances = math.prod(shapes["law_outcomes"])
    expected: Shapes = {
        "allowed": (len(measurements), n_actions),
        "price_tables": (tables, n_states, n_actions),
        "law_offsets": (rows + 1,),
        "law_outcomes": (n_chances,),
        "law_probabilities": (n_chances,),
    }
    _check_equal(shapes, expected)


def _check_shapes(shapes: Shapes) -> int:
    """Return the largest possible number of names; a `ModelError` if the shapes of the arrays do not make a model."""
    if len(shapes["rewards"]) != 2:
        raise ModelError(f"'rewards' has shape {shapes['rewards']}, expected (states, actions); the file is damaged")
    n_states, n_actions = shapes["rewards"]
    n_entries, starts = math.prod(shapes["successors"]), math.prod(shapes["initial_states"])
    expected: Shapes = {
        "offsets": (n_states * n_actions + 1,), "successors": (n_entries,), "probabilities": (n_entries,),
        "transition_rewards": (n_entries,), "terminal": (n_states,), "initial_states": (starts,),
        "initial_probabilities": (starts,), "measuring_cost": (n_states, n_actions) if shapes.get("measuring_cost") else (),
    }  # fmt: skip
    _check_equal(shapes, expected)
    if n_entries > n_states * n_actions * n_states or starts > n_states:
        raise ModelError(
            f"it has {n_entries:,} transitions and {starts:,} initial states, more than there can be with {n_states:,} states "
            f"and {n_actions:,} actions; the file is damaged"
        )
    given = [name for name in OF_MEASUREMENTS if name in shapes]
    if not given:
        check_keys(shapes, "the archive", shapes.keys() | {"measuring_cost"})
        return n_states + n_actions
    check_keys(shapes, "the archive", [*OF_MEASUREMENTS, *shapes])
    return n_states + n_actions + most_values(shapes)


def most_values(shapes: Shapes) -> int:
    """Return the largest number of values in `about` that tell of measurements with arrays of these shapes."""
    n_measurements, n_chances = (math.prod(shapes[name][:1]) for name in ("allowed", "law_outcomes"))
    # Every outcome of a sound model has an entry, but for a few that no state can produce.
    return n_chances + MOST_OUTCOMES + VALUES_OF_MEASUREMENT * n_measurements


def _check_equal(shapes: Shapes, expected: Shapes) -> None:
    """Raise a `ModelError` if an array has another shape than expected."""
    for name, shape in expected.items():
        if name in shapes and shapes[name] != shape:
            raise ModelError(f"{name!r} has shape {shapes[name]}, expected {shape}; the file is damaged")


def _start(
    states: npt.NDArray[np.int64], probabilities: npt.NDArray[np.float64], n_states: int
) -> npt.NDArray[np.float64]:
    """Return the initial distribution, shape (S,)."""
    if not states.size or states.min() < 0 or states.max() >= n_states or np.any(states[1:] <= states[:-1]):
        raise ModelError(f"the initial states are not ascending numbers from 0 to {n_states - 1}; the file is damaged")
    if np.any(probabilities == 0):
        raise ModelError("an initial state has probability 0, expected a positive one; the file is damaged")
    initial = np.zeros(n_states)
    initial[states] = probabilities
    return initial
