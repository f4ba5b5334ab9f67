"""The command `solve`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
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
from actmeasure.cli.problem import Cost, Discount, Problem, Settings, read_model, read_settings
from actmeasure.errors import PlanError
from actmeasure.progress import status_line

if TYPE_CHECKING:
    from actmeasure.model import Model
    from actmeasure.planning.budget import Progress
    from actmeasure.planning.solution import Solution

__all__ = ["register"]

#: The method that has options of its own.
POMCP_METHOD = "pomcp"

Simulations = Annotated[
    int | None, typer.Option(metavar="N", help="With pomcp: simulations for each decision, 25,000 unless told.")
]
Depth = Annotated[int | None, typer.Option(metavar="N", help="With pomcp: steps that it looks ahead, 25 unless told.")]
Episodes = Annotated[
    int | None, typer.Option(metavar="N", help="With pomcp: episodes that are simulated, 100 unless told.")
]
Seed = Annotated[int | None, typer.Option(help="With pomcp: of the random numbers, 0 unless told.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog="Examples:  actmeasure solve frozen-lake  |  "
        "actmeasure solve frozen-lake --set size=8 --set variant=slippery --cost 0.01  |  "
        "actmeasure solve frozen-lake --set size=20 --set seed=3 --time-limit 10 --plot plans.png  |  "
        "actmeasure solve machine.json --method every-3 --json  |  "
        "actmeasure solve frozen-lake --method pomcp --simulations 5000"
    )(solve)


def solve(
    problem: Problem,
    cost: Cost = None,
    discount: Discount = None,
    method: Annotated[
        str, typer.Option(help="optimal, atm, atm-qmdp, atm-linear, always, never, every-3 (any number), or pomcp.")
    ] = "optimal",
    tolerance: Annotated[float, typer.Option(help="How close the bounds on the optimum should come.")] = 1e-6,
    time_limit: TimeLimit = None,
    settings: Settings = None,
    as_json: Json = False,
    plot: Plot = None,
    simulations: Simulations = None,
    depth: Depth = None,
    episodes: Episodes = None,
    seed: Seed = None,
) -> None:
    """Plan what to do and when to look, and prove how good that is.

    The value is exact; the optimum lies between the bounds. For lakes --plot draws the plans on the map, for other models
    what a look is worth along the first plan. With --method pomcp decisions are planned by simulation as they come up, and
    what they earn is simulated.
    """
    given = read_settings(settings)
    options = _PomcpOptions(simulations, depth, episodes, seed)
    if method == POMCP_METHOD:
        if plot is not None:
            raise PlanError(
                "pomcp makes no plans in advance that could be drawn; leave --plot out, or use another method"
            )
        _solve_by_simulation(read_model(problem, given, cost, discount), options, time_limit, as_json)
        return
    options.refuse(method)
    model = read_model(problem, given, cost, discount)
    place = picture_path(plot)
    from actmeasure.planning.solve import solve as solve_model

    with status_line() as show:
        solution = solve_model(model, method, tolerance, time_limit, lambda now: show(_progress_text(now)))
    if as_json:
        print_json(_solution_json(solution))
    else:
        typer.echo(solution.table())
    if place is not None:
        _draw(solution, place, given)
        say(f"Picture: {place}")


def _progress_text(now: Progress) -> str:
    gap = now.upper - now.lower
    return f"{now.lower:.6g} <= optimum <= {now.upper:.6g}, gap {gap:.2g}, {now.seconds:.0f} s"


def _draw(solution: Solution, place: Path, settings: Mapping[str, Any]) -> None:
    shape = _lake_shape(solution.model, settings)
    if shape is not None:
        solution.plot(place, shape)
        return
    first = int(solution.model.initial_states[0]) if solution.model.start_is_known else None
    solution.explain(first).plot(place)


def _lake_shape(model: Model, settings: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return rows and columns of a lake's map; None for other models, and for lakes from a file that cannot be a square."""
    from actmeasure.planning.lake_plot import is_lake

    if not is_lake(model):
        return None
    if rows := settings.get("map"):
        return len(rows), len(rows[0])
    side = math.isqrt(model.n_states)
    return (side, side) if side * side == model.n_states else None


def _solution_json(solution: Solution) -> dict[str, Any]:
    from actmeasure.planning.solution import solution_notes

    result = solution.evaluation
    schedule = schedule_json(solution.model, solution.schedule)
    for plan in schedule["plans"]:
        plan["value"] = float(solution.values[plan["state"]])
    return {
        "method": solution.method,
        "value": solution.value,
        "lower": solution.lower,
        "upper": solution.upper,
        "gap": solution.gap,
        "stopped": solution.stopped,
        "notes": list(solution_notes(solution)),
        "claimed": solution.claimed,
        "method_upper": solution.method_upper,
        "seconds": solution.seconds,
        "looks": result.measurements,
        "discounted_looks": result.discounted_measurements,
        "reward": result.reward,
        "discounted_reward": result.discounted_reward,
        "steps": result.steps,
        "ending_probability": result.ending_probability,
        "model": model_json(solution.model),
        **schedule,
    }


@dataclass(frozen=True)
class _PomcpOptions:
    """Options that are for pomcp alone; None where they are not given."""

    simulations: int | None
    depth: int | None
    episodes: int | None
    seed: int | None

    def refuse(self, method: str) -> None:
        """Raise an error if an option is given that does not go with another method."""
        for name, value in asdict(self).items():
            if value is not None:
                raise PlanError(f"--{name} is for --method {POMCP_METHOD}, but the method is {method!r}; leave it out")


def _solve_by_simulation(model: Model, options: _PomcpOptions, time_limit: float | None, as_json: bool) -> None:
    """Run POMCP in simulated episodes, and print its return."""
    from actmeasure.planning import POMCP
    from actmeasure.planning.pomcp import Mean, simulate

    given = {name: value for name, value in asdict(options).items() if value is not None}
    episodes, seed = given.pop("episodes", 100), given.pop("seed", 0)
    planner = POMCP(model, **given)
    settings = {"simulations": planner.simulations, "depth": planner.depth}
    with status_line() as show:

        def progress(done: int, so_far: Mean) -> None:
            show(f"episode {done} of {episodes}, discounted return {so_far}")

        found = simulate(planner, episodes, seed, time_limit=time_limit, progress=progress)
    if as_json:
        print_json({"method": POMCP_METHOD, **settings, "seed": seed, **asdict(found), "model": model_json(model)})
    else:
        typer.echo(f"POMCP, {settings['simulations']:,} simulations a decision, depth {settings['depth']}\n\n{found}")
