"""The commands that plan: `solve` and `tradeoff`. Anything heavy is imported inside, so that --help is instant."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from actmeasure.errors import ModelError, PlanError

if TYPE_CHECKING:
    from rich.status import Status

    from actmeasure.model import Model
    from actmeasure.planners.solution import Solution
    from actmeasure.planners.tradeoff import BudgetPlan, Frontier, FrontierPiece
    from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["register"]

FILES = (".json", ".npz", ".pomdp")
#: Progress is shown when something takes longer than this, in seconds.
PATIENCE = 2.0

Problem = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM_OR_FILE",
        help="Name of a problem (see: actmeasure problems), or a model file that ends in .json, .npz or .pomdp.",
        show_default=False,
    ),
]
Cost = Annotated[float | None, typer.Option(help="Price of a look; by default the problem's own.")]
Discount = Annotated[float | None, typer.Option(help="Discount per step; by default the problem's own.")]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds; then the best so far is shown. Ctrl-C does the same.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the problem; may be repeated.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Plot = Annotated[Path | None, typer.Option(help="Draw a picture into this file, such as plans.png or plans.svg.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(
        epilog="Examples:  actmeasure solve frozen-lake  |  "
        "actmeasure solve frozen-lake --set size=8 --set variant=slippery --cost 0.01  |  "
        "actmeasure solve frozen-lake --set size=20 --set seed=3 --time-limit 10 --plot plans.png  |  "
        "actmeasure solve machine.json --method every-3 --json"
    )(solve)
    app.command(
        epilog="Examples:  actmeasure tradeoff measuring-value  |  actmeasure tradeoff frozen-lake --plot tradeoff.png  |  "
        "actmeasure tradeoff frozen-lake --budget 1.5  |  actmeasure tradeoff machine.json --time-limit 60 --json"
    )(tradeoff)


def solve(
    problem: Problem,
    cost: Cost = None,
    discount: Discount = None,
    method: Annotated[
        str, typer.Option(help="optimal, atm, atm-qmdp, atm-linear, always, never, or every-3 (any number).")
    ] = "optimal",
    tolerance: Annotated[float, typer.Option(help="How close the bounds on the optimum should come.")] = 1e-6,
    time_limit: TimeLimit = None,
    settings: Settings = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Plan what to do and when to look, and prove how good that is.

    The value is exact; the optimum lies between the bounds. For lakes --plot draws the plans on the map, for other models
    what a look is worth along the first plan.
    """
    given = _settings(settings)
    model = _model(problem, given, cost, discount)
    place = _picture(plot)
    from actmeasure.planners.solve import solve as solve_model

    with _progress(as_json) as show:
        solution = solve_model(
            model,
            method,
            tolerance,
            time_limit,
            lambda now: show(f"{_bounds(now.lower, now.upper)}, {now.seconds:.0f} s"),
        )
    if as_json:
        typer.echo(json.dumps(_solution_json(solution), indent=2))
    else:
        typer.echo(f"{solution.table()}\n{_left_open(solution, tolerance)}", nl=False)
    if place is not None:
        _draw_solution(solution, place, given)


def tradeoff(
    problem: Problem,
    discount: Discount = None,
    tolerance: Annotated[float, typer.Option(help="How close the bounds should come at every price.")] = 1e-3,
    time_limit: TimeLimit = None,
    budget: Annotated[
        float | None, typer.Option(metavar="LOOKS", help="Also the best within so many expected discounted looks.")
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Show the best schedules for every price of a look, and the price above which looking is never worth it."""
    if budget is not None and not 0 <= budget < math.inf:
        raise PlanError(f"budget is {budget:g}, expected a finite number of looks that is 0 or more")
    model = _model(problem, _settings(settings), None, discount)
    place = _picture(plot)
    from actmeasure.planners.tradeoff import tradeoff as trade

    with _progress(as_json) as show:
        frontier = trade(
            model,
            tolerance,
            time_limit,
            lambda now: show(f"{now.solved} prices solved, gap {now.gap:.2g}, {now.seconds:.0f} s"),
        )
    allowed = None if budget is None else frontier.budget(budget)
    if as_json:
        typer.echo(json.dumps(_frontier_json(frontier, allowed), indent=2))
    else:
        typer.echo(_frontier_text(frontier, allowed))
    if place is not None:
        frontier.plot(place)
        _say(f"Picture: {place}")


def _settings(given: list[str] | None) -> dict[str, Any]:
    """`["size=8", "variant=slippery"]` as `{"size": 8, "variant": "slippery"}`: values are JSON, or else text."""
    settings: dict[str, Any] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise ModelError(f"--set {text!r} is not a setting; write it as NAME=VALUE, such as --set size=8")
        if name in settings:
            raise ModelError(f"the setting {name!r} is given twice; give it once")
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    return settings


def _model(problem: str, settings: dict[str, Any], cost: float | None, discount: float | None) -> Model:
    changes = {"measuring_cost": cost, "discount": discount}
    changes = {name: value for name, value in changes.items() if value is not None}
    for name, option in (("measuring_cost", "--cost"), ("discount", "--discount")):
        if name in settings and name in changes:
            raise ModelError(f"{name} is given twice, with --set and with {option}; give it once")
    if Path(problem).suffix.lower() in FILES or "/" in problem or "\\" in problem:
        from actmeasure.model import Model

        if settings:
            raise ModelError(
                f"--set goes with a named problem, but {problem!r} is a file; change the file, or leave it out"
            )
        model = Model.load(problem)
    else:
        from actmeasure.problems import make

        model = make(problem, **settings)
    return model.replace(**changes) if changes else model


def _picture(path: Path | None) -> Path | None:
    """The path, if it can be drawn to; better to know now than after a long search."""
    if path is None:
        return None
    from actmeasure.planners.pictures import check_path

    return check_path(path)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line on the terminal that says how it goes, once that takes long; nothing where nobody watches."""
    line = None if quiet or not sys.stderr.isatty() else _StatusLine()
    try:
        yield (lambda text: None) if line is None else line.show
    except KeyboardInterrupt:
        raise PlanError("stopped before there was anything to show; let it run longer") from None
    finally:
        if line is not None:
            line.stop()


class _StatusLine:
    """A line on stderr that appears after a while."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._status: Status | None = None

    def show(self, text: str) -> None:
        if time.perf_counter() - self._begun < PATIENCE:
            return
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status("")
            self._status.start()
        self._status.update(f"{text} (Ctrl-C: best so far)")

    def stop(self) -> None:
        if self._status is not None:
            self._status.stop()


def _bounds(lower: float, upper: float) -> str:
    return f"{lower:.6g} <= optimum <= {upper:.6g}, gap {upper - lower:.2g}"


def _left_open(solution: Solution, tolerance: float) -> str:
    """Say so if the search ended early: stopped, out of time, or stuck."""
    upper = {"optimal": solution.upper, "never": solution.method_upper}.get(solution.method)
    if upper is None or upper - solution.lower <= tolerance:
        return ""
    remedy = "Without discount they may not close; a discount below 1 does." if solution.model.discount == 1 else ""
    return (
        f"\nThe tolerance of {tolerance:g} was not reached: this is the best so far, and the bounds hold. "
        f"{remedy or 'More time may close the gap.'}\n"
    )


def _draw_solution(solution: Solution, place: Path, settings: dict[str, Any]) -> None:
    from actmeasure.planners.pictures import is_lake

    rows = settings.get("map")
    if is_lake(solution.model):
        solution.plot(place, shape=(len(rows), len(rows[0])) if rows else None)
    else:
        solution.explain(int(solution.model.initial_states[0]) if solution.model.start_is_known else None).plot(place)
    _say(f"Picture: {place}")


def _say(text: str) -> None:
    """On stderr, so that what is printed stays what was asked for."""
    typer.echo(text, err=True)


def _finite(value: float | None) -> float | None:
    """JSON has no infinities."""
    return None if value is None or not math.isfinite(value) else float(value)


def _solution_json(solution: Solution) -> dict[str, Any]:
    result = solution.evaluation
    return {
        "method": solution.method,
        "value": _finite(solution.value),
        "lower": _finite(solution.lower),
        "upper": _finite(solution.upper),
        "gap": _finite(solution.gap),
        "claimed": _finite(solution.claimed),
        "method_upper": _finite(solution.method_upper),
        "seconds": solution.seconds,
        "looks": _finite(result.measurements),
        "discounted_looks": _finite(result.discounted_measurements),
        "reward": _finite(result.reward),
        "discounted_reward": _finite(result.discounted_reward),
        "steps": _finite(result.steps),
        "ending_probability": result.ending_probability,
        "model": _model_json(solution.model),
        "start": None if solution.schedule.start is None else _plan_json(solution.model, solution.schedule.start),
        "plans": [
            {"state": state, "name": solution.model.state_name(state), "value": _finite(float(solution.values[state]))}
            | _plan_json(solution.model, plan)
            for state, plan in solution.schedule.items()
        ],
    }


def _model_json(model: Model) -> dict[str, Any]:
    cost = model.measuring_cost
    return {
        "states": model.n_states,
        "actions": model.n_actions,
        "discount": model.discount,
        "measuring_cost": cost if isinstance(cost, float) else cost.tolist(),
    }


def _plan_json(model: Model, plan: BlindPlan) -> dict[str, Any]:
    names = [model.action_name(action) for action in plan.actions]
    return {"actions": list(plan.actions), "action_names": names, "then": plan.then, "repeat": plan.repeat}


def _frontier_text(frontier: Frontier, allowed: BudgetPlan | None) -> str:
    from actmeasure.planners.explain import text_table

    low, high = frontier.break_even
    even = f"{low:.6g}" if math.isclose(low, high, rel_tol=1e-9) else f"between {low:.6g} and {high:.6g}"
    cells = [
        (
            f"{piece.low:.4g} to {piece.high:.4g}",
            *(f"{value:.4f}" for value in (piece.discounted_reward, piece.discounted_looks)),
            *(f"{value:.4g}" for value in (piece.reward, piece.measurements, piece.steps)),
        )
        for piece in frontier.pieces
    ]
    head = ("price of a look", "reward", "looks", "undiscounted", "looks", "steps")
    closed = "" if frontier.closed else f", above the tolerance of {frontier.tolerance:g}: allow more time to close it"
    lines = [
        *text_table(head, cells, "<>>>>>"),
        "",
        f"Looking pays up to a price of {even}." if high > 0 else "Looking is never worth anything here.",
        f"Nothing is better by more than {frontier.gap:.2g} at any price{closed} ({frontier.seconds:.2g} s).",
    ]
    return "\n".join(lines if allowed is None else [*lines, *_budget_lines(frontier.model, allowed)])


def _budget_lines(model: Model, allowed: BudgetPlan) -> list[str]:
    lines = [
        "",
        f"Within {allowed.budget:g} discounted looks: reward {allowed.reward:.6g} (nothing better than {allowed.upper:.6g}) "
        f"with {allowed.looks:.4g} looks.",
    ]
    if len(allowed.pieces) > 1:
        lines.append(f"Toss a coin once, at the start: the first schedule with probability {allowed.probability:.4g}.")
    for number, piece in enumerate(allowed.pieces, start=1):
        lines += [
            "",
            f"Schedule {number} ({piece.discounted_looks:.4g} looks):",
            *_schedule_lines(model, piece.schedule),
        ]
    return lines


def _schedule_lines(model: Model, schedule: Schedule, most: int = 20) -> list[str]:
    lines = [f"  {line}" for line in schedule.describe(model).splitlines()]
    return lines[:most] + ([f"  ... and {len(lines) - most} more plans"] if len(lines) > most else [])


def _frontier_json(frontier: Frontier, allowed: BudgetPlan | None) -> dict[str, Any]:
    low, high = frontier.break_even
    found = {
        "break_even": [_finite(low), _finite(high)],
        "gap": _finite(frontier.gap),
        "tolerance": frontier.tolerance,
        "seconds": frontier.seconds,
        "prices": frontier.prices.tolist(),
        "lower": frontier.lower.tolist(),
        "upper": frontier.upper.tolist(),
        "model": _model_json(frontier.model),
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
    schedule = piece.schedule
    figures = ("low", "high", "discounted_reward", "discounted_looks", "reward", "measurements", "steps")
    return {
        **{name: _finite(getattr(piece, name)) for name in figures},
        "start": None if schedule.start is None else _plan_json(model, schedule.start),
        "plans": [{"state": state} | _plan_json(model, plan) for state, plan in schedule.items()],
    }
