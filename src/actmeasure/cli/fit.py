"""The command `fit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from actmeasure.cli.output import Json, print_json, say
from actmeasure.errors import FitError, quoted
from actmeasure.progress import work_bar

if TYPE_CHECKING:
    from actmeasure.inspection import Economics, Fit, GroupFits

__all__ = ["register"]

#: The key of the structure of all actions that have none of their own.
OTHERS = "*"
#: Exit codes: after Ctrl-C, and if the likelihood is not at a maximum.
INTERRUPTED, NOT_SETTLED = 130, 3

RecordsFile = Annotated[
    Path,
    typer.Argument(
        metavar="RECORDS",
        help="A .csv, .xlsx or .parquet file with the columns unit, time, state (empty: not inspected) and action.",
        show_default=False,
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
        help="Which transitions are possible: any, deteriorate (or no-healing), deteriorate-by-steps, improve, improve-by-steps, "
        "by-steps, absorbing (the last state), several joined by +, or a .csv table of 0 and 1 with the states as its first "
        "row and column; for one action, or for all that have none of their own. May be repeated.",
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
Time = Annotated[
    str,
    typer.Option(
        metavar="KIND", help="discrete (periods), or continuous: intensities, with dates and real numbers as they are."
    ),
]
AtOnce = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ACTION",
        help="In continuous time: an action that acts at the moment of its record, such as a replacement; may be repeated.",
    ),
]
Errors = Annotated[
    list[str] | None,
    typer.Option(
        "--error",
        metavar="TRUE:RECORDED[=P]",
        help="A state that may be recorded in place of another, with its probability or, without it, estimated; may be repeated.",
    ),
]
Start = Annotated[
    str,
    typer.Option(
        metavar="seen|drawn|STATE",
        help="With --error, the state at a unit's first record: as recorded, drawn from a distribution, or this one.",
    ),
]
AgeBreaks = Annotated[
    str | None,
    typer.Option(
        metavar="10,20",
        help="Ages at which the parameters change; the age is time since a unit's first record, or --column age=...",
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Fit groups of units, such as each material, and say whether they differ; saves a fit for each.",
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
        "actmeasure fit records.csv --assume replace:1 --economics prices.toml --model model.json  |  "
        "actmeasure fit visits.xlsx --time continuous --error 1:2 --error 2:1 --noticed dead --default-action nothing",
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
    time: Time = "discrete",
    at_once: AtOnce = None,
    error: Errors = None,
    start: Start = "seen",
    age_breaks: AgeBreaks = None,
    by: By = None,
    delimiter: Annotated[str, typer.Option(help="What separates the columns.")] = ",",
    encoding: Annotated[str, typer.Option(help="Of the file.")] = "utf-8",
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out lines that cannot be read, with a note.")
    ] = False,
    skip_contradictions: Annotated[
        bool,
        typer.Option(
            "--skip-contradictions", help="Leave out what cannot be: excluded transitions, two states at one time."
        ),
    ] = False,
    date_format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="How dates are written, such as %d.%m.%Y; recognised without it."),
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="A row for each unit, a column of states for each time.")
    ] = False,
    header: Annotated[int, typer.Option(metavar="N", help="Number of rows of the header.")] = 1,
    sheet: Annotated[str | None, typer.Option(help="Of an Excel file; the first by default.")] = None,
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
    the probabilities of the next state for every action, or intensities in continuous time, with intervals from a bootstrap over
    units, goodness-of-fit tests, and what the records do not determine. Ctrl-C keeps the replicates that are done, with exit
    code 130; exit code 3 says that the likelihood is not at a maximum.
    """
    prices = _check_files(out, economics, model)
    if by is not None and model is not None:
        raise FitError(
            "--model goes with one fit, but --by makes one for each group; save them with --out and plan for each"
        )
    settings: dict[str, Any] = {
        "states": None if states is None else [name.strip() for name in states.split(",")],
        "structure": _structures(structure),
        "noticed": noticed or (),
        "default_action": default_action,
        "assume": dict(_pair(one, ":", "--assume", "replace:1") for one in assume or ()),
        "drop": drop or (),
        "columns": dict(_pair(one, "=", "--column", "unit=pipe") for one in column or ()),
        "period": _period(period),
        "time": time,
        "at_once": at_once or (),
        "errors": _errors(error),
        "start": start,
        "age_breaks": _numbers(age_breaks, "--age-breaks"),
        "delimiter": "\t" if delimiter in ("\\t", "tab") else delimiter,
        "encoding": encoding,
        "skip_broken": skip_broken,
        "skip_contradictions": skip_contradictions,
        "date_format": date_format,
        "wide": wide,
        "header": header,
        "sheet": sheet,
        "bootstrap": bootstrap,
        "goodness": goodness,
        "level": level,
        "seed": seed,
    }
    from actmeasure.inspection import fit, fit_groups

    groups: GroupFits | None = None
    with work_bar() as show:
        try:
            if by is not None:
                groups = fit_groups(records, by, **settings, progress=show)
                fitted = groups.shared
            else:
                fitted = fit(records, **settings, progress=show)
        except KeyboardInterrupt:
            say("Stopped with Ctrl-C before there was a fit: there is nothing to show.")
            raise typer.Exit(INTERRUPTED) from None
    _print(fitted, groups, records, as_json)
    if groups is not None:
        _keep_groups(groups, out, economics)
    else:
        _keep(fitted, out, prices, economics, model)
    fits = [fitted, *(groups.fits.values() if groups is not None else ())]
    if any(_is_incomplete(one, bootstrap, goodness) for one in fits):
        raise typer.Exit(INTERRUPTED)
    if not (fitted if groups is None else groups).converged:
        raise typer.Exit(NOT_SETTLED)


def _is_incomplete(fitted: Fit, bootstrap: int, goodness: int) -> bool:
    """Return whether there are fewer replicates than were asked for."""
    done = 0 if fitted.bootstrap is None else len(fitted.bootstrap)
    return done < bootstrap or (fitted.goodness is not None and fitted.goodness.replicates < goodness)


def _keep_groups(groups: GroupFits, out: Path | None, economics: Path | None) -> None:
    """Write the fits of groups, and print the next command for each."""
    if out is None:
        say("Next: save the fits with --out fit.npz, then actmeasure plan fit-GROUP.npz --economics prices.toml")
        return
    paths = groups.save(out)
    say(f"Fit of all groups together: {out}")
    for name, path in paths.items():
        say(f"Fit of {name}: {path}; next: actmeasure plan {path} --economics {economics or 'prices.toml'}")


def _keep(fitted: Fit, out: Path | None, prices: Economics | None, economics: Path | None, model: Path | None) -> None:
    """Write the fit and the model, and print the next command."""
    if out is not None:
        fitted.save(out)
        say(f"Fit: {out}; next: actmeasure plan {out} --economics {economics or 'prices.toml'}")
    else:
        say("Next: save the fit with --out fit.npz, then actmeasure plan fit.npz --economics prices.toml")
    if prices is not None:
        built = fitted.model(prices)
        if model is not None:
            built.save(model)
            say(f"Model: {model}; next: actmeasure solve {model}")


def _errors(given: list[str] | None) -> dict[str, dict[str, float | None]] | None:
    """Return the value of --error: from a state to those that may be recorded instead, with known probabilities."""
    if not given:
        return None
    errors: dict[str, dict[str, float | None]] = {}
    for one in given:
        names, equals, chance = one.partition("=")
        true, recorded = _pair(names, ":", "--error", "1:2 or 1:2=0.1")
        try:
            errors.setdefault(true, {})[recorded] = float(chance) if equals else None
        except ValueError:
            raise FitError(f"--error is {quoted(one)}, expected something like 1:2 or 1:2=0.1") from None
    return errors


def _numbers(text: str | None, option: str) -> list[float]:
    """Return the numbers of a list such as 10,20."""
    try:
        return [] if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise FitError(f"{option} is {quoted(text)}, expected numbers such as 10,20") from None


def _check_files(out: Path | None, economics: Path | None, model: Path | None) -> Economics | None:
    """Raise a `FitError` about files that cannot be written or read, before the fit begins; return the prices."""
    if model is not None and economics is None:
        raise FitError("--model needs prices; give them with --economics prices.toml")
    if out is not None:
        from actmeasure.file_access import check_writable, path_of

        check_writable(path_of(out, ".npz", FitError), "the fit", FitError)
    if model is not None:
        from actmeasure.file_access import check_writable
        from actmeasure.files import SUFFIXES

        if model.suffix.lower() not in SUFFIXES:
            raise FitError(
                f"the model cannot be saved as {str(model)!r}; expected a name that ends in {', '.join(SUFFIXES)}"
            )
        check_writable(model, "the model", FitError)
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
    masks: dict[str, Any] = {action: _mask_or_name(kind) for action, kind in named.items()}
    if not named:
        return _mask_or_name(general[0]) if general else None
    return masks | ({OTHERS: _mask_or_name(general[0])} if general else {})


def _mask_or_name(kind: str) -> Any:
    """Return a structure: a name as it is, or the table of a .csv file."""
    if not kind.lower().endswith(".csv"):
        return kind
    from actmeasure.inspection.structures import read_mask

    return read_mask(kind)


def _pair(text: str, sign: str, option: str, example: str) -> tuple[str, str]:
    """Return both sides of an option's value such as `unit=pipe`."""
    name, separator, value = text.rpartition(sign)
    if not separator or not name.strip() or not value.strip():
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


def _print(fitted: Fit, groups: GroupFits | None, records: Path, as_json: bool) -> None:
    """Print the fit, or the fits of groups, as text or JSON."""
    if not as_json:
        typer.echo((fitted if groups is None else groups).summary())
        return
    told = {"records": str(records)} | _record(fitted)
    if groups is not None:
        told["groups"] = {
            "by": groups.by,
            "statistic": groups.statistic,
            "degrees": groups.degrees,
            "p_value": groups.p_value,
            "differ": groups.differ,
            "fits": {name: _record(one) for name, one in groups.fits.items()},
        }
    print_json(told)


def _record(fitted: Fit) -> dict[str, Any]:
    """Return a fit for JSON."""

    def listed(array: Any) -> Any:
        return None if array is None else array.tolist()

    return {
        "units": fitted.n_units,
        "n_records": fitted.n_records,
        "inspections": fitted.n_inspections,
        "period": fitted.period,
        "states": list(fitted.state_names),
        "actions": list(fitted.action_names),
        "structure": list(fitted.structure),
        "level": fitted.level,
        "replicates": 0 if fitted.bootstrap is None else len(fitted.bootstrap),
        "probabilities": fitted.probabilities.tolist(),
        "low": listed(fitted.low),
        "high": listed(fitted.high),
        "time": fitted.time,
        "intensities": listed(fitted.intensities),
        "intensities_low": listed(fitted.dynamics_low),
        "intensities_high": listed(fitted.dynamics_high),
        "at_once": list(fitted.at_once),
        "age_breaks": list(fitted.age_breaks),
        "errors": listed(fitted.errors),
        "errors_low": listed(fitted.errors_low),
        "errors_high": listed(fitted.errors_high),
        "start": fitted.start,
        "initial": fitted.initial.tolist(),
        "exposure": fitted.exposure.tolist(),
        "inspected": fitted.inspected.tolist(),
        "assumed": fitted.assumed.tolist(),
        "log_likelihood": fitted.log_likelihood,
        "converged": fitted.converged,
        "free_parameters": fitted.free_parameters,
        "goodness": None if fitted.goodness is None else fitted.goodness.record(),
        "identifiability": [one.record() for one in fitted.identifiability],
        "warnings": [one.record() for one in fitted.warnings],
        "notes": [one.record() for one in fitted.notes],
    }
