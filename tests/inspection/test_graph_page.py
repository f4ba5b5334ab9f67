"""The page and pictures of a plan that is a policy graph: right beliefs, names as text, on a phone and on paper."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import opened
from command_line import actmeasure

import actmeasure as am
from actmeasure.errors import PlanError
from actmeasure.inspection import graph_page, pictures
from actmeasure.inspection.economics import InspectionMethod, Units
from actmeasure.inspection.graph_advising import GraphAdviceRun
from actmeasure.inspection.graph_page import graph_page_data
from actmeasure.inspection.page import page_html, write_page
from actmeasure.inspection.pictures import write_figures
from actmeasure.inspection.problem import priced_problem
from actmeasure.planning.budget import Budget

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
LIFE = 12
EVIL = ("<b>sound</b>", "<script>alert(1)</script>", "a & b", "\"failed' $x_1$")


def deck(names=("sound", "spalling", "loose", "failed"), outcomes=("clear", "spall", "delamination")):
    """A bridge deck with a visual inspection that errs, and a radar."""
    wait = [[0.9, 0.08, 0.02, 0.0], [0.0, 0.86, 0.12, 0.02], [0.0, 0.0, 0.9, 0.1], [0.0, 0.0, 0.0, 1.0]]
    repair = [[0.98, 0.02, 0.0, 0.0]] * 3 + [[0.0, 0.0, 0.0, 1.0]]
    replace = [[0.98, 0.02, 0.0, 0.0]] * 4
    visual = am.Measurement.noisy(
        "visual", cost=1.0, outcomes=outcomes, with_actions=(0,),
        probabilities=[[0.9, 0.08, 0.02], [0.35, 0.55, 0.1], [0.2, 0.4, 0.4], [0.0, 0.05, 0.95]],
    )  # fmt: skip
    radar = am.Measurement.detection("radar", cost=4.0, pod=[0.02, 0.3, 0.9, 1.0], with_actions=(0,))
    return am.Model.from_arrays(
        np.stack([wait, repair, replace], axis=1), -np.array([[0, 30, 120], [0, 35, 120], [15, 40, 120], [200, 90, 150.0]]),
        measurements=[visual, radar], discount=0.8, initial=[0.8, 0.2, 0.0, 0.0], state_names=names,
        action_names=("nothing", "repair", "replace"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def advice():
    model = deck()
    return am.inspection.advise(
        am.lifetime(model, LIFE), failures=["failed"], currency="kEUR", period="year", title="Bridge deck", nodes=12,
        time_limit=60,
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(advice, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "plan.html"
    write_page(advice, path)
    return path


@pytest.fixture
def page(chromium, place):
    with opened(chromium, place) as found:
        yield found


def belief_words(belief, model):
    """Probabilities in percent by state, as the page writes them."""
    dense = belief.dense(model.n_states)
    return {
        model.state_name(s): re.sub(r"\D", "", am.text.percent(p)) for s, p in enumerate(dense.tolist()) if p > 1e-9
    }


def on_page(page):
    return dict(re.findall(r"(\w+) [<>]?(\d+) %", page.inner_text("#beliefs-words").partition(":")[2]))


def test_a_walk_follows_the_graph_and_believes_what_the_library_believes(page, advice):
    """At every inspection the least likely outcome is clicked; the library's policy and belief go along."""
    model = advice.problem.base
    policy, belief = advice.graph.policy(advice.model), am.Belief.start(model)
    policy.start(am.Belief.start(advice.model))
    time = 0
    while time < LIFE:
        decision = policy.decide()
        time += 1
        if decision.measurement == 0:
            belief = belief.predict(model, decision.action)
            policy.observe(None)
            continue
        chances = belief.outcomes(model, decision.action, decision.measurement)
        predicted = belief.predict(model, decision.action)
        assert on_page(page) == belief_words(predicted, model)
        if time == LIFE:
            break
        name = model.measurements[decision.measurement - 1].name
        assert page.inner_text("#reports-title") == f"What does {name} report?"
        outcome = int(np.argmin(np.where(chances > 1e-9, chances, 2.0)))
        button = page.locator("#report-buttons button").nth(int((chances[:outcome] > 1e-12).sum()))
        assert button.inner_text().replace("\n", " ") == (
            f"{model.outcome_name(decision.measurement, outcome)} {am.text.percent(float(chances[outcome]))}"
        )
        button.click()
        belief = belief.update(model, decision.action, decision.measurement, outcome)
        policy.observe(outcome)
        assert page.locator("#trail li").last.inner_text().startswith(f"After {time} year")
    assert not page.locator("#reports").is_visible()
    assert "end of life" in page.inner_text("#answer-more")
    count = page.locator("#trail li").count()
    assert count > 2
    assert page.locator("#beliefs .report-line").count() == count


def test_back_and_start_again_by_keyboard(page, advice):
    begin = page.inner_text("#answer"), page.inner_text("#beliefs-words")
    assert page.locator("#back").is_disabled()
    page.locator("#report-buttons button").first.focus()
    for _ in range(3):
        page.keyboard.press("Enter")
    assert page.locator("#trail li").count() == 3
    page.locator("#back").focus()
    page.keyboard.press("Enter")
    assert page.locator("#trail li").count() == 2
    page.locator("#again").focus()
    page.keyboard.press("Space")
    assert (page.inner_text("#answer"), page.inner_text("#beliefs-words")) == begin
    assert page.locator("#step-table tr.chosen").get_attribute("id") == "step-1"


@pytest.mark.parametrize("width", [320, 400, 800, 1200])
def test_nothing_is_wider_than_the_window(chromium, place, width):
    with opened(chromium, place, width) as page:
        page.locator("#report-buttons button").last.click()
        assert page.evaluate(OVERFLOW) <= 0
        for side in ("end", "middle"):  # no two ticks of an axis are the same
            texts = page.locator(f"#cost-chart text[text-anchor={side}]").all_text_contents()
            assert len(texts) == len(set(texts))


@pytest.fixture(scope="module")
def priced():
    """The plan of a fit's transition probabilities with prices of many words, and an estimate of nearly 0."""
    states, actions = ("sound", "cracked", "failed"), ("nothing", "replacement of the whole deck")
    wear = np.array([[0.8, 0.2 - 2e-8, 2e-8], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])
    economics = am.Economics(
        "EUR", "year", 0.95, actions={"nothing": 0.0, actions[1]: {"failed": 90_000.0, "otherwise": 40_000.0}},
        inspections={
            "visual": InspectionMethod(2000.0, pod={"cracked": 0.5, "failed": 0.9}), "opening": InspectionMethod(12_000.0)
        },
        failure_states=("failed",), failure_price=200_000.0, life=5, longest_interval=3, start="sound",
    )  # fmt: skip
    asked = priced_problem(np.stack([wear, wear[[0, 0, 0]]]), economics, states, actions, np.array([1.0, 0.0, 0.0]))
    units = Units.of(asked.model, "EUR", "year")
    return GraphAdviceRun(asked, units, Budget(20.0), lambda _: None, 8, economics).advice("Deck")


def test_prices_are_readable_on_a_phone(chromium, tmp_path, priced):
    write_page(priced, tmp_path / "plan.html")
    with opened(chromium, tmp_path / "plan.html", width=360) as page:
        assert page.evaluate(OVERFLOW) <= 0
        heads = page.locator("#model .narrow th")
        for number in range(heads.count()):
            assert heads.nth(number).bounding_box()["width"] > 100  # not a letter per line


def test_what_was_put_in_is_on_the_page(priced):
    html = page_html(priced)
    assert "no plan with at most 3 years between inspections costs less than" in html
    put_in = html[html.index("What was put in") :]
    assert "&lt;0.000001" in put_in
    assert "0.00000002" not in put_in
    for words in ("longest interval between inspections", "3 years", "5 years", "200,000 EUR"):
        assert words in put_in
    assert "<li>- " not in html


def test_without_a_script_and_on_paper_the_plan_is_there(chromium, place, advice, page):
    context = chromium.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(place.as_uri())
    assert plain.locator("#step-table tbody tr").count() == len(advice.steps)
    assert not plain.locator("#walk").is_visible()
    assert advice.units.money(advice.value) in plain.inner_text(".facts")
    context.close()
    page.emulate_media(media="print")
    assert not page.locator("#report-buttons").is_visible()
    assert page.locator("#step-table").is_visible()
    assert page.locator("#beliefs svg").is_visible()


@pytest.fixture(scope="module")
def evil():
    model = deck(EVIL, ("<u>clear</u>", "</script>", "\u202e")).replace(action_names=("nothing", "<em>fix</em>", "new"))
    return am.inspection.advise(model, failures=[EVIL[3]], title="<h1>Deck</h1>", nodes=6, time_limit=60)


def test_names_are_text_whatever_they_are(chromium, tmp_path, evil):
    path = tmp_path / "evil.html"
    write_page(evil, path)
    with opened(chromium, path, 400) as page:
        assert page.inner_text("h1") == "<h1>Deck</h1>"
        page.locator("#report-buttons button").last.click()
        assert page.evaluate(OVERFLOW) <= 0
        assert page.locator("main b, main u, main em, main h1").count() == 0
        assert EVIL[1] in page.inner_text("#beliefs-words")
        heads = page.locator(".matrix th")
        boxes = heads.evaluate_all("all => all.map((one) => one.scrollWidth - one.clientWidth)")
        assert len(boxes) > 10
        assert max(boxes) <= 0  # no name runs into the next column
    assert "\u202e" not in path.read_text()


def test_the_page_is_one_file_with_what_was_put_in(advice):
    html = page_html(advice)
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in html
    assert "default-src &#39;none&#39;" in html
    for text in ("not fitted to records", "What visual reports", "0.55", "Transitions in a year: repair", "4 kEUR"):
        assert text in html
    assert html.index("Certified") < html.index('id="steps"')


def test_what_to_read_first_is_above_the_certificate(advice, monkeypatch):
    from dataclasses import replace

    from actmeasure.inspection.diagnostics import diagnostic

    warned = replace(advice, notes=(diagnostic("plan-far-from-bound", share=0.3),))
    html = page_html(warned)
    assert html.index("Do not use this plan as it is") < html.index("Certified")


def test_data_of_the_page_are_those_of_the_advice(advice):
    data = graph_page_data(advice)
    assert len(data["steps"]) == len(advice.steps)
    assert data["curves"][0]["risk"] == advice.figures.risk.tolist()
    assert sum(data["curves"][0]["cost"]) == pytest.approx(advice.evaluation.scalarized_return)
    assert data["beliefs"]["names"] == ["sound", "spalling", "loose", "failed"]
    for row in data["beliefs"]["rows"][1]:
        assert sum(row[1]) == pytest.approx(1)


def test_large_models_have_no_beliefs_but_a_walk(chromium, tmp_path, advice, monkeypatch):
    monkeypatch.setattr(graph_page, "MOST_ENTRIES", 10)
    path = tmp_path / "large.html"
    write_page(advice, path)
    with opened(chromium, path) as page:
        assert "too large" in page.inner_text("#beliefs-words")
        page.locator("#report-buttons button").first.click()
        assert page.locator("#trail li").count() == 1


def test_failed_states_have_their_own_band_however_many_states_there_are(chromium, tmp_path):
    names = [f"size {size}" for size in range(11)] + ["failed"]
    wear = 0.98 * np.eye(12) + 0.02 * np.eye(12, k=1)
    wear[-1] = np.eye(12)[-1]
    visual = am.Measurement.detection("visual", cost=1.0, pod=np.linspace(0.1, 0.9, 12), with_actions=(0,))
    prices = np.zeros((12, 2))
    prices[:, 1], prices[-1] = 20.0, 50.0
    model = am.Model.from_arrays(
        np.stack([wear, np.tile(np.eye(12)[0], (12, 1))], axis=1), -prices, measurements=[visual], discount=0.9,
        initial=[*[1 / 11] * 11, 0.0], state_names=names,
    )  # fmt: skip
    advice = am.inspection.advise(am.lifetime(model, 6), failures=["failed"], nodes=4, time_limit=4.0)
    write_page(advice, tmp_path / "page.html")
    with opened(chromium, tmp_path / "page.html") as page:
        words = page.inner_text("#beliefs-words")
        assert "failed" in words
        assert "other states" in words
    write_figures(advice, tmp_path / "figures")
    assert "<!-- failed -->" in (tmp_path / "figures" / "beliefs.svg").read_text()


def test_states_of_several_ages_are_drawn_together():
    model = am.problems.crack_life(500, periods=5, samples=2_000).origin.models[0]
    names, groups = graph_page.state_groups(model)
    assert len(names) == 30
    assert groups[:30] == groups[30:60] == list(range(30))
    assert graph_page.state_groups(deck())[1] == [0, 1, 2, 3]


def test_the_legend_of_curves_does_not_cover_them(advice):
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.subplots()
    assert pictures._risk(advice, axes)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())


@pytest.mark.slow  # drawn twice; the command draws them once below
def test_pictures_are_png_and_svg_with_names_as_text(evil, tmp_path):
    written = write_figures(evil, tmp_path / "figures")
    assert {path.name for path in written} == {
        f"{name}.{kind}" for name in ("comparison", "beliefs", "risk", "cost", "causes") for kind in ("png", "svg")
    }
    for path in written:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            ElementTree.parse(path)
    before = (tmp_path / "figures" / "beliefs.svg").read_bytes()
    write_figures(evil, tmp_path / "figures")
    assert (tmp_path / "figures" / "beliefs.svg").read_bytes() == before


def test_pictures_of_a_schedule_and_folders_that_cannot_be_used(tmp_path):
    advice = am.inspection.advise(am.problems.maintenance(), time_limit=5)
    assert {path.stem for path in write_figures(advice, tmp_path)} == {"comparison", "beliefs"}
    (tmp_path / "file").write_text("")
    with pytest.raises(PlanError, match="cannot be made"):
        write_figures(advice, tmp_path / "file" / "below")
    with pytest.raises(PlanError, match="expected a path"):
        write_figures(advice, 3)


def test_the_command_writes_page_and_pictures(tmp_path):
    deck().save(tmp_path / "deck.json")
    arguments = ("--failure", "failed", "--nodes", "6", "--time-limit", "20", "--json")
    files = ("--report", tmp_path / "p.html", "--figures", tmp_path / "f")
    done = actmeasure("plan", tmp_path / "deck.json", *arguments, *files)
    assert json.loads(done.stdout)["steps"]
    assert 'id="walk"' in (tmp_path / "p.html").read_text()
    assert (tmp_path / "f" / "risk.svg").exists()
