r"""Systems of independent components: the joint model, and the factors that it was made from.

Component c has states x_c, actions a_c with transition matrices P_c(a_c), measurements m_c with laws Z_c, and a start
distribution. What is done with a component in a period is a *choice* u_c = (a_c, m_c), where m_c may be none. The joint model
has the states x = (x_1, .., x_N), the actions a = (a_1, .., a_N) and the measurements m = (m_1, .., m_N); probabilities are
products, outcomes are tuples with an entry for each component that is measured, and the cost of a period is

    penalty(x) + sum_c cost_c(x_c, u_c) + mobilisation [some u_c is not (first action, none)]

with x the state before the action. Components evolve and are observed independently of each other, and so does the start: hence a
belief that is a product of beliefs on the components stays one, whatever is done and seen. `planning.tensor_grid` uses this.

States, actions and measurements are numbered with the last component changing fastest; measurement 0 is none of any component.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.decision import Decision
from actmeasure.errors import ModelError, quoted, unknown_name
from actmeasure.model.measurement import Measurement
from actmeasure.model.model import Model
from actmeasure.model.transitions import FloatArray, Transitions
from actmeasure.settings import amount, real

__all__ = ["Component", "Factors", "system"]

#: Most components of a system, and most states of each.
MOST_COMPONENTS, MOST_STATES = 4, 4
#: Most joint decisions: products of the components' choices.
MOST_DECISIONS = 10_000
#: Most entries of the joint transition table, and of the laws of the joint measurements together.
MOST_ENTRIES = 20_000_000
#: What stands for a component that is not measured, in names of joint measurements.
NONE = "none"
#: Between the names of components.
JOIN = " + "
#: Discount of the model of a single component, of which only the arrays are used.
UNUSED_DISCOUNT = 0.5


class Component:
    """One component of a system: how it deteriorates under each action, what that costs, and how it can be measured.

    Parameters
    ----------
    transitions : dict of str to array of shape (S, S)
        For each action, the probability of going from a state (row) to another (column). The first action is that of leaving the
        component alone, for which no mobilisation is paid.
    costs : dict of str to float or array of shape (S,), optional
        Cost of each action, which may depend on the state before it; 0 where it is left out.
    start : int, or array of shape (S,)
        The state in which it begins, or a distribution. It is not shown.
    measurements : sequence of Measurement
        Ways to measure this component alone; the sizes of their arrays are those of the component.
    state_names : sequence of str, optional

    Attributes
    ----------
    model : Model
        The component by itself, with rewards that are minus the costs; its discount has no meaning.

    Examples
    --------
    >>> import numpy as np
    >>> import actmeasure as am
    >>> wear = np.array([[0.8, 0.2], [0.0, 1.0]])
    >>> check = am.Measurement.detection("check", cost=1.0, pod=[0.1, 0.9], with_actions=("nothing",))
    >>> am.Component({"nothing": wear, "replace": wear[[0, 0]]}, costs={"replace": 20.0}, measurements=[check])
    Component(2 states, nothing, replace; check)
    """

    def __init__(
        self,
        transitions: Mapping[str, npt.ArrayLike],
        costs: Mapping[str, npt.ArrayLike] | None = None,
        start: int | npt.ArrayLike = 0,
        measurements: Sequence[Measurement] | None = (),
        state_names: Sequence[str] | None = None,
    ) -> None:
        names, matrices = _checked_transitions(transitions)
        n_states = len(matrices[0])
        self.model: Model = Model.from_arrays(
            np.stack(matrices, axis=1), -_checked_costs(costs, names, n_states), measurements=measurements or (),
            discount=UNUSED_DISCOUNT, initial=start, reveal_start=False, state_names=state_names, action_names=names,
        )  # fmt: skip
        for measurement in self.model.measurements:
            if measurement.name in names:
                raise ModelError(
                    f"an action and a measurement of a component are both named {measurement.name!r}; rename one of them"
                )
            if measurement.name == NONE:
                raise ModelError(
                    f"a measurement of a component is named {NONE!r}, which means that none is made; rename it"
                )

    def __repr__(self) -> str:
        measured = ", ".join(measurement.name for measurement in self.model.measurements) or "not measured"
        return f"Component({self.model.n_states} states, {', '.join(self.model.action_names or ())}; {measured})"

    def choices(self) -> list[tuple[int, int]]:
        """Return what can be done with the component, as (action, measurement) by number; the first leaves it alone."""
        allowed = self.model.allowed_decisions
        return [(int(a), int(m)) for a in range(allowed.shape[0]) for m in range(allowed.shape[1]) if allowed[a, m]]

    def choice(self, given: Any, where: str) -> tuple[int, int]:
        """Return the choice that is meant by the name of an action or a measurement, or by a pair of both.

        Raises
        ------
        ModelError
            If there is no such choice, or several; `where` names the component.
        """
        model = self.model
        names, looks = model.action_names or (), [measurement.name for measurement in model.measurements]
        if isinstance(given, (tuple, list)) and len(given) == 2:
            action = _number(given[0], names, f"action of {where}")
            look = 0 if given[1] is None else _number(given[1], [NONE, *looks], f"measurement of {where}")
            if not model.allowed_decisions[action, look]:
                raise ModelError(f"{looks[look - 1]!r} of {where} cannot be made with the action {names[action]!r}")
            return action, look
        if isinstance(given, str) and given in looks:
            look = looks.index(given) + 1
            actions = np.flatnonzero(model.allowed_decisions[:, look]).tolist()
            if len(actions) > 1:
                listed = " or ".join(f"({names[action]!r}, {given!r})" for action in actions)
                raise ModelError(f"{given!r} of {where} can be made with several actions; say which: {listed}")
            return actions[0], look
        return _number(given, [*names, *looks], f"choice for {where}", len(names)), 0


@dataclass(frozen=True, eq=False)
class Factors:
    """The components that a joint model was made from, kept as its `origin`, as dense arrays for each component.

    N is the number of components; component c has S states and U choices.

    Attributes
    ----------
    components : tuple of Component
    choices : tuple of lists of (action, measurement)
        For each component; number 0 leaves it alone.
    transitions : tuple of float64 arrays, shape (U, S, S)
        Transition matrix of each choice.
    laws : tuple of tuples of float64 arrays, shape (S, O)
        For each choice the probability of each outcome in the state that was reached; one outcome where nothing is measured.
    costs : tuple of float64 arrays, shape (U, S)
        Cost of each choice by the state before, price of the measurement included, mobilisation not.
    start : tuple of float64 arrays, shape (S,)
    penalty : float64 array, shape (S_1, .., S_N)
    mobilisation : float
    decisions : int64 array, shape (U_1, .., U_N, 2)
        Action and measurement of the joint model for a choice of each component.
    """

    components: tuple[Component, ...]
    choices: tuple[list[tuple[int, int]], ...]
    transitions: tuple[FloatArray, ...]
    laws: tuple[tuple[FloatArray, ...], ...]
    costs: tuple[FloatArray, ...]
    start: tuple[FloatArray, ...]
    penalty: FloatArray
    mobilisation: float
    decisions: npt.NDArray[np.int64]

    def decision(self, choices: Any) -> Decision:
        """Return the joint decision for a choice of each component; see `Model.decision`."""
        given = tuple(choices) if isinstance(choices, (tuple, list)) else ()
        if len(given) != len(self.components):
            raise ModelError(
                f"the choices are {quoted(choices)}, expected one for each of the {len(self.components)} components, such as "
                f"{tuple((part.model.action_names or ('',))[0] for part in self.components)!r}"
            )
        numbers = [
            options.index(part.choice(one, f"component {position}"))
            for position, (part, options, one) in enumerate(zip(self.components, self.choices, given, strict=True))
        ]
        action, measurement = self.decisions[tuple(numbers)].tolist()
        return Decision(action, measurement)


def system(
    components: Sequence[Component],
    *,
    penalty: Callable[[tuple[int, ...]], float] | None = None,
    mobilisation: float = 0.0,
    discount: float = 0.95,
) -> Model:
    """Return the joint model of independent components, which remembers its factors.

    It is an ordinary model otherwise. Rewards are minus costs. Its actions and measurements are named "nothing + replace" and
    "none + inspect"; `model.decision(("nothing", "inspect"))` finds the decision for a choice of each component.

    Parameters
    ----------
    components : sequence of Component
        At most four, each with at most four states.
    penalty : function of a tuple of N state numbers, optional
        Cost of a period by the states of all components before the action, such as that of a system that is down.
    mobilisation : float
        Cost of a period in which any component is not at its first action or is measured; paid once.
    discount : float
        Below 1, as a system never ends.

    Examples
    --------
    Two pumps, of which one has to work:

    >>> import numpy as np
    >>> import actmeasure as am
    >>> wear = np.array([[0.8, 0.2], [0.0, 1.0]])
    >>> check = am.Measurement.detection("check", cost=1.0, pod=[0.1, 0.9], with_actions=("nothing",))
    >>> pump = am.Component({"nothing": wear, "replace": wear[[0, 0]]}, costs={"replace": 20.0}, measurements=[check])
    >>> pumps = am.system([pump, pump], penalty=lambda states: 100.0 * all(states), mobilisation=4.0, discount=0.9)
    >>> pumps.action_names
    ('nothing + nothing', 'nothing + replace', 'replace + nothing', 'replace + replace')
    >>> pumps.decision(("replace", "check"))
    Decision(action=2, measurement=1)
    >>> pumps.measurements[0]
    Measurement('none + check', cost=per state and action, outcomes miss and hit, with 0, 2)
    """
    parts = _checked_components(components)
    fee = amount(mobilisation, "mobilisation")
    sizes = tuple(part.model.n_states for part in parts)
    penalties = np.zeros(sizes) if penalty is None else _checked_penalties(penalty, sizes)
    choices = tuple(part.choices() for part in parts)
    actions = list(product(*(range(part.model.n_actions) for part in parts)))
    looks = list(product(*(range(1 + len(part.model.measurements)) for part in parts)))
    costs = _action_costs(parts, actions, fee)
    joint = Model.assemble(
        _joint_transitions(parts, actions), -(penalties.reshape(-1, 1) + costs), None, np.zeros(math.prod(sizes), bool),
        reduce(np.multiply.outer, [part.model.initial_distribution for part in parts]).ravel(), None,
        discount, False, _joint_names([part.model.state_names for part in parts], "state"),
        _joint_names([part.model.action_names for part in parts], "action"),
        [_joint_measurement(parts, look, actions, fee) for look in looks[1:]],
    )  # fmt: skip
    number_of_action = {action: number for number, action in enumerate(actions)}
    number_of_look = {look: number for number, look in enumerate(looks)}
    decisions = np.array(
        [
            (number_of_action[tuple(a for a, _ in chosen)], number_of_look[tuple(m for _, m in chosen)])
            for chosen in product(*choices)
        ]
    ).reshape(*(len(options) for options in choices), 2)
    factors = Factors(
        components=parts,
        choices=choices,
        transitions=tuple(
            np.stack([part.model.transitions.dense()[:, a] for a, _ in options])
            for part, options in zip(parts, choices, strict=True)
        ),
        laws=tuple(tuple(_law(part, m, a) for a, m in options) for part, options in zip(parts, choices, strict=True)),
        costs=tuple(
            np.stack([-part.model.rewards[:, a] + _prices(part, m)[:, a] for a, m in options])
            for part, options in zip(parts, choices, strict=True)
        ),
        start=tuple(part.model.initial_distribution for part in parts),
        penalty=penalties,
        mobilisation=fee,
        decisions=decisions,
    )
    return replace(joint, origin=factors)


# What is given.


def _checked_transitions(transitions: Any) -> tuple[tuple[str, ...], list[FloatArray]]:
    """Return names of actions and their matrices, all of one square shape."""
    expected = "a matrix (S, S) for each action by name, such as {'nothing': D, 'replace': R @ D}"
    if not isinstance(transitions, Mapping) or not transitions:
        raise ModelError(f"transitions of a component are {quoted(transitions)}, expected {expected}")
    matrices: list[FloatArray] = []
    for name, given in transitions.items():
        if not isinstance(name, str) or not name.strip():
            raise ModelError(f"an action of a component is {quoted(name)}, expected a name such as 'nothing'")
        dense: Any = given
        try:
            matrix = np.array(dense.toarray() if sparse.issparse(given) else given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"transitions of the action {name!r} are {quoted(given)}, expected {expected}") from None
        first = matrices[0].shape if matrices else matrix.shape
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape != first:
            raise ModelError(
                f"transitions of the action {name!r} have shape {matrix.shape}, expected a square matrix"
                + (
                    f" {first} as for {next(iter(transitions))!r}"
                    if matrices
                    else ", one row and column for each state"
                )
            )
        matrices.append(matrix)
    return tuple(transitions), matrices


def _checked_costs(costs: Any, names: tuple[str, ...], n_states: int) -> FloatArray:
    """Return the cost of each action in each state, shape (S, A)."""
    table = np.zeros((n_states, len(names)))
    if costs is None:
        return table
    if not isinstance(costs, Mapping):
        raise ModelError(f"costs of a component are {quoted(costs)}, expected a number for each action by name")
    for name, given in costs.items():
        if name not in names:
            raise ModelError(unknown_name("action in costs", name, names))
        what = f"the cost of the action {name!r}"
        if np.ndim(given) == 0:
            table[:, names.index(name)] = real(given, what, expected=f"a number, or {n_states}, one for each state")
        else:
            try:
                values = np.array(given, dtype=np.float64)
            except (TypeError, ValueError):
                values = np.zeros(0)
            if values.shape != (n_states,):
                raise ModelError(f"{what} is {quoted(given)}, expected a number, or {n_states}, one for each state")
            table[:, names.index(name)] = values
        if not np.isfinite(table[:, names.index(name)]).all():
            raise ModelError(f"{what} is {quoted(given)}, expected finite numbers")
    return table


def _checked_components(components: Any) -> tuple[Component, ...]:
    parts = tuple(components) if isinstance(components, (list, tuple)) else ()
    if not parts or not all(isinstance(part, Component) for part in parts):
        raise ModelError(f"components are {quoted(components)}, expected a list of Component")
    sizes = [part.model.n_states for part in parts]
    n_states = math.prod(sizes)
    n_decisions = math.prod(len(part.choices()) for part in parts)
    if len(parts) > MOST_COMPONENTS or max(sizes) > MOST_STATES or n_decisions > MOST_DECISIONS:
        raise ModelError(
            f"{len(parts)} components of up to {max(sizes)} states make {n_states:,} joint states and {n_decisions:,} joint "
            f"decisions, expected at most {MOST_COMPONENTS} components of at most {MOST_STATES} states and {MOST_DECISIONS:,} "
            "decisions: bounds would need a grid over the beliefs on all components, whose size grows with the power of their "
            "number; plan groups of components separately, merge states, or treat equal components as one with a count"
        )
    return parts


def _checked_penalties(penalty: Any, sizes: tuple[int, ...]) -> FloatArray:
    """Return the penalty in each joint state, shape (S_1, .., S_N)."""
    if not callable(penalty):
        raise ModelError(
            f"penalty is {quoted(penalty)}, expected a function of the tuple of state numbers that gives a cost, such as "
            "lambda states: 100.0 * (sum(state < 2 for state in states) < k)"
        )
    values = np.zeros(sizes)
    for states in np.ndindex(*sizes):
        values[states] = real(penalty(states), f"the penalty in the states {states}", expected="a cost")
        if not np.isfinite(values[states]):
            raise ModelError(f"the penalty in the states {states} is {values[states]}, expected a finite number")
    return values


def _number(given: Any, names: Sequence[str], kind: str, n_numbered: int | None = None) -> int:
    """Return a position among names, which may be given itself; only the first `n_numbered` names stand for their position."""
    count = len(names) if n_numbered is None else n_numbered
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool) and 0 <= given < count:
        return int(given)
    if not isinstance(given, str) or given not in names[:count]:
        raise ModelError(unknown_name(kind, given, names))
    return list(names).index(given)


# Products.


def _joint_names(of_parts: Sequence[Sequence[str] | None], kind: str) -> list[str] | None:
    """Return names such as "good + worn" for every combination; None where a component has none."""
    if any(names is None for names in of_parts):
        return None
    joint = [JOIN.join(names) for names in product(*(names or () for names in of_parts))]
    if len(set(joint)) < len(joint):
        twice = next(name for name in joint if joint.count(name) > 1)
        raise ModelError(f"two joint {kind}s are both named {twice!r}; use names of {kind}s without {JOIN!r}")
    return joint


def _joint_transitions(parts: tuple[Component, ...], actions: list[tuple[int, ...]]) -> Transitions:
    matrices = [[part.model.transitions.matrix(a) for a in range(part.model.n_actions)] for part in parts]
    entries = math.prod(sum(matrix.nnz for matrix in of_part) for of_part in matrices)
    if entries > MOST_ENTRIES:
        raise ModelError(
            f"the joint transition table has {entries:,} entries, expected at most {MOST_ENTRIES:,}; use fewer components or "
            "actions"
        )
    joint = [_product([matrices[position][a] for position, a in enumerate(action)]) for action in actions]
    return Transitions.from_sparse(joint, np.zeros(joint[0].shape[0], dtype=bool))


def _product(matrices: Sequence[Any]) -> Any:
    """Return the Kronecker product: rows and columns are tuples, of which the last entry changes fastest."""
    return reduce(lambda one, two: sparse.kron(one, two, format="csr"), matrices)


def _sum(tables: Sequence[FloatArray]) -> FloatArray:
    """Return the sums over components of costs by state and action, shape (S, A), of which the last component changes fastest."""

    def add(one: FloatArray, two: FloatArray) -> FloatArray:
        both = one[:, None, :, None] + two[None, :, None, :]
        return both.reshape(one.shape[0] * two.shape[0], -1)

    return reduce(add, tables)


def _action_costs(parts: tuple[Component, ...], actions: list[tuple[int, ...]], fee: float) -> FloatArray:
    """Return the costs of joint actions in joint states, mobilisation included, shape (S, A)."""
    return _sum([-part.model.rewards for part in parts]) + fee * np.array([any(action) for action in actions])


def _prices(part: Component, look: int) -> FloatArray:
    """Return the prices of a component's measurement, by number, shape (S, A); 0 for none."""
    model = part.model
    if look == 0:
        return np.zeros((model.n_states, model.n_actions))
    return model.measurements[look - 1].table(model.n_states, model.n_actions)


def _law(part: Component, look: int, action: int) -> FloatArray:
    """Return the probabilities of a measurement's outcomes after an action, shape (S, O); one outcome for none."""
    shows, n_states = part.model.shown_by(look), part.model.n_states
    if shows is None:
        return np.ones((n_states, 1))
    return np.eye(n_states) if shows.law is None else shows.law.of_action(action, n_states).toarray()


def _joint_measurement(
    parts: tuple[Component, ...], looks: tuple[int, ...], actions: list[tuple[int, ...]], fee: float
) -> Measurement:
    """Return the measurement of several components at once, by the number of a measurement for each; 0 is none."""
    shown = [part.model.shown_by(look) for part, look in zip(parts, looks, strict=True)]
    name = JOIN.join(NONE if one is None else one.name for one in shown)
    allowed = [
        number
        for number, action in enumerate(actions)
        if all(part.model.allowed_decisions[a, m] for part, a, m in zip(parts, action, looks, strict=True))
    ]
    prices = _sum([_prices(part, look) for part, look in zip(parts, looks, strict=True)])
    # An action other than the first of each component has paid for the mobilisation already.
    prices = prices + fee * np.array([not any(action) for action in actions])
    cost: Any = float(prices[0, 0]) if (prices == prices[0, 0]).all() else prices
    with_actions = None if len(allowed) == len(actions) else tuple(allowed)
    if all(one is not None and one.is_exact for one in shown):
        return Measurement.exact(name, cost, with_actions=with_actions)
    by_action = any(one is not None and one.law is not None and one.law.by_action for one in shown)
    laws = [
        [sparse.csr_array(_law(part, look, a)) for a in (range(part.model.n_actions) if by_action else [0])]
        for part, look in zip(parts, looks, strict=True)
    ]
    entries = math.prod(sum(law.nnz for law in of_part) for of_part in laws)
    if entries > MOST_ENTRIES:
        raise ModelError(
            f"the measurement {name!r} has {entries:,} probabilities of outcomes, expected at most {MOST_ENTRIES:,}; use fewer "
            "components or outcomes"
        )
    given: Any = (
        tuple(_product([laws[position][a] for position, a in enumerate(action)]) for action in actions)
        if by_action
        else _product([of_part[0] for of_part in laws])
    )
    return Measurement(name, cost, _outcome_names(parts, shown), with_actions, None, given, True)


def _outcome_names(parts: tuple[Component, ...], shown: Sequence[Measurement | None]) -> tuple[str, ...] | None:
    """Return names such as "clear + echo", of the components that are measured; None for numbers."""
    names: list[tuple[str, ...]] = []
    for part, one in zip(parts, shown, strict=True):
        if one is None:
            continue
        count = part.model.n_states if one.law is None else one.law.n_outcomes
        known = one.outcomes if one.law is not None else part.model.state_names
        names.append(known or tuple(str(number) for number in range(count)))
    joint = tuple(JOIN.join(combination) for combination in product(*names))
    return joint if len(set(joint)) == len(joint) else None
