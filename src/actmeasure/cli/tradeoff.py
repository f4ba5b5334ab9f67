"""The command `tradeoff`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from actmeasure.cli.output import (
    Json,
    Plot,
    TimeLimit,
    model_json,
    picture_path,
    print_json,
    say,
    schedule_json,
)
from actmeasure.cli.problem import Discount, Problem, Settings, read_model, read_settings
from actmeasure.errors import PlanError
from actmeasure.progress import status_line

if TYPE_CHECKING:
    from actmeasure.model import Model
    from actmeasure.planning.frontier import BudgetPlan, Frontier, FrontierPiece
    from actmeasure.planning.tradeoff import TradeoffProgress
    from actmeasure.schedule import Schedule

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Examples:  actmeasure tradeoff measuring-value  |  actmeasure tradeoff frozen-lake --plot tradeoff.png  |  "
        "actmeasure tradeoff frozen-lake --budget 1.5  |  actmeasure tradeoff machine.json --time-limit 60 --json"
    )(tradeoff)


def tradeoff(
    problem: Problem,
    discount: Discount = None,
    tolerance: Annotated[float, typer.Option(help="How close the bounds should come at every price.")] = 1e-3,
    time_limit: TimeLimit = None,
    budget: Annotated[
        float | None,
        typer.Option(metavar="LOOKS", help="Also show the best within this number of expected discounted looks."),
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Show the best schedules for every price of a look, and the price above which looking is never worth it."""
    if budget is not None and not 0 <= budget < math.inf:
        raise PlanError(f"budget is {budget:g}, expected a finite number of looks that is 0 or more")
    model = read_model(problem, read_settings(settings), discount=discount)
    place = picture_path(plot)
    from actmeasure.planning.tradeoff import tradeoff as trade

    with status_line() as show:
        frontier = trade(model, tolerance, time_limit, lambda now: show(_progress_text(now)))
    allowed = None if budget is None else frontier.budget(budget)
    if as_json:
        print_json(_frontier_json(frontier, allowed))
    else:
        typer.echo(_frontier_text(frontier, allowed))
    if place is not None:
        frontier.plot(place)
        say(f"Picture: {place}")


def _progress_text(now: TradeoffProgress) -> str:
    gap = f", gap {now.gap:.2g}" if math.isfinite(now.gap) else ""
    return f"{now.solved} price{'s' * (now.solved != 1)} solved{gap}, {now.seconds:.0f} s"


def _frontier_text(frontier: Frontier, allowed: BudgetPlan | None) -> str:
    from actmeasure.text import text_table

    cells = [
        (
            f"{piece.low:.4g} to {piece.high:.4g}",
            *(f"{value:.4f}" for value in (piece.discounted_reward, piece.discounted_looks)),
            *(f"{value:.4g}" for value in (piece.reward, piece.measurements, piece.steps)),
        )
        for piece in frontier.pieces
    ]
    price = "price of a look" if _is_number(frontier.model) else "price (times the costs)"
    head = (price, "discounted: reward", _unit(frontier.model), "undiscounted: reward", "looks", "steps")
    lines = [*text_table(head, cells, "<>>>>>"), "", _break_even(*frontier.break_even), *_certainty(frontier)]
    return "\n".join(lines if allowed is None else [*lines, *_budget_lines(frontier.model, allowed)])


def _is_number(model: Model) -> bool:
    return isinstance(model.measuring_cost, float)


def _unit(model: Model) -> str:
    """Return the unit in which a schedule spends: looks or, where they cost differently, their cost at price 1."""
    return "looks" if _is_number(model) else "cost of looks"


def _break_even(low: float, high: float) -> str:
    from actmeasure.text import break_even_text

    return break_even_text(low, high)


def _certainty(frontier: Frontier) -> list[str]:
    """Return how much better any schedule could be and, where that is above the tolerance, why."""
    if frontier.closed:
        return [f"Nothing is better by more than {frontier.gap:.2g} at any price ({frontier.seconds:.2g} s)."]
    if math.isinf(frontier.gap):
        most = "How much better something could be is not known for every price"
    else:
        most = f"Nothing is better by more than {frontier.gap:.2g} at any price"
    return [f"{most}, above the tolerance of {frontier.tolerance:g} ({frontier.seconds:.2g} s).", frontier.note]


def _budget_lines(model: Model, allowed: BudgetPlan) -> list[str]:
    unit = _unit(model)
    lines = [
        "",
        f"Within {allowed.budget:g} discounted {unit}: reward {allowed.reward:.6g} (nothing better than {allowed.upper:.6g}) "
        f"with {allowed.looks:.4g} {unit}.",
    ]
    if len(allowed.pieces) > 1:
        lines.append(f"Toss a coin once, at the start: the first schedule with probability {allowed.probability:.4g}.")
    for number, piece in enumerate(allowed.pieces, start=1):
        lines += [
            "",
            f"Schedule {number} ({piece.discounted_looks:.4g} {unit}):",
            *_schedule_lines(model, piece.schedule),
        ]
    return lines


def _schedule_lines(model: Model, schedule: Schedule, most: int = 20) -> list[str]:
    lines = [f"  {line}" for line in schedule.describe(model).splitlines()]
    return lines[:most] + ([f"  ... and {len(lines) - most} more plans"] if len(lines) > most else [])


def _frontier_json(frontier: Frontier, allowed: BudgetPlan | None) -> dict[str, Any]:
    low, high = frontier.break_even
    found: dict[str, Any] = {
        "break_even": [low, high],
        "gap": frontier.gap,
        "tolerance": frontier.tolerance,
        "stopped": frontier.stopped,
        "notes": [frontier.note] if frontier.note else [],
        "seconds": frontier.seconds,
        "prices": frontier.prices.tolist(),
        "lower": frontier.lower.tolist(),
        "upper": frontier.upper.tolist(),
        "model": model_json(frontier.model),
        "pieces": [_piece_json(frontier.model, piece) for piece in frontier.pieces],
    }
    if allowed is not None:
        found["budget"] = {
            "looks_allowed": allowed.budget,
            "reward": allowed.reward,
            "looks": allowed.looks,
            "upper": allowed.upper,
            "probability_of_first": allowed.probability,
            "pieces": [frontier.pieces.index(piece) for piece in allowed.pieces],
        }
    return found


def _piece_json(model: Model, piece: FrontierPiece) -> dict[str, Any]:
    figures = ("low", "high", "discounted_reward", "discounted_looks", "reward", "measurements", "steps")
    return {
        **{name: getattr(piece, name) for name in figures},
        **schedule_json(model, piece.schedule),
    }
