"""How likely the records are, and what probably happened between the inspections."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.fitting.gaps import Gaps
from actmeasure.kernels import gap_likelihood as kernel

__all__ = ["Likelihood"]

FloatArray = npt.NDArray[np.float64]


class Likelihood:
    """The likelihood of transition probabilities, float64 (A, S, S), given where gaps began and what was done in them.

    Holds the work space of the kernels, so one of it belongs to one thread.
    """

    def __init__(self, gaps: Gaps) -> None:
        self.gaps = gaps
        size = gaps.n_states
        n_letters = gaps.n_actions * (2 if gaps.noticed.any() else 1)
        # A noticed state cannot have been entered before the last period, or the gap would have ended there.
        self._unnoticed = ~(~gaps.noticed[:, None] & gaps.noticed[None, :])
        self._nodes = np.zeros((len(gaps.words.letter), size, size))
        self._node_gradient = np.zeros_like(self._nodes)
        self._changes = np.zeros_like(self._nodes)
        self._letter_gradient = np.zeros((n_letters, size, size))
        self._forward = np.zeros((gaps.longest_word + 1, size))
        self._backward = np.zeros_like(self._forward)

    def expected(self, probabilities: FloatArray, counts: FloatArray) -> tuple[float, FloatArray]:
        """The log-likelihood of the counted ends, (G, S + 1), and the expected number of each transition, (A, S, S)."""
        kernel.run_matrices(self.gaps.words, self._letters(probabilities), self._nodes)
        value = kernel.gradient(
            self.gaps.words,
            self._nodes,
            counts,
            self._node_gradient,
            self._letter_gradient,
            self._forward,
            self._backward,
        )
        return value, probabilities * self._of_letters(self._letter_gradient)

    def end_chances(self, probabilities: FloatArray) -> FloatArray:
        """The chance of each state at the end of a gap of each group, (G, S); less than 1 in all if it may end before."""
        kernel.run_matrices(self.gaps.words, self._letters(probabilities), self._nodes)
        ends = np.zeros((self.gaps.n_groups, self.gaps.n_states))
        kernel.end_chances(self.gaps.words, self._nodes, self._forward, ends)
        return ends

    def end_changes(
        self, probabilities: FloatArray, direction: FloatArray, groups: npt.NDArray[np.int64]
    ) -> FloatArray:
        """How `end_chances` of some groups changes if the probabilities change in a direction, (A, S, S)."""
        words = self.gaps.words._replace(word=self.gaps.words.word[groups], begin=self.gaps.words.begin[groups])
        kernel.run_matrices(words, self._letters(probabilities), self._nodes)
        kernel.run_changes(words, self._nodes, self._letters(direction), self._changes)
        ends = np.zeros((len(groups), self.gaps.n_states))
        kernel.end_changes(words, self._nodes, self._changes, self._forward, self._backward, ends)
        return ends

    def _letters(self, probabilities: FloatArray) -> FloatArray:
        if not self.gaps.noticed.any():
            return probabilities
        return np.concatenate([probabilities * self._unnoticed, probabilities])

    def _of_letters(self, letters: FloatArray) -> FloatArray:
        n_actions = self.gaps.n_actions
        if len(letters) == n_actions:
            return letters
        return letters[:n_actions] * self._unnoticed + letters[n_actions:]
