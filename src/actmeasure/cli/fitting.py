"""The command `fit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from actmeasure.cli.output import Json, print_json, say
from actmeasure.errors import FitError, quoted
from actmeasure.progress import work_bar

if TYPE_CHECKING:
    from actmeasure.inspection import Economics, Fit

__all__ = ["register"]

#: The key of the structure of all actions that have none of their own.
OTHERS = "*"
#: Exit code after Ctrl-C.
INTERRUPTED = 130

RecordsFile = Annotated[
    Path,
    typer.Argument(
        metavar="RECORDS.csv", help="Columns unit, time, state (empty: not inspected) and action.", show_default=False
    ),
]
Out = Annotated[Path | None, typer.Option(help="Save the fit into this .npz file, for: actmeasure plan.")]
States = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="All states in order, the best first; by default as they sort, 9 before 10."),
]
Structure = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[ACTION=]KIND",
        help="Which transitions are possible: any, deteriorate, deteriorate-by-steps, improve or improve-by-steps; for one "
        "action, or for all that have none of their own. May be repeated.",
    ),
]
Noticed = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STATE", help="A state that is noticed and recorded at once, such as a breakdown; may be repeated."
    ),
]
DefaultAction = Annotated[
    str | None, typer.Option(metavar="ACTION", help="The action of periods without a recorded one.")
]
Assume = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ACTION:STATE",
        help="Effect of an action where the records contain no information: it leads to the state, or ACTION:stay changes "
        "nothing; may be repeated.",
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="ACTION", help="Remove the action from the fit; may be repeated.")
]
Column = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=COLUMN", help="Other name of a column, such as unit=pipe; may be repeated."),
]
Period = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help="day, week, month, quarter or year: what times count, or what dates are put into; or a number that times are "
        "divided by.",
    ),
]
Bootstrap = Annotated[int, typer.Option(metavar="N", help="Replicates for the intervals; 0 for none.")]
Goodness = Annotated[
    int, typer.Option(metavar="N", help="Simulated sets of records for the goodness of fit; 0 for none.")
]
Prices = Annotated[
    Path | None,
    typer.Option("--economics", metavar="PRICES.toml", help="Prices; checked against the fit, and needed for --model."),
]
ModelFile = Annotated[
    Path | None,
    typer.Option("--model", help="Write the model into this file: .json, .npz or .pomdp; needs --economics."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "fit",
        epilog="Examples:  actmeasure fit records.csv --out fit.npz  |  "
        "actmeasure fit records.csv --structure nothing=deteriorate --default-action nothing --period month  |  "
        "actmeasure fit records.csv --assume replace:1 --economics prices.toml --model model.json",
    )(fit_records)


def fit_records(
    records: RecordsFile,
    out: Out = None,
    states: States = None,
    structure: Structure = None,
    noticed: Noticed = None,
    default_action: DefaultAction = None,
    assume: Assume = None,
    drop: Drop = None,
    column: Column = None,
    period: Period = None,
    delimiter: Annotated[str, typer.Option(help="What separates the columns.")] = ",",
    encoding: Annotated[str, typer.Option(help="Of the file.")] = "utf-8",
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out lines that cannot be read, with a note.")
    ] = False,
    bootstrap: Bootstrap = 200,
    goodness: Goodness = 100,
    level: Annotated[float, typer.Option(help="Coverage probability of the intervals.")] = 0.9,
    seed: Annotated[int, typer.Option(help="Of the random numbers.")] = 0,
    economics: Prices = None,
    model: ModelFile = None,
    as_json: Json = False,
) -> None:
    """Fit transition probabilities to records of inspections, with gaps of any length between them.

    A row says: at the beginning of period TIME the unit was seen in STATE, and during that period ACTION was done. Printed are
    the probabilities of the next state for every action, with intervals from a bootstrap over units, goodness-of-fit tests, and
    what the records do not determine. Ctrl-C keeps the replicates that are done, with exit code 130.
    """
    prices = _check_files(out, economics, model)
    from actmeasure.inspection import fit

    with work_bar() as show:
        try:
            found = fit(
                records,
                states=None if states is None else [name.strip() for name in states.split(",")],
                structure=_structures(structure),
                noticed=noticed or (),
                default_action=default_action,
                assume=dict(_pair(one, ":", "--assume", "replace:1") for one in assume or ()),
                drop=drop or (),
                columns=dict(_pair(one, "=", "--column", "unit=pipe") for one in column or ()),
                period=_period(period),
                delimiter="\t" if delimiter in ("\\t", "tab") else delimiter,
                encoding=encoding,
                skip_broken=skip_broken,
                bootstrap=bootstrap,
                goodness=goodness,
                level=level,
                seed=seed,
                progress=show,
            )
        except KeyboardInterrupt:
            say("Stopped with Ctrl-C before there was a fit: there is nothing to show.")
            raise typer.Exit(INTERRUPTED) from None
    _print(found, records, as_json)
    _keep(found, out, prices, economics, model)
    done = 0 if found.bootstrap is None else len(found.bootstrap)
    if done < bootstrap or (found.goodness is not None and found.goodness.replicates < goodness):
        raise typer.Exit(INTERRUPTED)


def _keep(found: Fit, out: Path | None, prices: Economics | None, economics: Path | None, model: Path | None) -> None:
    """Write the fit and the model, and print the next command."""
    if out is not None:
        found.save(out)
        say(f"Fit: {out}; next: actmeasure plan {out} --economics {economics or 'prices.toml'}")
    else:
        say("Next: save the fit with --out fit.npz, then actmeasure plan fit.npz --economics prices.toml")
    if prices is not None:
        built = found.model(prices)
        if model is not None:
            built.save(model)
            say(f"Model: {model}; next: actmeasure solve {model}")


def _check_files(out: Path | None, economics: Path | None, model: Path | None) -> Economics | None:
    """Raise a `FitError` about files that cannot be written or read, before the fit begins; return the prices."""
    if model is not None and economics is None:
        raise FitError("--model needs prices; give them with --economics prices.toml")
    if out is not None:
        from actmeasure.files.atomic import check_place
        from actmeasure.inspection.fit_files import checked_path

        check_place(checked_path(out), "the fit", FitError)
    if model is not None:
        from actmeasure.files import SUFFIXES
        from actmeasure.files.atomic import check_place

        if model.suffix.lower() not in SUFFIXES:
            raise FitError(
                f"the model cannot be saved as {str(model)!r}; expected a name that ends in {', '.join(SUFFIXES)}"
            )
        check_place(model, "the model", FitError)
    if economics is None:
        return None
    from actmeasure.inspection import Economics

    return Economics.load(economics)


def _structures(given: list[str] | None) -> Any:
    """Return the value of --structure: a kind for all actions, or a mapping; a kind without an action is for those not named."""
    named = dict(_pair(one, "=", "--structure", "nothing=deteriorate") for one in given or () if "=" in one)
    general = [one for one in given or () if "=" not in one]
    if len(general) > 1:
        raise FitError(
            f"--structure is given for all actions as {' and as '.join(general)}; name the action: ACTION=KIND"
        )
    if not named:
        return general[0] if general else None
    return named | ({OTHERS: general[0]} if general else {})


def _pair(text: str, sign: str, option: str, example: str) -> tuple[str, str]:
    """Return both sides of an option's value such as `unit=pipe`."""
    name, found, value = text.rpartition(sign)
    if not found or not name.strip() or not value.strip():
        raise FitError(f"{option} is {quoted(text)}, expected something like {example}")
    return name.strip(), value.strip()


def _period(text: str | None) -> float | str | None:
    """Return the value of --period: a number if it is one, otherwise a name."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _print(found: Fit, records: Path, as_json: bool) -> None:
    """Print the fit as text or JSON."""
    if not as_json:
        typer.echo(found.summary())
        return
    print_json(
        {
            "records": str(records),
            "units": found.n_units,
            "n_records": found.n_records,
            "inspections": found.n_inspections,
            "period": found.period,
            "states": list(found.state_names),
            "actions": list(found.action_names),
            "structure": list(found.structure),
            "level": found.level,
            "replicates": 0 if found.bootstrap is None else len(found.bootstrap),
            "probabilities": found.probabilities.tolist(),
            "low": None if found.low is None else found.low.tolist(),
            "high": None if found.high is None else found.high.tolist(),
            "initial": found.initial.tolist(),
            "exposure": found.exposure.tolist(),
            "inspected": found.inspected.tolist(),
            "assumed": found.assumed.tolist(),
            "log_likelihood": found.log_likelihood,
            "goodness": None if found.goodness is None else found.goodness.record(),
            "identifiability": [one.record() for one in found.identifiability],
            "warnings": [one.record() for one in found.warnings],
            "notes": [one.record() for one in found.notes],
        }
    )
