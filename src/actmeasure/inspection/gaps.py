"""Gaps between inspections: the first and last state of each, and the actions in between.

The actions of a gap are a *word* of *runs* (an action and the number of periods it was repeated), as the kernels of
`actmeasure.kernels.gap_likelihood` use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, unknown_name
from actmeasure.inspection.records import NONE, Records
from actmeasure.kernels.gap_likelihood import GapWords

__all__ = ["Gaps", "distinct_words", "find_gaps", "run_graph"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Gaps:
    """All gaps of the records: N gaps in G groups of equal word and first state, S states, A actions.

    Attributes
    ----------
    words : GapWords
        With noticed states, letter `A + a` is action `a` in the last period of a gap that ends in such a state.
    group, begin, end, length, unit, record : int64 arrays, shape (N,)
        For each gap: its group, first and last state (S where the unit's records end without an inspection), length in periods,
        the number of its unit, and the record of the inspection at its beginning.
    before : int64 array, shape (N,)
        The state at the inspection before the first one of the gap; -1 if there was none.
    age : int64 array, shape (N,)
        Periods from the unit's first record to the beginning of the gap.
    action : int64 array, shape (N,)
        The action if it was the same in all periods, otherwise A.
    last_record : int64 array, shape (N,)
        The record that ends the gap.
    noticed : bool array, shape (S,)
        States that are noticed as soon as they are entered.
    filled, default : int
        Number of periods without a recorded action, and the action assumed for them.
    """

    words: GapWords
    group: IntArray
    begin: IntArray
    end: IntArray
    length: IntArray
    unit: IntArray
    record: IntArray
    last_record: IntArray
    before: IntArray
    age: IntArray
    action: IntArray
    noticed: npt.NDArray[np.bool_]
    n_states: int
    n_actions: int
    n_units: int
    longest_word: int
    filled: int
    default: int

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.words.word)

    def counts(self, weights: FloatArray | None = None, end: IntArray | None = None) -> FloatArray:
        """Return how often each group ended in each state, shape (G, S + 1); optionally of weighted units, or with other ends.

        The last column counts gaps without an inspection at their end.
        """
        cell = self.group * (self.n_states + 1) + (self.end if end is None else end)
        each = None if weights is None else weights[self.unit]
        total = np.bincount(cell, weights=each, minlength=self.n_groups * (self.n_states + 1))
        return total.reshape(self.n_groups, -1).astype(np.float64)

    def inspected(self, records: Records) -> IntArray:
        """Return how often a unit was inspected in a state and the action was done next, shape (A, S)."""
        table = np.zeros((self.n_actions, self.n_states), dtype=np.int64)
        action = records.action[self.record]
        np.add.at(table, (np.where(action == NONE, self.default, action), self.begin), 1)
        return table


def find_gaps(records: Records, default_action: str | None, noticed: Sequence[str] = ()) -> Gaps:
    """Return the gaps of the records; periods without a recorded action have the default one.

    Raises a `FitError` if a default is needed and not given: several actions were recorded.
    """
    for name in noticed:
        if name not in records.state_names:
            raise FitError(unknown_name("noticed state", name, records.state_names))
    at_once = np.isin(records.state_names, list(noticed))
    seen = records.state != NONE
    used, span = _used_records(records, seen, bool(noticed))
    if not used.any():
        raise FitError(
            f"no unit was inspected twice, so that there is no information about transitions; {len(records.unit_names):,} units "
            f"with {int(seen.sum()):,} inspections were read; every unit needs two inspections at different times"
        )
    default, filled = _default(records, used, span, default_action)
    opening = np.flatnonzero(used & seen)  # the record at the beginning of each gap
    gap_of = np.cumsum(used & seen) - 1
    letters, lengths, owner = _runs(records, used, span, gap_of, default)
    last = _last_records(opening, gap_of, used)
    begin = records.state[opening]
    end = np.where(seen[last], records.state[last], len(records.state_names))
    n_actions = len(records.action_names)
    if noticed:
        entering = np.r_[at_once, False][end]
        letters, lengths, owner = _split_last(letters, lengths, owner, entering, n_actions)
    offsets = np.searchsorted(owner, np.arange(len(opening) + 1))
    word, representatives = distinct_words(letters, lengths, offsets)
    pair, group = np.unique(word * len(records.state_names) + begin, return_inverse=True)
    group_word, group_begin = np.divmod(pair, len(records.state_names))
    words = words_of(letters, lengths, offsets, representatives, group_word, group_begin)
    actions = letters % n_actions
    same = np.minimum.reduceat(actions, offsets[:-1]) == np.maximum.reduceat(actions, offsets[:-1])
    return Gaps(
        words=words,
        group=group.astype(np.int64),
        begin=begin,
        end=end,
        length=records.time[last] - records.time[opening],
        unit=records.unit[opening],
        record=opening,
        last_record=last,
        before=_states_before(records, opening, seen),
        age=records.time[opening] - _first_times(records)[records.unit[opening]],
        action=np.where(same, actions[offsets[:-1]], n_actions),
        noticed=at_once,
        n_states=len(records.state_names),
        n_actions=n_actions,
        n_units=len(records.unit_names),
        longest_word=int(np.diff(words.offsets).max()),
        filled=filled,
        default=default,
    )


def _used_records(
    records: Records, seen: npt.NDArray[np.bool_], to_the_end: bool
) -> tuple[npt.NDArray[np.bool_], IntArray]:
    """Return which records are part of a gap, and the periods from each record to the next.

    With `to_the_end`, the time from the last inspection of a unit to its last record is a gap, too.
    """
    same = np.r_[records.unit[1:] == records.unit[:-1], False]
    span = np.where(same, np.diff(records.time, append=0), 0)
    n_units = len(records.unit_names)
    number = np.arange(len(records.unit))
    first, last = np.full(n_units, len(number)), np.full(n_units, -1)
    np.minimum.at(first, records.unit[seen], number[seen])
    np.maximum.at(last, records.unit[seen], number[seen])
    until = np.full(n_units, len(number)) if to_the_end else last
    used = same & (number >= first[records.unit]) & (number < until[records.unit])
    return used, span


def _default(
    records: Records, used: npt.NDArray[np.bool_], span: IntArray, default_action: str | None
) -> tuple[int, int]:
    """Return the action of periods without a recorded one, and the number of such periods."""
    unrecorded = used & (records.action == NONE)
    filled = int(unrecorded.sum() + (span[used] - 1).sum())
    if default_action is not None:
        return records.action_names.index(default_action), filled
    if len(records.action_names) == 1:
        return 0, filled
    if not records.action_names:
        raise FitError(
            "no record names an action; say what was always done with default_action='nothing' (--default-action)"
        )
    if filled:
        record = int(np.argmax(unrecorded | (used & (span > 1))))
        missing = records.time[record] + (0 if unrecorded[record] else 1)
        raise FitError(
            f"{records.location(record)}: unit {records.unit_names[records.unit[record]]!r} has no action for time {missing}, "
            f"one of {filled:,} such periods, and there are several actions ({', '.join(records.action_names)}); say what is "
            "done where nothing is recorded with default_action=... (--default-action ...)"
        )
    return 0, 0


def _runs(
    records: Records, used: npt.NDArray[np.bool_], span: IntArray, gap_of: IntArray, default: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return letter, length and gap of all runs: each record's action for one period, then the default until the next record."""
    action = np.where(records.action == NONE, default, records.action)[used]
    letters = np.stack([action, np.full_like(action, default)], axis=1).ravel()
    lengths = np.stack([np.ones_like(action), span[used] - 1], axis=1).ravel()
    owner = np.repeat(gap_of[used], 2)
    kept = lengths > 0
    letters, lengths, owner = letters[kept], lengths[kept], owner[kept]
    new = np.flatnonzero(np.r_[True, (letters[1:] != letters[:-1]) | (owner[1:] != owner[:-1])])
    return letters[new], np.add.reduceat(lengths, new), owner[new]


def _split_last(
    letters: IntArray, lengths: IntArray, owner: IntArray, entering: npt.NDArray[np.bool_], n_actions: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the runs with the last period of gaps that end in a noticed state as a separate run with letter `A + a`."""
    last = np.flatnonzero(np.r_[owner[1:] != owner[:-1], True])
    last = last[entering[owner[last]]]
    lengths = lengths.copy()
    lengths[last] -= 1
    letters, owner = np.insert(letters, last + 1, letters[last] + n_actions), np.insert(owner, last + 1, owner[last])
    lengths = np.insert(lengths, last + 1, 1)
    kept = lengths > 0
    return letters[kept], lengths[kept], owner[kept]


def _last_records(opening: IntArray, gap_of: IntArray, used: npt.NDArray[np.bool_]) -> IntArray:
    """Return the record that ends each gap: the one after its last used record."""
    last = np.zeros(len(opening), dtype=np.int64)
    number = np.flatnonzero(used)
    np.maximum.at(last, gap_of[used], number)
    return last + 1


def _states_before(records: Records, opening: IntArray, seen: npt.NDArray[np.bool_]) -> IntArray:
    """Return the state at the unit's inspection before each gap's first one; -1 if there was none."""
    inspections = np.flatnonzero(seen)
    position = np.searchsorted(inspections, opening)
    earlier = inspections[np.maximum(position - 1, 0)]
    same = (position > 0) & (records.unit[earlier] == records.unit[opening])
    return np.where(same, records.state[earlier], NONE)


def _first_times(records: Records) -> IntArray:
    """Return the time of each unit's first record, shape (n_units,)."""
    first = np.full(len(records.unit_names), np.iinfo(np.int64).max)
    np.minimum.at(first, records.unit, records.time)
    return first


def run_graph(runs: Iterable[tuple[int, int]]) -> tuple[dict[tuple[int, int], int], IntArray, IntArray, IntArray]:
    """Return a graph of products with a node for every run (letter, length): node numbers, and the arrays of `GapWords`.

    The arrays are `letter`, `left` and `right`. A length is split into powers of two, so that a run of a million periods takes
    about twenty products.
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
    """Return two lengths with that sum, the second one a power of two; (0, 0) for a length of 1."""
    if length == 1:
        return 0, 0
    lowest = length & -length
    return (length - lowest, lowest) if lowest != length else (length // 2, length // 2)


def distinct_words(letters: IntArray, lengths: IntArray, offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the number of each gap's word, and for each word the first gap that has it.

    Parameters
    ----------
    letters, lengths : int64 arrays, shape (n_runs,)
    offsets : int64 array, shape (n_gaps + 1,)
        The runs of gap `g` are those from `offsets[g]` to `offsets[g + 1] - 1`.
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
) -> GapWords:
    """Return the `GapWords` of groups (`word`, `begin`); the runs of a word are those of its representative gap."""
    numbers, letter_of, left, right = run_graph(set(zip(letters.tolist(), lengths.tolist(), strict=True)))
    chosen = [range(offsets[gap], offsets[gap + 1]) for gap in representatives]
    runs = [numbers[int(letters[run]), int(lengths[run])] for span in chosen for run in span]
    starts = np.cumsum([0, *(len(span) for span in chosen)])
    return GapWords(letter_of, left, right, np.array(runs, dtype=np.int64), starts.astype(np.int64), word, begin)
