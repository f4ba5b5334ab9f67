"""What was done between inspections, as words of runs whose matrices are products of few others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from actmeasure.kernels.gap_likelihood import Words

__all__ = ["distinct_words", "run_graph"]

IntArray = npt.NDArray[np.int64]


def run_graph(runs: Iterable[tuple[int, int]]) -> tuple[dict[tuple[int, int], int], IntArray, IntArray, IntArray]:
    """A graph of products with a node for every run (letter, length): their numbers, and `letter`, `left`, `right` of `Words`.

    A length is the sum of powers of two, so that even a run of a million periods takes some twenty products.
    """
    wanted: set[tuple[int, int]] = set()
    for letter, length in runs:
        rest = length
        while (letter, rest) not in wanted:
            wanted.add((letter, rest))
            first, second = _halves(rest)
            power = second  # a power of two, and so are its halves
            while power and (letter, power) not in wanted:
                wanted.add((letter, power))
                power //= 2
            if not first:
                break
            rest = first
    ordered = sorted(wanted, key=lambda run: (run[1], run[0]))
    numbers = {run: number for number, run in enumerate(ordered)}
    letter_of, left, right = (np.full(len(ordered), -1, dtype=np.int64) for _ in range(3))
    for number, (letter, length) in enumerate(ordered):
        if length == 1:
            letter_of[number] = letter
        else:
            first, second = _halves(length)
            left[number], right[number] = numbers[letter, first], numbers[letter, second]
    return numbers, letter_of, left, right


def _halves(length: int) -> tuple[int, int]:
    """Two lengths whose sum it is, the second one a power of two; (0, 0) for a run of one period."""
    if length == 1:
        return 0, 0
    lowest = length & -length
    return (length - lowest, lowest) if lowest != length else (length // 2, length // 2)


def distinct_words(letters: IntArray, lengths: IntArray, offsets: IntArray) -> tuple[IntArray, IntArray]:
    """The number of each gap's word, and for each word the first gap that has it.

    Parameters
    ----------
    letters, lengths : int64 arrays, shape (n_runs,)
    offsets : int64 array, shape (n_gaps + 1,)
        Where the runs of each gap begin.
    """
    _, codes = np.unique(np.stack([letters, lengths]), axis=1, return_inverse=True)
    counts = np.diff(offsets)
    word = np.zeros(len(counts), dtype=np.int64)
    n_codes = int(codes.max(initial=0)) + 2
    for position in range(int(counts.max(initial=0))):
        longer = counts > position
        code = np.where(longer, codes[np.minimum(offsets[:-1] + position, len(codes) - 1)] + 1, 0)
        _, word = np.unique(word * n_codes + code, return_inverse=True)
    _, first = np.unique(word, return_index=True)
    return word, first


def words_of(
    letters: IntArray, lengths: IntArray, offsets: IntArray, representatives: IntArray, word: IntArray, begin: IntArray
) -> Words:
    """The `Words` of groups (`word`, `begin`), each word being that of its representative gap."""
    numbers, letter_of, left, right = run_graph(set(zip(letters.tolist(), lengths.tolist(), strict=True)))
    chosen = [range(offsets[gap], offsets[gap + 1]) for gap in representatives]
    runs = [numbers[int(letters[run]), int(lengths[run])] for span in chosen for run in span]
    starts = np.cumsum([0, *(len(span) for span in chosen)])
    return Words(letter_of, left, right, np.array(runs, dtype=np.int64), starts.astype(np.int64), word, begin)
