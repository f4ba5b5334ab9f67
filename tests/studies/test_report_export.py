"""For papers: scores over several problems, profiles, sweeps, tables as LaTeX and Markdown, figures as PDF, and the methods."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from study_tools import InlineEngine
from synthetic import own_study, results_of

from actmeasure import statistics
from actmeasure.studies import AgentSpec, Part, ProblemSpec, Study, read_results, report, run_study
from actmeasure.studies.report import tables
from actmeasure.studies.report.document import Cell, Table
from actmeasure.studies.report.export import FITTED, GREEK, latex_table, markdown_table, methods_text
from actmeasure.studies.report.study_report import study_report


def swept_study():
    agents = [AgentSpec("tuned", "atmq", {"learning_rate": [0.1, 0.3]}), AgentSpec("chance", "random")]
    problems = [ProblemSpec("value", "measuring-value", {"p": [0.7, 0.9]}), ProblemSpec("chain", "chain")]
    return Study("sweep", "A sweep", [Part("first", "First", problems, agents, episodes=60, seeds=3)])


def scored(earn):
    results = results_of(own_study(), earn=earn)
    means = tables.run_means(results.episodes)
    return tables.scores(means, tables.scales(results.study, means, tables.best_known(results.study, results.plans)))


def test_profiles_are_counted_by_hand():
    scores = np.array([[0.1, 0.5, 0.9], [0.4, 0.6, 0.8]])
    thresholds = np.array([0.0, 0.45, 0.85])
    value, low, high = statistics.performance_profile(scores, thresholds)
    assert value.tolist() == pytest.approx([1.0, 2 / 3, 1 / 6])
    shares = (scores[:, :, None] > thresholds).mean(axis=0)
    expected = statistics.mean(shares)
    assert np.allclose(low[1:], np.clip(expected.low[1:], 0, 1))
    assert np.allclose(high[1:], np.clip(expected.high[1:], 0, 1))
    assert np.isnan(low[0])  # all seeds alike
    missing = statistics.performance_profile([[np.nan, 0.5], [0.4, 0.6]], [0.45])
    assert missing.value.tolist() == [0.5]  # a seed's share is of the problems that it has


def test_scores_are_between_chance_or_the_lowest_and_the_best_known():
    found = scored(lambda problem, agent, seed: 0.45 if agent.label == "learner" else 0.0)
    assert set(found["score"]) == {0.5, 0.0}
    assert set(found["best_is"]) == {"best known"}
    assert set(found["worst_is"]) == {"lowest mean"}
    table = tables.aggregates(found).set_index("agent")
    assert table.loc["learner", "score"] == 0.5
    assert table.loc["learner", "problems"] == 2
    results = results_of(swept_study(), earn=lambda problem, agent, seed: {"random": 1.0}.get(agent.name, 3.0))
    means = tables.run_means(results.episodes)
    scale = tables.scales(results.study, means, tables.best_known(results.study, results.plans))
    assert set(scale["worst_is"]) == {"random"}
    assert set(scale["best_is"]) == {"highest mean"}
    assert set(scale["worst"]) == {1.0}
    assert set(scale["best"]) == {3.0}


def test_intervals_of_aggregates_are_over_seeds():
    found = tables.aggregates(scored(lambda problem, agent, seed: 0.1 * seed + 0.3 * (problem.label == "lake")))
    by_seed = [0.9 / 0.9 * (0.1 * seed + 0.15) for seed in range(4)]
    row = found.iloc[0]
    assert row["high"] - row["score"] > 0
    assert row["runs"] == 4
    width = statistics.mean(np.array(by_seed))
    scale = (row["high"] - row["low"]) / (width.high - width.low)
    assert scale > 0


def test_sample_efficiency_is_the_score_by_episode():
    results = results_of(own_study(), earn=lambda problem, agent, seed: 0.45 if agent.label == "learner" else 0.0)
    means = tables.run_means(results.episodes)
    scale = tables.scales(results.study, means, tables.best_known(results.study, results.plans))
    found = tables.efficiency(results.episodes, scale, points=10)
    assert found[found["agent"] == "learner"]["iqm"].tolist() == pytest.approx([0.5] * 10)
    assert found["episode"].max() == 60


def test_sweeps_are_drawn_against_the_value(without_pictures):
    results = results_of(swept_study(), earn=lambda problem, agent, seed: agent.settings.get("learning_rate", 0) + seed)
    found = tables.sensitivities(results.study, tables.summaries(tables.run_means(results.episodes)))
    of_agent = found[found["setting"] == "learning_rate"]
    assert set(of_agent["sweep"]) == {"tuned"}
    assert set(of_agent["line"]) == {"value p=0.7", "value p=0.9", "chain"}
    assert of_agent[of_agent["value"] == 0.3]["scalarized_return"].tolist() == pytest.approx([1.3] * 3)
    of_problem = found[found["setting"] == "p"]
    assert set(of_problem["line"]) == {"tuned learning_rate=0.1", "tuned learning_rate=0.3", "chance"}
    _, outputs = study_report(results, Path("results/sweep"))
    assert {"sensitivity-first-1.svg", "sensitivity-first-2.svg"} <= set(outputs.names)
    value, chain, *_ = outputs.figures["sensitivity-first-1"].axes  # problems of one sweep share a panel
    assert [line.get_label() for line in value.get_lines()] == ["value p=0.7", "value p=0.9"]
    assert [line.get_label() for line in chain.get_lines()] == ["chain"]
    assert chain.get_lines()[0].get_xdata().tolist() == [0.1, 0.3]


def test_each_problem_of_a_sensitivity_plot_has_a_scale_of_its_own(without_pictures):
    agents = [AgentSpec("tuned", "atmq", {"learning_rate": [0.1, 0.3]})]
    problems = [ProblemSpec(f"chain {size}", "chain", {"n": size}) for size in (3, 4, 5, 6)]
    study = Study("sweep", "A sweep", [Part("first", "First", problems, agents, episodes=60, seeds=3)])
    results = results_of(study, earn=lambda problem, agent, seed: 10.0 ** problem.settings["n"] + seed)
    _, outputs = study_report(results, Path("results/sweep"))
    returns = outputs.figures["sensitivity-first-1"].axes[:3]
    assert [panel.get_title() for panel in returns] == ["chain 3", "chain 4", "chain 5"]
    assert all(panel.get_ylim()[1] < 2 * 10.0**size for panel, size in zip(returns, (3, 4, 5), strict=True))
    assert len(outputs.figures["sensitivity-first-2"].axes) == 2  # the fourth problem: return and looks


HOSTILE = "50 % & _x_ $y$ {z} \\input{a} #1 <b>|</b> [w]\nnext"


def test_tables_for_latex_and_markdown_print_what_is_there():
    table = Table(
        HOSTILE, ["agent", "return"], [[Cell(HOSTILE), Cell("\N{MINUS SIGN}0.5", -0.5, "[-1, 0]")]], [False, True]
    )
    text = latex_table(table, 3)
    assert r"\begin{tabular}{lr}" in text
    assert r"50 \% \& \_x\_ \$y\$ \{z\} \textbackslash{}input\{a\} \#1 \textless{}b\textgreater{}\textbar{}" in text
    assert "$-$0.5 ({[}-1, 0{]})" in text
    assert r"\label{tab:3}" in text
    body = text.replace("\n".join(FITTED), "")
    unescaped = re.sub(
        r"\\(begin|end|caption|label|toprule|midrule|bottomrule|centering|text\w+\{\}|[&%$#_{}\\])", "", body
    )
    assert "\\" not in unescaped
    shown = markdown_table(table, 3).splitlines()
    assert shown[0].startswith("Table 3: 50 % &")
    assert shown[2:4] == ["| agent | return |", "| --- | ---: |"]
    assert shown[4].count("|") - shown[4].count(r"\|") == 3
    assert "<b>" not in shown[4]


NAMES = (
    "a_b", "50 %", "R&D", "#1", "\\\\input{x}", "~/home", "x^2", "{curly}", "$m$", "[first] of a row", "--flag ?` '' ,,",
    "\N{GREEK SMALL LETTER GAMMA} \N{LESS-THAN OR EQUAL TO} \N{INFINITY}", "Caf\u00e9 \u00df \u0141",
    "".join(map(chr, GREEK)), "bell \a, nul \0",
)  # fmt: skip


def test_what_latex_would_read_otherwise_is_written_so_that_it_does_not():
    rows = [[Cell(name)] for name in NAMES]
    text = latex_table(Table("All names", ["name"], rows, [False], groups=[("[group]", 1)]), 1)
    assert not text.startswith("%")
    for printed in (
        "{[}first{]} of a row", "-{}-flag ?\\textasciigrave{} '{}' ,{},", r"$\gamma$ $\le$ $\infty$", "Caf\u00e9",
        "bell \\textbackslash{}x07, nul \\textbackslash{}x00",
    ):  # fmt: skip
        assert printed in text
    assert latex_table(Table("\u4e2d \u6587", ["name"], [], [False]), 1).startswith("% Compile with LuaLaTeX")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex, with booktabs and graphicx")
def test_pdflatex_compiles_hostile_names(tmp_path):
    rows = [[Cell(name), Cell("\N{MINUS SIGN}0.5", -0.5, "[\N{MINUS SIGN}1, 0]")] for name in (*NAMES, HOSTILE)]
    long = [[Cell("An agent with quite a long name, of which there are several columns")] * 3] * 90
    for number, table in enumerate(
        (
            Table(" ".join(NAMES), NAMES[:2], rows, [False, True]),
            Table("Larger than a page", ["a", "b", "c"], long, [False] * 3),
        ),
        start=1,
    ):
        (tmp_path / f"table-{number}.tex").write_text(latex_table(table, number))
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx}\\begin{document}\\input{table-1}\\input{table-2}\\end{document}\n"
    )
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-no-shell-escape", "paper.tex"],
        cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    assert "Overfull" not in run.stdout
    assert "Float too large" not in run.stdout
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("export")
    run_study(swept_study(), place, InlineEngine())
    return place


@pytest.mark.slow
def test_a_report_for_a_paper(folder):
    report.build(folder, latex=True, markdown=True)
    names = {path.name for path in folder.iterdir()}
    pdfs = {name.removesuffix(".svg") + ".pdf" for name in names if name.endswith(".svg")}
    assert pdfs
    assert pdfs <= names
    assert all((folder / name).read_bytes().startswith(b"%PDF") for name in pdfs)
    tex = sorted(name for name in names if name.endswith(".tex"))
    page = (folder / "report.html").read_text()
    assert len(tex) == page.count("<table")
    assert {name.replace(".tex", ".md") for name in tex} <= names
    before = {name: (folder / name).read_bytes() for name in (*tex, *pdfs)}
    report.build(folder, latex=True)
    assert before == {name: (folder / name).read_bytes() for name in before}


def test_methods_have_all_settings_seeds_versions_and_the_machine(folder, tmp_path):
    report.build(folder)
    text = (folder / "methods.md").read_text()
    for words in (
        "60 episodes for each run", "seeds 0 to 2", "| tuned learning\\_rate=0.1 | atmq |", "learning\\_rate = 0.1",
        "optimism", "numpy ", "python ", " cores, ", "Student's t", "Digests of the code",
    ):  # fmt: skip
        assert words in text, words
    # A label that means one thing here and another there, and an environment's own limits.
    taxi = ProblemSpec("x", gymnasium="Taxi-v4", measuring_cost=0.1)
    problems = [ProblemSpec("x", "chain"), ProblemSpec("x", "frozen-lake", {"discount": 0.9}), taxi]
    parts = [Part(f"p{number}", f"P{number}", [one], ["random"], 2, 1) for number, one in enumerate(problems)]
    run_study(Study("labels", "Labels", parts), tmp_path, InlineEngine())
    rows = [line for line in methods_text(read_results(tmp_path).study).splitlines() if line.startswith("| x |")]
    assert ["variant" in row for row in rows] == [False, True, False]
    assert ["discount = 0.9," in row or row.endswith("discount = 0.9 |") for row in rows] == [False, True, False]
    assert "discount = 0.95, max\\_episode\\_steps = 200, measuring\\_cost = 0.1" in rows[2]
    study = own_study(title="A | B\n# C").to_json()
    assert "# C" not in methods_text(study).splitlines()


def test_a_part_with_one_problem_has_no_scores_over_problems(without_pictures):
    study = own_study()
    (part,) = study.parts
    results = results_of(replace(study, parts=[replace(part, problems=part.problems[:1])]))
    _, outputs = study_report(results, Path("results/mine"))
    assert not [name for name in outputs.names if name.startswith(("profile-", "efficiency-"))]
