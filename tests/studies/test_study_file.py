"""Study files: TOML with the line of every mistake, and Python."""

import textwrap
import tomllib
from pathlib import Path

import pytest

import actmeasure as am
from actmeasure.files.toml_lines import toml_lines
from actmeasure.studies import AgentSpec, Part, ProblemSpec, Study, read_study

EXAMPLE = Path(__file__).parents[2] / "examples" / "study.toml"
GOOD = """\
name = "my-study"
title = "What a look is worth"

[[part]]
name = "lakes"
episodes = 50
seeds = 2
problems = [{name = "frozen-lake", label = "4x4", settings = {size = 4}}, "chain"]
agents = [
  "dyna-atmq",
  {name = "atmq", preset = "published", settings = {learning_rate = 0.2}, seeds = 1},
]
methods = ["optimal", "every-3"]
tolerance = 1e-4

[[part]]
name = "more"
first_seed = 7
[[part.problems]]
name = "frozen-lake"
settings.size = 4
settings.variant = "slippery"
[[part.agents]]
name = "amrl-q"
"""


def read(tmp_path, text, name="study.toml"):
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    return read_study(path)


def test_a_file_gives_the_study_that_python_would(tmp_path):
    lakes = Part(
        "lakes",
        "lakes",
        [ProblemSpec("4x4", "frozen-lake", {"size": 4}), "chain"],
        [
            "dyna-atmq",
            AgentSpec(
                "atmq preset=published learning_rate=0.2",
                "atmq",
                {"preset": "published", "learning_rate": 0.2},
                seeds=1,
            ),
        ],
        episodes=50,
        seeds=2,
        methods=["optimal", "every-3"],
        tolerance=1e-4,
    )
    slippery = ProblemSpec("frozen-lake size=4 variant=slippery", "frozen-lake", {"size": 4, "variant": "slippery"})
    more = Part("more", "more", [slippery], ["amrl-q"], first_seed=7)
    assert read(tmp_path, GOOD) == Study("my-study", "What a look is worth", [lakes, more])


def test_the_example_is_a_study():
    assert len(read_study(EXAMPLE).trials()) > 1


def test_model_files_are_looked_for_beside_the_study(tmp_path, monkeypatch):
    am.problems.chain(5).save(tmp_path / "chain.json")
    text = 'name = "s"\n[[part]]\nname = "a"\nproblems = ["chain.json"]\nagents = ["atmq"]'
    study = read(tmp_path, text)
    (problem,) = study.parts[0].problems
    assert (problem.label, problem.name) == ("chain.json", str(tmp_path / "chain.json"))
    with pytest.raises(am.StudyError, match=r"study.toml, line 4: cannot read .*none\.json: there is no such file"):
        read(tmp_path, text.replace("chain.json", "none.json"))


@pytest.mark.parametrize(
    ("old", "new", "line", "sentence"),
    [
        ('"my-study"', '"my-study', 1, "Illegal character"),
        ("seeds = 2", "seeds = ", 7, "Invalid value"),
        ("seeds = 2", "sedes = 2", 7, "unknown key of a part 'sedes'; did you mean 'seeds'?"),
        ('title = "W', 'titel = "W', 2, "unknown key of a study 'titel'; did you mean 'title'?"),
        ("seeds = 2", "seeds = 0", 7, "seeds is 0, expected a whole number from 1"),
        ("seeds = 2", 'seeds = "two"', 7, "seeds is 'two', expected a whole number"),
        ("episodes = 50", "episodes = 50.0", 6, "episodes is 50.0, expected a whole number"),
        ("first_seed = 7", "first_seed = -1", 18, "first_seed is -1"),
        ('"dyna-atmq"', '"dyna-atm"', 10, "unknown agent 'dyna-atm'; did you mean 'dyna-atmq'?"),
        ('"dyna-atmq"', "3", 10, "3 is not an agent; give a name"),
        ('preset = "published"', 'preset = "publishd"', 11, "unknown preset 'publishd'; did you mean 'published'?"),
        ("learning_rate = 0.2", "learning_rat = 0.2", 11, "'learning_rat'; did you mean 'learning_rate'?"),
        ("learning_rate = 0.2", "preset = 1", 11, "'preset' is already the setting of settings"),
        ("seeds = 1}", "seeds = 1.5}", 11, "seeds is 1.5"),
        ('label = "4x4"', 'lable = "4x4"', 8, "unknown key of a problem 'lable'; did you mean 'label'?"),
        ('"chain"', '"chian"', 8, "unknown problem 'chian'; did you mean 'chain'?"),
        ('label = "4x4"', 'label = "chain"', 8, "'chain' is already the label of another of the problems"),
        ("settings = {size = 4}", "settings = 4", 8, "settings is 4, expected a table"),
        ("settings = {size = 4}", "settings = {sise = 4}", 8, "'sise'; did you mean 'size'?"),
        ("settings = {size = 4}", 'settings = {size = "4"}', 8, "size is '4'"),
        ('settings.variant = "slippery"', 'settings.variant = "slipery"', 22, "did you mean 'slippery'?"),
        ("settings.size = 4", "settings.size = inf", 21, "expected a finite number"),
        ('name = "amrl-q"', 'nme = "amrl-q"', 24, "unknown key of an agent 'nme'; did you mean 'name'?"),
        ('name = "amrl-q"', "seeds = 2", 23, "an agent has no name"),
        ('name = "amrl-q"', "name = 3", 24, "the name of an agent is 3"),
        ('"every-3"', '"every-x"', 13, "expected every-k"),
        ('"every-3"', '"optimal"', 13, "'optimal' is already the name of another of the methods"),
        ("1e-4", "2", 14, "tolerance is 2, expected a number between 0 and 1"),
        ('methods = ["optimal", "every-3"]', 'methods = "optimal"', 13, "expected a list in brackets"),
        ('name = "more"', 'name = "lakes"', 17, "'lakes' is already the name of another part"),
        ('name = "more"', "", 16, "a part has no name"),
        ('name = "more"', 'name = "a b"', 17, "the name of a part is 'a b'"),
        ('name = "my-study"', 'name = "/"', 1, "the name of the study is '/'"),
        ('name = "more"', 'name = "more"\ntitle = 3', 18, "its title is 3"),
        ('[[part.agents]]\nname = "amrl-q"', "", 16, "neither agents nor methods"),
    ],
)
def test_mistakes_are_answered_with_their_line(tmp_path, old, new, line, sentence):
    assert GOOD.count(old) >= 1
    with pytest.raises(am.StudyError) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'study.toml'}, line {line}: ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "study.toml: the study has no name"),
        ('name = "s"', "study.toml: the study has no parts; begin one with [[part]]"),
        ('name = "s"\npart = []', "line 2: the study has no parts"),
        ('name = "s"\n[part]\nname = "a"', "line 2: part is not a list of tables; begin each part with [[part]]"),
        ('name = "s"\n[[part]]\nname = "a"\nagents = ["atmq"]', "line 2: the part 'a' has no problems"),
        ("a = " + "[" * 5000, "nested too deeply"),
    ],
)
def test_what_is_missing_is_a_sentence(tmp_path, text, sentence):
    with pytest.raises(am.StudyError) as caught:
        read(tmp_path, text)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "depth", range(100, 1000, 50)
)  # at some of them the first reading succeeds and the second does not
def test_nesting_of_any_depth_is_a_sentence(tmp_path, depth):
    with pytest.raises(am.StudyError, match=r"nested too deeply|unknown key"):
        read(tmp_path, "a = " + "[" * depth + "]" * depth)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(am.StudyError, match="no such file"):
        read_study(tmp_path / "none.toml")
    with pytest.raises(am.StudyError, match=r"unknown file ending '.tml'; did you mean '.toml'\?"):
        read_study(tmp_path / "study.tml")
    (tmp_path / "latin.toml").write_bytes(b'name = "s"\ntitle = "\xe9"\n')
    with pytest.raises(am.StudyError, match="line 2: this is not UTF-8"):
        read_study(tmp_path / "latin.toml")


PYTHON = """\
from __future__ import annotations
from dataclasses import dataclass
from actmeasure.experiments import Part, ProblemSpec, Study
from helper import COSTS

@dataclass
class Price:
    cost: float

prices = [Price(cost) for cost in COSTS]
problems = [ProblemSpec(f"c={price.cost}", "measuring-value", {"measuring_cost": price.cost}) for price in prices]
study = Study("sweep", "A sweep", [Part("costs", "Costs", problems, ["atmq"], seeds=2)])
"""


def test_python_files(tmp_path):
    (tmp_path / "helper.py").write_text("COSTS = [0.05, 0.1]")
    study = read(tmp_path, PYTHON, "study.py")
    assert [problem.label for problem in study.parts[0].problems] == ["c=0.05", "c=0.1"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("study = (", "study.py, line 1: '(' was never closed"),
        ("x = 1\nstudy = x / 0", "study.py, line 2: ZeroDivisionError: division by zero"),
        ("x = 1", "study.py defines no study; write study = Study(...)"),
        ("study = 3", "study.py has a study that is 3"),
        ("import sys\nsys.exit(3)", "study.py, line 2: SystemExit: 3"),
        (
            "from actmeasure.studies import Study\n\nstudy = Study('s', 'S', [])",
            "study.py, line 3: the study 's' has no parts",
        ),
    ],
)
def test_errors_in_python_files_have_their_line(tmp_path, text, sentence):
    with pytest.raises(am.StudyError) as caught:
        read(tmp_path, text, "study.py")
    assert sentence in str(caught.value)


NASTY = '''\
# [not.a.table]
"quoted \\"key\\"" = """
[[part]] # not one
x = 1
""""
'single.key' . sub = 'it#s' # = [
dates = [1979-05-27T07:32:00, 07:32:00]
nested = [ [1, 2], # ]
  [ {a = "]", b = [true]} , {} ],
  """two
lines""", \'\'\'
raw "\'\'\',
]
empty = []
[table."x.y"]
a.b.c = 1
a.b.d = { e = -inf, f = 0x1F }
[[list]]
  [[list.inner]]
  k = 1
  [[list.inner]]
  k = 2
  [list.inner.deep]
  z = "\\\\"
[[list]]
  [[list.inner]]
  k = 3
'''


def places(data, where=()):
    """The way to everything in parsed TOML."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*where, key)
        yield from places(value, (*where, key))


def test_lines_of_everything_in_a_nasty_file():
    lines = toml_lines(NASTY)
    found, expected = set(lines), set(places(tomllib.loads(NASTY)))
    assert expected - found == {("table",)}  # named by no line of its own
    assert found <= expected
    texts = NASTY.splitlines()
    for key, word in [
        (('quoted "key"',), '"quoted'), (("single.key", "sub"), "'single.key'"), (("nested", 1, 0, "b"), "[ {a"),
        (("nested", 2), '"""two'), (("nested", 3), "lines"), (("table", "x.y", "a", "b", "c"), "a.b.c"),
        (("table", "x.y", "a", "b", "d", "f"), "a.b.d"), (("list", 0, "inner", 1, "k"), "k = 2"),
        (("list", 0, "inner", 1, "deep", "z"), "z ="), (("list", 1, "inner", 0, "k"), "k = 3"), (("empty",), "empty"),
    ]:  # fmt: skip
        assert word in texts[lines[key] - 1]
