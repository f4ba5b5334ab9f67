"""What comes out of the paper's study, in sentences that are computed from its tables."""

from __future__ import annotations

from typing import Any

import pandas as pd

from actmeasure.experiments import paper
from actmeasure.report.deviations import REPETITIONS, TEXT_AND_RUNS
from actmeasure.report.document import Items, Section, Text, number_text, table_of
from actmeasure.report.paper_shown import DEVIATIONS, PAIRS
from actmeasure.report.paper_tables import PaperTables
from actmeasure.statistics import LEVEL

__all__ = ["comparisons_section", "deviations_section", "findings"]

FORESIGHT = "Foresight"
#: Two returns that differ by less are the same.
SAME = 0.005


def findings(found: PaperTables, differences: pd.DataFrame) -> list[Any]:
    """The report in a few sentences."""
    return [Items(text)] if (text := [*_agreement(differences), *_defaults(found.cells), *_shares(found)]) else []


def _agreement(differences: pd.DataFrame) -> list[str]:
    returns = differences[differences["measure"] == "return"]
    if returns.empty:
        return []
    agree = int((~returns["differs"].astype(bool)).sum())
    return [
        f"With the settings of the published runs, {agree} of {len(returns)} published returns are what "
        f"{REPETITIONS} runs are expected to give here; the others are in the list of differences below."
    ]


def _defaults(cells: pd.DataFrame) -> list[str]:
    """How our defaults of the paper's agents compare with what was published of them."""
    ours = cells[(cells["preset"] == "default") & cells["published_return"].notna()]
    if ours.empty:
        return []
    gain = ours["scalarized_return"] - ours["published_return"]
    best = ours.iloc[int(gain.to_numpy().argmax())]
    return [
        f"With default settings the paper's agents earn more than published in {int((gain > SAME).sum())} of "
        f"{len(ours)} cells and less in {int((gain < -SAME).sum())}; the largest gain is "
        f"{number_text(gain.max(), 2)} ({best['agent']}, {best['problem']}), the largest loss "
        f"{number_text(max(0.0, -gain.min()), 2)}."
    ]


def _shares(found: PaperTables) -> list[str]:
    """What the best agents earn of what could be earned."""
    text = []
    table = found.table1
    if not table.empty and table["optimal_return"].notna().any():
        lacking = table["optimal_return"] - table["scalarized_return"]
        below = lacking.groupby(table["agent"], sort=False).max().dropna().clip(lower=0.0).sort_values(kind="stable")
        others = (
            f"; the closest of the others, {below.index[1]}, is up to {number_text(below.iloc[1], 2)} below"
            if len(below) > 1
            else ""
        )
        text.append(
            f"In Table 1 {below.index[0]} is never more than {number_text(below.iloc[0], 2)} below the best known "
            f"return{others}."
        )
    lakes = found.scaling.dropna(subset=["optimal_return"])
    if not lakes.empty:
        sums = lakes.groupby("agent", sort=False)[["scalarized_return", "optimal_return"]].sum()
        share = (sums["scalarized_return"] / sums["optimal_return"]).sort_values(ascending=False)
        shown = ", ".join(f"{agent} {number_text(100 * value, 0)} %" for agent, value in share.items())
        text.append(f"Of what could be earned on all larger lakes together, agents earn: {shown}.")
    return text


def comparisons_section(pairs: pd.DataFrame) -> Section:
    """Foresight against everybody, and every agent's defaults against its published settings."""
    settings = pairs["agent"] == pairs["other"] + " (published)"
    swapped = pairs["other"] == FORESIGHT
    # A pair is stored once, the agent that comes first in the study first; turned round it says the same.
    turned = pairs.assign(
        agent=pairs["other"], other=pairs["agent"],
        probability=1 - pairs["probability"], low=1 - pairs["high"], high=1 - pairs["low"],
        difference=-pairs["difference"], difference_low=-pairs["difference_high"], difference_high=-pairs["difference_low"],
    )  # fmt: skip
    shown = pd.concat([turned[swapped], pairs[pairs["agent"] == FORESIGHT], turned[settings]])
    parts = {paper.LEFT: "measuring value", paper.RIGHT: "4x4 lakes"}
    text = (
        "How much more one agent earns than the other in its last episodes, and how likely a run of it earns more than a "
        "run of the other, ties counting half; both averaged over the three settings of each half of Table 1, with "
        "intervals over seeds, by Student's t: seed by seed where both have the same seeds, otherwise Welch's."
    )
    title = "Who earns more"
    if shown.empty:
        return Section(title, [Text("There are no two agents to compare yet.")])
    frame = shown.assign(part=shown["part"].map(parts))
    return Section(title, [Text(text), table_of(frame, "Probability of improvement.", PAIRS, ["comparisons.csv"])])


def deviations_section(differences: pd.DataFrame) -> Section:
    """What differs from the paper, and why."""
    title = "What differs from the paper, and why"
    runs = Text(
        "Where the runs behind the published numbers differ from the text, the settings called published follow "
        "the runs:"
    )
    if differences.empty:
        return Section(title, [runs, Items(TEXT_AND_RUNS), Text("There is nothing to compare yet.")])
    different = differences[differences["differs"].astype(bool)]
    rule = (
        f"A published number differs from ours if it is outside of where the mean of {REPETITIONS} other runs such as ours "
        f"is expected, {LEVEL:.0%} of the time, and by more than what does not matter. Of {len(differences)} published "
        f"returns and numbers of looks, {len(different)} do."
    )
    blocks: list[Any] = [runs, Items(TEXT_AND_RUNS), Text(rule)]
    if not different.empty:
        caption = "Published numbers that our runs with the published settings do not give."
        blocks.append(table_of(different, caption, DEVIATIONS, ["deviations.csv"]))
    return Section(title, blocks)
