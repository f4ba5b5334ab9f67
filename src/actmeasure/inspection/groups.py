"""Fits to groups of units, such as pipes of each material: shared and separate parameters, and whether they differ."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from actmeasure.errors import FitError, quoted, shown, unknown_name
from actmeasure.file_access import path_of
from actmeasure.inspection.fit_result import Fit
from actmeasure.inspection.fitting import EstimationRun, check_numbers, fit, likelihood_ratio, prepared, run_fit
from actmeasure.inspection.goodness import SIGNIFICANT
from actmeasure.inspection.records import Records
from actmeasure.inspection.text import NOT_SETTLED

__all__ = ["GroupFits", "fit_groups"]

#: Fewest groups that can be compared.
LEAST_GROUPS = 2
#: Arrays of a fit with an axis of actions, and the position of that axis.
BY_ACTION = {
    "probabilities": 0, "low": 0, "high": 0, "bootstrap": 1, "inspected": 0, "exposure": 0, "assumed": 0, "dynamics": 0,
    "dynamics_low": 0, "dynamics_high": 0, "bootstrap_dynamics": 1,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class GroupFits:
    """Fits to groups of units, returned by `fit_groups`.

    Attributes
    ----------
    by : str
        The column of the groups.
    shared : Fit
        The fit in which all groups have the same parameters.
    fits : dict from the name of a group to Fit
        The fits in which each group has its own transition probabilities or intensities; errors of records are shared. The
        log-likelihood of each is that of all groups together.
    statistic : float
        Twice the difference of the log-likelihoods of separate and shared parameters.
    degrees : int
        How many parameters more there are with separate ones.
    p_value : float
        Probability of so large a statistic, or a larger one, if all groups had the same parameters (chi-squared distribution).
    """

    by: str
    shared: Fit
    fits: dict[str, Fit]
    statistic: float
    degrees: int
    p_value: float

    @property
    def differ(self) -> bool:
        """Whether the difference between the groups is significant."""
        return self.p_value <= SIGNIFICANT

    @property
    def converged(self) -> bool:
        """Whether the fits with shared and with separate parameters are at a maximum."""
        return self.shared.converged and all(one.converged for one in self.fits.values())

    def verdict(self) -> str:
        """Return whether the groups differ as a sentence."""
        result = (
            "differ significantly"
            if self.differ
            else "do not differ significantly, so that shared parameters are enough"
        )
        return (
            f"Groups by {shown(self.by)} {result}: likelihood ratio {self.statistic:.2f} with {self.degrees} degrees of freedom, "
            f"p = {self.p_value:.3g}."
        )

    def summary(self) -> str:
        """Return the fits in words and tables."""
        parts = [self.verdict()] if self.converged else [NOT_SETTLED, self.verdict()]
        parts += [f"Group {shown(name)}\n\n{one.summary()}" for name, one in self.fits.items()]
        return "\n\n".join([*parts, f"All groups together\n\n{self.shared.summary()}"])

    def save(self, path: str | os.PathLike[str]) -> dict[str, Path]:
        """Write the fit with shared parameters to `path`, and that of each group beside it; return the paths by group."""
        file_path = path_of(path, ".npz", FitError)
        self.shared.save(file_path)
        paths = {}
        for name in self.fits:
            plain = "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in name) or "_"
            paths[name] = file_path.with_name(f"{file_path.stem}-{plain}{file_path.suffix}")
        if len(set(paths.values())) < len(paths):
            paths = {
                name: file_path.with_name(f"{file_path.stem}-{number}{file_path.suffix}")
                for number, name in enumerate(paths, 1)
            }
        for name, one in self.fits.items():
            one.save(paths[name])
        return paths


def fit_groups(records: Any, by: str, **settings: Any) -> GroupFits:
    """Fit records in which units belong to groups, with shared and with separate parameters, and compare the two.

    Parameters
    ----------
    records : path or pandas DataFrame
        As for `fit`, with one column more.
    by : str
        The column of the groups, such as "material".
    **settings
        Those of `fit`.

    Examples
    --------
    >>> import actmeasure as am
    >>> seen = {"unit": [1, 1, 2, 2, 3, 3], "time": [0, 1] * 3, "state": ["good", "worn"] * 2 + ["good", "good"],
    ...         "kind": ["a", "a", "b", "b", "b", "b"]}
    >>> found = am.fit_groups(seen, "kind", default_action="nothing", states=["good", "worn"], bootstrap=0, goodness=0)
    >>> sorted(found.fits), found.differ
    (['a', 'b'], False)
    """
    known = inspect.signature(fit).parameters
    for name in settings:
        if name not in known or name == "records":
            raise FitError(unknown_name("setting", name, [one for one in known if one != "records"]))
    if not isinstance(by, str) or not by:
        raise FitError(f"by is {quoted(by)}, expected the name of the column of the groups")
    given = {name: one.default for name, one in known.items() if name != "records"} | settings
    numbers = {name: given.pop(name) for name in ("bootstrap", "goodness", "level", "seed")}
    check_numbers(**numbers)
    given["columns"] = {**(given["columns"] or {}), "by": by}
    progress, drop = given["progress"], [given["drop"]] if isinstance(given["drop"], str) else given["drop"]
    read, chosen = prepared(records, **given)
    if len(read.group_names) < LEAST_GROUPS:
        raise FitError(f"the column {by!r} names only one group; give a column with several, or leave it out")
    replicates = (numbers["bootstrap"], numbers["goodness"], float(numbers["level"]))
    shared, pooled = run_fit(read, chosen, numbers["seed"], progress, *replicates)
    apart = EstimationRun(
        read, replace(chosen, by_group=True), np.random.default_rng(numbers["seed"]), progress, pooled
    )
    joint = apart.fit(*replicates)
    fits = {name: _of_group(joint, read, number) for number, name in enumerate(read.group_names)}
    if drop:
        shared, fits = shared.without(drop), {name: one.without(drop) for name, one in fits.items()}
    return GroupFits(by, shared, fits, *likelihood_ratio(shared, joint))


def _of_group(joint: Fit, records: Records, group: int) -> Fit:
    """Return the part of one group of a fit with separate parameters."""
    count = len(joint.action_names) // len(records.group_names)
    part = slice(group * count, (group + 1) * count)
    own = records.only(group)
    arrays: dict[str, Any] = {}
    for name, axis in BY_ACTION.items():
        array = getattr(joint, name)
        arrays[name] = None if array is None else (array[part] if axis == 0 else array[:, part])
    prefix = f"{records.group_names[group]}: "
    names = tuple(name.removeprefix(prefix) for name in joint.action_names[part])
    seen = own.state >= 0
    initial = joint.initial
    if joint.start in (None, "seen"):
        first = np.unique(own.unit[seen], return_index=True)[1]
        initial = np.bincount(own.state[seen][first], minlength=len(joint.state_names)) / len(first)
    others = tuple(f"{name}: " for number, name in enumerate(records.group_names) if number != group)
    warnings = tuple(one for one in joint.warnings if not str(one.names.get("action", "")).startswith(others))
    return replace(
        joint,
        action_names=names,
        structure=joint.structure[part],
        initial=initial,
        warnings=tuple(
            replace(one, names=_renamed(one.names, prefix)) if "action" in one.names else one for one in warnings
        ),
        n_units=len(own.unit_names),
        n_records=len(own.unit),
        n_inspections=int(seen.sum()),
        **arrays,
    )


def _renamed(names: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the details of a diagnostic with the action without the name of its group."""
    return {key: value.removeprefix(prefix) if key == "action" else value for key, value in names.items()}
