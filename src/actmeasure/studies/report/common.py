"""Sections of every report: missing results, problems and agents, the machine, and the commands to run it again."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from actmeasure.errors import counted
from actmeasure.statistics import LAST, LEVEL
from actmeasure.studies.report.document import NOTHING, Column, Commands, Items, Note, Section, Table, Text, table_of
from actmeasure.studies.results import Results
from actmeasure.studies.spec import Study

__all__ = ["HOW_TO_READ", "commands", "machine", "machine_facts", "part_so_far", "parts_table", "so_far", "warnings"]

#: Number of missing or failed trials that are named; of the others the number is given.
NAMED = 5
#: Number of missing trials above which none is named.
MOST_NAMED_MISSING = 50

HOW_TO_READ = (
    f"Every number is the mean of a run's last {LAST} episodes, averaged over runs with different seeds. In "
    f"brackets is a {LEVEL:.0%} interval for that average, by Student's t over runs; where all runs are alike there is none, "
    "which does not mean that another run could not differ. The return is undiscounted: rewards minus what looks cost. "
    "Where headings are buttons, they sort the table: click one, or choose it with Tab and Enter."
)


def so_far(results: Results) -> dict[str, str]:
    """Return the progress of each unfinished part, by name: seeds that every agent has on every problem, and plans."""
    have: Counter[tuple[str, str, str]] = Counter(
        zip(results.runs["part"], results.runs["problem"], results.runs["agent"], strict=True)
    )
    planned = Counter(results.plans["part"])
    found: dict[str, str] = {}
    for part in results.study["parts"]:
        cells = {
            (part["name"], problem["label"], agent["label"]): agent.get("seeds", part["seeds"])
            for problem in part["problems"] for agent in part["agents"]
        }  # fmt: skip
        lacking: list[int] = [have[cell] for cell, wanted in cells.items() if have[cell] < wanted]
        plans = len(part["problems"]) * len(part["methods"])
        words: list[str] = []
        seeds = max(cells.values(), default=0)
        begun = sum(have[cell] > 0 for cell in cells)
        if lacking and begun == len(cells):
            words.append(f"{min(lacking):,} of {seeds:,} seeds")
        elif lacking:
            what = "runs" if seeds == 1 else f"cells have the first of {seeds:,} seeds"
            words.append(f"{begun:,} of {len(cells):,} {what}")
        if planned[part["name"]] < plans:
            words.append(f"{planned[part['name']]:,} of {plans:,} plans")
        if words:
            found[part["name"]] = " and ".join(words)
    return found


def _how_far(results: Results) -> str:
    """Return the progress of the study in words, equal progress of several parts together."""
    far, titles = so_far(results), {part["name"]: part["title"] for part in results.study["parts"]}
    alike: dict[str, list[str]] = {}
    for name, words in far.items():
        alike.setdefault(words, []).append(titles[name])
    if len(alike) == 1 and len(far) == len(titles):
        return f"So far: {next(iter(alike))}."
    return f"So far: {'; '.join(words + ' (' + ', '.join(names) + ')' for words, names in alike.items())}."


def part_so_far(results: Results, *names: str) -> list[Note]:
    """Return the progress of parts, for the section about them; nothing if they are finished."""
    far = so_far(results)
    words = list(dict.fromkeys(far[name] for name in names if name in far))
    return [Note(f"So far: {'; '.join(words)}.")] if words else []


def warnings(results: Results) -> list[Note]:
    """Return notes on what is missing, what failed, and what other code has computed."""
    notes = []
    if results.missing:
        notes.append(Note(_how_far(results)))
        named = "; ".join(str(trial) for trial in results.missing[:NAMED])
        rest = len(results.missing) - NAMED
        more = f"; and {rest:,} more" if rest > 0 else ""
        which = f" ({named}{more})" if len(results.missing) <= MOST_NAMED_MISSING else ""
        notes.append(
            Note(
                f"The study is not finished: {counted(len(results.missing), 'trial')} missing{which}. Estimates "
                "below are from the runs that are there; what has none is a dash, or left out. While the study runs this page is "
                "renewed about once a minute; if it was stopped, run it again, which does what is missing."
            )
        )
    if results.other_code:
        total = len(Study.from_json(results.study).trials())
        whose = ", ".join(
            sorted({"plans" if trial.agent is None else trial.agent.name for trial in results.other_code})
        )
        notes.append(
            Note(
                f"{len(results.other_code):,} of {total:,} trials were computed by other code than the others ({whose}), and "
                "kept as was wished (--keep). Run the study without that to have them computed by the same code."
            )
        )
    failures = results.study.get("failures") or []
    if failures:
        named = "; ".join(f"{one['trial']}: {one['why']}" for one in failures[:NAMED])
        notes.append(Note(f"{counted(len(failures), 'trial')} failed the last time ({named})."))
    return notes


def parts_table(results: Results) -> Table:
    """Return a table with the problems, agents, runs, episodes and computing seconds of every part."""
    found = Counter(results.runs["part"]) + Counter(results.plans["part"])
    seconds = results.study.get("seconds") or {}
    rows = [
        {
            "title": part["title"], "problems": len(part["problems"]), "agents": len(part["agents"]),
            "methods": ", ".join(part["methods"]) or NOTHING, "episodes": _range(part, "episodes"),
            "seeds": _range(part, "seeds"), "found": found[part["name"]],
            "seconds": seconds.get(part["name"], float("nan")),
        }
        for part in results.study["parts"]
    ]  # fmt: skip
    columns = [
        Column("part", "title"), Column("problems", "problems", 0), Column("agents", "agents", 0),
        Column("plans", "methods"), Column("episodes", "episodes"), Column("seeds", "seeds"),
        Column("runs and plans found", "found", 0), Column("seconds of computing", "seconds", 0),
    ]  # fmt: skip
    caption = "What was run. A run that belongs to two parts is computed once and counted in both."
    return table_of(pd.DataFrame(rows), caption, columns)


def _range(part: dict[str, Any], name: str) -> str:
    """Return the numbers of episodes or seeds that the agents of a part have."""
    counts = sorted({agent.get(name, part[name]) for agent in part["agents"]})
    return " or ".join(f"{count:,}" for count in counts) or NOTHING


def machine(study: dict[str, Any], commands: Sequence[str]) -> Section:
    """Return the section with versions, machine, time, and the commands to run the study again."""
    how = (
        "The results of every run are in trials/, one Parquet file each. Running the study again does only what is "
        "missing, and the report can be made anew from what is stored; its tables are then the same, byte for byte."
    )
    return Section(
        "Machine, versions, and how to run it again", [Items(machine_facts(study)), Text(how), Commands(commands)]
    )


def machine_facts(study: dict[str, Any]) -> list[str]:
    """Return sentences on the machine, the time and the versions of a study, as far as `study.json` has them."""
    versions, hardware = study.get("versions") or {}, study.get("machine") or {}
    facts = []
    if hardware.get("system"):
        processor = f"{hardware['processor']}, " if hardware.get("processor") else ""
        facts.append(
            f"Machine: {hardware['system']}, {processor}{hardware.get('cores')} cores, "
            f"{(hardware.get('memory') or 0) / 1e9:.0f} GB of memory; engine: {study.get('engine')}."
        )
    if study.get("started"):
        end = f"finished {study['finished']}" if study.get("finished") else "not finished"
        facts.append(
            f"Started {study['started']}, {end}; {study.get('wall_seconds', 0.0):,.0f} seconds in all, "
            f"{sum((study.get('seconds') or {}).values()):,.0f} seconds of computing."
        )
    if versions:
        facts.append("Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".")
    return facts


def commands(directory: Path, again: Sequence[str] | None) -> list[str]:
    """Return the commands that run the study again (`again`, if known) and make its report anew."""
    folder = str(directory)
    runs = [] if again is None else [["actmeasure", *again, "--out", folder]]
    return [shlex.join(words) for words in (*runs, ["actmeasure", "report", folder])]
