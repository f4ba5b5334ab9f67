"""For papers: every table of a report as LaTeX and Markdown, figures as PDF, and the methods as text."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from actmeasure.errors import shown
from actmeasure.statistics import LAST, LEVEL
from actmeasure.studies.report.common import machine_facts
from actmeasure.studies.report.document import JOINED, NOTHING, Cell, Document, Outputs, Table
from actmeasure.studies.report.figures import pdf

__all__ = ["add_latex", "add_markdown", "latex_table", "markdown_table", "methods_text"]

#: Characters with a meaning in LaTeX, and what prints them; a bracket at the start of a row would be an argument of `\\\\`.
LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "`": r"\textasciigrave{}", "[": "{[}", "]": "{]}", JOINED: "~", NOTHING: "--",
    "\N{MINUS SIGN}": "$-$", "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
}  # fmt: skip
#: Greek letters that are not like a Latin one (without omicron; the capitals by their numbers).
GREEK = [
    *range(0x3B1, 0x3BF),
    *range(0x3C0, 0x3CA),
    0x393,
    0x394,
    0x398,
    0x39B,
    0x39E,
    0x3A0,
    0x3A3,
    0x3A6,
    0x3A8,
    0x3A9,
]
#: Signs that pdfLaTeX knows in formulas only, by their names there.
FORMULAS = {
    "\N{LESS-THAN OR EQUAL TO}": "le", "\N{GREATER-THAN OR EQUAL TO}": "ge", "\N{NOT EQUAL TO}": "ne",
    "\N{ALMOST EQUAL TO}": "approx", "\N{INFINITY}": "infty", "\N{MULTIPLICATION SIGN}": "times", "\N{PLUS-MINUS SIGN}": "pm",
    "\N{RIGHTWARDS ARROW}": "rightarrow", "\N{LEFTWARDS ARROW}": "leftarrow", "\N{ELEMENT OF}": "in",
}  # fmt: skip
for _letter in map(chr, GREEK):
    _name = unicodedata.name(_letter).split()[-1].lower().replace("lamda", "lambda")  # as Unicode spells it
    FORMULAS[_letter] = _name if _letter.islower() else _name.capitalize()
LATEX |= {sign: rf"$\{name}$" for sign, name in FORMULAS.items()}
#: Stands between equal characters that LaTeX would join to another one.
BREAK = "\0"
#: Around a table: it is made smaller if it is wider than the text, or higher than most of a page.
FITTED = (
    r"\resizebox*{!}{\ifdim\totalheight>0.8\textheight 0.8\textheight\else\totalheight\fi}{%",
    r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
)
#: Above a table with characters that pdfLaTeX may not know.
OTHER_LETTERS = "% Compile with LuaLaTeX or XeLaTeX, and a font that has these characters: "
#: Last character of Latin Extended-A; pdfLaTeX knows nearly all letters up to it.
LAST_LATIN = "\u017f"
#: Characters with a meaning in a table of Markdown.
MARKDOWN = {
    "\\": r"\\",
    "|": r"\|",
    "*": r"\*",
    "_": r"\_",
    "`": r"\`",
    "<": "&lt;",
    ">": "&gt;",
    "[": r"\[",
    "]": r"\]",
}


def add_latex(document: Document, outputs: Outputs) -> None:
    """Add every table as `table-N.tex`, to be input into a paper with booktabs and graphicx, and every figure as PDF."""
    _add_tables(document, outputs, "tex", latex_table)
    for name, figure in outputs.figures.items():
        outputs.add(f"{name}.pdf", pdf(figure))


def add_markdown(document: Document, outputs: Outputs) -> None:
    """Add every table as `table-N.md`."""
    _add_tables(document, outputs, "md", markdown_table)


def _add_tables(document: Document, outputs: Outputs, ending: str, text: Callable[[Table, int], str]) -> None:
    for number, table in enumerate(_tables(document), start=1):
        outputs.add(f"table-{number}.{ending}", text(table, number).encode())


def _tables(document: Document) -> Iterable[Table]:
    """Return the tables of a document, numbered as on its page."""
    blocks = [*document.first, *(block for section in document.sections for block in section.blocks)]
    return [block for block in blocks if isinstance(block, Table)]


def latex_table(table: Table, number: int) -> str:
    """Return a table for LaTeX, with its caption, not larger than a page; needs the packages booktabs and graphicx."""
    rows = [[_latex_cell(cell) for cell in row] for row in table.rows]
    text = "".join([table.caption, *table.titles, *(cell.text + cell.below for row in table.rows for cell in row)])
    text += "".join(title for title, _ in table.groups)
    others = sorted(sign for sign in set(text) - set(LATEX) if sign > LAST_LATIN and sign.isprintable())
    lines = [
        *([OTHER_LETTERS + " ".join(others)] if others else []),
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(table.caption)}}}",
        rf"\label{{tab:{number}}}",
    ]
    lines += [*FITTED, rf"\begin{{tabular}}{{{''.join('r' if one else 'l' for one in table.numeric)}}}", r"\toprule"]
    if table.groups:
        titles = [rf"\multicolumn{{{span}}}{{c}}{{{_latex(title)}}}" for title, span in table.groups]
        lines.append(" & ".join(titles) + r" \\")
    lines += [" & ".join(_latex(title) for title in table.titles) + r" \\", r"\midrule"]
    lines += [" & ".join(row) + r" \\" for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}}", r"\end{table}", ""])


def _latex_cell(cell: Cell) -> str:
    return f"{_latex(cell.text)} ({_latex(cell.below)})" if cell.below else _latex(cell.text)


def _latex(text: str) -> str:
    """Return text for LaTeX: characters that cannot be printed are escaped, or a question mark, and `--` stays two characters."""
    line = "".join(sign if sign.isprintable() or sign == JOINED else "?" for sign in _in_one_line(text))
    apart = re.sub(r"([-',])(?=\1)", rf"\1{BREAK}", line)
    return _replaced(apart, LATEX | {BREAK: "{}"})


def markdown_table(table: Table, number: int) -> str:
    """Return a table for Markdown, below its caption."""
    titles = [_escaped(title, MARKDOWN) for title in table.titles]
    if table.groups:
        above = [title for title, span in table.groups for _ in range(span)]
        titles = [
            " ".join(filter(None, [_escaped(one, MARKDOWN), title])) for one, title in zip(above, titles, strict=True)
        ]
    rule = ["---:" if one else "---" for one in table.numeric]
    rows = [[_markdown_cell(cell) for cell in row] for row in table.rows]
    lines = [f"| {' | '.join(row)} |" for row in (titles, rule, *rows)]
    return "\n".join([f"Table {number}: {_escaped(table.caption, MARKDOWN)}", "", *lines, ""])


def _markdown_cell(cell: Cell) -> str:
    return _escaped(f"{cell.text} ({cell.below})" if cell.below else cell.text, MARKDOWN)


def _escaped(text: str, signs: dict[str, str]) -> str:
    """Return text in which every sign with a meaning is printed as it is, in one line."""
    return _replaced(_in_one_line(text), signs)


def _replaced(text: str, signs: dict[str, str]) -> str:
    return "".join(signs.get(sign, sign) for sign in text)


def _in_one_line(text: str) -> str:
    """Return text in one line, with control characters and invisible ones escaped."""
    return shown(re.sub(rf"[^\S{JOINED}]+", " ", text))


def methods_text(study: dict[str, Any]) -> str:
    """Return what was run, with all settings, seeds, versions and the machine, as Markdown for an appendix.

    Parameters
    ----------
    study : dict
        As in `study.json`.
    """
    lines = [f"# Methods: {_escaped(study['title'], MARKDOWN)}", "", _statistics_text(), ""]
    for part in study["parts"]:
        lines += [f"## {_escaped(part['title'], MARKDOWN)}", "", _part_text(part), ""]
        defaults = (study.get("defaults") or {}).get(part["name"]) or {}
        lines += ["### Problems", "", *_item_rows(part["problems"], defaults, "problems"), ""]
        if part["agents"]:
            lines += ["### Agents", "", *_item_rows(part["agents"], defaults, "agents"), ""]
    lines += ["## Versions and machine", "", *_machine_lines(study), ""]
    return "\n".join(lines)


def _statistics_text() -> str:
    return (
        f"The result of a run is the mean of its last {LAST} episodes. A run is one agent on one problem with one seed; "
        f"runs with different seeds are independent. Intervals are {LEVEL:.0%} intervals by Student's t over runs (for "
        "interquartile means with the Winsorized variance; for differences of agents with the same seeds, of the differences by "
        "seed, otherwise Welch's t; for probabilities of improvement, Welch's t of placements). Scores over several problems are "
        "averaged by seed first. The return is undiscounted: rewards minus what measurements cost. Episode e of seed s has the "
        "same random numbers in the world for every agent."
    )


def _part_text(part: dict[str, Any]) -> str:
    seeds = [part["first_seed"] + number for number in (0, part["seeds"] - 1)]
    said = [
        f"{part['episodes']:,} episodes for each run, of at most {part['max_steps']:,} steps; seeds {seeds[0]} to {seeds[1]}, "
        "unless the table of agents says otherwise."
    ]
    if part["methods"]:
        said.append(
            f"Planned with {', '.join(part['methods'])}, to a relative gap of {part['tolerance']:g} or a budget of "
            f"{part['beliefs']:,} beliefs; plans are evaluated exactly over {part['max_steps']:,} steps."
        )
    return " ".join(said)


def _item_rows(items: Sequence[dict[str, Any]], defaults: dict[str, Any], what: str) -> list[str]:
    """Return the rows of a table with the labels, names and all settings of problems or agents."""
    rows = [f"| label | {what[:-1]} | settings |", "|---|---|---|"]
    for item in items:
        fixed = ("measuring_cost", "discount", "grid", "seeds", "episodes", "content")
        own = {key: item[key] for key in fixed if item.get(key) is not None}
        settings = ((defaults.get(what) or {}).get(item["label"]) or {}) | item["settings"] | own
        words = ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings.items()) or "none"
        rows.append(f"| {' | '.join(_escaped(text, MARKDOWN) for text in (item['label'], item['name'], words))} |")
    return rows


def _machine_lines(study: dict[str, Any]) -> list[str]:
    lines = [f"- {fact}" for fact in machine_facts(study)]
    digests = study.get("code") or {}
    if digests:
        lines.append("- Digests of the code: " + ", ".join(f"{what}: {code}" for what, code in digests.items()))
    return [_escaped(line, {key: value for key, value in MARKDOWN.items() if key != "-"}) for line in lines]
