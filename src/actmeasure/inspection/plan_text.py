"""Advice whose plan is a policy graph, in words and tables: what to read first, the figures, the steps, the tree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from actmeasure.errors import counted, shown
from actmeasure.graph_text import outcome_list
from actmeasure.inspection.schedules import is_rounding
from actmeasure.inspection.text import confidence_lines, failures_words, first_notes, notes_text
from actmeasure.model.finite_life import Lifetime
from actmeasure.schedule import BlindPlan
from actmeasure.text import break_even_text, name_value_lines, percent, plain_number, shortened, text_table

if TYPE_CHECKING:
    from actmeasure.evaluation import Evaluation
    from actmeasure.inspection.advice import Advice, MethodWorth
    from actmeasure.inspection.plan_figures import Figures, PlanStep, StepBranch
    from actmeasure.inspection.problem import Problem

__all__ = [
    "branch_words",
    "certificate_sentence",
    "cut_words",
    "ending_words",
    "graph_advice_text",
    "inspections_made",
    "inspections_noun",
    "looks_words",
    "method_lines",
    "step_words",
    "tree_lines",
]

#: Largest number of steps in the table of the terminal, and of lines of the tree; JSON, CSV and the page have all.
STEPS_SHOWN, TREE_LINES = 40, 60
#: Depth to which the tree is shown.
DEPTH = 4
#: Largest width of a step in the table, in characters.
STEP_WIDTH = 70
#: Most steps that are named as cut short by the end of life.
CUT_NAMED = 4
#: Causes with a smaller share of the cost are shown together.
SMALL_SHARE = 0.005


def graph_advice_text(advice: Advice) -> str:
    """Return advice whose plan is a policy graph in words and tables."""
    parts = [
        advice.title,
        *([first_notes(advice)] if advice.first_notes else []),
        "\n".join(name_value_lines(_facts(advice))),
        _steps_table(advice),
        "\n".join(["In words", *tree_lines(advice)]),
        _comparison(advice),
        *(["\n".join(_worth_lines(advice))] if advice.worth else []),
        *(["\n".join(confidence_lines(advice))] if advice.confidence is not None else []),
        *([notes_text(advice)] if advice.other_notes else []),
    ]
    return "\n\n".join(parts)


# Figures


def certificate_sentence(advice: Advice) -> str:
    """Return the certified bound on all plans, and what this plan may lose, as a sentence."""
    units, limit, problem = advice.units, advice.limit, advice.problem
    assert problem is not None
    if not math.isfinite(advice.gap):
        return "There is no bound on how much better another plan could be."
    kept = []
    if limit is not None:
        kept.append(f"{plain_number(limit.limit)} failures per {units.period}")
    if problem.limited is not None:
        kept.append(f"{units.periods(problem.limited.longest)} between inspections")
    which = f"no plan with at most {' and '.join(kept)}" if kept else "no plan"
    bound = (
        f"costs less than {units.money(advice.upper)}"
        if units.is_cost
        else f"is worth more than {units.money(advice.upper)}"
    )
    if is_rounding(advice.gap, advice.value):
        return f"Certified for this model: {which} {bound}, as this plan does."
    share = f" ({100 * advice.gap / abs(advice.value):.2g} %)" if advice.value else ""
    return f"Certified for this model: {which} {bound}. This plan loses at most {units.amount(advice.gap)}{share}."


def _facts(advice: Advice) -> Iterator[tuple[str, str]]:
    units, problem, own = advice.units, advice.problem, advice.figures
    assert problem is not None
    assert own is not None
    discounted = f", discounted by {advice.model.discount:.4g} per {units.period}" if advice.model.discount < 1 else ""
    over = f" over {units.periods(problem.periods)}" if problem.periods is not None else ""
    yield f"{units.figure} in all", f"{units.money(advice.value)}{over}{discounted}"
    yield "certificate", certificate_sentence(advice)
    if not _is_same(advice, advice.best_found):
        yield (
            "best found",
            f"{units.money(advice.best_found)}, by a policy that may need any number of nodes; this plan has {advice.n_nodes}",
        )
    if advice.limit is not None:
        yield from _limit_facts(advice)
    if problem.failed.any():
        what = "failures" if problem.components == 1 else f"{units.period}s begun with the system down"
        yield what, failures_words(advice, own)
    if problem.limited is not None:
        yield "longest interval", f"at most {units.periods(problem.limited.longest)} between inspections: kept"
    yield inspections_noun(problem), looks_words(advice, own)
    yield f"{units.figure} by cause", _cause_words(advice, own)


def _limit_facts(advice: Advice) -> Iterator[tuple[str, str]]:
    limit, units = advice.limit, advice.units
    assert limit is not None
    more = limit.without - advice.value
    yield (
        "limit on failures",
        f"at most {plain_number(limit.limit)} per {units.period}: kept; no plan has fewer than {plain_number(limit.least)}",
    )
    yield (
        "what the limit costs",
        f"{units.amount(more)} more than without it; as if a failure cost {units.amount(limit.price)} more than it does",
    )


def _is_same(advice: Advice, value: float) -> bool:
    return advice.units.money(value) == advice.units.money(advice.value)


def inspections_noun(problem: Problem) -> str:
    """Return what is counted as inspections: in a system each component that is inspected counts."""
    return "inspections" if problem.components == 1 else "inspections of components"


def inspections_made(problem: Problem, result: Evaluation) -> tuple[dict[str, float], bool]:
    """Return the number of inspections of each kind, and whether it is over the life and not per period in the long run."""
    in_all = problem.periods is not None or result.average_looks is None
    made_of = result.looks if in_all or result.average_looks is None else result.average_looks
    return {shown(name): float(of_each @ made_of) for name, of_each in problem.methods().items()}, in_all


def looks_words(advice: Advice, own: Figures) -> str:
    """Return the number of inspections of each kind, over the life, or per period in the long run."""
    problem, units = advice.problem, advice.units
    assert problem is not None
    counts, in_all = inspections_made(problem, own.evaluation)
    over = (
        f" in {units.periods(problem.periods or own.evaluation.steps)}"
        if in_all
        else f" per {units.period}, in the long run"
    )
    made = [f"{name} {plain_number(count)}" for name, count in counts.items() if count > 1e-9]
    never = [name for name, count in counts.items() if not count > 1e-9]
    text = ", ".join(made) + over if made else "none"
    return text + (f"; never {', '.join(never)}" if made and never and len(never) <= STEPS_SHOWN // 10 else "")


def _cause_words(advice: Advice, own: Figures) -> str:
    """Return the discounted costs by cause, the largest first; small ones together."""
    total = sum(own.costs.values())
    order = sorted(own.costs.items(), key=lambda item: -item[1])
    large = [(cause, cost) for cause, cost in order if abs(cost) >= SMALL_SHARE * abs(total)]
    words = [f"{shown(cause)} {advice.units.amount(cost)}" for cause, cost in large]
    rest = total - sum(cost for _, cost in large)
    if len(large) < len(order) and abs(rest) > 1e-9 * abs(total):
        words.append(f"others {advice.units.amount(rest)}")
    return ", ".join(words) or "nothing"


# Steps


def step_words(advice: Advice, step: PlanStep) -> str:
    """Return what is done in a step: `nothing for 8 years, then ultrasonic`."""
    assert advice.problem is not None
    base = advice.problem.base
    plan, has_life = step.plan, advice.problem.periods is not None
    if has_life and plan.then == "end" and plan.actions[-1] == advice.problem.waiting:
        plan = BlindPlan(plan.actions, then="repeat", repeat=1)
    words = plan.describe(base, advice.units.period)
    if has_life and plan.then == "repeat":
        return " until the end".join(words.rsplit(" without end", 1))
    if has_life and plan.then == "end":
        return "; life is then over".join(words.rsplit("; it is then over", 1))
    if step.plan.then != "measure":
        return words
    done, _, later = words.rpartition("then inspect")
    name = "see what is shown" if not step.measurement else base.measurement_name(step.measurement)
    return f"{done}then {name}{later}"


def branch_words(advice: Advice, step: PlanStep, branch: StepBranch) -> str:
    """Return what is reported: `'2' or '3'`, or `whatever is reported`."""
    assert advice.problem is not None
    base = advice.problem.base
    if len(step.branches) == 1 or not branch.outcomes:
        return "whatever is reported"
    return outcome_list(base, step.measurement, branch.outcomes)


def _steps_table(advice: Advice) -> str:
    """Return the table of steps with a line for every outcome."""
    head = ("step", "do", "if it reports", "chance", "go to")
    cells = []
    for step in advice.steps[:STEPS_SHOWN]:
        begin = (str(step.number + 1), shortened(step_words(advice, step), STEP_WIDTH))
        if not step.branches:
            cells.append((*begin, "", "", ""))
        for branch in step.branches:
            cells.append((*begin, branch_words(advice, step, branch), percent(branch.chance), str(branch.target + 1)))
            begin = ("", "")
    lines = text_table(head, cells, "><<>>")
    if len(advice.steps) > STEPS_SHOWN:
        lines.append(f"... and {counted(len(advice.steps) - STEPS_SHOWN, 'more step')}; --json and --csv have all")
    return "\n".join([*lines, *cut_words(advice)])


def cut_words(advice: Advice) -> list[str]:
    """Return the sentence that names the steps that the end of life may cut short, if there are any."""
    cut = [str(step.number + 1) for step in advice.steps if step.may_be_cut]
    if not cut:
        return []
    which = f"step {cut[0]}" if len(cut) == 1 else f"steps {', '.join(cut[:-1])} and {cut[-1]}"
    if len(cut) > CUT_NAMED:
        which = f"{len(cut)} of the {len(advice.steps)} steps"
    return [f"Life may end before the inspection of {which}, which is then left out."]


def tree_lines(advice: Advice, most: int = TREE_LINES) -> list[str]:
    """Return the plan as an indented tree in words; a step that was told before is named by its number."""
    lines: list[str] = []
    told: set[int] = set()

    def tell(number: int, begin: str, depth: int) -> None:
        step = advice.steps[number]
        indent = "  " * depth
        if number in told or depth > DEPTH:
            lines.append(f"{indent}{begin}step {number + 1}")
            return
        told.add(number)
        lines.append(f"{indent}{begin}{step_words(advice, step)} (step {number + 1})")
        for branch in sorted(step.branches, key=lambda one: -one.chance):
            seen = branch_words(advice, step, branch)
            case = "whatever is reported: " if seen == "whatever is reported" else f"if {seen} is reported: "
            tell(branch.target, case, depth + 1)

    tell(0, "", 0)
    return (
        lines
        if len(lines) <= most
        else [*lines[:most], f"... and {len(lines) - most} more lines; --nodes 12 is shorter"]
    )


# Comparison


def ending_words(advice: Advice) -> str:
    """Return what the last period contains beside its own costs, where a life ends with a value of the state."""
    life = advice.model.origin
    if not isinstance(life, Lifetime) or life.final is None or not life.final.any():
        return ""
    return f"the last {advice.units.period} includes the {advice.units.figure} of the state at the end of life"


def _comparison(advice: Advice) -> str:
    """Return the table of the plan and the other policies."""
    units, problem = advice.units, advice.problem
    assert problem is not None
    has_failures = bool(problem.failed.any())
    life = problem.periods is not None
    over = "in all" if life else f"per {units.period}"
    down = "failures" if problem.components == 1 else "down"
    head = ["compared with", f"{units.figure} in all", "more" if units.is_cost else "less"]
    head += [f"{inspections_noun(problem)} {over}"]
    head += [f"{down} per {units.period}"] if has_failures else []
    cells = []
    for policy in advice.policies:
        found = policy.figures
        looks = sum(inspections_made(problem, policy.evaluation)[0].values())
        failures = [] if not has_failures else ["?" if found is None else plain_number(found.failures_per_period)]
        lost = units.amount(advice.lost(policy))
        name = policy.name if policy.is_allowed else f"{policy.name} (not allowed)"
        cells.append((name, units.money(policy.value), lost, plain_number(looks), *failures))
    rules = [f"- {policy.name}: {policy.rule}" for policy in advice.policies[1:] if policy.given_rule]
    notes = [f"- {policy.name}: {policy.note}" for policy in advice.policies if policy.note is not None]
    return "\n".join([*text_table(head, cells, "<>>>>"[: len(head)]), *rules, *notes])


# What inspections are worth


def _worth_lines(advice: Advice) -> Iterator[str]:
    yield "What inspections are worth"
    for one in advice.worth:
        first, *others = method_lines(advice, one)
        yield f"- {first}"
        yield from (f"    {line}" for line in others)


def method_lines(advice: Advice, one: MethodWorth) -> Iterator[str]:
    """Yield what a method is worth, and what it may cost with other probabilities of detection, as sentences."""
    units, name = advice.units, shown(one.name)
    words = [f"costs {units.amount(one.price)}"]
    if one.break_even is not None:
        text = break_even_text(*one.break_even, "it", units.amount).rstrip(".").replace("Whether", "whether")
        words.append(text.removeprefix("it ") if text.startswith("it pays") else text)
    if one.now is not None:
        low, high = (max(0.0, gain + one.price) for gain in one.now)
        low, high = (0.0 if is_rounding(bound, advice.value) else bound for bound in (low, high))
        gain = (
            f"{units.amount(low)} to {units.amount(high)}"
            if units.amount(low) != units.amount(high)
            else units.amount(low)
        )
        words.append(f"one at the end of the first {units.period} is worth {gain}")
    yield f"{name}: {'; '.join(words)}."
    for quality, low, high in one.qualities:
        if quality != 1 and not (low <= 0 and math.isinf(high)):  # nothing is known otherwise
            most = (
                f"between {units.amount(low)} and {units.amount(high)}"
                if math.isfinite(high)
                else f"{units.amount(low)} or more"
            )
            exact = units.amount(low) if units.amount(low) == units.amount(high) else most
            yield f"with {plain_number(quality)} times the probability of detection it may cost {exact}"
