"""Read POMDPX, the XML format of APPL (SARSOP): a POMDP of several variables becomes a model without measurements.

States are the combinations of the values of all state variables, the last one changing fastest; actions likewise. Observed are
the observation variables and the state variables that are `fullyObs`: their combinations that can occur are the passive outcomes.

The XML is parsed without document type definitions, so that no entity is ever expanded. Sizes are checked before tables are made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import numpy as np

from actmeasure.errors import ModelError, first_repeated, quoted
from actmeasure.files.checks import decimal_index, unknown
from actmeasure.files.pomdp_model import observed_model
from actmeasure.files.pomdp_reader import ENTRY_ERROR, ROW_ERROR, CompressedRows, IndexArray, Tables
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray, normalised

__all__ = ["read"]

#: Tables and intermediate results with more entries than this are refused.
MOST_ENTRIES = 10_000_000
#: Largest depth of elements; sound files have 5.
MOST_DEPTH = 20
#: Letter before the number in the names of values that are only counted, by kind of variable.
LETTERS = {"StateVar": "s", "ActionVar": "a", "ObsVar": "o"}


def read(contents: bytes) -> Model:
    """Return the model in the bytes of a `.pomdpx` file; a `ModelError` names the element that is wrong."""
    root = _parsed(contents)
    if root.tag != "pomdpx":
        raise ModelError(f"its first element is <{root.tag}>, expected <pomdpx>; it is no POMDPX file")
    return _Network(root).model()


def _parsed(contents: bytes) -> Element:
    """Return the first element of an XML file without document type definition."""
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MOST_DEPTH:
            raise ModelError(f"line {parser.CurrentLineNumber}: elements are nested too deeply; the file is damaged")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def refuse(*_: object) -> None:
        raise ModelError(
            f"line {parser.CurrentLineNumber}: it has a document type definition, which is not read; remove it"
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(contents, True)
        return builder.close()
    except expat.ExpatError as error:
        raise ModelError(f"line {error.lineno} is not valid XML ({expat.ErrorString(error.code)})") from error
    except (AssertionError, LookupError, ValueError) as error:  # an empty document, or an unknown encoding
        raise ModelError(f"it is not valid XML ({error})") from error


@dataclass(frozen=True)
class _Variable:
    """A variable with its values; `fully_observed` is that of a state variable."""

    name: str
    values: list[str]
    fully_observed: bool = False

    @cached_property
    def number_of(self) -> dict[str, int]:
        """The number of each value."""
        return {value: number for number, value in enumerate(self.values)}

    def index(self, word: str, location: str) -> int:
        """Return the number of a value; a `ModelError` if there is no such value."""
        if word not in self.number_of:
            raise ModelError(f"{location}: {unknown(f'value of {self.name}', word, self.values)}")
        return self.number_of[word]


@dataclass(frozen=True)
class _Function:
    """A function of variables as a dense array with an axis for each; for distributions the last axis is the variable itself."""

    parents: list[str]
    values: FloatArray


#: Partial assignments of values to variables: for each its row, its probability, and the value of each variable.
_Assignments = tuple[IndexArray, FloatArray, dict[str, IndexArray]]


class _Network:
    """The variables and tables of a file."""

    def __init__(self, root: Element) -> None:
        self.root = root
        variables = self._one(root, "Variable")
        self.before: list[_Variable] = []
        self.after: list[_Variable] = []
        for element in variables.findall("StateVar"):
            observed = element.get("fullyObs", "false").strip().lower() == "true"
            values = _values(element)
            self.before.append(_Variable(_attribute(element, "vnamePrev"), values, observed))
            self.after.append(_Variable(_attribute(element, "vnameCurr"), values, observed))
        self.actions, self.observations = (
            [_Variable(_attribute(element, "vname"), _values(element)) for element in variables.findall(tag)]
            for tag in ("ActionVar", "ObsVar")
        )
        self.rewards = [_attribute(element, "vname") for element in variables.findall("RewardVar")]
        if not self.before or not self.actions:
            raise ModelError("<Variable> has no <StateVar> or no <ActionVar>; add it")
        every = [*self.before, *self.after, *self.actions, *self.observations]
        self.variable = {variable.name: variable for variable in every}
        twice = first_repeated(variable.name for variable in every)
        if twice is not None:
            raise ModelError(f"two variables are named {twice!r}; give each a name of its own")
        self.n_states, self.n_actions = _size(self.before), _size(self.actions)
        if self.n_states * self.n_actions > MOST_ENTRIES // 10:
            raise ModelError(
                f"{self.n_states:,} states and {self.n_actions:,} actions are too many for this format; use .npz"
            )

    @staticmethod
    def _one(element: Element, tag: str) -> Element:
        elements = element.findall(tag)
        if len(elements) != 1:
            raise ModelError(f"<{element.tag}> has {len(elements)} elements <{tag}>, expected one")
        return elements[0]

    def model(self) -> Model:
        """Return the model: all variables together, as flat tables."""
        try:
            discount = float(self._one(self.root, "Discount").text or "")
        except ValueError as error:
            raise ModelError(f"<Discount> is no number ({error})") from error
        start = self._start()
        moves = self._moves()
        shown, observations = self._shown()
        tables = Tables(moves, shown, self._rewards(moves))
        return observed_model(
            tables, discount, start, len(observations), _names(self.before), _names(self.actions), observations,
            reveal_start=self._start_is_shown(start),
        )  # fmt: skip

    def _start(self) -> FloatArray:
        """Return the initial distribution, shape (S,)."""
        tables = self._distributions("InitialStateBelief", self.before, [])
        begin: _Assignments = (np.zeros(1, dtype=np.int64), np.ones(1), {})
        _, chances, values = self._expanded(begin, self.before, tables)
        start = np.zeros(self.n_states)
        start[_flat(values, self.before)] = chances
        return normalised(start)

    def _start_is_shown(self, start: FloatArray) -> bool:
        """Return whether the start is shown: all variables are observed. Part of a random start cannot be."""
        if all(variable.fully_observed for variable in self.before):
            return True
        shape = [len(variable.values) for variable in self.before]
        states = np.unravel_index(np.flatnonzero(start), shape)
        for variable, values in zip(self.before, states, strict=True):
            if variable.fully_observed and len(set(values.tolist())) > 1:
                raise ModelError(
                    f"the variable {variable.name!r} is fully observed and starts with more than one value, while others are "
                    "hidden, which a model cannot have; let it start with one value, or in a first step from a state of its own"
                )
        return False

    def _moves(self) -> CompressedRows:
        """Return the transitions as compressed rows over (action, state)."""
        tables = self._distributions("StateTransitionFunction", self.after, [*self.actions, *self.before])
        return _rows(
            self._expanded(self._all(self.before), self.after, tables), self.after, self.n_actions * self.n_states
        )

    def _shown(self) -> tuple[CompressedRows, list[str]]:
        """Return the law of the observations as compressed rows over (action, state reached), and the observations' names."""
        visible = [variable for variable in self.after if variable.fully_observed] + self.observations
        start = self._all(self.after)
        if self.observations:
            tables = self._distributions("ObsFunction", self.observations, [*self.actions, *self.after])
            start = self._expanded(start, self.observations, tables)
        if not visible:
            return CompressedRows(
                np.arange(self.n_actions * self.n_states + 1), start[0] * 0, np.ones(len(start[0]))
            ), ["nothing"]
        row, chances, values = start
        occurring, number = np.unique(_flat(values, visible), return_inverse=True)
        shape = [len(variable.values) for variable in visible]
        digits = zip(*(axis.tolist() for axis in np.unravel_index(occurring, shape)), strict=True)
        names = [
            " + ".join(variable.values[digit] for variable, digit in zip(visible, one, strict=True)) for one in digits
        ]
        order = np.lexsort((number, row))
        offsets = np.searchsorted(row[order], np.arange(self.n_actions * self.n_states + 1))
        return CompressedRows(offsets, number[order], chances[order]), names

    def _all(self, states: list[_Variable]) -> _Assignments:
        """Return every action with every state, a row each."""
        rows = np.arange(self.n_actions * self.n_states)
        action, state = np.divmod(rows, self.n_states)
        values = _digits(action, self.actions) | _digits(state, states)
        return rows, np.ones(len(rows)), values

    def _expanded(self, given: _Assignments, variables: list[_Variable], tables: dict[str, _Function]) -> _Assignments:
        """Return the assignments with values of further variables, each as often as it has possible values."""
        rows, chances, values = given
        waiting = list(variables)
        while waiting:
            variable = next((one for one in waiting if all(p in values for p in tables[one.name].parents)), None)
            if variable is None:
                raise ModelError(f"the variable {waiting[0].name!r} depends on itself; correct its <Parent>")
            waiting.remove(variable)
            table = tables[variable.name]
            if len(rows) * len(variable.values) > MOST_ENTRIES:
                raise ModelError(f"its tables have more than {MOST_ENTRIES:,} entries; use a smaller model")
            of_entry = table.values[tuple(values[parent] for parent in table.parents)] if table.parents else None
            if of_entry is None:
                of_entry = np.broadcast_to(table.values, (len(rows), len(variable.values)))
            at, value = np.nonzero(of_entry)
            chances = chances[at] * of_entry[at, value]
            rows, values = rows[at], {name: of_name[at] for name, of_name in values.items()} | {variable.name: value}
        return rows, chances, values

    def _distributions(self, section: str, variables: list[_Variable], known: list[_Variable]) -> dict[str, _Function]:
        """Return the distribution of each variable given its parents, which are `known` or among the variables."""
        allowed = {variable.name for variable in (*known, *variables)}
        functions: dict[str, _Function] = {}
        for element in self._one(self.root, section).findall("CondProb"):
            name = _text(self._one(element, "Var"))
            if name not in [variable.name for variable in variables]:
                raise ModelError(f"<{section}>: {unknown('variable', name, [one.name for one in variables])}")
            if name in functions:
                raise ModelError(f"<{section}> has the variable {name!r} twice; remove one of the two")
            table = self._table(element, name, allowed - {name}, "ProbTable", section)
            self._check_sums(table, name)
            functions[name] = table
        missing = [variable.name for variable in variables if variable.name not in functions]
        if missing:
            raise ModelError(f"<{section}> does not give the variable {missing[0]!r}; add a <CondProb> for it")
        return functions

    def _check_sums(self, table: _Function, name: str) -> None:
        """Raise a `ModelError` for a row that is not a distribution; divide rows by their sums."""
        sums = table.values.sum(axis=-1)
        wrong = np.abs(sums - 1) > max(ROW_ERROR, ENTRY_ERROR * table.values.shape[-1])
        if wrong.any():
            at = np.unravel_index(int(np.argmax(wrong)), sums.shape) if sums.ndim else ()
            given = [f"{p} = {self.variable[p].values[int(i)]}" for p, i in zip(table.parents, at, strict=True)]
            where = f" given {', '.join(given)}" if given else ""
            raise ModelError(
                f"the probabilities of {name!r}{where} sum to {float(sums[at]):.6g}, expected 1; complete them"
            )
        table.values[...] /= sums[..., None]

    def _table(self, element: Element, name: str, allowed: set[str], tag: str, section: str) -> _Function:
        """Return the table of a variable or reward; later entries override earlier ones."""
        words = _text(self._one(element, "Parent")).split()
        parents = [] if words == ["null"] else words
        for parent in parents:
            if parent not in allowed:
                raise ModelError(f"<{section}>, {name!r}: {unknown('parent', parent, sorted(allowed))}")
        if len(set(parents)) != len(parents):
            raise ModelError(f"<{section}>, {name!r}: a parent is there twice; remove one of the two")
        axes = [self.variable[parent] for parent in parents]
        axes += [self.variable[name]] if tag == "ProbTable" else []
        shape = [len(axis.values) for axis in axes]
        if math.prod(shape) > MOST_ENTRIES:
            raise ModelError(f"<{section}>, {name!r}: its table has more than {MOST_ENTRIES:,} entries")
        values = np.zeros(shape)
        parameter = self._one(element, "Parameter")
        kind = parameter.get("type", "TBL").strip()
        if kind != "TBL":
            raise ModelError(
                f"<{section}>, {name!r}: <Parameter> has type {kind!r}, expected 'TBL'; write it as a table"
            )
        for number, entry in enumerate(parameter.findall("Entry")):
            location = f"<{section}>, {name!r}, entry {number}"
            instance = _text(self._one(entry, "Instance")).split()
            numbers = _text(self._one(entry, tag))
            self._set_entry(values, axes, instance, numbers, location, probabilities=tag == "ProbTable")
        return _Function(parents, values)

    @staticmethod
    def _set_entry(
        values: FloatArray,
        axes: Sequence[_Variable],
        instance: list[str],
        text: str,
        location: str,
        probabilities: bool,
    ) -> None:
        """Set the part of a table that an instance names: values by name, `-` for each value in turn, `*` for all alike."""
        if len(instance) != len(axes) and not (not axes and instance == ["-"]):
            raise ModelError(
                f"{location}: <Instance> has {len(instance)} words, expected {len(axes)}, one for each variable"
            )
        named = [
            slice(None) if word in ("*", "-") else axis.index(word, location)
            for word, axis in zip(instance, axes, strict=False)
        ]
        pairs = list(zip(instance, axes, strict=False))
        shape = [len(axis.values) if word == "-" else 1 for word, axis in pairs if word in ("*", "-")]
        listed = [len(axis.values) for word, axis in pairs if word == "-"]
        words = text.split()
        if words == ["uniform"] and probabilities:
            given = np.full(math.prod(listed), 1 / len(axes[-1].values))
        elif words == ["identity"] and probabilities:
            if len(listed) != 2 or listed[0] != listed[1]:
                raise ModelError(
                    f"{location}: 'identity' needs two variables of one size marked '-'; write out the table"
                )
            given = np.eye(listed[0]).ravel()
        else:
            try:
                given = np.array([float(word) for word in words])
            except ValueError as error:
                raise ModelError(f"{location}: {quoted(text)} is not a list of numbers ({error})") from error
        if len(given) != math.prod(listed):
            raise ModelError(f"{location}: the table has {len(given)} numbers, expected {math.prod(listed)}")
        if not np.isfinite(given).all() or (probabilities and (given.min() < 0 or given.max() > 1 + ROW_ERROR)):
            raise ModelError(
                f"{location}: a number of the table is not {'a probability' if probabilities else 'finite'}"
            )
        values[tuple(named)] = given.reshape(shape)

    def _rewards(self, moves: CompressedRows) -> FloatArray:
        """Return the reward of every transition: the sum of all reward variables."""
        row = moves.row_of_entry()
        action, state = np.divmod(row, self.n_states)
        values = _digits(action, self.actions) | _digits(state, self.before) | _digits(moves.columns, self.after)
        total = np.zeros(len(row))
        section = "RewardFunction"
        for element in self._one(self.root, section).findall("Func"):
            name = _text(self._one(element, "Var"))
            if name not in self.rewards:
                raise ModelError(f"<{section}>: {unknown('reward variable', name, self.rewards)}")
            table = self._table(element, name, set(values), "ValueTable", section)
            total += table.values[tuple(values[parent] for parent in table.parents)]
        return total


def _text(element: Element) -> str:
    return (element.text or "").strip()


def _attribute(element: Element, name: str) -> str:
    value = element.get(name, "").strip()
    if not value:
        raise ModelError(f"<{element.tag}> has no attribute {name!r}; add it")
    return value


def _values(element: Element) -> list[str]:
    """Return the values of a variable: those listed, or as many as a number says, named `s0`, `a0` or `o0` and so on."""
    listed, counted = element.find("ValueEnum"), element.find("NumValues")
    if listed is not None:
        values = _text(listed).split()
    else:
        count = decimal_index(_text(counted)) if counted is not None else 0
        if not 1 <= count <= MOST_ENTRIES // 10:
            raise ModelError(
                f"a <{element.tag}> has neither <ValueEnum> nor a <NumValues> from 1 to {MOST_ENTRIES // 10:,}; add one"
            )
        values = [f"{LETTERS[element.tag]}{number}" for number in range(count)]
    if not values or len(set(values)) != len(values):
        raise ModelError(f"a <{element.tag}> has no values or one of them twice; give each a name of its own")
    return values


def _size(variables: list[_Variable]) -> int:
    return math.prod(len(variable.values) for variable in variables)


def _names(variables: list[_Variable]) -> list[str]:
    """Return the names of all combinations of values, the last variable changing fastest."""
    names = [""]
    for position, variable in enumerate(variables):
        joint = " + " if position else ""
        names = [f"{name}{joint}{value}" for name in names for value in variable.values]
    return names


def _digits(numbers: IndexArray, variables: list[_Variable]) -> dict[str, IndexArray]:
    """Return the value of each variable in combinations that are given by number."""
    axes = np.unravel_index(numbers, [len(variable.values) for variable in variables])
    return {variable.name: axis for variable, axis in zip(variables, axes, strict=True)}


def _flat(values: dict[str, IndexArray], variables: list[_Variable]) -> IndexArray:
    """Return the number of the combination of values of some variables."""
    if _size(variables) > 2**62:
        raise ModelError("its variables have too many combinations of values; use a smaller model")
    number = np.zeros_like(values[variables[0].name])
    for variable in variables:
        number = number * len(variable.values) + values[variable.name]
    return number


def _rows(assignments: _Assignments, variables: list[_Variable], n_rows: int) -> CompressedRows:
    """Return assignments as compressed rows whose columns are combinations of values."""
    row, chances, values = assignments
    columns = _flat(values, variables)
    order = np.lexsort((columns, row))
    return CompressedRows(np.searchsorted(row[order], np.arange(n_rows + 1)), columns[order], chances[order])
