"""The interactive page of an inspection plan: one HTML file that needs no network.

The page's script draws the data of `page_data`; it computes nothing but values, which are linear in the price, and beliefs, from
the transitions that the plans need. `page_words` is the text for print and for readers without scripts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from actmeasure import __version__
from actmeasure.belief import Belief
from actmeasure.errors import MissingExtraError, PlanError, shown
from actmeasure.evaluation import Evaluation, values_of
from actmeasure.file_access import check_suffix, check_writable, explain, replacing
from actmeasure.inspection.advice import Advice, StatePlan
from actmeasure.inspection.graph_page import graph_page_data, graph_page_words
from actmeasure.inspection.schedules import PricedSchedule, at_price, belief_after, plan_of
from actmeasure.inspection.text import (
    agreement_words,
    break_even,
    certificate,
    confidence_words,
    inspection_rate,
    plan_words,
    price_words,
)
from actmeasure.inspection.usual_policies import ComparedPolicy
from actmeasure.model import Model
from actmeasure.planning.explain import LookValues
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.text import plain_number

__all__ = ["PageTransitions", "check_page_path", "page_data", "page_html", "page_words", "steps_shown", "write_page"]

SUFFIXES = (".html", ".htm")

FOLDER = "templates"
#: Largest number of states on a page; those that are expected come first.
MOST_ROWS = 400
#: The largest price on a page, relative to the price of the last change of schedule.
MARGIN = 1.25
#: Schedules with less than this fraction of the inspections at price 0 do not count for the largest price.
FEW_LOOKS = 1e-3
#: Largest number of transitions on a page.
MOST_ENTRIES = 100_000
#: Smallest and largest number of steps that are drawn of a plan that repeats.
ENDLESS_LEAST, ENDLESS_MOST = 12, 80
#: Steps that are drawn after the measurement of a plan, relative to its length.
MORE_SHARE = 0.3
#: Losses in resampled models below this share of the plan's value are none.
NOTHING_LOST = 1e-6
#: Scripts in the order in which the page runs them.
SCRIPTS = ("numbers.js", "beliefs.js", "drawing.js", "belief_chart.js", "price_charts.js", "page.js")
#: The same, of the page of a plan that is a policy graph.
GRAPH_SCRIPTS = ("numbers.js", "beliefs.js", "drawing.js", "belief_chart.js", "plan.js")


def check_page_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a page; raise a `PlanError` if it cannot be written, before the plan is computed."""
    file_path = Path(path)
    check_writable(file_path, "the page", PlanError)
    check_suffix(file_path, "the page", SUFFIXES, PlanError)
    if find_spec("jinja2") is None:
        raise MissingExtraError("the page of an inspection plan", "report")
    return file_path


def write_page(advice: Advice, path: str | os.PathLike[str]) -> None:
    """Write the page of an advice as one HTML file (needs the extra `report`).

    The file needs no network and no other file: style, scripts and figures are inside, and its security policy allows nothing
    else. An existing file is replaced in one step. Names that end in anything but `.html` or `.htm` are refused.
    """
    file_path = Path(path)
    check_suffix(file_path, "the page", SUFFIXES, PlanError)
    contents = page_html(advice).encode()
    try:
        with replacing(file_path) as file:
            file.write(contents)
    except OSError as error:
        raise PlanError(str(explain(error, file_path, "write"))) from error


def page_html(advice: Advice) -> str:
    """Return the page as text."""
    try:
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise MissingExtraError("the page of an inspection plan", "report") from error
    is_graph = advice.graph is not None
    scripts, page = (GRAPH_SCRIPTS, "plan.html") if is_graph else (SCRIPTS, "page.html")
    data = _displayed(graph_page_data(advice)) if is_graph else page_data(advice)
    words = graph_page_words(advice) if is_graph else page_words(advice)
    style, script = _text("page.css"), "\n".join(["'use strict';", "{", *map(_text, scripts), "}"])
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(_text(page))
    return template.render(
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        "form-action 'none'",
        style=Markup(style),  # files of this package need no escaping
        script=Markup(script),
        data=Markup(embedded_json(data)),  # escaped by embedded_json
        **_displayed(words),
    )


def _displayed(data: Any) -> Any:
    """Return nested data with invisible characters of text escaped, and None for numbers that are not finite."""
    match data:
        case str():
            return shown(data)
        case float():
            return data if math.isfinite(data) else None
        case Mapping():
            return {_displayed(name): _displayed(value) for name, value in data.items()}
        case list() | tuple():
            return [_displayed(value) for value in data]
    return data


def _text(name: str) -> str:
    return (resources.files("actmeasure.inspection") / FOLDER / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash by which a content security policy allows an inline style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def embedded_json(data: Any) -> str:
    r"""Return JSON that is safe inside a script element, whatever names it contains.

    Examples
    --------
    >>> embedded_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII: line separators are escaped as well
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_data(advice: Advice) -> dict[str, Any]:
    """Return the data of the page's script; numbers that are not finite are None."""
    rows = advice.rows[:MOST_ROWS]
    pieces = advice.prices or (_only_piece(advice),)
    plans = _Plans(advice)
    shown = [_piece(advice, rows, piece, plans) for piece in pieces]
    transitions = PageTransitions(advice.model)
    made = plans.made
    drawn = [
        all(transitions.add(row.state, made[piece["plans"][n]][0]) for piece in shown if piece["plans"][n] is not None)
        for n, row in enumerate(rows)
    ]
    data = {
        "units": {
            "currency": advice.units.currency,
            "period": advice.units.period,
            "figure": advice.units.figure,
            "sign": -1 if advice.units.is_cost else 1,
        },
        "price": advice.price,
        "onePrice": advice.has_one_price,
        "priceWords": price_words(advice),
        "mostPrice": _most_price(advice),
        "bound": _bound(advice),
        "rows": [_row(advice, row, is_drawn) for row, is_drawn in zip(rows, drawn, strict=True)],
        "plans": [_plan(plan, words) for plan, words in made],
        "pieces": shown,
        "moves": transitions.data(),
        "policies": [_policy(advice, policy) for policy in advice.policies],
    }
    displayed: dict[str, Any] = _displayed(data)
    return displayed


class _Plans:
    """The different plans of the page, numbered in the order of their first appearance."""

    def __init__(self, advice: Advice) -> None:
        self._advice = advice
        self._numbers: dict[tuple[BlindPlan, str], int] = {}

    @property
    def made(self) -> list[tuple[BlindPlan, str]]:
        return list(self._numbers)

    def number(self, plan: BlindPlan | None, state: int | None) -> int | None:
        if plan is None:
            return None
        words = plan_words(self._advice.model, self._advice.units, state, plan)
        return self._numbers.setdefault((plan, words), len(self._numbers))


def _plan(plan: BlindPlan, words: str) -> dict[str, Any]:
    """Return a plan for the script."""
    return {"words": words, **asdict(plan), "shown": steps_shown(plan)}


def _only_piece(advice: Advice) -> PricedSchedule:
    """Return the plan as the schedule of the own price alone, if there was no time for other prices."""
    price, result = advice.price, advice.evaluation
    reward, looks = result.discounted_reward, _discounted_looks(advice, result)
    return PricedSchedule(price, price, advice.schedule, advice.expected, price, reward, looks, result)


def _discounted_looks(advice: Advice, result: Evaluation) -> float:
    """Return the discounted number of inspections or, if their costs are a table, the discounted sum of these."""
    return (
        result.discounted_measurements if advice.has_one_price else result.discounted_reward - result.discounted_return
    )


def _piece(advice: Advice, rows: list[StatePlan], piece: PricedSchedule, plans: _Plans) -> dict[str, Any]:
    """Return a schedule with its range of prices, and its value from each row as a line in the price: reward - price * looks."""
    rewards, looks = _lines(advice.model, piece.schedule)
    states = [row.state for row in rows]
    start = [piece.reward, piece.looks]
    lines = [start if state is None else [float(rewards[state]), float(looks[state])] for state in states]
    return {
        "low": piece.low,
        "high": piece.high,
        "inside": piece.inside,
        "reward": piece.reward,
        "looks": piece.looks,
        **_long_run(advice, piece.evaluation),
        "plans": [plans.number(plan_of(piece.schedule, state), state) for state in states],
        "expected": [state is None or state in piece.expected for state in states],
        "rewards": [line[0] for line in lines],
        "rowLooks": [line[1] for line in lines],
    }


def _lines(model: Model, schedule: Schedule) -> tuple[np.ndarray, np.ndarray]:
    """Return discounted reward and looks (costs at price 1, if they are a table) from each known state, each (S,)."""
    rewards = values_of(at_price(model, 0.0), schedule)
    with np.errstate(invalid="ignore"):  # infinite for states without a plan
        return rewards, rewards - values_of(at_price(model, 1.0), schedule)


def _row(advice: Advice, row: StatePlan, is_drawn: bool) -> dict[str, Any]:
    """Return a state for the script."""
    record: dict[str, Any] = {
        "state": row.state,
        "name": "the start" if row.state is None else row.name,
        "expected": row.is_expected,
        "isFirst": row.state is None or row.state in advice.model.initial_states,
        "drawn": is_drawn,
        "gain": _gain(advice, row),
    }
    if row.agreement is not None and _other_plans_matter(advice):
        record["samePlan"], record["sameAction"] = row.agreement.same_plan, row.agreement.same_action
    return record


def _other_plans_matter(advice: Advice) -> bool:
    """Return whether the plan loses anything in resampled models; if not, it does not matter that their plans differ."""
    sure = advice.confidence
    return sure is not None and bool(len(sure.losses)) and float(sure.losses.max()) > NOTHING_LOST * abs(advice.value)


def _gain(advice: Advice, row: StatePlan) -> float | None:
    """Return the gain of inspecting as planned instead of a period later, at the own price; None without an inspection."""
    if row.inspect_after is None:
        return None
    belief = belief_after(advice.model, row.state, row.plan.actions[:-1])
    values = LookValues(advice.model, np.where(np.isinf(advice.values), np.nan, advice.values))
    last = row.plan.actions[-1]
    return float(values.looking(belief, last) - values.one_later(belief, last))


def _most_price(advice: Advice) -> float:
    """Return the largest price on the page, from the own price and the last range in which the schedule has inspections."""
    most = max((piece.looks for piece in advice.prices), default=0.0)
    last = [advice.price]
    for piece in advice.prices:
        if piece.looks > FEW_LOOKS * most:
            last.append(piece.high if math.isfinite(piece.high) else piece.low)
    return MARGIN * max(last) or 1.0


def _bound(advice: Advice) -> list[list[float]]:
    """Return prices and upper bounds on the optimum there; linear interpolation between them is a bound, too."""
    if advice.frontier is None:
        return [[advice.price], [advice.upper]]
    return [advice.frontier.prices.tolist(), advice.frontier.upper.tolist()]


def _policy(advice: Advice, policy: ComparedPolicy) -> dict[str, Any]:
    """Return the value of a policy as a line in the price, for the script."""
    result = policy.evaluation
    looks = _discounted_looks(advice, result)
    return {"reward": result.discounted_reward, "looks": looks, **_long_run(advice, result)}


def _long_run(advice: Advice, result: Evaluation) -> dict[str, float | None]:
    """Return averages per period as a line in the price, `average - price * averageCost`; of finite episodes, all looks."""
    reward, net, looks = result.average_reward, result.average_return, result.average_measurements
    if reward is None or net is None or looks is None:
        return {"average": None, "averageCost": None, "looksPerPeriod": None, "looksInAll": result.measurements}
    cost = looks if advice.has_one_price else reward - net
    return {"average": reward, "averageCost": cost, "looksPerPeriod": looks, "looksInAll": None}


def steps_shown(plan: BlindPlan) -> int:
    """Return how many steps of a plan are drawn; after a measurement some more, as if it had not been made."""
    if plan.then == "repeat":
        return int(np.clip(len(plan) + plan.repeat, ENDLESS_LEAST, ENDLESS_MOST))
    return len(plan) + (max(1, round(MORE_SHARE * len(plan))) if plan.then == "measure" else 0)


def action_at(plan: BlindPlan, step: int) -> int:
    """Return the action of a step; after the end of the plan its last action."""
    is_after = plan.then != "repeat" and step >= len(plan)
    return plan.actions[-1] if is_after else plan.decision(step).action


class PageTransitions:
    """The rows of the transition table that the page needs to draw beliefs, collected plan by plan."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._rows: dict[tuple[int, int], list[tuple[int, float]]] = {}
        self._entries = 0

    def add(self, state: int | None, plan: BlindPlan) -> bool:
        """Add the rows of a plan from a known state (None: the start); return False if there are more than `MOST_ENTRIES`."""
        belief = belief_after(self.model, state)
        for step in range(steps_shown(plan)):
            action = action_at(plan, step)
            if not all(self._add_row(int(one), action) for one in belief.states):
                return False
            belief = belief.predict(self.model, action)
        return True

    def _add_row(self, state: int, action: int) -> bool:
        if (state, action) in self._rows:
            return True
        table = self.model.transitions
        row = state * self.model.n_actions + action
        entries = slice(int(table.offsets[row]), int(table.offsets[row + 1]))
        self._entries += entries.stop - entries.start
        if self._entries > MOST_ENTRIES:
            return False
        successors = zip(table.successors[entries].tolist(), table.probabilities[entries].tolist(), strict=True)
        self._rows[state, action] = [(one, chance) for one, chance in successors if not self.model.terminal[one]]
        return True

    def data(self) -> dict[str, Any]:
        """Return the collected rows, with the states that occur numbered from 0 in the order of the model.

        `names` and `numbers` (in the model) of the states; `rows`, for each `state,action`, successors and probabilities, without
        terminal states; `start`, states and probabilities of a start that is not shown.
        """
        met = {*(state for state, _ in self._rows), *(one for row in self._rows.values() for one, _ in row)}
        belief = Belief.start(self.model)
        states = sorted(met | (set() if self.model.start_is_known else set(belief.states.tolist())))
        number = {state: position for position, state in enumerate(states)}
        rows = {
            f"{number[state]},{action}": [[number[one] for one, _ in row], [chance for _, chance in row]]
            for (state, action), row in self._rows.items()
        }
        start = None
        if not self.model.start_is_known:
            start = [[number[state] for state in belief.states.tolist()], belief.probabilities.tolist()]
        names = [self.model.state_name(state) for state in states]
        return {"names": names, "numbers": states, "rows": rows, "start": start}


def page_words(advice: Advice) -> dict[str, Any]:
    """Return the texts and tables of the template, which escapes them."""
    units, rows = advice.units, advice.rows
    is_endless = any(policy.evaluation.average_return is not None for policy in advice.policies)
    return {
        "is_endless": is_endless,
        "looks": f"inspections per {units.period}" if is_endless else "inspections in all",
        "title": advice.title,
        "version": __version__,
        "figure": units.figure,
        "period": units.period,
        "more": "more than the plan" if units.is_cost else "less than the plan",
        "price": price_words(advice),
        "facts": _facts(advice),
        "certificate": certificate(advice),
        "break_even": None if advice.frontier is None else break_even(advice),
        "rows": [_words_row(advice, row) for row in rows[:MOST_ROWS]],
        "left_out": len(rows) - MOST_ROWS if len(rows) > MOST_ROWS else 0,
        "policies": [_policy_words(advice, policy, is_endless) for policy in advice.policies],
        "sure": confidence_words(advice),
        "other_plans": _other_plans_matter(advice),
        "usable": advice.is_usable,
        "first": [str(note) for note in advice.first_notes],
        "notes": [str(note) for note in advice.other_notes],
        "assumptions": _assumptions(advice),
    }


def _facts(advice: Advice) -> list[tuple[str, str, str]]:
    """Return the main figures, each with name and explanation."""
    units, result = advice.units, advice.evaluation
    discounted = "in all, discounted" if advice.model.discount < 1 else "in all"
    facts = [(f"{units.figure} {discounted}", units.money(advice.value), certificate(advice))]
    per_period = advice.per_period(result)
    if per_period is not None:
        facts.append(
            (f"{units.figure} per {units.period}", units.money(per_period), "discounted: a constant sum worth the same")
        )
    if result.average_return is not None:
        facts.append((f"{units.figure} in the long run", units.money(result.average_return), f"per {units.period}"))
    if result.average_measurements is None:
        facts.append(("inspections", plain_number(result.measurements), f"in all, in {units.periods(result.steps)}"))
    else:
        often = result.average_measurements
        facts.append((f"inspections per {units.period}", plain_number(often), inspection_rate(advice, often)))
    return facts


def _words_row(advice: Advice, row: StatePlan) -> dict[str, Any]:
    return {
        "name": "the start" if row.state is None else row.name,
        "words": row.words,
        "after": "" if row.inspect_after is None else str(row.inspect_after),
        "money": advice.units.money(row.value),
        "expected": row.is_expected,
        "sure": agreement_words(row),
    }


def _policy_words(advice: Advice, policy: ComparedPolicy, are_some_endless: bool) -> dict[str, Any]:
    units, result = advice.units, policy.evaluation
    looks, in_all = result.average_measurements, " in all" if are_some_endless else ""
    return {
        "name": policy.name,
        "rule": policy.rule,
        "note": "" if policy.note is None else str(policy.note),
        "money": units.money(policy.value),
        "lost": units.amount(advice.lost(policy)),
        "average": units.money(result.average_return) if result.average_return is not None else "",
        "looks": plain_number(result.measurements) + in_all if looks is None else plain_number(looks),
    }


def _assumptions(advice: Advice) -> list[str]:
    """Return the assumptions behind the figures as sentences."""
    model, units = advice.model, advice.units
    discount = (
        f"money a {units.period} later counts {model.discount:.4g}" if model.discount < 1 else "there is no discount"
    )
    start = "the first state is shown" if model.start_is_known else "the first state is not shown"
    return [
        f"{model.n_states:,} states, {model.n_actions} action{'s' * (model.n_actions != 1)}; {discount}; {start}.",
        "An inspection shows the state exactly, at the end of the period it is taken in; nothing is seen in between.",
        "All figures are exact for this model, from linear solves, not simulation. The plan is the best for the "
        "discounted sum; the figures in the long run are those of the same plan.",
    ]
