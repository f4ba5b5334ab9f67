"""Diagnostics as data: codes, sentences, JSON and files."""

import json

import pytest

import actmeasure as am
from actmeasure.inspection.diagnostics import SEVERITIES, Diagnostic, diagnostic
from actmeasure.inspection.text import PROBLEMS, SENTENCES, problem_text

DETAILS = {
    "lines-skipped": {"count": 7, "lines": (3, 1200), "problem": "unit-empty"},
    "dates-to-periods": {"period": "year"},
    "times-divided": {"length": 0.5},
    "records-merged": {"records": 1},
    "default-action-not-recorded": {"action": "wait", "recorded": ("run", "stop")},
    "actions-filled-in": {"periods": 3, "action": "wait", "actions": 1},
    "actions-filled-in-between": {"periods": 3, "action": "wait", "actions": 1},
    "dates-with-two-readings": {"dates": 3, "first": "day", "example": "13/04/2012"},
    "months-without-day": {"day": 15},
    "cells-missing": {"texts": ("NA", "n/a")},
    "columns-ignored": {"columns": ("river",)},
    "states-sorted": {"states": ("bad", "good")},
    "contradicted-records-left-out": {"times": 2},
    "contradictions-left-out": {"count": 7, "all_gaps": 100, "lines": (3, 4, 5, 6, 7)},
    "contradicting-records-left-out": {"count": 1, "lines": (3,)},
    "contradicting-units-left-out": {"count": 2, "lines": (3, 9)},
    "state-left-unseen": {"state": "4", "units": 12, "structure": "absorbing"},
    "age-matters": {"statistic": 12.5, "degrees": 3, "p_value": 0.006},
    "age-does-not-matter": {"statistic": 2.5, "degrees": 3, "p_value": 0.5},
    "intensity-at-limit": {"action": "wait", "begin": "1", "end": "2"},
    "errors-confounded": {
        "state": "2", "recorded": "1", "standard_error": 0.3, "action": "wait", "begin": "1", "end": "2", "correlation": 0.97,
    },
    "units-without-change": {"units": 2, "all_units": 1000},
    "times-look-like-dates": {},
    "state-seen-once": {"state": "B", "file": "records.csv", "line": 5},
    "state-never-seen": {"state": "B"},
    "assumed-transitions": {"action": "repair", "states": ("3", "4")},
    "assumption-not-needed": {"action": "repair", "target": "1"},
    "few-units": {"units": 2},
    "action-without-data": {"action": "repair"},
    "action-without-data-in-states": {"action": "repair", "states": ("3", "4")},
    "little-exposure": {"action": "repair", "states": ("3", "4"), "periods": (2.0, 4.25), "least": 10.0},
    "estimation-not-converged": {},
    "intervals-incomplete": {"done": 2, "requested": 50},
    "few-replicates": {"done": 9, "level": 0.9, "held": 0.8, "needed": 19},
    "goodness-incomplete": {"done": 2, "requested": 50},
    "flat-directions": {"directions": 2, "actions": ("a", "b"), "begins": ("1", "2"), "ends": ("2", "1")},
    "flat-directions-not-checked": {"most": 1000},
    "gaps-with-common-factor": {"periods": 2, "other_chains": 0, "starts": 20},
    "several-chains": {"action": "a", "begin": "1", "end": "2", "probability": 0.25, "other_probability": 0.5},
    "misfit-gap": {},
    "misfit-history": {},
    "misfit-age": {},
    "difference-gap": {
        "begin": "1", "state": "2", "seen": 1, "expected": 3.25, "total": 1200, "action": "a", "period": "year", "first": 3,
    },
    "difference-history": {"begin": "1", "state": "2", "seen": 4, "expected": 3.25, "total": 12, "also_before": 0},
    "difference-age": {
        "begin": "1", "state": "2", "seen": 4, "expected": 3.25, "total": 12, "period": "year", "first": 0, "last": 5,
    },
    "model-does-not-fit": {},
    "failure-without-running-cost": {"state": "5"},
    "noticed-state-in-plan": {"state": "5"},
    "plan-not-closed": {"stopped": "time", "discount": 0.9},
    "failed-units-left": {"share": 0.4},
    "plan-far-from-bound": {"share": 0.1},
    "other-policy-is-better": {"policy": "never inspecting"},
    "longest-interval-exceeded": {"longest": 2, "period": "year"},
    "failure-limit-exceeded": {},
    "resampled-not-solved": {"left": 3, "requested": 50},
    "worth-incomplete": {"method": "visual"},
    "worth-not-computed": {},
    "fit-not-tested": {},
    "fit-not-decided": {"sets": 20},
    "plan-never-acts": {"action": "nothing"},
    "failure-price-missing": {},
    "limit-in-weighted-mean-only": {},
    "plan-from-other-search": {"source": "frontier"},
    "states-without-plan": {},
    "part-interrupted": {"part": "policies"},
    "part-out-of-time": {"part": "prices"},
    "policy-out-of-time": {"policy": "never"},
    "policy-failed": {"policy": "never", "discount": 1.0},
    "policy-not-closed": {},
    "policy-search-stopped": {},
    "longest-interval-is-best": {"tried": 1, "period": "year"},
    "no-such-rule": {"policy": "threshold", "reason": "failed"},
    "best-of-those-tried": {"rules": 1200},
    "longer-intervals-not-tried": {"tried": 30, "period": "year"},
    "frontier-failed": {"discount": 0.9},
    "frontier-not-closed": {"gap": 12.5, "currency": "EUR", "stopped": "time", "discount": 0.9},
    "plans-at-prices-incomplete": {},
    "no-resampled-models": {},
    "resampled-models-incomplete": {"done": 2, "requested": 50},
    "assumption": {"text": "An inspection costs 100 EUR."},
    "stored-text": {"text": "A sentence."},
}  # fmt: skip
SOME_SENTENCES = {
    "lines-skipped": "Left out, as requested: 7 broken lines (3, 1,200, ...). Line 3: the unit is empty; name the "
    "unit (of merged cells only the first has a value: unmerge them, and fill in the others).",
    "state-seen-once": "State 'B' was seen only once (records.csv, line 5): a typing error, or too rare to estimate its "
    "transitions.",
    "plan-from-other-search": "The plan is the best schedule found, by the search over other prices; the search for the plan "
    "itself found none as good in its time.",
    "policy-failed": "No comparison with never inspecting: no finite value or bound was found; allow more time, or use a "
    "discount below 1.",
    "longest-interval-is-best": "The best interval is the longest that was tried, 1 year; longer ones may be better.",
    "longer-intervals-not-tried": "Intervals above 30 years were not tried, to save time.",
    "frontier-failed": "Other prices of an inspection could not be tried: there was no time for a bound; allow more time.",
    "actions-filled-in": "3 periods without a recorded action count as 'wait', the only action.",
    "assumed-transitions": "Assumed, as requested: 'repair' changes nothing, from 3, 4; the records contain no information about "
    "that.",
    "little-exposure": "Action 'repair' has fewer than 10 periods of data in state 3 (2.0), 4 (4.2).",
    "difference-gap": "Of 1,200 times that a unit was seen in 1, after 'a' for 3 years or more it was then seen in 2 1 time; 3.2 "
    "were expected.",
    "difference-history": "Of 12 times that a unit was seen in 1, after several actions, not in 1 at the inspection before, it "
    "was then seen in 2 4 times; 3.2 were expected.",
    "difference-age": "Of 12 times that a unit was seen in 1, after several actions, 0 to 5 years from the unit's first record, "
    "it was then seen in 2 4 times; 3.2 were expected.",
    "frontier-not-closed": "At other prices a schedule could be better by up to 12.5 EUR. The time limit was reached: more time "
    "may close the gap.",
}
#: A cell that cannot be read, and the problem and sentence that it gives.
BROKEN = {
    ("", "0", "1"): ("unit-empty", "the unit is empty"),
    ("a", " ", "1"): ("time-empty", "the time is empty"),
    ("a", "-1", "1"): ("time-negative", "the time '-1' is negative"),
    ("a", "1.5", "1"): ("time-not-whole", "is not a whole number of periods"),
    ("a", "inf", "1"): ("time-unusable", "the time 'inf' is not a usable number"),
    ("a", "soon", "1"): ("time-not-read", "is neither a number nor a date"),
    ("a", "2024-05-31", "1"): ("date-without-period", "is a date"),
    ("a", "0", "#REF!"): ("cell-error", "an error of a spreadsheet"),
    ("a", "0", "x" * 500): ("unknown-name", "unknown state"),
    ("a\0", "0", "1"): ("not-text", "is not UTF-8 text"),
}


def test_every_code_has_a_severity_a_sentence_and_an_example():
    assert set(SEVERITIES) == set(SENTENCES) == set(DETAILS)


@pytest.mark.parametrize("code", DETAILS)
def test_a_diagnostic_is_a_sentence_and_json(code):
    found = diagnostic(code, **DETAILS[code])
    text = str(found)
    assert text.endswith(".")
    assert text == SOME_SENTENCES.get(code, text)
    assert "{" not in text
    for name, value in found.numbers.items():  # numbers and names are told apart
        assert not isinstance(value, str), name
    record = found.record()
    assert list(record) == ["code", "severity", "numbers", "names", "text"]
    assert json.loads(json.dumps(record))["text"] == text
    assert {**found.numbers, **found.names} == DETAILS[code]


def test_equal_diagnostics_are_one_in_a_set():
    one, same, other = (diagnostic("few-units", units=units) for units in (2, 2, 3))
    assert one == same != other
    assert len({one, same, other}) == 2


def test_names_are_kept_and_shown_escaped():
    found = diagnostic("state-never-seen", state="worn\x1b[31m")
    assert found.names["state"] == "worn\x1b[31m"
    assert str(found).isprintable()


def test_a_missing_detail_is_not_worded():
    with pytest.raises(KeyError):
        str(Diagnostic("few-units", "warning", {}, {}))


@pytest.mark.parametrize("cells", BROKEN)
def test_the_problem_of_a_skipped_line_is_data(cells, tmp_path):
    problem, words = BROKEN[cells]
    unit, time, state = ([one, "a", "a", "b", "b"] for one in cells)
    table = {"unit": unit, "time": [time[0], 0, 1, 0, 2], "state": [state[0], "1", "2", "1", "1"]}
    given = {"default_action": "wait", "bootstrap": 0, "goodness": 0, "states": ["1", "2"]}
    fit = am.fit(table, **given, skip_broken=True)
    skipped = fit.notes[0]
    assert (skipped.code, skipped.names["problem"], skipped.numbers["lines"]) == ("lines-skipped", problem, (1,))
    assert words in str(skipped)
    assert all(len(value) <= 100 for value in skipped.names.values())
    fit.save(tmp_path / "fit.npz")
    assert am.Fit.load(tmp_path / "fit.npz").notes == fit.notes
    with pytest.raises(am.errors.FitError, match=r"row 1: .*skip_broken=True") as error:
        am.fit(table, **given)
    assert words in str(error.value)


def test_every_problem_of_a_line_is_worded():
    seen = {problem for problem, _ in BROKEN.values()}
    assert seen | {"wrong-width", "dates-and-numbers", "date-not-in-format", "age-unusable"} == set(PROBLEMS)
    assert "31.2" in problem_text("date-not-in-format", {"time": "31.2", "format": "%d"})
    assert "'x'" in problem_text("age-unusable", {"age": "x"})
    rows = problem_text("wrong-width", {"fields": 1, "expected": 4, "delimiter": ";"})
    assert rows.startswith("it has 1 field, expected 4")


def test_sentences_of_earlier_files_are_kept():
    skipped = diagnostic("lines-skipped", count=1, lines=(3,), problem="the unit is empty; name the unit")
    assert str(skipped).endswith("Line 3: the unit is empty; name the unit.")
    assert "(records.csv, line 5)" in str(diagnostic("state-seen-once", state="B", place="records.csv, line 5"))


def test_files_keep_diagnostics(tmp_path):
    seen = {"unit": ["a", "a", "b", "b"], "time": [0, 1, 0, 2], "state": ["1", "2", "1", "1"]}
    fit = am.fit(seen, default_action="wait", bootstrap=0, goodness=0)
    fit.save(tmp_path / "fit.npz")
    again = am.Fit.load(tmp_path / "fit.npz")
    assert [one.code for one in fit.warnings] == [
        "state-seen-once", "few-units", "action-without-data-in-states", "little-exposure",
    ]  # fmt: skip
    assert (again.warnings, again.notes, again.identifiability) == (fit.warnings, fit.notes, fit.identifiability)
    assert all(hash(one) == hash(other) for one, other in zip(again.warnings, fit.warnings, strict=True))
