"""The report in a real browser: opens without errors and without network, shows its figures, and sorts its tables."""

from pathlib import Path

import pytest
from browser import opened
from synthetic import own_study, results_of

from actmeasure.paper import study_spec
from actmeasure.paper.reporting import report as paper_report
from actmeasure.studies.report.document import render
from actmeasure.studies.report.study_report import study_report

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def written(place, document):
    place.write_text(render(document), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def page_of_the_paper(tmp_path_factory):
    results = results_of(study_spec.paper_study(quick=True))
    return written(tmp_path_factory.mktemp("paper") / "report.html", paper_report(results, Path("results/paper"))[0])


@pytest.fixture
def page(chromium, page_of_the_paper):
    with opened(chromium, page_of_the_paper) as found:
        yield found


def test_figures_show(page):
    pictures = page.locator("figure img")
    assert pictures.count() == 3
    for number in range(3):
        picture = pictures.nth(number)
        box = picture.bounding_box()
        assert picture.evaluate("image => image.complete && image.naturalWidth") > 300
        assert box["width"] > 500
        assert box["height"] > 150
        assert picture.get_attribute("alt")


def column(table, number):
    return table.locator(f"tbody tr td:nth-child({number})").all_inner_texts()


def test_tables_sort_by_numbers_when_clicked(page):
    table = page.locator("table", has=page.get_by_role("button", name="discounted optimum at least")).first
    heading = table.locator("th", has_text="best known return")
    first = column(table, 2)
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert column(table, 2) == sorted(first, key=float)
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert column(table, 2) == sorted(first, key=float, reverse=True)


def test_tables_sort_from_the_keyboard_and_what_is_not_there_stays_last(page):
    table = page.locator("table", has=page.get_by_role("button", name="episodes")).nth(1)  # the first says what was run
    heading = table.locator("th", has_text="published return")
    for _ in range(2):
        heading.get_by_role("button").focus()
        page.keyboard.press("Enter")
        shown = column(table, 3)
        numbers = [float(text) for text in shown if text != "\N{EN DASH}"]
        assert len(numbers) < len(shown)
        assert shown[len(numbers) :] == ["\N{EN DASH}"] * (len(shown) - len(numbers))
        ascending = heading.get_attribute("aria-sort") == "ascending"
        assert numbers == sorted(numbers, reverse=not ascending)
    assert table.locator("th[aria-sort=none]").count() == table.locator("th").count() - 1


def test_text_sorts_as_people_do(page):
    table = page.locator("table", has=page.get_by_role("button", name="size")).first
    table.get_by_role("button", name="agent").click()
    agents = column(table, 2)
    assert agents == sorted(agents, key=str.lower)


def test_a_phone_need_not_scroll_sideways(chromium, page_of_the_paper):
    with opened(chromium, page_of_the_paper, width=380) as found:
        assert found.evaluate(OVERFLOW) <= 0
        assert found.locator("figure img").first.bounding_box()["width"] > 300


WIDTHS = "[...document.querySelectorAll('.wide')].map(box => box.scrollWidth - box.clientWidth)"


@pytest.fixture(scope="module")
def wide_page(tmp_path_factory):
    """A study with long names, and returns that differ so much that their intervals are long."""
    results = results_of(
        own_study(problem="a lake of a long name, slippery", agent="a learner of a long name"),
        earn=lambda problem, agent, seed: -1000.0 + 123.456 * seed,
    )
    return written(tmp_path_factory.mktemp("wide") / "report.html", study_report(results, Path("results/mine"))[0])


def test_no_table_is_wider_than_the_page(chromium, page_of_the_paper, wide_page):
    for place in (page_of_the_paper, wide_page):
        with opened(chromium, place, width=1200) as found:
            assert found.evaluate(OVERFLOW) <= 0
            assert max(found.evaluate(WIDTHS)) <= 0
        with opened(chromium, place, width=800) as found:  # a table may scroll in its own box, the page may not
            assert found.evaluate(OVERFLOW) <= 0


def test_table_1_is_coloured_and_readable(page):
    """A cell of any shade, with a legend; text keeps a contrast of 4.5 to 1, in the light and in the dark."""
    table = page.locator("table").first
    assert table.locator("tbody tr").first.locator("td").first.inner_text() == "Best known"
    assert table.locator("th button").count() == 0
    assert page.locator(".legend span").count() == 6
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for number in range(6):
            colours = page.evaluate(
                f"""(() => {{ const shade = document.querySelector('.legend .shade-{number}');
                const page = getComputedStyle(document.body).backgroundColor;
                const own = getComputedStyle(shade).backgroundColor;
                return [own === 'rgba(0, 0, 0, 0)' ? page : own, getComputedStyle(shade).color]; }})()"""
            )
            light, dark = sorted((luminance(colour) for colour in colours), reverse=True)
            assert (light + 0.05) / (dark + 0.05) > 4.5


def luminance(colour):
    """The relative luminance of rgb(r, g, b), as the Web Content Accessibility Guidelines have it."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_it_can_be_printed_and_read_in_the_dark(page):
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(media="print", color_scheme="dark")
    printed = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != printed == "rgb(255, 255, 255)"


def test_names_are_shown_as_they_are(chromium, tmp_path):
    results = results_of(own_study(problem=EVIL, agent=EVIL, title=EVIL))
    place = written(tmp_path / "report.html", study_report(results, tmp_path)[0])
    with opened(chromium, place) as found:
        assert found.locator("h1").inner_text() == EVIL
        assert EVIL in column(found.locator("table").nth(1), 1)
        assert found.locator("img[src=x]").count() == 0
        assert found.title() == EVIL


def test_the_page_may_not_load_or_run_anything_else(chromium, page_of_the_paper):
    """Its own policy stops what somebody may have put in: the browser says so, and nothing runs."""
    changed = page_of_the_paper.with_name("changed.html")
    evil = "<script>document.title = 'run'</script><img id=x src='https://example.invalid/x.png'></main>"
    changed.write_text(page_of_the_paper.read_text().replace("</main>", evil))
    context = chromium.new_context()
    found, said = context.new_page(), []
    found.on("console", lambda message: said.append(message.text))
    found.goto(changed.as_uri())
    assert found.title() != "run"
    assert found.evaluate("document.getElementById('x').naturalWidth") == 0
    assert len([text for text in said if "Content Security Policy" in text]) == 2
    context.close()
