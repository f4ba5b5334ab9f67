"""Fits, advice and diagnostics in words and tables: the one place where the inspection room turns results into sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.errors import counted, quoted, shown, unknown_name
from actmeasure.inspection.economics import DAYS, Units
from actmeasure.inspection.schedules import belief_after, plan_of
from actmeasure.planning.budget import why_open
from actmeasure.statistics import quantile_interval
from actmeasure.text import break_even_text, name_value_lines, percent, plain_number, shortened, text_table

if TYPE_CHECKING:
    from actmeasure.evaluation import Evaluation
    from actmeasure.inspection.advice import Advice, StatePlan
    from actmeasure.inspection.diagnostics import Diagnostic
    from actmeasure.inspection.fitting import Fit
    from actmeasure.inspection.imperfect_rules import ComparedRule
    from actmeasure.inspection.plan_figures import Figures
    from actmeasure.inspection.schedules import PricedSchedule
    from actmeasure.inspection.usual_policies import ComparedPolicy
    from actmeasure.model import Model
    from actmeasure.schedule import BlindPlan

__all__ = [
    "POLICIES",
    "PROBLEMS",
    "RULES",
    "SENTENCES",
    "advice_text",
    "agreement_words",
    "break_even",
    "certificate",
    "confidence_lines",
    "confidence_words",
    "failures_words",
    "first_notes",
    "fit_text",
    "inspection_rate",
    "notes_text",
    "plan_words",
    "policy_name",
    "policy_rule",
    "price_words",
    "problem_text",
    "rule_name",
    "rule_words",
    "sentence",
]

#: Largest number of plans, and of price ranges, in the terminal; JSON, CSV and the page have all.
PLANS_SHOWN, PRICES_SHOWN = 20, 12
#: Largest width of a plan in the terminal, in characters.
PLAN_WIDTH = 78
#: Smaller probabilities of a fit are not listed one by one.
SMALLEST_SHOWN = 0.0005
#: The first line of a fit whose conditions of a maximum do not hold.
NOT_SETTLED = "NOT SETTLED: the likelihood is not at a maximum, so that these figures are rough; see the warnings."
#: Prices below this share of the plan's value may come from rounding, and are shown as 0.
ROUNDING = 1e-9
#: Prices below this share of the largest that is shown are shown as 0: breakpoints of plans found that differ by rounding.
PRICE_NOISE = 1e-6
#: Largest number of states that are named for each action in the words of a rule.
STATES_NAMED = 12


def sentence(diagnostic: Diagnostic) -> str:
    """Return a diagnostic as a sentence that can be shown: invisible characters of names are escaped.

    Raises `KeyError`, `TypeError` or `ValueError` if the code is not known or a detail is missing or of another kind.
    """
    details: dict[str, Any] = {**diagnostic.numbers, **diagnostic.names}
    words = SENTENCES[diagnostic.code]
    return shown(words.format_map(_joined(details)) if isinstance(words, str) else words(details))


def _joined(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details with lists of texts joined by commas."""
    return {key: ", ".join(map(str, value)) if isinstance(value, tuple) else value for key, value in details.items()}


def problem_text(problem: str, details: Mapping[str, Any]) -> str:
    """Return why a line of the records cannot be read, for the middle of a sentence; `problem` is a key of `PROBLEMS`."""
    words = PROBLEMS[problem]
    return words.format_map(details) if isinstance(words, str) else words(details)


def _wrong_width(details: Mapping[str, Any]) -> str:
    delimiter = details["delimiter"]
    return (
        f"it has {counted(details['fields'], 'field')}, expected {details['expected']} as in the first line; an empty cell still "
        f"needs its {delimiter!r}, and a cell with a {delimiter!r} in it needs quotes"
    )


def _not_text(details: Mapping[str, Any]) -> str:
    return (
        f"the {details['kind']} {quoted(details['name'])} is not UTF-8 text; save the file as UTF-8, or give its encoding, such "
        "as encoding='cp1252' (--encoding cp1252)"
    )


def _time_problem(words: str) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that words what is wrong with a time."""
    return lambda details: f"the time {quoted(details['time'])} {words}"


#: Why a cell may be empty that does not look so in a spreadsheet.
MERGED = " (of merged cells only the first has a value: unmerge them, and fill in the others)"
#: Why a line of the records cannot be read: a format of its details, or a function of them.
PROBLEMS: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "wrong-width": _wrong_width,
    "not-text": _not_text,
    "cell-error": "the {kind} is {name!r}, an error of a spreadsheet; correct the cell, or leave it empty",
    "unknown-name": lambda details: unknown_name(details["kind"], details["name"], details["choices"]),
    "unit-empty": f"the unit is empty; name the unit{MERGED}",
    "time-empty": f"the time is empty; give the period of the record{MERGED}",
    "time-unusable": _time_problem("is not a usable number; correct it"),
    "time-negative": _time_problem("is negative; count times from 0 up"),
    "time-not-whole": _time_problem(
        "is not a whole number of periods; give the length of a period with period=0.5 (--period 0.5) to have times divided by "
        "it and rounded down, or use times as they are with time='continuous' (--time continuous)"
    ),
    "time-not-read": _time_problem(
        "is neither a number nor a date such as 2024-05-31, 31.5.2024, 05/31/2024 or May 2024; correct it, or give the form of "
        "dates with date_format='%d.%m.%y' (--date-format %d.%m.%y)"
    ),
    "date-not-in-format": lambda details: (
        f"the time {quoted(details['time'])} is no date of the form {details['format']}; correct it"
    ),
    "age-unusable": lambda details: f"the age {quoted(details['age'])} is not a number that is 0 or more; correct it",
    "date-without-period": _time_problem(
        f"is a date; say what a period is with period='month' (--period month), or one of: {', '.join(DAYS)}; or use dates "
        "as they are with time='continuous' (--time continuous)"
    ),
    "dates-and-numbers": "the time is a date where those before are numbers, or the other way round; use one of the two",
}


def _lines_skipped(details: Mapping[str, Any]) -> str:
    named, problem = details["lines"], details["problem"]
    lines = ", ".join(f"{line:,}" for line in named) + ", ..." * (details["count"] > len(named))
    # Files of earlier versions have the sentence in place of its code.
    words = problem_text(problem, details) if problem in PROBLEMS else problem
    return f"Left out, as requested: {counted(details['count'], 'broken line')} ({lines}). Line {named[0]:,}: {words}."


def _state_seen_once(details: Mapping[str, Any]) -> str:
    place = details.get("place")  # in files of earlier versions
    if place is None:
        place = f"{details['file']}, line {details['line']:,}" if "file" in details else f"row {details['line']:,}"
    return f"State {details['state']!r} was seen only once ({place}): a typing error, or too rare to estimate its transitions."


def _actions_filled_in(details: Mapping[str, Any]) -> str:
    reason = "as requested" if details["actions"] > 1 else "the only action"
    return (
        f"{counted(details['periods'], 'period')} without a recorded action count as {details['action']!r}, {reason}."
    )


def _contradictions_left_out(details: Mapping[str, Any]) -> str:
    return (
        f"Left out, as requested: {counted(details['count'], 'gap')} of {details['all_gaps']:,} that cannot be with the "
        f"structure and assumptions given; they end in line {_lines(details)}."
    )


def _records_left_out(details: Mapping[str, Any]) -> str:
    return (
        f"Left out, as requested: {counted(details['count'], 'record')} that cannot be with the structure, errors and "
        f"assumptions given, in line {_lines(details)}."
    )


def _units_left_out(details: Mapping[str, Any]) -> str:
    return (
        f"Left out, as requested: {counted(details['count'], 'unit')} whose first record, in line {_lines(details)}, cannot be "
        "with the start and the errors given."
    )


def _lines(details: Mapping[str, Any]) -> str:
    """Return the first lines of what was left out."""
    lines = ", ".join(f"{line:,}" for line in details["lines"])
    return f"{lines}, ..." if details["count"] > len(details["lines"]) else lines


def _assumption(details: Mapping[str, Any]) -> str:
    """Return the part of a sentence that says what was assumed; without a target state, the action changes nothing."""
    effect = f"leads to {details['target']}" if "target" in details else "changes nothing"
    return f"Assumed, as requested: {details['action']!r} {effect}"


def _little_exposure(details: Mapping[str, Any]) -> str:
    pairs = zip(details["states"], details["periods"], strict=True)
    each = ", ".join(f"{state} ({periods:.1f})" for state, periods in pairs)
    least, unit = plain_number(details["least"]), details.get("unit", "periods")
    return f"Action {details['action']!r} has fewer than {least} {unit} of data in state {each}."


def _flat_directions(details: Mapping[str, Any]) -> str:
    count = details["directions"]
    ways = "There is 1 way" if count == 1 else f"There are {count:,} ways"
    entries = zip(details["actions"], details["begins"], details["ends"], strict=True)
    return (
        f"{ways} to change the probabilities that such records cannot show, because the gaps hide it. Affected most (one of "
        f"many equivalent choices): {'; '.join(f'{action} from {begin} to {end}' for action, begin, end in entries)}."
    )


def _several_chains(details: Mapping[str, Any]) -> str:
    what = details.get("what", "probability")
    return (
        f"Several chains fit equally well: {details['action']} from {details['begin']} to {details['end']}, for example, has "
        f"{what} {details['probability']:.3f} in one and {details['other_probability']:.3f} in another, with the same "
        "likelihood. One of them is shown; inspections after other gaps, "
        f"best {'short ones' if what == 'rate' else 'of 1 period'}, or a structure would distinguish them."
    )


def _gaps_with_common_factor(details: Mapping[str, Any]) -> str:
    common = details["periods"]
    fact = f"All gaps are multiples of {common:,} periods"
    if details["other_chains"]:
        return f"{fact}, and the records determine only the transitions over {common:,} periods."
    return (
        f"{fact}, so that only transitions over {common:,} periods are observed. {details['starts']:,} searches from random "
        "starts led to the same probabilities, which does not prove that no other probabilities have the same likelihood."
    )


def _difference(where: Callable[[Mapping[str, Any]], str]) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that words a difference between observed and expected counts; `where` words the class of gaps."""

    def words(details: Mapping[str, Any]) -> str:
        seen = details["seen"]
        return (
            f"Of {details['total']:,} times that a unit was seen in {details['begin']}, {where(details)} it was then seen in "
            f"{details['state']} {counted(seen, 'time')}; {details['expected']:,.1f} were expected."
        )

    return words


def _after(details: Mapping[str, Any]) -> str:
    """Return what was done during a class of gaps; without an action, several were."""
    return f"after {details['action']!r}" if "action" in details else "after several actions"


def _by_history(details: Mapping[str, Any]) -> str:
    also = "also" if details["also_before"] else "not"
    return f"{_after(details)}, {also} in {details['begin']} at the inspection before,"


def _span(details: Mapping[str, Any]) -> str:
    """Return `3 years`, `3 to 5 years` or, without a largest number, `3 years or more`."""
    first, last, period = details["first"], details.get("last"), details["period"]
    if isinstance(first, float) or isinstance(last, float):  # continuous time
        return f"{plain_number(first)} {'or more' if last is None else f'to {plain_number(last)}'} {period}s"
    if last is not None and last != first:
        return f"{first:,} to {last:,} {period}s"
    return counted(first, period) + ("" if last is not None else " or more")


def _frontier_not_closed(details: Mapping[str, Any]) -> str:
    better = "by an unknown amount"
    if "gap" in details:
        better = f"by up to {Units(details['currency']).amount(details['gap'])}"
    return f"At other prices a schedule could be better {better}. {why_open(details['stopped'], details['discount'])}".rstrip()


def _no_result(details: Mapping[str, Any]) -> str:
    """Return why planning failed, with its remedy: for lack of time or, without discount, of a finite value."""
    if details["discount"] < 1:
        return "there was no time for a bound; allow more time."
    return "no finite value or bound was found; allow more time, or use a discount below 1."


#: Parts of the advice, as they are named in a sentence.
PARTS = {
    "policies": "the comparison with other policies",
    "prices": "other prices of an inspection were tried",
    "resampled": "the resampled models were solved",
    "worth": "it was computed what the inspections are worth",
}
#: The policies that a plan is compared with, as they are named in a sentence.
POLICIES = {
    "always": "inspecting every period",
    "never": "never inspecting",
    "every-k": "inspecting by the calendar",
    "one-interval": "one interval",
    "by-condition": "intervals by condition",
}
#: Rules that are compared with where inspections are imperfect.
RULES = {
    "calendar-kept": "a calendar that repairs do not shift",
    "calendar-restarted": "a calendar that begins anew after a repair",
    "by-outcome": "intervals and inspections by outcome",
    "threshold": "a threshold on the believed probability of failure",
    "two-thresholds": "two thresholds on the believed probability of failure",
    "always": "inspecting every period",
    "never": "never inspecting",
}
#: Why there is no rule of a kind.
NO_RULE = {
    "time": "there was no time for any; allow more",
    "measurement": "no inspection can be made while waiting",
    "failed": "it is not known which states are failures; name them",
    "no failure": "a unit that is left alone never fails",
    "outcomes": "the inspections have too many outcomes for a rule by outcome",
    "beliefs": "such rules reach too many beliefs to list them",
}
#: Searches that found the plan, other than the one for the plan itself.
SOURCES = POLICIES | {"frontier": "the search over other prices"}


def _longest_interval(words: str) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that words a statement on the longest interval that was tried."""
    return lambda details: words.format(counted(details["tried"], details["period"]))


def _longest_interval_exceeded(details: Mapping[str, Any]) -> str:
    return f"It exceeds the longest interval of {counted(details['longest'], details['period'])} between inspections."


#: The sentence of every diagnostic: a format of its numbers and names, or a function of them.
SENTENCES: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "lines-skipped": _lines_skipped,
    "dates-to-periods": "Dates were assigned to the {period} they fall in: a state counts as seen at its beginning, an action as "
    "done during it.",
    "times-divided": "Times were divided by {length:g} and rounded down to whole periods.",
    "dates-with-two-readings": "{dates:,} dates could be read in two ways; the {first} is taken to come first, as in {example}.",
    "months-without-day": "Dates that name only a month count as its day {day}.",
    "cells-missing": "Cells that say {texts} count as empty.",
    "columns-ignored": "Columns whose name is no time were not read: {columns}.",
    "states-sorted": lambda details: f"The states are in the order in which they sort, {' < '.join(details['states'])}; give "
    "another order, the best first, with states=[...] (--states ...).",
    "contradicted-records-left-out": lambda details: "Left out, as requested: what was recorded at "
    f"{counted(details['times'], 'time')} at which a unit has two states or actions.",
    "records-merged": "Merged with another record of the same unit and time, with which they agree: {records:,}.",
    "default-action-not-recorded": "No record names the default action {action!r}; the records name {recorded}.",
    "actions-filled-in": _actions_filled_in,
    "actions-filled-in-between": "After {periods:,} records without an action that goes on, {action!r} went on.",
    "contradictions-left-out": _contradictions_left_out,
    "contradicting-records-left-out": _records_left_out,
    "contradicting-units-left-out": _units_left_out,
    "units-without-change": "{units:,} of {all_units:,} units were inspected only once or never; they contain no information "
    "about transitions.",
    "times-look-like-dates": "The times look like dates without dashes, but were read as numbers of periods; write 2024-05-31, "
    "or say so with date_format='%Y%m%d' (--date-format %Y%m%d).",
    "state-seen-once": _state_seen_once,
    "state-never-seen": "State {state!r} was never seen.",
    "assumed-transitions": lambda details: f"{_assumption(details)}, from {', '.join(details['states'])}; the records contain "
    "no information about that.",
    "assumption-not-needed": lambda details: f"{_assumption(details)} where the records contain no information; they contain "
    "some about all states, so nothing was assumed.",
    "age-matters": "The parameters differ significantly between the intervals of age: likelihood ratio {statistic:.2f} with "
    "{degrees} degrees of freedom, p = {p_value:.3g}.",
    "age-does-not-matter": "The parameters do not differ significantly between the intervals of age, so that none may be needed: "
    "likelihood ratio {statistic:.2f} with {degrees} degrees of freedom, p = {p_value:.3g}.",
    "few-units": "Units inspected twice or more: {units:,}; the intervals, which resample units, are rough.",
    "action-without-data": "Action {action!r} was never taken, or no inspection followed; a model cannot contain it without an "
    "assumption.",
    "action-without-data-in-states": "Action {action!r} was never observed in {states}: a model cannot contain it without an "
    "assumption there.",
    "little-exposure": _little_exposure,
    "estimation-not-converged": "The maximisation of the likelihood did not settle at a maximum; the estimates are rough. A "
    "structure with fewer transitions, or longer periods, usually helps.",
    "state-left-unseen": "No inspection followed one that showed {state!r} ({units:,} units): that units leave it is inferred "
    "from the other gaps alone. If it is not left, say so (--structure {structure}); if it is recorded when it happens, as a "
    "breakdown is, --noticed {state}.",
    "intensity-at-limit": "{action} from {begin} to {end} is faster than the records can show; its intensity is a lower limit.",
    "errors-confounded": "The records hardly tell apart how often {state} is recorded as {recorded} and how fast units go "
    "from {begin} to {end} ({action}): their estimates have a correlation of {correlation:.2f}, and the first a standard "
    "error of {standard_error:.2f}. Give the probability of that error, if it is known, or add pairs "
    "of inspections soon after each other.",
    "intervals-incomplete": "Intervals come from {done} of {requested} replicates: stopped early.",
    "few-replicates": "Intervals are the smallest and largest of {done} replicates, which is a level of {held:.1%}; {level:.1%} "
    "takes at least {needed:,}: bootstrap={needed} (--bootstrap {needed}).",
    "goodness-incomplete": "Goodness of fit: {done} of {requested} simulated sets of records; too few gaps, or stopped early.",
    "flat-directions": _flat_directions,
    "flat-directions-not-checked": "Not checked: with more than {most:,} probabilities it would take too long to find directions "
    "in which the likelihood is flat.",
    "gaps-with-common-factor": _gaps_with_common_factor,
    "several-chains": _several_chains,
    "misfit-gap": "The probabilities after long gaps do not follow from those after short ones: the time in a state is not "
    "geometric, or inspections were made when something seemed wrong.",
    "misfit-history": "The state alone does not determine the future: the time a unit has been in it matters (ageing), or units "
    "differ from each other.",
    "misfit-age": "The probabilities change with time since a unit's first record: ageing, or conditions that changed.",
    "difference-gap": _difference(lambda details: f"{_after(details)} for {_span(details)}"),
    "difference-history": _difference(_by_history),
    "difference-age": _difference(lambda details: f"{_after(details)}, {_span(details)} from the unit's first record,"),
    "model-does-not-fit": "The model does not fit the records in all respects, so that the plan is less reliable; how, "
    "follows here.",
    "failure-without-running-cost": "By the prices a unit that stays in {state!r} costs nothing after it has failed; if it does, "
    "give that a price under [running].",
    "noticed-state-in-plan": "State {state!r} is noticed at once in the records, but the plan assumes that it is not noticed "
    "before the next inspection; what is done when it is noticed is not in the figures.",
    "failed-units-left": "By these prices failed units are left as they are: {share:.0%} of the time a unit is in a "
    "failed state under this plan. A price seems to be missing: give what a failed unit costs per period under [running], or a "
    "higher price under [failure].",
    "plan-far-from-bound": "The bounds on the best plan are {share:.0%} apart, so that a much better one may exist; allow more "
    "time (--time-limit 300).",
    "other-policy-is-better": "The policy '{policy}' is better than this plan, which has few nodes; allow more (--nodes 60) or "
    "more time.",
    "longest-interval-exceeded": _longest_interval_exceeded,
    "failure-limit-exceeded": "It exceeds the limit on failures.",
    "resampled-not-solved": "The best plans of {left} of {requested} resampled models were not searched, for lack of time; this "
    "plan was evaluated in all of them.",
    "worth-incomplete": "There was no time to find out what the inspection {method!r} is worth; allow more.",
    "worth-not-computed": "Break-even prices of inspections are not computed for systems, and where intervals or failures are "
    "limited.",
    "fit-not-tested": "It was not tested whether a Markov chain fits the records; fit with goodness=100 (--goodness 100).",
    "fit-not-decided": "Whether a Markov chain fits the records was not decided: {sets} simulated sets are too few for any test "
    "to fail; fit with goodness=100 (--goodness 100).",
    "failure-price-missing": "A failure costs nothing by these prices, so that the plan does not prevent any. A price is "
    "missing: give what a failure costs, [failure] with states and price, or what a state costs per period under [running].",
    "plan-never-acts": "By these prices it is best never to do anything but {action!r}; check that no price is missing, "
    "such as that of a failure.",
    "limit-in-weighted-mean-only": "The limit on failures is kept in the mean in which a period counts as much as money does "
    "then, but not in the plain mean over the periods.",
    "plan-not-closed": lambda details: why_open(details["stopped"], details["discount"]),
    "plan-from-other-search": lambda details: f"The plan is the best schedule found, by {SOURCES[details['source']]}; the search "
    "for the plan itself found none as good in its time.",
    "states-without-plan": "States that are not in the table are never seen when the plan is followed.",
    "part-interrupted": lambda details: f"Stopped with Ctrl-C before {PARTS[details['part']]}; allow more time for it.",
    "part-out-of-time": lambda details: f"The time limit was reached before {PARTS[details['part']]}; allow more time for it.",
    "policy-out-of-time": lambda details: "There was no time to compare with "
    f"{(RULES | POLICIES)[details['policy']]}; allow more.",
    "policy-failed": lambda details: f"No comparison with {POLICIES[details['policy']]}: {_no_result(details)}",
    "policy-not-closed": "The best found; a better way that never inspects may exist.",
    "policy-search-stopped": "The search was stopped before it was done; more time may find a better rule.",
    "longest-interval-is-best": _longest_interval(
        "The best interval is the longest that was tried, {}; longer ones may be better."
    ),
    "best-of-those-tried": "The best of {rules:,} rules of its kind that were tried; a better one may exist.",
    "no-such-rule": lambda details: f"No comparison with {RULES[details['policy']]}: {NO_RULE[details['reason']]}.",
    "longer-intervals-not-tried": _longest_interval("Intervals above {} were not tried, to save time."),
    "frontier-failed": lambda details: f"Other prices of an inspection could not be tried: {_no_result(details)}",
    "frontier-not-closed": _frontier_not_closed,
    "plans-at-prices-incomplete": "There was no time for the plans of unexpected states at every price; allow more.",
    "no-resampled-models": "The fit has no resampled models, so the uncertainty of the plan is not known; fit with a bootstrap.",
    "resampled-models-incomplete": "There was time for {done} of {requested} resampled models; allow more for the rest.",
    "assumption": "Assumed: {text}",
    "stored-text": "{text}",
}  # fmt: skip

#: What each goodness-of-fit test compares.
TEST_WORDS = {
    "gap": "ends of gaps, by their length",
    "history": "ends of gaps, by the inspection before",
    "age": "ends of gaps, by time since the unit's first record",
}
#: The result of all goodness-of-fit tests together.
VERDICT_WORDS = {
    "misfit": "significant misfit of the Markov chain",
    "undecided": "too few of them for a significant result",
    "no-misfit": "no significant misfit of the Markov chain",
}


def fit_text(fit: Fit) -> str:
    """Return a fit in words and tables."""
    period = shown(fit.period or "period")
    counts = ((fit.n_units, "unit"), (fit.n_records, "record"), (fit.n_inspections, "inspection"))
    lines = [] if fit.converged else [NOT_SETTLED]
    lines += [
        ", ".join(counted(count, noun) for count, noun in counts),
        f"{len(fit.state_names)} states: {' < '.join(map(shown, fit.state_names))}",
    ]
    if fit.noticed:
        lines.append(f"noticed without an inspection: {', '.join(map(shown, fit.noticed))}")
    for action in range(len(fit.action_names)):
        lines += ["", *_action_table(fit, action, period)]
    if fit.errors is not None:
        lines += ["", *_error_table(fit)]
    lines += ["", *_goodness_lines(fit)]
    for title, diagnostics in (
        ("Not determined by such records", fit.identifiability), ("Warnings", fit.warnings), ("Notes", fit.notes)
    ):  # fmt: skip
        if diagnostics:
            lines += ["", f"{title}:", *(f"- {one}" for one in diagnostics)]
    return "\n".join(lines)


def _action_table(fit: Fit, action: int, period: str) -> Iterator[str]:
    """Yield the lines of an action's transition probabilities or intensities, one for each transition."""
    inspected, exposure = int(fit.inspected[action].sum()), float(fit.exposure[action].sum())
    plain = fit.plain_actions
    at_once = plain[action % len(plain)] in fit.at_once
    rates = fit.dynamics is not None and not at_once
    count = f"about {exposure:,.0f} {period}s in all"
    if at_once:
        count = "acts at once"
    yield (
        f"{shown(fit.action_names[action])} (transitions: {shown(fit.structure[action])}; done {inspected:,} times in a "
        f"state just seen, {count})"
    )
    interval = [] if fit.low is None else [f"{100 * fit.level:g} % interval"]
    head = ("from", "times" if at_once else f"{period}s", "to", f"rate per {period}" if rates else "chance", *interval)
    rows = [row for state in range(len(fit.state_names)) for row in _state_rows(fit, action, state, rates)]
    yield from (f"  {line}" for line in text_table(head, rows, "<><<<"[: len(head)], rule=False))


def _state_rows(fit: Fit, action: int, state: int, rates: bool) -> Iterator[Sequence[str]]:
    """Yield the rows of the transitions from one state; those that are rarer than `SMALLEST_SHOWN` are one row."""
    begin = (shown(fit.state_names[state]), f"{fit.exposure[action, state]:,.1f}")
    values, low, high = fit.probabilities, fit.low, fit.high
    if fit.dynamics is not None:
        values, low, high = fit.dynamics, fit.dynamics_low, fit.dynamics_high
    # Intensities, and probabilities over a short period such as a day, are small or large beside the others.
    changes = float(np.nan_to_num(values[action] * ~np.eye(len(values[action]), dtype=bool)).max()) or 1.0
    decimals = 3 + max(0, math.floor(-math.log10(changes)))
    smallest = SMALLEST_SHOWN * (changes if rates else 10.0 ** (3 - decimals))
    number = "{:.3g}".format if rates else f"{{:.{decimals}f}}".format
    row = values[action, state]
    if np.isnan(row).any():
        yield (*begin, "?", "not known")
        return
    if rates and fit.assumed[action, state]:
        yield (*begin, "-", "none", "assumed")
        return
    largest_rare, listed = 0.0, False
    for to, value in enumerate(row):
        ends = [] if low is None or high is None else [(low[action, state, to], high[action, state, to])]
        if value < smallest:
            largest_rare = max([largest_rare, *(float(end) for _, end in ends)])
            continue
        between = (
            ["assumed"] if fit.assumed[action, state] else [f"{number(one)} to {number(end)}" for one, end in ends]
        )
        yield (*begin, shown(fit.state_names[to]), number(value), *between)
        begin, listed = ("", ""), True
    if largest_rare >= smallest:
        yield (*begin, "others", number(0.0), f"each at most {number(largest_rare)}")
    elif not listed:
        yield (*begin, "-", "never left", *([""] if low is not None else []))


def _error_table(fit: Fit) -> Iterator[str]:
    """Yield the lines of the probabilities of recorded states."""
    assert fit.errors is not None
    first = {"seen": "the first record of a unit is right", "drawn": "the state at a unit's first record is drawn"}
    yield f"what is recorded ({first.get(fit.start or '', f'units start in {shown(fit.start or str())}')})"
    interval = [] if fit.errors_low is None else [f"{100 * fit.level:g} % interval"]
    rows = []
    for state, name in enumerate(fit.state_names):
        begin = shown(name)
        for recorded, chance in enumerate(fit.errors[state]):
            low, high = fit.errors_low, fit.errors_high
            ends = [] if low is None or high is None else [(low[state, recorded], high[state, recorded])]
            if chance < SMALLEST_SHOWN and all(end < SMALLEST_SHOWN for _, end in ends):
                continue
            between = [f"{one:.3f} to {end:.3f}" for one, end in ends]
            rows.append((begin, shown(fit.state_names[recorded]), f"{chance:.3f}", *between))
            begin = ""
    head = ("true state", "recorded as", "chance", *interval)
    yield from (f"  {line}" for line in text_table(head, rows, "<<<<"[: len(head)], rule=False))


def _goodness_lines(fit: Fit) -> Iterator[str]:
    if fit.goodness is None:
        yield "Goodness of fit: not tested."
        return
    verdict = VERDICT_WORDS[fit.goodness.verdict]
    yield f"Goodness of fit, against {fit.goodness.replicates} simulated sets of records: {verdict}."
    for test in fit.goodness.tests:
        yield f"  {TEST_WORDS[test.name]}: p = {test.p_value:.3f}"
    yield from (f"- {finding}" for finding in fit.goodness.findings)


def plan_words(model: Model, units: Units, state: int | None, plan: BlindPlan) -> str:
    """Return a plan after seeing a state (None: the start) in words, with the state that is known afterwards, if any."""
    words = plan.describe(model, units.period)
    if plan.then != "known":
        return words
    known = belief_after(model, state, plan.actions).known
    return words if known is None else f"{words}: {model.state_name(known)}"


#: The policies that a plan is compared with in a few words, and what each does and what it is the best of.
POLICY_WORDS = {
    "plan": (
        "this plan",
        "The certified plan: actions and times of inspections may depend on everything since the last inspection.",
    ),
    "present-rule": ("your present rule", "The rule that was given, evaluated as it is."),
    "always": (
        "inspect every {period}",
        "Inspect at the end of every {period} and do what is best for what was seen.",
    ),
    "never": ("never inspect", "Never inspect; act by time alone, {quality}."),
    "every-k": (
        "by the calendar, every {interval}",
        "Inspect every {interval}, whatever was seen, with act-then-measure's control in between, which need not be the best. "
        "The best of all intervals from 1 to {tried}.",
    ),
    "one-interval": (
        "every {interval}, act on what is seen",
        "Inspect every {interval}; {first_actions}. Until the next inspection: {waiting}. The best of all rules of this kind "
        "with intervals from 1 to {tried}.",
    ),
    "by-condition": (
        "interval by condition: {intervals}",
        "After what an inspection shows, take one action, then wait; the next inspection follows after {intervals}, depending on "
        "what was seen. The best of all rules of this kind with intervals from 1 to {tried}.",
    ),
}  # fmt: skip


def policy_name(policy: ComparedPolicy) -> str:
    """Return a policy in a few words."""
    return POLICY_WORDS[policy.key][0].format_map(_policy_details(policy))


def policy_rule(policy: ComparedPolicy) -> str:
    """Return what a policy does, and what it is the best of, in sentences."""
    return POLICY_WORDS[policy.key][1].format_map(_policy_details(policy))


def _policy_details(policy: ComparedPolicy) -> dict[str, str | None]:
    """Return the details in `POLICY_WORDS`; an interval follows *every*, as in `every year` and `every 2 years`."""
    period, (shortest, longest) = policy.period, policy.interval
    one = counted(longest, period)
    return {
        "period": period,
        "interval": period if longest == 1 else one,
        "intervals": f"{shortest} to {one}" if shortest < longest else one,
        "tried": counted(policy.tried or 0, period),
        "first_actions": "; ".join(_first_actions(policy)),
        "waiting": policy.waiting,
        "quality": "as well as that can be done" if policy.note is None else "in the best way found",
    }


def rule_name(rule: ComparedRule) -> str:
    """Return a rule for imperfect inspections in a few words."""
    return RULES[rule.key]


def rule_words(rule: ComparedRule, period: str) -> str:
    """Return what a rule for imperfect inspections does, in sentences."""
    looks = f"({rule.measurement}) " if rule.measurement else ""
    acts = "; ".join(_grouped_actions(rule.actions)) or "no action follows"
    acts = f"each component by its own outcome: {acts}" if rule.by_component else acts
    match rule.key:
        case "never":
            regular = rule.actions.get("")
            words = "Never inspect" + (f"; {regular} every {_every(rule.interval or 1, period)}" if regular else "")
            seen = "; ".join(_grouped_actions({outcome: a for outcome, a in rule.actions.items() if outcome}))
            return f"{words}; {seen}." if seen else f"{words}."
        case "calendar-kept" | "calendar-restarted":
            clock = "and it begins anew" if rule.key == "calendar-restarted" else "and the calendar goes on"
            every, first = _every(rule.interval or 1, period), counted((rule.interval or 1) + 1, period)
            return f"Inspect {looks}every {every}, first after {first}; {acts}, {clock}."
        case "always":
            return f"Inspect {looks}every {period}; {acts}."
        case "threshold":
            (low,) = rule.thresholds
            return f"Inspect {looks}when {_risk(period)} exceeds {plain_number(low)}; {acts}."
        case "two-thresholds":
            low, high = rule.thresholds
            return (
                f"When {_risk(period)} exceeds {plain_number(high)}: {rule.actions['']}; when it exceeds "
                f"{plain_number(low)}: inspect {looks.strip()}."
            )
    return " ".join(_plan_sentences(rule, period))


def _risk(period: str) -> str:
    return f"the believed probability of having failed after another {period}"


def _every(interval: int, period: str) -> str:
    """Return an interval as it follows *every*: "year", "2 years"."""
    return period if interval == 1 else counted(interval, period)


def _grouped_actions(actions: Mapping[str, str]) -> Iterator[str]:
    """Yield, for each action, the outcomes after which a rule takes it."""
    for action in dict.fromkeys(actions.values()):
        outcomes = [outcome for outcome in actions if actions[outcome] == action]
        more = f" and {len(outcomes) - STATES_NAMED} more" if len(outcomes) > STATES_NAMED else ""
        yield f"after {', '.join(map(shown, outcomes[:STATES_NAMED]))}{more}: {action}"


def _plan_sentences(rule: ComparedRule, period: str) -> Iterator[str]:
    """Yield the sentences of a rule by outcome."""
    for made, outcome, action, wait, then in rule.plans:
        when = f"after {counted(wait + 1, period)}"  # at the end of the period after those of waiting
        first = "" if action == rule.waiting else f"{action}, then "
        after = f"After {shown(outcome)} ({made}): " if made else ""
        words = f"{first}inspect ({then}) {when}"
        yield f"{after}{words if after else words.capitalize()}."


def _first_actions(policy: ComparedPolicy) -> Iterator[str]:
    """Yield, for each action, the states after which a policy takes it."""
    for action, states in policy.first_actions.items():
        more = f" and {len(states) - STATES_NAMED} more" if len(states) > STATES_NAMED else ""
        yield f"after seeing {', '.join(states[:STATES_NAMED])}{more}: {action}"


def advice_text(advice: Advice) -> str:
    """Return advice in words and tables."""
    parts = [
        advice.title,
        *([first_notes(advice)] if advice.first_notes else []),
        _facts(advice),
        _schedule(advice),
        _comparison(advice),
        *([_prices(advice)] if advice.frontier is not None else []),
        *(["\n".join(confidence_lines(advice))] if advice.confidence is not None else []),
        *([notes_text(advice)] if advice.other_notes else []),
    ]
    return "\n\n".join(parts)


def first_notes(advice: Advice) -> str:
    """Return the notes that have to be read before the plan is used."""
    head = "Read this first" + ("" if advice.is_usable else ": the plan should not be used as it is")
    return "\n".join([head, *(f"- {note}" for note in advice.first_notes)])


def notes_text(advice: Advice) -> str:
    """Return the other notes."""
    return "\n".join(["Notes", *(f"- {note}" for note in advice.other_notes)])


def _facts(advice: Advice) -> str:
    """Return the main figures, one line each."""
    return "\n".join(name_value_lines(_fact_rows(advice)))


def _fact_rows(advice: Advice) -> Iterator[tuple[str, str]]:
    units, result = advice.units, advice.evaluation
    yield "price of an inspection", price_words(advice)
    discounted = f", discounted by {advice.model.discount:.4g} per {units.period}" if advice.model.discount < 1 else ""
    yield f"{units.figure} in all", f"{units.money(advice.value)}{discounted}; {certificate(advice)}"
    per_period = advice.per_period(result)
    if per_period is not None:
        constant = f"{units.money(per_period)} discounted (a constant sum worth the same)"
        yield f"{units.figure} per {units.period}", constant
    if result.average_return is not None:
        yield "in the long run", f"{units.money(result.average_return)} per {units.period}"
    yield "inspections", _inspections(advice, result)
    if advice.figures is not None:
        yield "failures", failures_words(advice, advice.figures)


def failures_words(advice: Advice, found: Figures) -> str:
    """Return the failures of a policy: over the life, or in the long run, and per period."""
    units, problem = advice.units, advice.problem
    per_period = plain_number(found.failures_per_period)
    if problem is not None and problem.periods is not None:
        return f"{plain_number(found.failures)} in {units.periods(problem.periods)}, {per_period} per {units.period}"
    if math.isnan(found.failures_per_period):
        return f"{plain_number(found.failures)}, discounted"
    often = "" if not found.failures_per_period else f", one in {units.about(1 / found.failures_per_period)}"
    return f"{per_period} per {units.period}{often}, in the long run"


def price_words(advice: Advice) -> str:
    """Return the price of an inspection in words; a range where it depends on state and action."""
    if advice.has_one_price:
        return advice.units.amount(advice.price)
    costs = advice.model.measuring_costs[~advice.model.terminal]
    return f"{plain_number(float(costs.min()))} to {advice.units.amount(float(costs.max()))}, by state and action"


def certificate(advice: Advice) -> str:
    """Return the certified bound on all schedules in words."""
    if not np.isfinite(advice.gap):
        return "there is no bound on how much better another schedule could be"
    bound = advice.units.money(advice.upper)
    if advice.units.is_cost:
        return f"certified: no schedule costs less than {bound}"
    return f"certified: no schedule is worth more than {bound}"


def inspection_rate(advice: Advice, per_period: float) -> str:
    """Return the average number of inspections per period as `one in 5.9 years`."""
    return f"one in {advice.units.about(1 / per_period)}" if per_period else "none in the long run"


def _inspections(advice: Advice, result: Evaluation) -> str:
    if result.average_measurements is None:
        return f"{plain_number(result.measurements)} in all, in {advice.units.periods(result.steps)}"
    rate = inspection_rate(advice, result.average_measurements)
    if result.average_measurements == 0:
        return rate
    return f"{plain_number(result.average_measurements)} per {advice.units.period}, {rate}"


def _schedule(advice: Advice) -> str:
    """Return the table of plans."""
    rows = advice.rows
    table = rows[:PLANS_SHOWN]
    head = ["after seeing", "do", f"{advice.units.figure} from here"]
    cells = [[row.name, shortened(row.words, PLAN_WIDTH), advice.units.money(row.value)] for row in table]
    if advice.confidence is not None:
        head += ["same plan in", f"in 90 %: {advice.units.period}s to inspection"]
        cells = [[*cell, *(agreement_words(row) or ("?", "?"))] for row, cell in zip(table, cells, strict=True)]
    lines = text_table(head, cells, "<<>>>"[: len(head)])
    if len(rows) > PLANS_SHOWN:
        lines.append(f"... and {counted(len(rows) - PLANS_SHOWN, 'more plan')}")
    return "\n".join(lines)


def agreement_words(row: StatePlan) -> tuple[str, str] | None:
    """Return the share of resampled models with the same plan, and when 90 % of them inspect; None if they were not solved."""
    if row.agreement is None:
        return None
    ends = (row.agreement.earliest, row.agreement.latest)
    low, high = (plain_number(end) if np.isfinite(end) else "never" for end in ends)
    return percent(row.agreement.same_plan), low if low == high else f"{low} to {high}"


def _comparison(advice: Advice) -> str:
    """Return the table of the plan and the usual policies."""
    units = advice.units
    more = "more" if units.is_cost else "less"
    head = [
        "compared with",
        f"{units.figure} in all",
        more,
        f"long run per {units.period}",
        f"inspections per {units.period}",
        *([f"failures per {units.period}"] if advice.figures is not None else []),
    ]
    cells = [
        (
            policy.name,
            units.money(policy.value),
            units.amount(advice.lost(policy)),
            "-" if policy.evaluation.average_return is None else units.money(policy.evaluation.average_return),
            _looks(policy.evaluation),
            *([] if policy.figures is None else [plain_number(policy.figures.failures_per_period)]),
        )
        for policy in advice.policies
    ]
    notes = [f"{policy.name}: {policy.note}" for policy in advice.policies if policy.note is not None]
    return "\n".join([*text_table(head, cells, "<>>>>>"[: len(head)]), *notes])


def _looks(result: Evaluation) -> str:
    if result.average_measurements is None:
        return f"{plain_number(result.measurements)} in all"
    return plain_number(result.average_measurements)


def _prices(advice: Advice) -> str:
    """Return the table of price ranges with the plan of the start, or else of the first state that is expected."""
    pieces = _pieces_shown(advice)
    rows = [row for row in advice.rows if row.is_expected]
    first = next((row for row in rows if row.state is None or row.state in advice.model.initial_states), rows[0])
    price = "price of an inspection" if advice.has_one_price else "factor on the present costs"
    looks = "inspections, discounted" if advice.has_one_price else "costs of inspections, discounted"
    head = (price, f"{advice.units.figure} in all", looks, f"after seeing {first.name}")
    ends = [piece.high for piece in pieces if piece.high < np.inf]
    noise = PRICE_NOISE * max([advice.price, *ends])

    def shown_price(price: float) -> str:
        return plain_number(price if price > noise else 0.0)

    cells = []
    for piece in pieces:
        if piece.high <= noise:
            continue
        plan = plan_of(piece.schedule, first.state)
        words = "-" if plan is None else plan_words(advice.model, advice.units, first.state, plan)
        high = "up" if piece.high == np.inf else f"to {shown_price(piece.high)}"
        mark = " *" if piece.low <= advice.price <= piece.high else ""
        cells.append(
            (
                f"{shown_price(piece.low)} {high}{mark}",
                f"{advice.units.money(piece.value(piece.inside))} at {shown_price(piece.inside)}",
                plain_number(piece.looks),
                shortened(words, PLAN_WIDTH),
            )
        )
    left = len(advice.prices) - len(pieces)
    lines = text_table(head, cells, "<>><")
    own = "* contains the present price"
    lines.append(f"... and {left} more; {own}" if left else own)
    return "\n".join([*lines, break_even(advice)])


def _pieces_shown(advice: Advice) -> list[PricedSchedule]:
    """Return all price ranges or, if there are many, evenly spread ones and that of the model's own price."""
    pieces = list(advice.prices)
    if len(pieces) <= PRICES_SHOWN:
        return pieces
    own = next(number for number, one in enumerate(pieces) if advice.price <= one.high)
    numbers = {own, *np.linspace(0, len(pieces) - 1, PRICES_SHOWN - 1).round().astype(int).tolist()}
    return [pieces[number] for number in sorted(numbers)]


def break_even(advice: Advice) -> str:
    """Return the price up to which inspecting pays as a sentence; the advice must have a frontier."""
    assert advice.frontier is not None
    noise = ROUNDING * (1 + abs(advice.value)) if math.isfinite(advice.value) else 0.0
    low, high = (0.0 if price <= noise else price for price in advice.frontier.break_even)
    return break_even_text(low, high, "Inspecting", advice.price_text)


def confidence_words(advice: Advice) -> dict[str, str] | None:
    """Return the figures of `Advice.confidence` in words; None if there is none.

    Keys: `models`, how many; `cost`, the middle 90 % of what the plan costs (or is worth) in them; `mean`, `most`, `worst`:
    mean, 95 % quantile and maximum of its loss against each model's best plan; `solved`, the models of which that is known;
    `same`, the mean share of models with the same plan; `failures`, the middle 90 % of its failures per period, or empty.
    """
    confidence, units = advice.confidence, advice.units
    if confidence is None:
        return None
    low, high = sorted(confidence.value_range, key=units.shown)
    losses = confidence.losses if len(confidence.losses) else np.array([math.nan])
    count, failures = len(confidence.losses), ""
    if len(confidence.failures) and np.isfinite(confidence.failures).all():
        failures = " to ".join(plain_number(float(one)) for one in quantile_interval(confidence.failures, 0.9))
    return {
        "failures": failures,
        "solved": "all of them"
        if count == len(confidence.values)
        else f"the {count:,} of them that were solved"
        if count
        else "",
        "models": counted(len(confidence.values), "model"),
        "cost": f"{units.money(low)} to {units.money(high)}",
        "mean": units.amount(float(losses.mean())),
        "most": units.amount(confidence.high_loss),
        "worst": units.amount(float(losses.max())),
        "same": percent(confidence.same_schedule) if confidence.agreement else "?",
    }


def confidence_lines(advice: Advice) -> list[str]:
    """Return how sure the plan is, from resampled models; the advice must have a confidence."""
    words = confidence_words(advice)
    assert words is not None
    if advice.graph is not None:
        return list(_graph_confidence(advice, words))
    return [
        f"Uncertainty: the best plans of {words['models']} fitted to resampled records",
        f"the plan's {advice.units.figure} in them  {words['cost']} (the middle 90 %)",
        f"lost by the plan if one of them is the true one  {words['mean']} on average, {words['most']} or less in 95 %, "
        f"{words['worst']} at most",
        f"plans that are the same  {words['same']} on average",
    ]


def _graph_confidence(advice: Advice, words: Mapping[str, str]) -> Iterator[str]:
    units, period = advice.units, advice.units.period
    yield f"Uncertainty: the plan in {words['models']} fitted to resampled records"
    yield f"the plan's {units.figure} in them  {words['cost']} (the middle 90 %)"
    if words["failures"]:
        noun = "times down" if advice.problem is not None and advice.problem.components > 1 else "failures"
        yield f"{noun} per {period} in them  {words['failures']} (the middle 90 %)"
    if words["solved"]:
        yield (
            f"lost by the plan if one of them is the true one  {words['mean']} on average, {words['most']} or less in 95 %, "
            f"{words['worst']} at most, in {words['solved']}"
        )
