"""`actmeasure fit`, as a user types it."""

import json
import re
import sys

import numpy as np
import pytest
from command_line import actmeasure
from simulated import CHAINS, records, visits, write_csv
from terminal import Terminal

import actmeasure as am
from actmeasure.cli import app

PRICES = (
    'currency = "EUR"\nperiod = "year"\ndiscount = 0.95\ninspection = 50\n[actions]\nnothing = 0\nrepair = "900 EUR"\n'
)


def command(*arguments):
    return [sys.executable, "-m", "actmeasure", "fit", *map(str, arguments)]


def run(*arguments, code=0):
    return actmeasure("fit", *arguments, code=code)


def call(*arguments):
    """The command in this process, for what needs no process of its own."""
    app(["fit", *map(str, arguments)], standalone_mode=False)


@pytest.fixture
def csv_file(tmp_path):
    return write_csv(tmp_path / "records.csv", records(CHAINS, 40, 15, np.random.default_rng(1), repairs=0.3))


def test_fit_shows_saves_and_says_what_is_next(tmp_path, csv_file):
    (tmp_path / "prices.toml").write_text(PRICES)
    out, model = tmp_path / "fit.npz", tmp_path / "model.json"
    quick = ("--bootstrap", 5, "--goodness", 5, "--seed", 3, "--level", 0.8)
    order = (
        "--structure",
        "nothing=deteriorate",
        "--assume",
        "repair:0",
        "--assume",
        "nothing:stay",
        "--states",
        "0,1,2,3,4",
    )
    done = run(csv_file, *quick, *order, "--out", out, "--economics", tmp_path / "prices.toml", "--model", model)
    settings = {
        "structure": {"nothing": "deteriorate"},
        "assume": {"repair": "0", "nothing": "stay"},
        "states": list("01234"),
    }
    expected = am.fit(csv_file, bootstrap=5, goodness=5, seed=3, level=0.8, **settings)
    assert done.stdout == expected.summary() + "\n"
    assert f"actmeasure plan {out} --economics {tmp_path / 'prices.toml'}" in done.stderr
    np.testing.assert_array_equal(am.Fit.load(out).bootstrap, expected.bootstrap)
    assert am.Model.load(model) == expected.model(tmp_path / "prices.toml")


def test_json_is_the_fit(csv_file, capsys):
    call(csv_file, "--bootstrap", 2, "--goodness", 0, "--json")
    found = json.loads(capsys.readouterr().out)
    expected = am.fit(csv_file, bootstrap=2, goodness=0)
    np.testing.assert_array_equal(np.array(found["high"], dtype=float), expected.high)
    assert found["actions"] == ["nothing", "repair"]
    assert found["replicates"] == 2
    assert found["goodness"] is None


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (
            ("--structure", "deteriorat"),
            "unknown structure of action 'nothing' 'deteriorat'; did you mean 'deteriorate'",
        ),
        (("--structure", "any", "--structure", "improve"), "as any and as improve; name the action"),
        (("--structure", "=any"), "--structure is '=any'"),
        (("--assume", "repair"), "--assume is 'repair', expected something like replace:1"),
        (("--column", "unit"), "--column is 'unit'"),
        (("--period", "moon"), "unknown period 'moon'; did you mean 'month'"),
        (("--model", "model.json"), "--model needs prices"),
        (("--model", "model.txt", "--economics", "prices.toml"), "cannot be saved as 'model.txt'"),
        (("--out", "fit.csv"), "ends in .npz"),
        (("--out", "nowhere/fit.npz"), "there is no folder 'nowhere'"),
        (("--economics", "nowhere.toml"), "no such file"),
        (("--drop", "pray"), "unknown action to drop 'pray'"),
        (("--bootstrap", "-1"), "bootstrap is -1"),
    ],
)
def test_wrong_options_are_sentences(csv_file, arguments, part):
    with pytest.raises(am.ActMeasureError) as error:
        call(csv_file, *arguments)
    assert part in str(error.value)


def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("unit,time,state,action\n1,0,a,x\n1,zero,b,x\n")
    done = run(path, code=2)
    assert done.stdout == ""
    assert done.stderr.startswith(f"actmeasure: {path}, line 3: the time 'zero'")
    assert len(done.stderr.splitlines()) == 1


def test_structures_for_all_but_one_action(csv_file, capsys):
    call(csv_file, "--structure", "any", "--structure", "nothing=deteriorate", "--bootstrap", 0, "--goodness", 0)
    shown = capsys.readouterr().out
    assert "nothing (transitions: deteriorate;" in shown
    assert "repair (transitions: any;" in shown


@pytest.mark.slow
def test_ctrl_c_shows_and_saves_what_is_done_and_progress_is_seen(tmp_path, csv_file):
    out = tmp_path / "fit.npz"
    terminal = Terminal(command(csv_file, "--bootstrap", 1_000_000, "--goodness", 0, "--out", out))
    terminal.wait_until(lambda shown: re.search(r"intervals.*?[1-9][0-9]+/1000000", shown), "ten replicates")
    terminal.press_ctrl_c()
    stdout, seen = terminal.end()
    assert terminal.process.returncode == 130
    assert "Ctrl-C" in seen
    kept = am.Fit.load(out)
    assert 2 <= len(kept.bootstrap) < 1_000_000
    assert "of 1000000 replicates: stopped early" in stdout


def test_continuous_time_errors_and_groups_from_the_command_line(tmp_path, capsys):
    errors = np.array([[0.9, 0.1, 0, 0], [0.1, 0.9, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    columns = visits(60, np.random.default_rng(1), True, errors)
    columns["kind"] = ["ab"[unit % 2] for unit in columns["unit"]]
    path = write_csv(tmp_path / "visits.csv", columns)
    mask = tmp_path / "mask.csv"
    mask.write_text(",1,2,3,4\n1,0,1,0,1\n2,1,0,1,1\n3,0,1,0,1\n4,0,0,0,0\n")
    options = ("--time", "continuous", "--structure", mask, "--noticed", 4, "--default-action", "wait", "--error", "1:2",
               "--error", "2:1=0.1", "--start", "drawn", "--bootstrap", 0, "--goodness", 0)  # fmt: skip
    call(path, *options, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["converged"] is True
    assert np.shape(found["intensities"]) == (1, 4, 4)
    assert found["errors"][1][0] == pytest.approx(0.1)
    assert found["start"] == "drawn"
    call(path, *options, "--by", "kind", "--out", tmp_path / "fit.npz")
    shown = capsys.readouterr()
    assert shown.out.startswith("Groups by kind ")
    assert am.Fit.load(tmp_path / "fit-b.npz").errors is not None
    assert "actmeasure plan" in shown.err
    call(path, *options, "--age-breaks", "1,3")
    assert "wait, age 1 to 3" in capsys.readouterr().out
    for wrong, part in ((("--error", "1-2"), "--error is '1-2'"), (("--age-breaks", "x"), "--age-breaks is 'x'"),
                        (("--by", "kind", "--model", "m.json", "--economics", "p.toml"), "no such file"),
                        (("--time", "contiguous"), "did you mean 'continuous'")):  # fmt: skip
        with pytest.raises(am.ActMeasureError) as error:
            call(path, *wrong)
        assert part in str(error.value)


def test_a_fit_that_is_not_settled_is_exit_code_3(csv_file, monkeypatch, capsys):
    from dataclasses import replace

    from actmeasure.inspection import fitting

    monkeypatch.setattr(fitting, "refine", lambda likelihood, data, estimate, *rest: replace(estimate, converged=False))
    code = app(["fit", str(csv_file), "--bootstrap", "0", "--goodness", "0"], standalone_mode=False)
    assert code == 3
    assert capsys.readouterr().out.startswith("NOT SETTLED")
    lines = csv_file.read_text().splitlines()
    kinds = ["kind", *("clay" if int(line.split(",")[0].lstrip("u")) % 2 else "iron" for line in lines[1:])]
    csv_file.write_text("".join(f"{line},{kind}\n" for line, kind in zip(lines, kinds, strict=True)))
    code = app(["fit", str(csv_file), "--by", "kind", "--bootstrap", "0", "--goodness", "0"], standalone_mode=False)
    assert code == 3
    assert capsys.readouterr().out.startswith("NOT SETTLED")


def test_dates_wide_tables_and_headers_from_the_command_line(tmp_path, capsys):
    path = tmp_path / "wide.csv"
    path.write_text("rating,of,\nbridge,2010,2012\nA,9,8\nB,9,n/a\n")
    options = ("--wide", "--header", 1, "--column", "unit=bridge", "--default-action", "nothing", "--period", "year")
    path.write_text("bridge,2010,2012\nA,9,8\nB,9,n/a\n")
    call(path, *options, "--bootstrap", 0, "--goodness", 0, "--states", "9,8", "--structure", "no-healing")
    assert "2 states: 9 < 8" in capsys.readouterr().out
    with pytest.raises(am.FitError, match="did you mean"):
        call(path, *options, "--structure", "no-healing")
