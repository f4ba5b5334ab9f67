"""Certificates are verified by the separate checker, and refused where a number was changed."""

import ast
import json
import math
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcome_judge import random_model
from strategies import examples, general_models, models

import actmeasure as am
from actmeasure import check_certificate as checker
from actmeasure.errors import PlanError
from actmeasure.files.archive import write_arrays


def saved(model, folder, **settings):
    solution = am.solve(model, **settings)
    proof = am.certificate(solution)
    model.save(folder / "model.json")
    proof.save(folder / "proof.npz")
    return solution, proof


def verdict(folder):
    return checker.main([str(folder / "model.json"), str(folder / "proof.npz")])


def write(folder, about, arrays, renew=True):
    if renew:
        about = about | {"digest": checker.digest(about, arrays)}
    with (folder / "proof.npz").open("wb") as file:
        write_arrays(file, about, arrays, checker.TYPES)


@pytest.fixture(scope="module")
def tiger(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiger")
    return folder, saved(am.problems.tiger(), folder)[1]


@pytest.mark.parametrize(
    "model",
    [
        am.problems.tiger(),
        am.problems.simple_fatigue().replace(),
        am.problems.pile_selection().replace(),
        am.problems.frozen_lake(4, measuring_cost=0.05),
        am.lifetime(am.problems.tiger(), periods=3, discount=1.0).replace(),
    ],
    ids=["tiger", "fatigue", "piles", "lake", "life without discount"],
)
def test_bounds_of_known_problems_are_verified(model, tmp_path, capsys):
    solution, proof = saved(model, tmp_path)
    assert verdict(tmp_path) == 0, capsys.readouterr().err
    assert "proved by" in capsys.readouterr().out
    wide = solution.gap + 1e-6 * (1 + abs(solution.upper))
    assert solution.upper - wide <= proof.lower <= proof.upper <= solution.lower + 1.01 * wide


@examples(60)
@given(model=general_models())
def test_random_models_are_verified(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("random")
    _, proof = saved(model, folder, budget=am.planning.Budget(work=300))
    assert verdict(folder) == 0
    assert proof.lower <= proof.upper


@examples(100)
@given(seed=st.integers(0, 2**32 - 1), work=st.sampled_from([1, 50, 300]))
def test_models_of_every_kind_are_verified_whenever_the_search_is_stopped(seed, work, tmp_path_factory):
    """Prices of 0 and 1e9, outcomes of probability 1e-300, measurements that are useless or dominated, ends, shown starts."""
    model = random_model(np.random.default_rng(seed))
    folder = tmp_path_factory.mktemp("judged")
    try:
        _, proof = saved(model, folder, budget=am.planning.Budget(work=work))
    except PlanError as error:
        assert model.discount == 1
        assert "not covered yet" in str(error) or "cannot be proved" in str(error)  # noqa: PT017
        return
    assert verdict(folder) == 0
    assert proof.lower <= proof.upper


@examples(30)
@given(model=models(max_states=4))
def test_random_models_with_exact_looks_are_verified(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exact")
    solution, proof = saved(model, folder)
    assert verdict(folder) == 0
    assert proof.lower <= solution.upper + 1e-9
    assert proof.upper >= solution.lower - 1e-9


@pytest.mark.parametrize("name", [*checker.TYPES, "lower", "upper", "model", "digest"])
def test_a_certificate_with_one_number_changed_is_refused(tiger, tmp_path, name):
    folder, proof = tiger
    (tmp_path / "model.json").write_bytes((folder / "model.json").read_bytes())
    about, arrays = dict(proof.about), {key: array.copy() for key, array in proof.arrays.items()}
    if name in arrays:
        assert arrays[name].size, f"{name} is empty in this certificate"
        arrays[name].flat[arrays[name].size // 2] += 1 if arrays[name].dtype.kind == "i" else 1e-12
    else:
        about[name] = about[name] + 1e-12 if isinstance(about[name], float) else about[name][::-1]
    write(tmp_path, about, arrays, renew=False)
    assert verdict(tmp_path) == 1


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("vector_values", 1e-6, "inequality (1)"),
        ("linear", -1e-3, "inequality (2)"),
        ("pair_bounds", -1e-6, "inequality (3)"),
        ("mixture_weights", 1e-6, "not feasible"),
        ("lower", 1e-9, "claims the lower bound"),
        ("upper", -1e-9, "claims the upper bound"),
    ],
)
def test_a_false_claim_is_refused_by_an_inequality_even_with_its_own_digest(
    tiger, tmp_path, capsys, name, change, reason
):
    folder, proof = tiger
    (tmp_path / "model.json").write_bytes((folder / "model.json").read_bytes())
    about, arrays = dict(proof.about), {key: array.copy() for key, array in proof.arrays.items()}
    if name in arrays:
        arrays[name] = arrays[name] + change
    else:
        about[name] += change
    write(tmp_path, about, arrays)
    assert verdict(tmp_path) == 1
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("seed", [4, 6, 8])
def test_probabilities_that_leave_no_room_for_rounding(seed, tmp_path):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), size=(3, 2))
    P[1:, :, 0] = rng.choice([0, 1e-320, 5e-321], size=(2, 2))
    P /= P.sum(axis=2, keepdims=True)
    look = am.Measurement.noisy("look", 0.05, probabilities=rng.dirichlet(np.ones(2), size=3))
    R = rng.normal(size=(3, 2))
    saved(am.Model.from_arrays(P, R, measurements=[look], initial=[0, 0.5, 0.5]), tmp_path, relative_tolerance=1e-4)
    assert verdict(tmp_path) == 0


def test_another_model_is_refused(tiger, tmp_path, capsys):
    _, proof = tiger
    am.problems.tiger().replace(discount=0.9).save(tmp_path / "model.json")
    proof.save(tmp_path / "proof.npz")
    assert verdict(tmp_path) == 1
    assert "another model" in capsys.readouterr().err


def test_damaged_files_are_bad_input(tiger, tmp_path):
    folder, _ = tiger
    whole = (folder / "proof.npz").read_bytes()
    text = (folder / "model.json").read_text()
    (tmp_path / "model.json").write_text(text)
    for contents in (b"", b"no archive", whole[: len(whole) // 2], whole[:-30]):
        (tmp_path / "proof.npz").write_bytes(contents)
        assert verdict(tmp_path) == 2
    (tmp_path / "proof.npz").write_bytes(whole)
    for contents in (
        "", "{", "[" * 100_000, "{}", text.replace('"discount": 0.95', '"discount": NaN'), text.replace('"states"', '"stetes"'),
        json.dumps(json.loads(text) | {"states": 10**12}), json.dumps(json.loads(text) | {"transitions": [1]}),
    ):  # fmt: skip
        (tmp_path / "model.json").write_text(contents)
        assert verdict(tmp_path) == 2
    assert checker.main([]) == checker.main([str(tmp_path / "none.json"), "none.npz"]) == 2


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_another_compression_is_bad_input(tiger, tmp_path, capsys, compression):
    """A damaged member that was packed by LZMA ended the checker with a traceback."""
    folder, _ = tiger
    with (
        zipfile.ZipFile(folder / "proof.npz") as proof,
        zipfile.ZipFile(tmp_path / "proof.npz", "w", compression) as other,
    ):
        for name in proof.namelist():
            other.writestr(name, proof.read(name))
    whole = bytearray((tmp_path / "proof.npz").read_bytes())
    whole[100] ^= 255
    (tmp_path / "proof.npz").write_bytes(whole)
    (tmp_path / "model.json").write_bytes((folder / "model.json").read_bytes())
    assert verdict(tmp_path) == 2
    assert "compressed in another way" in capsys.readouterr().err


def test_a_model_in_another_format_is_bad_input_that_says_what_to_do(tiger, tmp_path, capsys):
    am.problems.tiger().save(tmp_path / "tiger.pomdp")
    assert checker.main([str(tmp_path / "tiger.pomdp"), str(tiger[0] / "proof.npz")]) == 2
    assert "am.Model.load(file).save('model.json')" in capsys.readouterr().err


def test_a_certificate_of_a_method_that_is_no_search_proves_what_the_method_earns():
    """The search ended at the gap of the method, and proved -20 for act-then-measure, which earns 19.37."""
    solution = am.solve(am.problems.tiger(), "atm")
    proof = am.certificate(solution)
    assert proof.upper - proof.lower < 0.02
    assert proof.lower > solution.lower - 0.02


def test_numbers_that_are_not_finite_are_refused(tiger, tmp_path):
    folder, proof = tiger
    (tmp_path / "model.json").write_bytes((folder / "model.json").read_bytes())
    for name, kind in checker.TYPES.items():
        for value in (math.nan, math.inf) if kind == "<f8" else (-5, 2**31 - 1):
            arrays = {key: array.copy() for key, array in proof.arrays.items()}
            arrays[name].flat[0] = value
            write(tmp_path, dict(proof.about), arrays)
            assert verdict(tmp_path) == 1, name


def test_what_is_not_covered_is_said(tmp_path, capsys):
    system = am.problems.k_out_of_n(2, 1)
    with pytest.raises(am.NotCoveredError, match=r"model\.replace\(\)"):
        am.certificate(am.solve(system, relative_tolerance=0.5))
    with pytest.raises(am.NotCoveredError, match="years"):
        am.certificate(am.solve(am.lifetime(am.problems.tiger(), periods=3)))
    lake = am.problems.frozen_lake(4, measuring_cost=0.05)
    tiger = am.certificate(am.solve(am.problems.tiger()))
    tiger.save(tmp_path / "proof.npz")
    text = json.loads((lake.save(tmp_path / "model.json"), (tmp_path / "model.json").read_text())[1])
    (tmp_path / "model.json").write_text(json.dumps(text | {"discount": 1.0}))
    assert verdict(tmp_path) == 4
    assert "not covered" in capsys.readouterr().err


def test_the_checker_needs_numpy_only(tiger, tmp_path):
    source = Path(checker.__file__).read_text()
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module.partition(".")[0])
    assert imported - set(sys.stdlib_module_names) == {"numpy"}
    (tmp_path / "alone.py").write_text(source)
    folder, _ = tiger
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "alone.py"), str(folder / "model.json"), str(folder / "proof.npz")],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "upper bound" in done.stdout


def test_help_and_bad_names(tiger, tmp_path, capsys):
    assert checker.main(["--help"]) == 0
    assert "Exit codes" in capsys.readouterr().out
    with pytest.raises(am.PlanError, match=r"\.npz"):
        tiger[1].save(tmp_path / "proof.txt")
    with pytest.raises(am.PlanError, match="Solution"):
        am.certificate(am.problems.tiger())
    assert np.isfinite(tiger[1].lower)


@pytest.mark.parametrize("sign", [b")", b"}", b"'"])
def test_a_damaged_header_of_an_array_is_bad_input(tmp_path, sign, capsys):
    """NumPy reads the header as Python, with errors of its tokenizer and parser."""
    saved(am.problems.tiger(), tmp_path, time_limit=1)
    with zipfile.ZipFile(tmp_path / "proof.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in members if not name.startswith("about"))
    members[name] = members[name].replace(sign, b" ", 1)
    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
        for member, contents in members.items():
            archive.writestr(member, contents)
    assert checker.main([str(tmp_path / "model.json"), str(tmp_path / "bad.npz")]) == checker.BAD_INPUT
    assert "it is not a sound certificate" in capsys.readouterr().err
