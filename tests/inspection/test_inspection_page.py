"""The page of a plan: self-contained, harmless whatever names are in it, and right in a real browser."""

import json
import re

import numpy as np
import pytest
from browser import opened
from machines import machine

import actmeasure as am
from actmeasure.inspection.page import page_data, page_html, write_page

EVIL = "<script>alert(1)</script>"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def place(advice, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "plan.html"
    write_page(advice, path)
    return path


@pytest.fixture
def page(chromium, place):
    with opened(chromium, place) as found:
        yield found


def price_at(advice, position):
    return page_data(advice)["mostPrice"] * (position / 1000) ** 2


def piece_at(advice, price):
    return next(piece for piece in advice.prices if price <= piece.high)


def test_clicking_a_state_changes_the_plan(page, advice):
    for row in (advice.rows[2], advice.rows[1]):
        page.get_by_label(row.name, exact=True).check(force=True)
        assert page.inner_text("#answer") == f"After seeing {row.name}: {row.words}."
        assert page.locator("#schedule tr.chosen th").inner_text() == row.name
        assert advice.units.money(row.value) in page.inner_text("#answer-more")


def test_what_is_believed_is_what_the_library_believes(page, advice):
    row = advice.rows[0]
    belief = am.Belief.at(row.state)
    for action in row.plan.actions:
        belief = belief.predict(advice.model, action)
    page.get_by_label(row.name, exact=True).check(force=True)
    words = page.inner_text("#beliefs-words")
    shares = dict(re.findall(r"(\w+) (\d+) %", words.partition(":")[2]))
    expected = {
        advice.model.state_name(s): f"{100 * p:.0f}" for s, p in zip(belief.states, belief.probabilities, strict=True)
    }
    assert shares == expected
    assert page.locator("#look-line").get_attribute("data-step") == str(row.inspect_after)
    assert page.locator("#beliefs svg path").count() >= len(expected)


@pytest.mark.parametrize("position", [0, 120, 400, 700, 1000])
def test_the_price_changes_schedule_and_frontier(page, advice, position):
    page.locator("#price").fill(str(position))
    price = price_at(advice, position)
    piece = piece_at(advice, price)
    value = float(page.locator("#value-marker").get_attribute("data-value"))
    model = machine(measuring_cost=price)
    best = am.solve(model, tolerance=1e-4)
    assert value == pytest.approx(am.evaluate(model, piece.schedule).discounted_return)
    assert best.lower - advice.frontier.tolerance <= value <= best.upper + 1e-6
    number = advice.prices.index(piece)
    assert page.locator("#frontier-marker").get_attribute("data-piece") == str(number)
    first = advice.rows[0]
    words = piece.schedule[first.state].describe(model, "month")
    assert page.inner_text("#answer").startswith(f"After seeing {first.name}: {words}")
    assert page.locator("#schedule tbody tr").nth(0).locator("td").nth(0).inner_text().startswith(words)
    shown = page.locator("#policies tbody tr").nth(0).locator("td").nth(0).inner_text()
    assert shown == advice.units.money(value)
    never = next(policy for policy in advice.policies if policy.key == "never")
    assert page.locator("#policies tbody tr").nth(2).locator("td").nth(0).inner_text() == advice.units.money(
        never.value
    )


def test_dragging_with_the_mouse(page, advice):
    before = page.inner_text("#price-words")
    page.locator("#price").scroll_into_view_if_needed()
    place = page.locator("#price").bounding_box()
    middle = place["y"] + place["height"] / 2
    page.mouse.move(place["x"] + place["width"] / 2, middle)
    page.mouse.down()
    marks = set()
    for share in (0.6, 0.4, 0.25, 0.1, 0.0):
        page.mouse.move(place["x"] + share * place["width"], middle)
        marks.add(page.locator("#frontier-marker").get_attribute("data-piece"))
    page.mouse.up()
    assert len(marks) > 1
    assert page.inner_text("#price-words") != before
    page.get_by_role("button", name="Present price").click()
    assert page.inner_text("#price-words") == before
    assert page.inner_text("#price-shown") == "40 EUR (now)"


def test_everything_works_with_the_keyboard(page, advice):
    page.get_by_label(advice.rows[0].name, exact=True).focus()
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#answer").startswith(f"After seeing {advice.rows[1].name}: ")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "price"
    page.keyboard.press("Home")
    assert page.inner_text("#price-shown") == "0 EUR"
    assert page.locator("#price").get_attribute("aria-valuetext") == "0 EUR"
    assert page.locator("#earlier").is_disabled()
    page.get_by_role("button", name="Dearer: next change").focus()
    page.keyboard.press("Enter")
    assert page.locator("#frontier-marker").get_attribute("data-piece") == "1"


def test_steps_through_all_schedules(page, advice):
    page.locator("#price").fill("0")
    for number in range(1, len(advice.prices)):
        page.locator("#later").click()
        assert page.inner_text("#price-words").startswith(f"Schedule {number + 1} of {len(advice.prices)} ")
    assert page.locator("#later").is_disabled()


@pytest.mark.parametrize("width", [320, 360, 768])
def test_nothing_is_wider_than_a_phone(chromium, place, width):
    with opened(chromium, place, width) as page:
        assert page.evaluate(OVERFLOW) <= 0
        page.get_by_label("broken", exact=True).check(force=True)
        page.locator("#price").fill("1000")
        assert page.evaluate(OVERFLOW) <= 0


def test_print_shows_the_table_and_no_controls(page, advice):
    page.emulate_media(media="print")
    assert not page.locator("#price").is_visible()
    assert not page.locator("#chooser").is_visible()
    rows = page.locator("#schedule tbody tr")
    assert rows.count() == len(advice.rows)
    for number, row in enumerate(advice.rows):
        assert rows.nth(number).is_visible()
        assert row.words in rows.nth(number).inner_text()
    shown = page.locator("#policies").inner_text()
    for policy in advice.policies:
        assert shown.count(policy.rule) == 1
    assert page.pdf()[:4] == b"%PDF"


def test_without_a_script_the_tables_are_there_and_no_controls(chromium, place, advice):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(place.as_uri())
    text = page.inner_text("body")
    assert all(row.words in text for row in advice.rows)
    assert all(policy.name in text for policy in advice.policies)
    assert not page.locator("#price").is_visible()
    context.close()


def test_names_are_text_whatever_they_are(chromium, tmp_path):
    names = [EVIL, '"><img src=x onerror=alert(2)>', "&amp; {{ 7*7 }} </style>"]
    evil = machine(state_names=names, action_names=["</script><b>run", "repair"])
    advice = am.inspection.advise(evil, title=EVIL, currency="<i>", period="<u>", time_limit=None)
    path = tmp_path / "evil.html"
    write_page(advice, path)
    with opened(chromium, path) as page:
        assert page.title() == EVIL
        for number, name in enumerate(names):
            page.locator(f"input[name=state][value='{number}']").check(force=True)
            assert page.inner_text("#answer").startswith(f"After seeing {name}: ")
            assert page.locator("#schedule tbody tr").nth(number).locator("th").inner_text() == name
        page.locator("#price").fill("500")
        assert page.locator("img, b, i, u").count() == 0
        assert page.locator("script").count() == 2


def test_the_page_is_one_file_with_a_strict_policy(place):
    text = place.read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src &#39;none&#39;" in policy
    assert "unsafe" not in policy
    assert not re.search(r"(?:src|href)=|url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)", text)


def test_other_kinds_of_models(chromium, tmp_path):
    hidden = machine(initial=[0.5, 0.3, 0.2], reveal_start=False)
    costs = np.array([[10.0, 10.0], [40.0, 40.0], [80.0, 80.0]])
    models = {
        "hidden": (hidden, "At the start: "),
        "ends": (am.problems.measuring_value(), "After seeing s0: "),
        "costs": (machine(measuring_cost=costs), "After seeing good: "),
        "free": (machine(measuring_cost=0.0), "After seeing good: "),
    }
    for name, (model, answer) in models.items():
        advice = am.inspection.advise(model, time_limit=None)
        path = tmp_path / f"{name}.html"
        write_page(advice, path)
        with opened(chromium, path, 360) as page:
            assert page.inner_text("#answer").startswith(answer)
            page.locator("#price").fill("900")
            assert page.evaluate(OVERFLOW) <= 0


def test_many_states_are_chosen_from_a_list_those_expected_first(chromium, tmp_path):
    lake = am.problems.frozen_lake(8, seed=1)
    advice = am.inspection.advise(lake, time_limit=20)
    path = tmp_path / "lake.html"
    write_page(advice, path)
    with opened(chromium, path, 360) as page:
        groups = page.locator("#state optgroup")
        assert groups.nth(0).get_attribute("label") == "expected"
        expected = [row.name for row in advice.rows if row.is_expected]
        assert groups.nth(0).locator("option").all_inner_texts() == expected
        page.locator("#state").select_option(label=expected[-1])
        assert page.inner_text("#answer").startswith(f"After seeing {expected[-1]}: ")
        assert page.evaluate(OVERFLOW) <= 0


def test_a_page_without_time_for_other_prices(chromium, tmp_path):
    lake = am.problems.frozen_lake(8, variant="slippery", discount=0.999)
    advice = am.inspection.advise(lake, time_limit=0.5)
    path = tmp_path / "hurried.html"
    write_page(advice, path)
    with opened(chromium, path) as page:
        assert "time" in page.inner_text("#notes")
        assert page.locator("#prices").is_visible() == (len(advice.prices) > 1)
        assert page.inner_text("#answer").startswith("After seeing 0: ")


def test_large_pages_are_cut_with_a_sentence(advice, monkeypatch):
    monkeypatch.setattr("actmeasure.inspection.page.MOST_ROWS", 2)
    monkeypatch.setattr("actmeasure.inspection.page.MOST_ROWS", 2)
    text = page_html(advice)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    assert [row["name"] for row in data["rows"]] == ["good", "worn"]
    assert "1 more state is left out here" in text
    monkeypatch.setattr("actmeasure.inspection.page.MOST_ENTRIES", 1)
    assert not any(row["drawn"] for row in page_data(advice)["rows"])


def test_gains_are_those_of_the_explanation(advice):
    solution = am.solve(machine(), tolerance=1e-6)
    for row in page_data(advice)["rows"]:
        if row["gain"] is not None:
            looked = solution.explain(row["state"]).steps[-1]
            assert np.isclose(row["gain"], looked.measuring_value, atol=1e-3)


def test_a_page_that_cannot_be_written_is_a_sentence(advice, tmp_path):
    with pytest.raises(am.PlanError, match="folder does not exist"):
        write_page(advice, tmp_path / "nowhere" / "plan.html")


@pytest.mark.parametrize("name", ["plan.pdf", "plan.png", "plan", "plan.html.gz"])
def test_a_page_is_written_as_html_only(advice, tmp_path, name):
    with pytest.raises(am.PlanError, match=r"only as \.html or \.htm"):
        write_page(advice, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_noise_is_rounded_away_and_plans_that_differ_for_nothing_are_not_mentioned(advice):
    from dataclasses import replace

    from actmeasure.inspection.advice import Agreement, Confidence
    from actmeasure.inspection.text import break_even

    tiny = replace(advice.frontier, break_even=(1e-12, 2e-12))
    assert break_even(replace(advice, frontier=tiny)) == "Inspecting is never worth anything here."
    agreement = {row.state: Agreement(0.03, 1.0, 1.0, 2.0) for row in advice.rows}
    for lost, mentioned in ((1e-13, False), (5.0, True)):
        sure = Confidence(agreement, np.array([advice.value - lost]), np.array([advice.value]), 1)
        html = page_html(replace(advice, confidence=sure))
        assert ("same plan in" in html) == mentioned
