"""The interactive page of a plan that is a policy graph: data for its script, and the texts of its template.

The script walks through the steps of the plan: what an inspection reported is clicked, and beliefs are moved and conditioned as
`Belief.update` does. Everything else is text that is there without a script, and on paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure import __version__
from actmeasure.errors import shown
from actmeasure.inspection.imperfect_rules import course
from actmeasure.inspection.plan_text import (
    branch_words,
    certificate_sentence,
    cut_words,
    ending_words,
    inspections_made,
    inspections_noun,
    looks_words,
    method_lines,
    step_words,
    tree_lines,
)
from actmeasure.inspection.text import confidence_words
from actmeasure.model import Measurement, Model
from actmeasure.model.system import Factors
from actmeasure.policy_graph import PolicyGraph
from actmeasure.text import percent, plain_number

if TYPE_CHECKING:
    from actmeasure.inspection.advice import Advice
    from actmeasure.inspection.problem import Problem
    from actmeasure.model.transitions import FloatArray

__all__ = ["MOST_ENTRIES", "graph_page_data", "graph_page_words", "state_groups"]

#: Largest number of transitions and of probabilities of outcomes on a page; above it, beliefs are not drawn.
MOST_ENTRIES = 150_000
#: Largest number of states of which matrices are shown, and number of states above which names with a colon are grouped.
MOST_MATRIX, GROUPED_FROM = 12, 24
#: Smaller probabilities are shown as being below this one in matrices.
SMALL_CHANCE = 1e-6
#: Periods over which risk and cost are drawn where there is no end of life.
DRAWN = 50
#: Lines of the tree in words.
TREE = 200


# Data of the script


def graph_page_data(advice: Advice) -> dict[str, Any]:
    """Return the data of the page's script."""
    problem = _problem(advice)
    base = problem.base
    return {
        "units": {
            "currency": advice.units.currency,
            "period": advice.units.period,
            "figure": advice.units.figure,
            "sign": -1 if advice.units.is_cost else 1,
        },
        "life": problem.periods,
        "actions": [base.action_name(action) for action in range(base.n_actions)],
        "measurements": [_shown_by(base, m) for m in range(len(base.measurements) + 1)],
        "steps": [_step(advice, number) for number in range(len(advice.steps))],
        "begin": _begin(advice),
        "beliefs": _beliefs(problem),
        "curves": list(_curves(advice)),
    }


def _problem(advice: Advice) -> Problem:
    assert advice.problem is not None  # a plan that is a graph has one
    return advice.problem


def _shown_by(base: Model, m: int) -> dict[str, Any] | None:
    """Return name and outcomes of a measurement; of number 0, of what is shown for free, or None."""
    shows = base.shown_by(m)
    if shows is None:
        return None
    return {
        "name": "what is shown" if m == 0 else shown(shows.name),
        "outcomes": [base.outcome_name(m, outcome) for outcome in range(base.n_outcomes(m))],
    }


def _step(advice: Advice, number: int) -> dict[str, Any]:
    """Return a step: its words and actions, and the next step after each outcome; after any outcome, under the key ""."""
    step = advice.steps[number]
    targets = {str(outcome): branch.target for branch in step.branches for outcome in (branch.outcomes or ("",))}
    return {
        "words": step_words(advice, step),
        "actions": list(step.plan.actions),
        "then": step.plan.then,
        "repeat": step.plan.repeat,
        "measurement": step.measurement,
        "targets": targets,
    }


def _begin(advice: Advice) -> list[dict[str, Any]]:
    """Return the starts of the plan: one, or one for each state that may be shown first."""
    graph, base = advice.graph, _problem(advice).base
    assert graph is not None
    if isinstance(graph.start, int):
        belief = [base.initial_states.tolist(), base.initial_probabilities.tolist()]
        return [{"name": "", "step": 0, "belief": belief}]
    first = _first_nodes(graph, advice.model)
    begins = []
    for key, node in graph.start.items():
        state = advice.model.state_names.index(key) if isinstance(key, str) and advice.model.state_names else int(key)
        own = int(_problem(advice).states[state])
        begins.append({"name": base.state_name(own), "step": first.index(node), "belief": [[own], [1.0]]})
    return begins


def _first_nodes(graph: PolicyGraph, model: Model) -> list[int]:
    """Return the first node of every step, in the order of the steps."""
    found = {graph.start} if isinstance(graph.start, int) else set(graph.start.values())
    for decision, edges in zip(graph.decisions, graph.edges, strict=True):
        if model.shown_by(decision.measurement) is not None:
            found |= set(edges.values())
    return sorted(found)


def _beliefs(problem: Problem) -> dict[str, Any] | None:
    """Return what the script needs to move beliefs; None for a model that is too large for a page.

    `rows` has, for each action and state, successors and probabilities, without terminal states; `laws`, for each measurement and
    action, the outcomes and their probabilities in each state, or nothing where the state is shown exactly. `groups` has the
    number of the band in which each state is drawn, and `names` those of the bands.
    """
    base = problem.base
    table = base.transitions
    laws = {m: base.shown_by(m) for m in range(len(base.measurements) + 1)}
    entries = len(table.successors) + sum(_entries(one) for one in laws.values())
    if entries > MOST_ENTRIES:
        return None
    rows = [[_row(base, state, action) for state in range(base.n_states)] for action in range(base.n_actions)]
    names, groups = state_groups(base)
    return {
        "rows": rows,
        "laws": [_law(base, one) for one in laws.values()],
        "names": names,
        "groups": groups,
        "failed": np.flatnonzero(problem.failed).tolist(),
        "knowsFailures": bool(problem.failed.any()),
    }


def _entries(one: Measurement | None) -> int:
    return 0 if one is None or one.law is None else len(one.law.probabilities)


def _row(base: Model, state: int, action: int) -> list[list[float]]:
    successors, chances = base.transitions.row(state, action)
    running = ~base.terminal[successors]
    return [successors[running].tolist(), _short(chances[running])]


def _short(chances: FloatArray) -> list[float]:
    """Return probabilities to eight digits, more than the page shows, in half the space."""
    return [float(f"{chance:.8g}") for chance in chances.tolist()]


def _law(base: Model, one: Measurement | None) -> Any:
    """Return outcomes and probabilities for each action and state; "exact" where the state is shown, None for nothing."""
    if one is None:
        return None
    if one.law is None:
        return "exact"
    found = []
    for action in range(base.n_actions if one.law.by_action else 1):
        rows = one.law.of_action(action, base.n_states)
        found.append(
            [
                [rows.indices[low:high].tolist(), _short(rows.data[low:high])]
                for low, high in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
            ]
        )
    return found


def state_groups(base: Model) -> tuple[list[str], list[int]]:
    """Return the names of the bands in which states are drawn, and the band of each state.

    States of large models whose names end in a part after a colon, such as "age 3: worn", are drawn together by that part.
    """
    names = [base.state_name(state) for state in range(base.n_states)]
    if base.n_states > GROUPED_FROM and all(": " in name for name in names):
        names = [name.rpartition(": ")[2] for name in names]
    different = list(dict.fromkeys(names))
    number = {name: place for place, name in enumerate(different)}
    return different, [number[name] for name in names]


def _curves(advice: Advice) -> Iterator[dict[str, Any]]:
    """Yield the risk and the cost of every policy in each period."""
    problem = _problem(advice)
    periods = problem.periods or DRAWN
    for policy in advice.policies:
        if policy.graph is None:
            continue
        found = course(problem.model, policy.graph, periods)
        risk = None if policy.figures is None or not problem.failed.any() else policy.figures.risk[:periods].tolist()
        yield {"name": policy.name, "cost": found.rewards.tolist(), "risk": risk}


# Texts


def graph_page_words(advice: Advice) -> dict[str, Any]:
    """Return the texts and tables of the template, which escapes them."""
    units, problem = advice.units, _problem(advice)
    life = problem.periods is not None
    return {
        "title": advice.title,
        "version": __version__,
        "figure": units.figure,
        "period": units.period,
        "usable": advice.is_usable,
        "first": [str(note) for note in advice.first_notes],
        "notes": [str(note) for note in advice.other_notes],
        "certificate": certificate_sentence(advice),
        "facts": list(_facts(advice)),
        "causes": list(_causes(advice)),
        "steps": [_step_words(advice, number) for number in range(len(advice.steps))],
        "tree": tree_lines(advice, TREE),
        "looks": f"{inspections_noun(problem)} {'in all' if life else f'per {units.period}'}",
        "cut": cut_words(advice),
        "ending": ending_words(advice),
        "failures": f"{_failure_noun(problem)} per {units.period}" if problem.failed.any() else "",
        "more": "more than the plan" if units.is_cost else "less than the plan",
        "policies": list(_policies(advice)),
        "worth": [list(method_lines(advice, one)) for one in advice.worth],
        "matrices": [table for part in _parts(problem.base) for table in _matrices(part)],
        "detection": [table for part in _parts(problem.base) for table in _detection(part)],
        "money": f", {units.currency}" if units.currency else "",
        "prices": list(_prices(advice)),
        "terms": list(_terms(advice)),
        "sample": _sample(advice),
        "sure": confidence_words(advice),
        "assumptions": _assumptions(advice),
    }


def _failure_noun(problem: Problem) -> str:
    return "failures" if problem.components == 1 else "times down"


def _facts(advice: Advice) -> Iterator[tuple[str, str, str]]:
    """Yield the main figures, each with name and explanation."""
    units, problem, own = advice.units, _problem(advice), advice.figures
    assert own is not None
    over = f"over {units.periods(problem.periods)}" if problem.periods is not None else "over all time"
    discounted = ", discounted" if advice.model.discount < 1 else ""
    yield f"{units.figure} in all", units.money(advice.value), over + discounted
    if math.isfinite(advice.gap):
        share = f"{100 * advice.gap / abs(advice.value):.2g} % at most" if advice.value else "at most"
        yield "lost against the best plan", units.amount(_rounded(advice.gap, advice.value)), share
    if problem.failed.any():
        noun = _failure_noun(problem)
        span = f"in {units.periods(problem.periods)}" if problem.periods is not None else "in all, discounted"
        yield (
            f"{noun} per {units.period}",
            plain_number(own.failures_per_period),
            f"{plain_number(own.failures)} {span}",
        )
    counts, _ = inspections_made(problem, own.evaluation)
    yield inspections_noun(problem), plain_number(sum(counts.values())), looks_words(advice, own)


def _rounded(value: float, scale: float) -> float:
    """Return 0 in place of a value that may come from rounding."""
    return 0.0 if abs(value) <= 1e-9 * (1 + abs(scale)) else value


def _causes(advice: Advice) -> Iterator[dict[str, Any]]:
    """Yield the causes of costs, the largest first, with their share of the largest; those that cost nothing are left out."""
    own = advice.figures
    assert own is not None
    total = sum(abs(cost) for cost in own.costs.values())
    order = sorted(own.costs.items(), key=lambda item: -abs(item[1]))
    most = abs(order[0][1]) if order else 0.0
    for cause, cost in order:
        if abs(cost) > 1e-9 * total:
            yield {
                "name": cause,
                "amount": advice.units.amount(cost),
                "percent": percent(abs(cost) / total),
                "width": round(100 * abs(cost) / most, 1),
            }


def _step_words(advice: Advice, number: int) -> dict[str, Any]:
    step = advice.steps[number]
    branches = [
        {"seen": branch_words(advice, step, one), "chance": percent(one.chance), "target": one.target + 1}
        for one in step.branches
    ]
    failed = "" if math.isnan(step.failed) else percent(step.failed)
    return {"number": number + 1, "words": step_words(advice, step), "branches": branches, "failed": failed}


def _policies(advice: Advice) -> Iterator[dict[str, Any]]:
    units, problem = advice.units, _problem(advice)
    most = max((abs(policy.value) for policy in advice.policies if math.isfinite(policy.value)), default=1.0) or 1.0
    for number, policy in enumerate(advice.policies):
        found = policy.figures
        counts, _ = inspections_made(problem, policy.evaluation)
        yield {
            "name": policy.name if policy.is_allowed else f"{policy.name} (not allowed)",
            "rule": "" if number == 0 else policy.rule,
            "note": "" if policy.note is None else str(policy.note),
            "money": units.money(policy.value),
            "lost": units.amount(_rounded(advice.lost(policy), advice.value)),
            "looks": plain_number(sum(counts.values())),
            "failures": "" if found is None else plain_number(found.failures_per_period),
            "width": round(100 * abs(policy.value) / most, 1) if math.isfinite(policy.value) else 100.0,
        }


def _parts(base: Model) -> list[Model]:
    """Return the models of the different components of a system, or the model itself."""
    if not isinstance(base.origin, Factors):
        return [base]
    return [part.model for part in dict.fromkeys(base.origin.components)]


def _matrices(base: Model) -> Iterator[dict[str, Any]]:
    """Yield the transition matrix of every action of a small model."""
    if base.n_states > MOST_MATRIX:
        return
    names = [base.state_name(state) for state in range(base.n_states)]
    for action in range(base.n_actions):
        matrix = base.transitions.matrix(action).toarray()
        rows = [
            {"name": names[state], "cells": [_cell(p) for p in matrix[state].tolist()]}
            for state in range(base.n_states)
            if not base.terminal[state]
        ]
        yield {"name": base.action_name(action), "columns": names, "rows": rows}


def _cell(chance: float) -> str:
    """Return a probability in a matrix: empty for 0; smaller ones than a fit can tell apart from it are not written out."""
    if chance <= 0:
        return ""
    return plain_number(chance) if chance >= SMALL_CHANCE else f"<{plain_number(SMALL_CHANCE)}"


def _detection(base: Model) -> Iterator[dict[str, Any]]:
    """Yield the probabilities of the outcomes of every measurement of a small model."""
    for m, one in enumerate([base.passive, *base.measurements]):
        if one is None:
            continue
        name = "shown for free" if m == 0 else shown(one.name)
        if one.law is None:
            yield {"name": name, "columns": [], "rows": [], "words": "Shows the state exactly."}
            continue
        if base.n_states > MOST_MATRIX or one.law.n_outcomes > MOST_MATRIX or one.law.by_action:
            words = f"{base.n_states:,} states and {one.law.n_outcomes} outcomes; see the model."
            yield {"name": name, "columns": [], "rows": [], "words": words}
            continue
        law = one.law.of_action(0, base.n_states).toarray()
        rows = [
            {"name": base.state_name(state), "cells": [_cell(p) for p in law[state].tolist()]}
            for state in range(base.n_states)
            if not base.terminal[state]
        ]
        columns = [base.outcome_name(m, outcome) for outcome in range(one.law.n_outcomes)]
        yield {"name": name, "columns": columns, "rows": rows, "words": ""}


def _prices(advice: Advice) -> Iterator[tuple[str, str]]:
    """Yield the prices of inspections and, where they are known one by one, of actions and failures."""
    units, prices = advice.units, advice.economics
    for one in (one for part in _parts(_problem(advice).base) for one in part.measurements):
        cost = np.asarray(one.cost)
        same = cost.ndim == 0 or bool((cost == cost.flat[0]).all())
        yield shown(one.name), units.amount(float(cost.flat[0])) if same else "by state and action"
    if prices is None:
        return
    for action, price in prices.actions.items():
        yield shown(action), _price_words(advice, price)
    for state, running in prices.running.items():
        yield f"{shown(state)}, per {units.period}", units.amount(running)
    if prices.failure_states:
        yield f"failure ({', '.join(map(shown, prices.failure_states))})", units.amount(prices.failure_price)
    for state, final in prices.final.items():
        yield f"{shown(state)} at the end of life", units.amount(final)


def _terms(advice: Advice) -> Iterator[tuple[str, str]]:
    """Yield what was said about start, life, limits and components."""
    units, problem, prices = advice.units, _problem(advice), advice.economics
    base = problem.base
    likely = sorted(zip(base.initial_probabilities.tolist(), base.initial_states.tolist(), strict=True), reverse=True)
    named = [f"{base.state_name(state)} {percent(chance)}" for chance, state in likely[:MOST_MATRIX]]
    if len(likely) == 1:
        named = [base.state_name(likely[0][1])]
    yield "start", ", ".join(named) + (f" and {len(likely) - MOST_MATRIX:,} more" * (len(likely) > MOST_MATRIX))
    if problem.periods is not None:
        yield "life", units.periods(problem.periods)
    if problem.limited is not None:
        yield "longest interval between inspections", units.periods(problem.limited.longest)
    if advice.limit is not None:
        yield f"failures per {units.period}", f"at most {plain_number(advice.limit.limit)}"
    parts = None if prices is None else prices.components
    if parts is not None:
        yield "components", f"{parts.number}, of which {parts.needed} have to work"
        yield f"system down, per {units.period}", units.amount(parts.down)
        yield "mobilisation", units.amount(parts.mobilisation)


def _price_words(advice: Advice, price: Any) -> str:
    if isinstance(price, (int, float)):
        return advice.units.amount(float(price))
    return ", ".join(f"{shown(state)}: {advice.units.amount(float(one))}" for state, one in price.items())


def _sample(advice: Advice) -> str:
    """Return the size of the sample that the model was fitted to."""
    fit = advice.fit
    if fit is None:
        return "The model was given, not fitted to records."
    return f"Fitted to {fit.n_units:,} units, {fit.n_records:,} records and {fit.n_inspections:,} inspections."


def _assumptions(advice: Advice) -> list[str]:
    """Return the assumptions behind the figures as sentences."""
    model, units, base = advice.model, advice.units, _problem(advice).base
    discount = (
        f"money a {units.period} later counts {model.discount:.4g}" if model.discount < 1 else "there is no discount"
    )
    start = "the first state is shown" if model.start_is_known else "the first state is not shown"
    return [
        f"{base.n_states:,} states, {base.n_actions} action{'s' * (base.n_actions != 1)}; {discount}; {start}.",
        f"An inspection is made at the end of a {units.period}, with the probabilities above; nothing else is seen.",
        "Costs, inspections and failures are exact for this model: linear systems, not simulation.",
    ]
