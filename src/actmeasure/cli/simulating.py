"""What `solve --method pomcp` does."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from actmeasure.cli.output import model_json, print_json
from actmeasure.cli.progress import status_line
from actmeasure.errors import PlanError

if TYPE_CHECKING:
    from actmeasure.model import Model

__all__ = ["METHOD", "Depth", "Episodes", "PomcpOptions", "Seed", "Simulations", "solve_by_simulation"]

METHOD = "pomcp"

Simulations = Annotated[
    int | None, typer.Option(metavar="N", help="With pomcp: simulations for each decision, 25,000 unless told.")
]
Depth = Annotated[int | None, typer.Option(metavar="N", help="With pomcp: steps that it looks ahead, 25 unless told.")]
Episodes = Annotated[
    int | None, typer.Option(metavar="N", help="With pomcp: episodes that are simulated, 100 unless told.")
]
Seed = Annotated[int | None, typer.Option(help="With pomcp: of the random numbers, 0 unless told.")]


@dataclass(frozen=True)
class PomcpOptions:
    """Options that are for pomcp alone; None where they are not given."""

    simulations: int | None
    depth: int | None
    episodes: int | None
    seed: int | None

    def refuse(self, method: str) -> None:
        """Say that an option does not go with another method."""
        for name, value in asdict(self).items():
            if value is not None:
                raise PlanError(f"--{name} is for --method {METHOD}, but the method is {method!r}; leave it out")


def solve_by_simulation(model: Model, options: PomcpOptions, time_limit: float | None, as_json: bool) -> None:
    """Let POMCP act in simulated episodes, and print what it earns."""
    from actmeasure.planners import POMCP
    from actmeasure.planners.simulated import Mean, simulate

    given = {name: value for name, value in asdict(options).items() if value is not None}
    episodes, seed = given.pop("episodes", 100), given.pop("seed", 0)
    settings: dict[str, Any] = {"simulations": 25_000, "depth": 25} | given
    planner = POMCP(model, exploration=None, rollout="looking", share=True, **settings)
    with status_line() as show:

        def progress(done: int, so_far: Mean) -> None:
            show(f"episode {done} of {episodes}, discounted return {so_far}")

        found = simulate(planner, episodes, seed, time_limit=time_limit, progress=progress)
    if as_json:
        print_json({"method": METHOD, **settings, "seed": seed, **asdict(found), "model": model_json(model)})
    else:
        typer.echo(f"POMCP, {settings['simulations']:,} simulations a decision, depth {settings['depth']}\n\n{found}")
