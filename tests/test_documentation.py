"""The documentation is true: its code runs, and prints what it says."""

import contextlib
import io
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r'```(python|text|json|toml)(?: title="(.*?)")?\n(.*?)```', re.DOTALL)


#: Pages that take seconds; what they show is also in examples in docstrings, in `tests/inspection` and in `tests/studies`.
LONG = {
    "experiments.md",
    "inspection.md",
    "method-bounds.md",
    "pomcp.md",
    "tutorial-engineer.md",
    "tutorial-researcher.md",
}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in LONG else (), id=page.name) for page in PAGES],
)
def test_code_in_the_documentation_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    methods = import_module("actmeasure.planning.solve")
    monkeypatch.setattr(methods, "METHODS", dict(methods.METHODS))  # what a page registers is gone after it
    names, printed = {"__name__": "documentation"}, ""
    for language, title, body in BLOCK.findall(page.read_text()):
        if title:
            (tmp_path / title).write_text(body)
        if language in ("json", "toml"):
            continue
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(body, str(page), "exec"), names)
            printed = out.getvalue()
        else:
            assert printed == body


#: Run by a test of its own.
PRICE_OF_A_LOOK = ROOT / "examples" / "price_of_a_look.py"
EXAMPLES = sorted(set((ROOT / "examples").glob("*.py")) - {PRICE_OF_A_LOOK})
#: What makes an example short that trains for a minute; that it learns is a test of its own.
ARGUMENTS = {"recurrent_ppo.py": ["--steps", "256"]}


@pytest.mark.slow
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(script, tmp_path):
    command = [sys.executable, script, *ARGUMENTS.get(script.name, [])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.slow
def test_the_counterexamples_are_those_of_the_page(tmp_path):
    script = ROOT / "examples" / "atm_counterexamples.py"
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout in (ROOT / "docs" / "method-atm.md").read_text()


@pytest.mark.slow
def test_no_schedule_of_the_example_beats_the_certified_optimum(tmp_path):
    done = subprocess.run([sys.executable, PRICE_OF_A_LOOK], cwd=tmp_path, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("measuring value")]
    assert len(rows) == 3
    for row in rows:
        optimal, *others = (float(word) for word in row[-6:])
        assert all(other <= optimal for other in others)


def test_every_page_shows_json_that_is_saved_and_loaded():
    """So that none of it is left out above."""
    for page in PAGES:
        titles = [title for language, title, _ in BLOCK.findall(page.read_text()) if language == "json"]
        assert page.read_text().count("```json") == len(titles)
        assert all(f'load("{title}")' in page.read_text() for title in titles)


def test_first_screen_of_the_readme_has_the_two_commands():
    first_screen = (ROOT / "README.md").read_text().splitlines()[:25]
    commands = [line.split("#")[0].strip() for line in first_screen if line.startswith("make ")]
    assert commands == ["make paper", "make test"]


@pytest.mark.parametrize(("page", "folder"), [("README.md", "."), ("docs/index.md", "docs")])
def test_first_screens_show_pictures_that_are_there_and_small(page, folder):
    first_screen = "\n".join((ROOT / page).read_text().splitlines()[:25])
    pictures = [ROOT / folder / name for name in re.findall(r"[\w/-]+\.png", first_screen)]
    assert {picture.name for picture in pictures} == {"plan-page.png", "lake-plan.png"}
    assert all(picture.stat().st_size < 200 * 1024 for picture in pictures)


def test_the_documentation_can_be_searched_also_when_it_is_opened_from_disk():
    """Browsers start no workers in pages from disk: without the plugin `offline` the theme hides its search box there."""
    settings = (ROOT / "mkdocs.yml").read_text()
    plugins = re.search(r"^plugins:\n((?: .*\n)+)", settings, re.MULTILINE)[1]
    assert {"search", "offline"} <= set(re.findall(r"^  - (\w+)", plugins, re.MULTILINE))
    script = re.search(r"^  polyfills: \[(.*?)\]", settings, re.MULTILINE)[1]
    assert "iframe-worker" in script  # or the plugin would load it from the network
    assert (ROOT / "docs" / script).exists()


def test_files_that_the_guide_for_contributors_names_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([\w/]+\.py)`", text) if "NAME" not in name}
    folders = [ROOT, *(ROOT / "src" / "actmeasure" / room for room in ("", "planning", "problems"))]
    assert len(named) > 40
    assert not {name for name in named if not any((folder / name).is_file() for folder in folders)}


def test_every_public_name_is_there_and_documented():
    import actmeasure as am

    reference = "".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    for name in am.__all__:
        assert hasattr(am, name)
    classes_and_functions = [n for n in am.__all__ if callable(getattr(am, n)) and not n.endswith(("Error", "Warning"))]
    for name in classes_and_functions:
        assert f"::: actmeasure.{name}\n" in reference, name


def test_the_page_of_the_command_line_is_what_the_commands_say(tmp_path):
    """If not: python -m typer actmeasure.cli utils docs --name actmeasure --output docs/reference/command-line.md."""
    made = tmp_path / "command-line.md"
    command = [
        sys.executable,
        "-m",
        "typer",
        "actmeasure.cli",
        "utils",
        "docs",
        "--name",
        "actmeasure",
        "--output",
        made,
    ]
    subprocess.run(command, capture_output=True, check=True)
    assert made.read_text() == (ROOT / "docs" / "reference" / "command-line.md").read_text()


GLOSSARY = ROOT / "docs" / "glossary.md"
#: Rows of a table, without its row of dashes.
ROW = re.compile(r"^\| (.*) ?\|$", re.MULTILINE)


def glossary_tables():
    """The glossary's tables of terms as (term, meaning, code) and its table of words to avoid as (not, but)."""
    rows = [[cell.strip() for cell in line.split("|")] for line in ROW.findall(GLOSSARY.read_text())]
    terms = [row for row in rows if len(row) == 3 and row[0] != "term"]
    replaced = [row for row in rows if len(row) == 2 and row[0] != "not"]
    return terms, replaced


def occurrences(word, text):
    """Lines of a text in which a word occurs by itself or as a part of a name; capitals count if the word has them."""
    flags = 0 if any(letter.isupper() for letter in word) else re.IGNORECASE
    pattern = re.compile(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])".replace(r"\ ", r"\s+(?:#\s*)?"), flags)
    return [text.count("\n", 0, found.start()) + 1 for found in pattern.finditer(text)]


def test_every_term_of_the_glossary_is_used_in_the_documentation():
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page != GLOSSARY]
    text = "\n".join(page.read_text() for page in [ROOT / "README.md", *pages])
    terms, _ = glossary_tables()
    assert len({term for term, *_ in terms}) == len(terms) > 40
    text = " ".join(text.split())
    unused = [term for term, *_ in terms if not re.search(rf"\b{re.escape(term)}", text, re.IGNORECASE)]
    assert unused == []


def test_the_glossary_and_the_public_names_are_in_step():
    """Names in the glossary exist, and every public class is the code of a term; errors have a page of their own."""
    import actmeasure as am

    terms, _ = glossary_tables()
    named = {name for *_, code in terms for name in re.findall(r"`am\.([\w.]+)`", code)}
    for name in named:
        value = am
        for attribute in name.split("."):
            value = getattr(value, attribute)
    classes = {
        name for name in am.__all__ if isinstance(getattr(am, name), type) and not name.endswith(("Error", "Warning"))
    }
    assert classes - named == set()


def test_every_public_name_is_on_a_page():
    import actmeasure as am

    text = "\n".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    reference = (ROOT / "docs" / "reference" / "errors.md").read_text()
    assert "::: actmeasure.errors\n" in reference  # which lists all errors
    names = [name for name in am.__all__ if not name.endswith(("Error", "Warning")) and name != "__version__"]
    assert [name for name in names if not re.search(rf"\b(am|actmeasure)\.{name}\b", text)] == []


ROOMS = sorted({path.relative_to(ROOT / "src" / "actmeasure").parts[0] for path in (ROOT / "src").rglob("*.py")})


#: Python and the templates of pages.
SOURCES = (".py", ".html", ".js", ".css")
#: Names of arrays in files of former versions, which have to be read.
IN_OLD_FILES = {("foresight.py", "hope")}


@pytest.mark.parametrize("room", [*ROOMS, "documentation", "examples", "benchmarks"])
def test_words_that_the_glossary_replaces_are_not_used(room):
    if room == "documentation":
        texts = [*sorted(ROOT.glob("*.md")), ROOT / "mkdocs.yml", *sorted((ROOT / "docs").rglob("*.md"))]
        made = ROOT / "docs" / "reference" / "command-line.md"  # from the commands, which are a room of their own
        files = [path for path in texts if path not in (GLOSSARY, made)]
    else:
        place = ROOT / room if room in ("examples", "benchmarks") else ROOT / "src" / "actmeasure" / room
        files = sorted(path for path in place.rglob("*") if path.suffix in SOURCES) if place.is_dir() else [place]
    assert files
    _, replaced = glossary_tables()
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word!r}, write {better}"
        for path in files
        for word, better in replaced
        if (path.name, word) not in IN_OLD_FILES
        for line in occurrences(word, path.read_text())
    ]
    assert not found, "\n".join(found)
