"""Gaps between inspections: the first and last state of each, and the actions in between.

The actions of a gap are a *word* of *runs* (an action and how long it went on), as the kernels of
`actmeasure.kernels.gap_likelihood` use them. In discrete time a run is a number of periods, each with the transition
probabilities of its action. In continuous time it is a duration with the intensities of its action; actions that act at once
are runs of their own with transition probabilities. With breaks of age, every action has a *block* of parameters for each
interval of age, and runs are cut where the age passes a break.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, counted, unknown_name
from actmeasure.inspection.records import NONE, Records
from actmeasure.kernels.gap_likelihood import GapWords, UnitEvents

__all__ = ["Gaps", "LetterKind", "Letters", "distinct_words", "find_gaps", "run_graph", "unit_events"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
#: Lengths and ages: whole periods in discrete time, real numbers in continuous time.
Numbers = npt.NDArray[Any]

#: Decimals of differences of times: gaps that differ by less are equal.
DECIMALS = 9
#: Ages that differ by less are equal.
SAME_AGE = 1e-9
#: Multiples of the number of blocks that mark the letters of entering a noticed state and of actions that act at once.
ENTERING, JUMP = 1, 2
#: Above every number of an action.
JUMP_OFFSET = 1 << 20


class LetterKind(IntEnum):
    """How the matrix of a letter follows from the parameters of its block."""

    #: The transition probabilities of a period, or of an action that acts at once.
    STEP = 0
    #: The same without transitions into noticed states, which would have ended the gap.
    UNNOTICED_STEP = 1
    #: The transition probabilities of a duration, from intensities.
    FLOW = 2
    #: The same without transitions into noticed states.
    UNNOTICED_FLOW = 3
    #: The intensities of transitions into noticed states: the density of the moment at which one is entered.
    ENTRY = 4


class Letters(NamedTuple):
    """The letters of words: `kind`, `block` and `duration` of each, shape (L,); durations in the unit of the intensities."""

    kind: IntArray
    block: IntArray
    duration: FloatArray


@dataclass(frozen=True)
class Gaps:
    """All gaps of the records: N gaps in G groups of equal word and first state, S states, A actions.

    Attributes
    ----------
    words : GapWords
    letters : Letters
        In discrete time with noticed states, letter `A + a` is action `a` in the last period of a gap that ends in such a state.
    continuous : bool
        Whether time is continuous.
    at_once : bool array, shape (A,)
        In continuous time: actions that act at once, with transition probabilities; the others have intensities.
    age_breaks : tuple of float
        Ages, in the unit of the times, at which the parameters change.
    n_strata : int
        Number of groups of units times that of intervals of age; block `k * A + a` is action `a` in stratum `k`, which counts the
        intervals of the first group, then those of the second and so on.
    group, begin, end, unit, record : int64 arrays, shape (N,)
        For each gap: its group, first and last state (S where the unit's records end without an inspection), the number of its
        unit, and the record of the inspection at its beginning.
    length : int64 or float64 array, shape (N,)
        In periods, or in the unit of the intensities.
    before : int64 array, shape (N,)
        The state at the inspection before the first one of the gap; -1 if there was none.
    age : int64 or float64 array, shape (N,)
        Age of the unit at the beginning of the gap; by default time since its first record.
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
    letters: Letters
    continuous: bool
    at_once: npt.NDArray[np.bool_]
    age_breaks: tuple[float, ...]
    n_strata: int
    group: IntArray
    begin: IntArray
    end: IntArray
    length: Numbers
    unit: IntArray
    record: IntArray
    last_record: IntArray
    before: IntArray
    age: Numbers
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

    @property
    def n_blocks(self) -> int:
        """The number of blocks of parameters: one for every action, interval of age and group."""
        return self.n_actions * self.n_strata

    @property
    def rate_blocks(self) -> npt.NDArray[np.bool_]:
        """Which blocks hold intensities, not probabilities, shape (n_blocks,)."""
        return np.tile(~self.at_once & self.continuous, self.n_strata)

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


def find_gaps(
    records: Records,
    default_action: str | None,
    noticed: Sequence[str] = (),
    at_once: Sequence[str] = (),
    age_breaks: Sequence[float] = (),
    by_group: bool = False,
    left_out: IntArray | None = None,
) -> Gaps:
    """Return the gaps of the records, except those that end with a record of `left_out`.

    Periods without a recorded action have the default one.

    With `by_group`, every group of units has its own blocks of parameters. In continuous time an action goes on until the
    unit's next record, except those that act `at_once`, after which the default action goes on. Raises a `FitError` if a
    default is needed and not given: several actions were recorded.
    """
    for name in noticed:
        if name not in records.state_names:
            raise FitError(unknown_name("noticed state", name, records.state_names))
    for name in at_once:
        if name not in records.action_names:
            raise FitError(unknown_name("action that acts at once", name, records.action_names))
    noticed_states = np.isin(records.state_names, list(noticed))
    jumps = np.isin(records.action_names, list(at_once))
    seen = records.state != NONE
    used, span = _used_records(records, seen, bool(noticed), left_out)
    if not used.any():
        raise FitError(
            "no unit was inspected twice, so that there is no information about transitions; there are "
            f"{counted(len(records.unit_names), 'unit')} with {counted(int(seen.sum()), 'inspection')} in all; every unit needs "
            "two inspections at different times"
        )
    default, filled = _default(records, used, span, default_action, jumps)
    opening = np.flatnonzero(used & seen)  # the record at the beginning of each gap
    gap_of = np.cumsum(used & seen) - 1
    last = _last_records(gap_of, used)
    begin = records.state[opening]
    end = np.where(seen[last], records.state[last], len(records.state_names))
    n_actions = len(records.action_names)
    length = records.time[last] - records.time[opening]
    age = _ages(records, jumps if age_breaks else np.zeros_like(jumps))[opening]
    if records.continuous:
        length = np.round(length, DECIMALS) / records.unit_length
        runs = _durations(records, used, span, gap_of, default, jumps)
    else:
        runs = _periods(records, used, span, gap_of, default)
    n_strata = 1 + len(age_breaks)
    stratum = np.zeros(len(opening), dtype=np.int64)
    if by_group and records.group is not None:
        stratum = records.group[records.unit[opening]] * n_strata
        n_strata *= len(records.group_names)
    n_blocks = n_actions * n_strata
    runs = _cut_at_ages(runs, age, age_breaks, n_actions, stratum, n_blocks)
    if noticed:
        entering = np.r_[noticed_states, False][end]
        if records.continuous:  # a unit that stays in a noticed state does not enter it
            runs = _with_entries(runs, entering & (begin != end), n_blocks)
        else:
            runs = _split_last(runs, entering, n_blocks)
    letters, lengths, owner = runs
    offsets = np.searchsorted(owner, np.arange(len(opening) + 1))
    word, representatives = distinct_words(letters, lengths, offsets)
    pair, group = np.unique(word * len(records.state_names) + begin, return_inverse=True)
    group_word, group_begin = np.divmod(pair, len(records.state_names))
    words, alphabet = words_of(
        runs, offsets, representatives, (group_word, group_begin), n_blocks, bool(noticed), records.continuous
    )
    actions = letters % n_actions
    first = actions[offsets[:-1]]
    same = np.minimum.reduceat(actions, offsets[:-1]) == np.maximum.reduceat(actions, offsets[:-1])
    if records.continuous:  # what is done at once at the beginning names the gap
        same |= letters[offsets[:-1]] >= JUMP * n_blocks
    return Gaps(
        words=words,
        letters=alphabet,
        continuous=records.continuous,
        at_once=jumps,
        age_breaks=tuple(age_breaks),
        n_strata=n_strata,
        group=group.astype(np.int64),
        begin=begin,
        end=end,
        length=length,
        unit=records.unit[opening],
        record=opening,
        last_record=last,
        before=_states_before(records, opening, seen),
        age=age,
        action=np.where(same, first, n_actions),
        noticed=noticed_states,
        n_states=len(records.state_names),
        n_actions=n_actions,
        n_units=len(records.unit_names),
        longest_word=int(np.diff(words.offsets).max()),
        filled=filled,
        default=default,
    )


def _used_records(
    records: Records, seen: npt.NDArray[np.bool_], to_the_end: bool, left_out: IntArray | None
) -> tuple[npt.NDArray[np.bool_], Numbers]:
    """Return which records are part of a gap, and the periods from each record to the next.

    With `to_the_end`, the time from the last inspection of a unit to its last record is a gap, too. Gaps that end with a record
    of `left_out` are not used.
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
    if left_out is not None and used.any():
        gap_of = np.cumsum(used & seen) - 1
        used &= ~np.isin(_last_records(gap_of, used), left_out)[gap_of]
    return used, span


def _default(
    records: Records,
    used: npt.NDArray[np.bool_],
    span: Numbers,
    default_action: str | None,
    at_once: npt.NDArray[np.bool_],
) -> tuple[int, int]:
    """Return the action of periods without a recorded one, and the number of such periods (in continuous time: records)."""
    unrecorded = used & (records.action == NONE)
    if records.continuous:
        acting = np.r_[at_once, False][records.action]
        filled = int((unrecorded | (used & acting)).sum())
    else:
        filled = int(unrecorded.sum() + (span[used] - 1).sum())
    if default_action is not None:
        return records.action_names.index(default_action), filled
    going_on = np.flatnonzero(~at_once)
    if len(going_on) == 1:
        return int(going_on[0]), filled
    if not records.action_names:
        raise FitError(
            "no record names an action; say what was always done with default_action='nothing' (--default-action)"
        )
    if filled:
        record = int(np.argmax(unrecorded | (used & ((span > 1) & (not records.continuous)))))
        missing = records.when(record, 0 if unrecorded[record] or records.continuous else 1)
        raise FitError(
            f"{records.location(record)}: unit {records.unit_names[records.unit[record]]!r} has no action for time {missing}, "
            f"one of {filled:,} such periods, and there are several actions ({', '.join(records.action_names)}); say what is "
            "done where nothing is recorded with default_action=... (--default-action ...)"
        )
    return 0, 0


class _Runs(NamedTuple):
    """Runs in the order of gaps and time: `letter`, `length` and `gap` of each, shape (n_runs,).

    A letter is a block, or with n blocks `ENTERING * n` or `JUMP * n` more than one.
    """

    letter: IntArray
    length: Numbers
    gap: IntArray

    def joined(self) -> _Runs:
        """Return the runs with neighbours of the same gap and letter as one."""
        new = np.flatnonzero(np.r_[True, (self.letter[1:] != self.letter[:-1]) | (self.gap[1:] != self.gap[:-1])])
        return _Runs(self.letter[new], np.add.reduceat(self.length, new), self.gap[new])


def _periods(
    records: Records,
    used: npt.NDArray[np.bool_],
    span: Numbers,
    gap_of: IntArray,
    default: int,
) -> _Runs:
    """Return the runs in discrete time: each record's action for one period, then the default until the next record."""
    action = np.where(records.action == NONE, default, records.action)[used]
    letters = np.stack([action, np.full_like(action, default)], axis=1).ravel()
    lengths = np.stack([np.ones_like(action), span[used] - 1], axis=1).ravel()
    kept = lengths > 0
    return _Runs(letters[kept], lengths[kept], np.repeat(gap_of[used], 2)[kept]).joined()


def _durations(
    records: Records,
    used: npt.NDArray[np.bool_],
    span: Numbers,
    gap_of: IntArray,
    default: int,
    at_once: npt.NDArray[np.bool_],
) -> _Runs:
    """Return the runs in continuous time: each record's action until the next record, or at once and then the default."""
    action = np.where(records.action == NONE, default, records.action)[used]
    jumping = at_once[action]
    letters = np.stack([JUMP * JUMP_OFFSET + action, np.where(jumping, default, action)], axis=1).ravel()
    lengths = np.stack([np.zeros(len(action)), np.round(span[used], DECIMALS) / records.unit_length], axis=1).ravel()
    kept = np.stack([jumping, np.ones_like(jumping)], axis=1).ravel()
    return _Runs(letters[kept], lengths[kept], np.repeat(gap_of[used], 2)[kept]).joined()


def _cut_at_ages(
    runs: _Runs,
    age: Numbers,
    breaks: Sequence[float],
    n_actions: int,
    stratum: IntArray,
    n_blocks: int,
) -> _Runs:
    """Return the runs cut where the age passes a break, with blocks in place of actions.

    `age` is that of each gap's beginning, and `stratum` the first stratum of its unit, to which the interval of age is added.
    After an action that acts at once the age is 0.
    """
    letter, length, gap = runs
    jumps = letter >= JUMP_OFFSET
    letter = np.where(jumps, letter - JUMP * JUMP_OFFSET, letter)
    for limit in breaks:
        start = _run_ages(length, gap, age, jumps)
        across = np.flatnonzero((start < limit - SAME_AGE) & (start + length > limit + SAME_AGE))
        before = (limit - start[across]).astype(length.dtype)
        rest = length[across] - before
        length = length.copy()
        length[across] = before
        length = np.insert(length, across + 1, rest)
        letter, gap = np.insert(letter, across + 1, letter[across]), np.insert(gap, across + 1, gap[across])
        jumps = np.insert(jumps, across + 1, jumps[across])
    interval = np.searchsorted(np.array(breaks) - SAME_AGE, _run_ages(length, gap, age, jumps), side="right")
    return _Runs((interval + stratum[gap]) * n_actions + letter + jumps * (JUMP * n_blocks), length, gap)


def _run_ages(length: Numbers, gap: IntArray, age: Numbers, jumps: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the age at the beginning of each run, shape (n_runs,)."""
    before = np.cumsum(length) - length
    first, renewed = np.searchsorted(gap, gap), _last_before(jumps)
    since_first = age[gap] + before - before[first]
    return np.asarray(np.where(renewed >= first, before - before[renewed], since_first), dtype=np.float64)


def _last_before(chosen: npt.NDArray[np.bool_]) -> IntArray:
    """Return the number of the last chosen entry before each one, -1 if there is none."""
    number = np.maximum.accumulate(np.where(chosen, np.arange(len(chosen)), -1))
    last: IntArray = np.r_[-1, number[:-1]].astype(np.int64)
    return last


def _split_last(runs: _Runs, entering: npt.NDArray[np.bool_], n_blocks: int) -> _Runs:
    """Return the runs with the last period of gaps that end in a noticed state as a separate run with letter `n + block`."""
    letters, lengths, owner = runs
    last = np.flatnonzero(np.r_[owner[1:] != owner[:-1], True])
    last = last[entering[owner[last]]]
    lengths = lengths.copy()
    lengths[last] -= 1
    letters, owner = np.insert(letters, last + 1, letters[last] + n_blocks), np.insert(owner, last + 1, owner[last])
    lengths = np.insert(lengths, last + 1, 1)
    kept = lengths > 0
    return _Runs(letters[kept], lengths[kept], owner[kept])


def _with_entries(runs: _Runs, entering: npt.NDArray[np.bool_], n_blocks: int) -> _Runs:
    """Return the runs with, at the end of gaps that end in a noticed state, the moment of entering it as a run of length 0."""
    last = np.flatnonzero(np.r_[runs.gap[1:] != runs.gap[:-1], True])
    last = last[entering[runs.gap[last]]]
    letter = np.insert(runs.letter, last + 1, runs.letter[last] + ENTERING * n_blocks)
    return _Runs(letter, np.insert(runs.length, last + 1, 0), np.insert(runs.gap, last + 1, runs.gap[last]))


def _last_records(gap_of: IntArray, used: npt.NDArray[np.bool_]) -> IntArray:
    """Return the record that ends each gap: the one after its last used record."""
    last = np.zeros(gap_of[-1] + 1, dtype=np.int64)
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


def _ages(records: Records, renewing: npt.NDArray[np.bool_]) -> Numbers:
    """Return the age at each record: that of the column, or else time since the unit's first record or last renewing action."""
    if records.age is not None:
        return records.age
    first = np.searchsorted(records.unit, records.unit)
    renewed = _last_before((records.action != NONE) & np.r_[renewing, False][records.action])
    age = records.time - records.time[np.maximum(renewed, first)]
    return np.asarray(age / records.unit_length if records.continuous else age)


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


def distinct_words(letters: IntArray, lengths: Numbers, offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the number of each gap's word, and for each word the first gap that has it.

    Parameters
    ----------
    letters, lengths : arrays, shape (n_runs,)
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
    runs: _Runs,
    offsets: IntArray,
    representatives: IntArray,
    groups: tuple[IntArray, IntArray],
    n_blocks: int,
    noticed: bool,
    continuous: bool,
) -> tuple[GapWords, Letters]:
    """Return the `GapWords` of groups (words, first states) and their letters; a word has the runs of its representative gap."""
    distinct = set(zip(runs.letter.tolist(), runs.length.tolist(), strict=True))
    if continuous:
        numbers = {run: number for number, run in enumerate(sorted(distinct))}
        letter_of, left, right = np.arange(len(numbers)), *np.full((2, len(numbers)), -1)
        letters = _continuous_letters(list(numbers), n_blocks, noticed)
    else:
        numbers, letter_of, left, right = run_graph(distinct)
        first = LetterKind.UNNOTICED_STEP if noticed else LetterKind.STEP
        kinds = np.repeat([first, LetterKind.STEP], n_blocks)[: n_blocks * (2 if noticed else 1)].astype(np.int64)
        letters = Letters(kinds, np.arange(len(kinds)) % n_blocks, np.ones(len(kinds)))
    chosen = [range(offsets[gap], offsets[gap + 1]) for gap in representatives]
    nodes = [numbers[runs.letter[run].item(), runs.length[run].item()] for span in chosen for run in span]
    starts = np.cumsum([0, *(len(span) for span in chosen)]).astype(np.int64)
    return GapWords(letter_of, left, right, np.array(nodes, dtype=np.int64), starts, *groups), letters


def _continuous_letters(runs: Sequence[tuple[int, float]], n_blocks: int, noticed: bool) -> Letters:
    """Return a letter for every run (letter, duration) in continuous time."""
    flow = LetterKind.UNNOTICED_FLOW if noticed else LetterKind.FLOW
    kinds = {0: flow, ENTERING: LetterKind.ENTRY, JUMP: LetterKind.STEP}
    code = np.array([letter for letter, _ in runs], dtype=np.int64)
    kind = np.array([kinds[one] for one in (code // n_blocks).tolist()], dtype=np.int64)
    return Letters(kind, code % n_blocks, np.array([duration for _, duration in runs]))


def unit_events(gaps: Gaps, records: Records, with_first: bool) -> UnitEvents:
    """Return what happened to each unit in order, for the likelihood of records with errors.

    With `with_first`, the first inspection of a unit is an event, and units that were inspected once count, too; otherwise the
    state at the first inspection is known.
    """
    events: list[list[int]] = [[] for _ in range(gaps.n_units)]
    begin = np.full(gaps.n_units, NONE)
    inspections = np.flatnonzero(records.state != NONE)
    units, first = np.unique(records.unit[inspections], return_index=True)
    begin[units] = records.state[inspections[first]]
    if with_first:
        for unit in units.tolist():
            events[unit].append(-1 - int(begin[unit]))
    words, starts = gaps.words.runs.tolist(), gaps.words.offsets.tolist()
    for gap in range(len(gaps.begin)):
        word = int(gaps.words.word[gaps.group[gap]])
        events[gaps.unit[gap]] += [*words[starts[word] : starts[word + 1]], -1 - int(gaps.end[gap])]
    counts = np.array([len(one) for one in events])
    flat = np.array([event for one in events for event in one], dtype=np.int64)
    return UnitEvents(flat, np.r_[0, np.cumsum(counts)].astype(np.int64), begin.astype(np.int64))
