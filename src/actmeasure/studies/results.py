"""The results of a study as tables, read from its folder; nothing in it is changed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.errors import ActMeasureError, StudyError, import_extra
from actmeasure.studies.code_digest import what_computes
from actmeasure.studies.spec import Study, Trial, canonical
from actmeasure.studies.store import STUDY, DamagedError, Store, StoredTrial

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Results", "read_results"]

RUNS = ("part", "problem", "agent", "problem_settings", "agent_name", "agent_settings", "seed", "episodes", "hash")
EPISODE = ("episode", "scalarized_return", "reward", "measurements", "steps")
PLAN = ("discounted_return", "scalarized_return", "reward", "measurements", "steps", "lower", "upper", "stopped")


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a study.

    Attributes
    ----------
    study : dict
        Contents of `study.json`: name, title and parts; versions and machine; when it ran and for how long.
    runs : pandas.DataFrame
        A row for each part, problem, agent and seed: `part`, `problem`, `agent` (labels), `problem_settings` (JSON),
        `agent_name`, `agent_settings` (JSON), `seed`, `episodes`, `hash`.
    episodes : pandas.DataFrame
        A row for each episode of these: `part`, `problem`, `agent`, `seed`, `episode` (from 0), `scalarized_return`, `reward`,
        `measurements`, `steps`.
    plans : pandas.DataFrame
        A row for each part, problem and planning method: `part`, `problem`, `method`, `discounted_return`,
        `scalarized_return`, `reward`, `measurements`, `steps`, `lower`, `upper`, `stopped`.
    missing : tuple of Trial
        Trials that are not there yet, or whose files are damaged.
    other_code : tuple of Trial
        Trials whose results were computed by other code than the study was last run with, and kept.
    """

    study: dict[str, Any]
    runs: pd.DataFrame
    episodes: pd.DataFrame
    plans: pd.DataFrame
    missing: tuple[Trial, ...]
    other_code: tuple[Trial, ...] = ()


def read_results(directory: str | os.PathLike[str]) -> Results:
    """Read the results of a study, finished or not, from its folder."""
    store = Store(Path(directory))
    data = _study_data(store)
    study = _study(store, data)
    _pandas()
    trials: dict[str, Trial] = {trial.hash: trial for trial in study.trials()}
    # By the digests of the last run, not of the present code, which a report does not depend on.
    codes, keep = _codes(store, data)
    stored = {
        name: found
        for name, trial in trials.items()
        if (found := _read(store, trial, codes.get(what_computes(trial), ""), keep)) is not None
    }
    runs, episodes = _runs(study, stored)
    missing = tuple(trial for name, trial in trials.items() if name not in stored)
    others = tuple(
        trials[name] for name, found in stored.items() if found.code != codes.get(what_computes(trials[name]), "")
    )
    return Results(data, runs, episodes, _plans(study, stored), missing, others)


def _study_data(store: Store) -> dict[str, Any]:
    try:
        data = store.read_study()
    except DamagedError as error:
        raise StudyError(
            f"{store.directory / STUDY} is damaged, {error}; run the study again, which keeps its trials"
        ) from None
    if data is None:
        raise StudyError(
            f"there is no study in {str(store.directory)!r}; give a folder that actmeasure run has written"
        )
    return data


def _study(store: Store, data: dict[str, Any]) -> Study:
    try:
        return Study.from_json(data)
    except ActMeasureError as error:
        raise StudyError(
            f"{store.directory / STUDY} does not describe a study ({error}); run the study again, which keeps its trials"
        ) from error


def _codes(store: Store, data: dict[str, Any]) -> tuple[dict[str, str], bool]:
    """Return the digest of the code for each kind of trial, and whether results of other code were kept."""
    codes, keep = data.get("code", {}), data.get("keep", False)
    if not isinstance(codes, dict) or not all(isinstance(code, str) for code in codes.values()):
        raise StudyError(
            f"{store.directory / STUDY} does not say by which code trials were computed; run the study again, which keeps them"
        )
    return codes, bool(keep)


def _read(store: Store, trial: Trial, code: str, keep: bool) -> StoredTrial | None:
    try:
        found = store.read(trial, code)
    except DamagedError:
        found = None
    return store.read_other(trial, code) if found is None and keep else found


def _runs(study: Study, stored: dict[str, StoredTrial]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the frames of runs and of their episodes."""
    rows: list[tuple[Any, ...]] = []
    tables: list[Any] = []
    for part in study.parts:
        for problem, agent, trial in part.runs():
            if trial.hash not in stored:
                continue
            settings = canonical(problem.settings), agent.name, canonical(agent.settings)
            rows.append((part.name, problem.label, agent.label, *settings, trial.seed, trial.episodes, trial.hash))
            tables.append(stored[trial.hash].table)
    frame = _pandas().DataFrame(rows, columns=list(RUNS))
    return frame, _episodes(frame, tables)


def _episodes(runs: pd.DataFrame, tables: list[Any]) -> pd.DataFrame:
    """Return the tables one below the other, each with the labels of its run."""
    lengths = [len(table) for table in tables]
    labels = {name: np.repeat(runs[name].to_numpy(), lengths) for name in ("part", "problem", "agent", "seed")}
    whole_numbers = {"episode", "measurements", "steps"}
    columns = {
        name: _joined((table.column(name).to_numpy() for table in tables), np.int64 if name in whole_numbers else float)
        for name in EPISODE
    }
    frame: pd.DataFrame = _pandas().DataFrame(labels | columns)
    return frame


def _joined(columns: Iterable[Any], kind: type[Any]) -> Any:
    return np.concatenate([np.zeros(0, kind), *columns])


def _plans(study: Study, stored: dict[str, StoredTrial]) -> pd.DataFrame:
    rows = []
    for part in study.parts:
        for problem, method, trial in part.plans():
            if trial.hash in stored:
                (values,) = stored[trial.hash].table.to_pylist()
                rows.append((part.name, problem.label, method, *(values[name] for name in PLAN)))
    frame: pd.DataFrame = _pandas().DataFrame(rows, columns=["part", "problem", "method", *PLAN])
    return frame


def _pandas() -> Any:
    return import_extra("pandas", "reading results", "report")
