"""The likelihood of records of inspections and its gradient, for every kind of chain that is fitted.

Parameters are an array of shape (B, S, S): a block for each action (and interval of age), whose rows are transition probabilities
or, in continuous time, intensities, with a diagonal of 0. Where recorded states may be wrong, a block of error probabilities
follows, whose rows are true states and whose columns are recorded ones, and where the state at a unit's first record is drawn, a
block whose first row is its distribution. A product of a parameter and its derivative is the expected number of the transitions
(or errors, or first states) of its kind, given the records; the EM algorithm uses these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from actmeasure.inspection.flows import Flows, generator
from actmeasure.inspection.gaps import Gaps, LetterKind
from actmeasure.kernels import gap_likelihood as kernel

__all__ = ["DRAWN", "SEEN", "Likelihood", "RecordErrors", "WeightedUnits"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: The state at a unit's first record: as recorded, or drawn from a distribution that is estimated.
SEEN: Literal["seen"] = "seen"
DRAWN: Literal["drawn"] = "drawn"


@dataclass(frozen=True)
class RecordErrors:
    """How recorded states may be wrong.

    Attributes
    ----------
    events : UnitEvents
    start : "seen", "drawn" or int
        The state at a unit's first record: as recorded, drawn from a distribution that is estimated, or the number of a state.
    """

    events: kernel.UnitEvents
    start: str | int


class WeightedUnits(NamedTuple):
    """What happened to each unit, and the weight of each, float64 (U,)."""

    events: kernel.UnitEvents
    weights: FloatArray


class Likelihood:
    """The likelihood of parameters, float64 (B, S, S), given the first states and actions of all gaps.

    It holds the work space of the kernels, so that an instance must be used by one thread only.
    """

    def __init__(self, gaps: Gaps, errors: RecordErrors | None = None) -> None:
        self.gaps, self.errors = gaps, errors
        size = gaps.n_states
        # A noticed state cannot have been entered before the last period, or the gap would have ended there.
        self._entry = ~gaps.noticed[:, None] & gaps.noticed[None, :]
        self._nodes = np.zeros((len(gaps.words.letter), size, size))
        self._node_gradient = np.zeros_like(self._nodes)
        self._changes = np.zeros_like(self._nodes)
        self._letter_gradient = np.zeros((len(gaps.letters.kind), size, size))
        longest = gaps.longest_word + 1
        if errors is not None:
            longest = max(longest, int(np.diff(errors.events.offsets).max(initial=1)) + 1)
            self._error_gradient = np.zeros((size, size))
            self._initial_gradient = np.zeros((gaps.n_units, size))
        self._forward = np.zeros((longest, size))
        self._backward = np.zeros_like(self._forward)
        kind, block, duration = gaps.letters
        self._step = np.flatnonzero(kind == LetterKind.STEP)
        self._unnoticed_step = np.flatnonzero(kind == LetterKind.UNNOTICED_STEP)
        self._entries = np.flatnonzero(kind == LetterKind.ENTRY)
        flowing = (kind == LetterKind.FLOW) | (kind == LetterKind.UNNOTICED_FLOW)
        self._flows = [
            (number, np.flatnonzero(flowing & (block == number)), Flows(duration[flowing & (block == number)]))
            for number in range(gaps.n_blocks)
            if (flowing & (block == number)).any()
        ]

    @property
    def n_blocks(self) -> int:
        """The number of blocks of parameters."""
        if self.errors is None:
            return self.gaps.n_blocks
        return self.gaps.n_blocks + (2 if self.errors.start == DRAWN else 1)

    @property
    def rates(self) -> BoolArray:
        """Which blocks hold intensities, shape (B, 1, 1)."""
        blocks: BoolArray = np.zeros((self.n_blocks, 1, 1), dtype=bool)
        blocks[: self.gaps.n_blocks, 0, 0] = self.gaps.rate_blocks
        return blocks

    @property
    def mean_length(self) -> float:
        """The mean length of gaps where time is continuous, a unit for intensities; otherwise 1."""
        return float(self.gaps.length.mean()) if self.gaps.continuous else 1.0

    def data(self, weights: FloatArray | None = None) -> FloatArray | WeightedUnits:
        """Return the records in the form of `gradient`, optionally of weighted units: counts, (G, S + 1), or `WeightedUnits`."""
        if self.errors is None:
            return self.gaps.counts(weights)
        return WeightedUnits(self.errors.events, np.ones(self.gaps.n_units) if weights is None else weights)

    def gradient(self, parameters: FloatArray, data: FloatArray | WeightedUnits) -> tuple[float, FloatArray]:
        """Return the log-likelihood and its derivative by every parameter, (B, S, S), as if these did not depend on each other.

        The diagonal of intensities has the derivative by minus the rate of leaving the state: the expected time in it.
        """
        kernel.run_matrices(self.gaps.words, self._letters(parameters), self._nodes)
        result = np.zeros_like(parameters)
        if isinstance(data, WeightedUnits):
            value = self._hidden_gradient(parameters, data, result)
        else:
            value = kernel.gradient(
                self.gaps.words,
                self._nodes,
                data,
                self._node_gradient,
                self._letter_gradient,
                self._forward,
                self._backward,
            )
        if value > -np.inf:
            self._add_block_gradient(self._letter_gradient, result)
        return value, result

    def expected(self, parameters: FloatArray, data: FloatArray | WeightedUnits) -> tuple[float, FloatArray]:
        """Return the log-likelihood and the expected number of each transition, (B, S, S).

        The diagonal of blocks of intensities holds the expected time in each state.
        """
        value, gradient = self.gradient(parameters, data)
        expected = parameters * gradient
        if self.gaps.continuous:
            diagonal = np.eye(self.gaps.n_states, dtype=bool)
            expected = np.where(self.rates & diagonal, gradient, expected)
        return value, expected

    def _hidden_gradient(self, parameters: FloatArray, data: WeightedUnits, result: FloatArray) -> float:
        """Return the log-likelihood of records with errors; compute the derivatives by errors and first states into `result`."""
        n_blocks = self.gaps.n_blocks
        value = kernel.hidden_gradient(
            self.gaps.words,
            data.events,
            self._nodes,
            np.ascontiguousarray(parameters[n_blocks]),
            self._initial(parameters, data.events),
            data.weights,
            self._node_gradient,
            self._letter_gradient,
            self._error_gradient,
            self._initial_gradient,
            self._forward,
            self._backward,
        )
        result[n_blocks] = self._error_gradient
        if len(parameters) > n_blocks + 1:
            result[n_blocks + 1, 0] = self._initial_gradient.sum(axis=0)
        return value

    def _initial(self, parameters: FloatArray, events: kernel.UnitEvents) -> FloatArray:
        """Return the distribution of each unit's state at its first event, (U, S)."""
        assert self.errors is not None
        start, size = self.errors.start, self.gaps.n_states
        if start == DRAWN:
            return np.tile(parameters[-1, 0], (self.gaps.n_units, 1))
        numbers = events.begin if start == SEEN else np.full(self.gaps.n_units, int(start))
        known: FloatArray = np.eye(size)[np.maximum(numbers, 0)]
        return known

    def end_probabilities(self, parameters: FloatArray) -> FloatArray:
        """Return the distribution of the last state of a gap of each group, (G, S).

        With noticed states rows sum to less than 1: the rest is the probability that such a state ends the gap earlier.
        """
        kernel.run_matrices(self.gaps.words, self._letters(parameters), self._nodes)
        ends = np.zeros((self.gaps.n_groups, self.gaps.n_states))
        kernel.end_probabilities(self.gaps.words, self._nodes, self._forward, ends)
        return ends

    def end_derivatives(self, parameters: FloatArray, direction: FloatArray, groups: IntArray) -> FloatArray:
        """Return the directional derivative of `end_probabilities` of some groups, (n_groups, S); `direction` is (B, S, S)."""
        words = self.gaps.words._replace(word=self.gaps.words.word[groups], begin=self.gaps.words.begin[groups])
        kernel.run_matrices(words, self._letters(parameters), self._nodes)
        kernel.run_derivatives(words, self._nodes, self._letters(direction), self._changes)
        ends = np.zeros((len(groups), self.gaps.n_states))
        kernel.end_derivatives(words, self._nodes, self._changes, self._forward, self._backward, ends)
        return ends

    def record_probabilities(self, parameters: FloatArray, events: kernel.UnitEvents) -> FloatArray:
        """Return the distribution of each recorded state given the unit's earlier records, (n_events, S)."""
        kernel.run_matrices(self.gaps.words, self._letters(parameters), self._nodes)
        chances = np.zeros((len(events.event), self.gaps.n_states))
        errors, initial = np.ascontiguousarray(parameters[self.gaps.n_blocks]), self._initial(parameters, events)
        kernel.predictions(events, self._nodes, errors, initial, self._forward, chances)
        return chances

    def simulated(
        self, parameters: FloatArray, events: kernel.UnitEvents, rng: np.random.Generator
    ) -> kernel.UnitEvents:
        """Return the events with records that are simulated from the parameters, errors included."""
        kernel.run_matrices(self.gaps.words, self._letters(parameters), self._nodes)
        result = np.empty_like(events.event)
        errors, initial = np.ascontiguousarray(parameters[self.gaps.n_blocks]), self._initial(parameters, events)
        drawn = rng.random((len(result), 2))
        noticed = self.gaps.noticed
        kernel.simulate_records(
            events, self._nodes, errors, initial, noticed, drawn, result, np.zeros((2, len(noticed)))
        )
        begin = events.begin
        if self.errors is not None and self.errors.start != SEEN:
            first = np.minimum(events.offsets[:-1], len(result) - 1)
            begin = np.where(begin >= 0, -1 - result[first], begin)
        return events._replace(event=result, begin=begin)

    def _letters(self, parameters: FloatArray) -> FloatArray:
        """Return the matrices of the letters, (L, S, S)."""
        block = self.gaps.letters.block
        letters = np.empty((len(block), *parameters.shape[1:]))
        letters[self._step] = parameters[block[self._step]]
        letters[self._unnoticed_step] = parameters[block[self._unnoticed_step]] * ~self._entry
        letters[self._entries] = parameters[block[self._entries]] * self._entry
        for number, chosen, flows in self._flows:
            intensities = generator(parameters[number])
            if self.gaps.noticed.any():
                intensities = intensities * ~self._entry
            letters[chosen] = flows.matrices(intensities)
        return letters

    def _add_block_gradient(self, letters: FloatArray, result: FloatArray) -> None:
        """Add the derivatives by the blocks of actions to `result`, (B, S, S), from those by the matrices of letters."""
        block = self.gaps.letters.block
        for chosen, mask in (
            (self._unnoticed_step, ~self._entry),
            (self._step, np.ones_like(self._entry)),
            (self._entries, self._entry),
        ):
            if len(chosen):
                np.add.at(result, block[chosen], letters[chosen] * mask)
        for number, chosen, flows in self._flows:
            result[number] += flows.gradient(letters[chosen]) * ~self._entry
