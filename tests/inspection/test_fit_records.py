"""Reading records: what is taken, and what is said about what is not."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import actmeasure as am
from actmeasure.inspection import table_files
from actmeasure.inspection.calendars import PeriodCalendar
from actmeasure.inspection.records import natural, read_records

HEADER = "unit,time,state,action\n"
GOOD = HEADER + "1,0,a,x\n1,1,b,x\n1,2,b,x\n"


def file(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "records.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def refusal(tmp_path, text, encoding="utf-8", **settings):
    with pytest.raises(am.FitError) as error:
        am.fit(file(tmp_path, text, encoding), bootstrap=0, goodness=0, **settings)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["is empty", "unit,time,state,action"]),
        ("\n\n", ["is empty"]),
        (HEADER, ["has no records"]),
        ("unit,tme,state,action\n1,0,a,x\n", ["line 1", "no column 'time'", "did you mean 'tme'", "--column time="]),
        ("unit,time,state\n1,0,a\n", ["no column 'action'", "--default-action"]),
        ("unit,time,time,state,action\n", ["'time' is there 2 times"]),
        ("unit;time;state;action\n1;0;a;x\n", ["separated by ';'", "--delimiter ';'"]),
        (
            GOOD + "2,-1,a,x\n",
            ["line 5", "'-1' is negative", "3 other records of 1 unit could be read", "--skip-broken"],
        ),
        (GOOD + "2,1.5,a,x\n", ["line 5", "not a whole number", "--period 0.5"]),
        (GOOD + "2,soon,a,x\n", ["line 5", "neither a number nor a date"]),
        (GOOD + "2,nan,a,x\n", ["line 5", "not a usable number"]),
        (GOOD + "2,2024-05-31,a,x\n", ["line 5", "is a date", "--period month"]),
        (GOOD + "2,,a,x\n", ["line 5", "the time is empty"]),
        (GOOD + ",3,a,x\n", ["line 5", "the unit is empty"]),
        (
            GOOD + "2,3\n2,4,a,x\n2,5,a,x,more\n",
            ["line 5", "2 fields, expected 4", "2 lines are broken (5, 7)", "4 other records"],
        ),
        (GOOD + '2,3,"a,x\n2,4,a,x\n', ["line 5", "quote that is not closed", "3 records were read before"]),
        (GOOD + "1,2,c,x\n", ["line 5", "two states at time 2", "'b' (line 4) and 'c'"]),
        (GOOD + "1,2,,y\n", ["line 5", "two actions at time 2", "'x' (line 4) and 'y'"]),
        (HEADER + "1,0,a,x\n2,0,b,x\n", ["no unit was inspected twice", "2 units with 2 inspections"]),
        (
            HEADER + "1,0,a,x\n1,3,b,y\n1,4,b,y\n",
            ["line 2", "no action for time 1", "2 such periods", "--default-action"],
        ),
        (HEADER + "1,0,a,\n1,1,b,\n", ["no record names an action", "--default-action"]),
        (HEADER + "".join(f"1,{t},{t / 7},x\n" for t in range(1100)), ["line 252", "more than 250 different"]),
        (b"PK\x03\x04....", ["Excel", "save it as CSV"]),
        (GOOD.encode("utf-16"), ["UTF-16", "save it as UTF-8"]),
        (HEADER + "1,0,a" * 300_000, ["line 2 is longer than"]),
    ],
)
def test_bad_files_are_sentences_with_the_line(tmp_path, text, parts):
    message = refusal(tmp_path, text)
    assert str(tmp_path / "records.csv") in message or "no unit" in message or "no record names" in message
    for part in parts:
        assert part in message


def test_bytes_that_are_no_text_name_the_line_and_the_encoding(tmp_path):
    text = HEADER + "1,0,gut,x\n1,1,mäßig,x\n1,2,mäßig,x\n"
    message = refusal(tmp_path, text, "cp1252")
    assert "line 3" in message
    assert "--encoding cp1252" in message
    assert read_records(file(tmp_path, text, "cp1252"), encoding="cp1252").state_names == ("gut", "mäßig")
    with pytest.raises(am.FitError, match="unknown encoding 'latin-99'"):
        read_records(file(tmp_path, text), encoding="latin-99")


def test_lines_are_right_after_cells_with_line_breaks(tmp_path):
    text = 'unit,time,state,action,remark\n1,0,a,x,"two\nlines"\n\n1,1,b,x,"and\nthree\nmore"\n1,oops,b,x,\n'
    assert "line 8: the time 'oops'" in refusal(tmp_path, text)


def test_broken_lines_are_left_out_only_when_asked_for(tmp_path):
    found = am.fit(file(tmp_path, GOOD + "2,3\n2,-4,a,x\n"), bootstrap=0, goodness=0, skip_broken=True)
    assert found.n_records == 3
    assert any("2 broken lines (5, 6)" in str(note) and "2 fields" in str(note) for note in found.notes)
    assert "no other line could be read" in refusal(tmp_path, HEADER + "1,x\n", skip_broken=True)


def test_what_excel_writes_is_read(tmp_path):
    expected = read_records(file(tmp_path, GOOD))
    for text in ("\ufeff" + GOOD, GOOD.replace("\n", "\r\n"), GOOD.replace("\n", "\r"), GOOD.replace(",", " , ")):
        read = read_records(file(tmp_path, text))
        np.testing.assert_array_equal(read.state, expected.state)
        assert read.state_names == ("a", "b")


def test_a_table_is_read_like_a_file(tmp_path):
    frame = pd.DataFrame({"unit": [1, 1, 2], "time": [0, 1, 0], "state": [3, np.nan, 10], "action": ["x", None, "y"]})
    read = read_records(frame)
    assert read.state_names == ("3", "10")
    assert read.state.tolist() == [0, -1, 1]
    assert read.action.tolist() == [0, -1, 1]
    frame["time"] = pd.to_datetime(["2020-01-31", "2020-03-01", "2019-12-31"])
    assert np.diff(read_records(frame, period="month").time[:2]).tolist() == [2]
    with pytest.raises(am.FitError, match="different lengths"):
        read_records({"unit": [1], "time": [0, 1], "state": ["a"], "action": ["x"]})
    with pytest.raises(am.FitError, match="list, expected the path"):
        read_records([1, 2])
    with pytest.raises(am.FitError, match="row 2: the time is empty"):
        read_records({"unit": [1, 1], "time": [0, None], "state": ["a", "b"], "action": ["x", "x"]})


def test_records_in_any_order_and_told_twice_are_the_same(tmp_path):
    rows = ["1,0,a,x", "1,2,b,y", "1,5,,x", "2,3,a,y", "2,1,b,", "1,7,a,x"]
    first = read_records(file(tmp_path, HEADER + "\n".join(rows)))
    again = read_records(file(tmp_path, HEADER + "\n".join([*rows[::-1], "1,2,,y", "2,3,a,", "1,0,a,x"])))
    for name in ("time", "state", "action"):
        for unit in ("1", "2"):
            one, other = (getattr(r, name)[r.unit == r.unit_names.index(unit)] for r in (first, again))
            np.testing.assert_array_equal(one, other)
    assert any("record of the same unit and time, with which they agree: 3." in str(note) for note in again.notes)


def test_states_seen_once_or_never_are_reported_with_the_line(tmp_path):
    read = read_records(file(tmp_path, GOOD + "1,3,B,x\n"), states=["a", "b", "B", "broken"])
    assert any("'B' was seen only once" in str(one) and "line 5" in str(one) for one in read.warnings)
    assert any("'broken' was never seen" in str(one) for one in read.warnings)
    assert "unknown state 'b'; did you mean 'B'" in refusal(tmp_path, GOOD, states=["a", "B"])
    assert "unknown action 'x'" in refusal(tmp_path, GOOD, actions=["y"])


def test_other_columns_delimiters_and_default_actions(tmp_path):
    text = "pipe\tyear\tgrade\n7\t3\tgood\n7\t9\tbad\n"
    found = am.fit(
        file(tmp_path, text), columns={"unit": "pipe", "time": "year", "state": "grade"}, delimiter="\t",
        default_action="wait", states=["good", "bad"], bootstrap=0, goodness=0,
    )  # fmt: skip
    assert found.action_names == ("wait",)
    assert found.exposure.sum() == pytest.approx(6)
    assert any("6 periods without a recorded action count as 'wait'" in str(note) for note in found.notes)
    assert "unknown column to rename 'units'" in refusal(tmp_path, GOOD, columns={"units": "pipe"})
    assert "delimiter is" in refusal(tmp_path, GOOD, delimiter=";;")


def test_a_large_file_is_never_in_memory_as_a_whole(tmp_path):
    """Many lines, the last but one of them broken: what is kept of a line are a few numbers."""
    import tracemalloc

    path = tmp_path / "large.csv"
    block = "".join(f"pipe-{unit:04d},{time},{1 + time // 5},wait\n" for unit in range(200) for time in range(20))
    with path.open("w") as out:
        out.write(HEADER + block * 8)
        out.write("pipe-0001,7\npipe-0001,8,1,wait\n")
    tracemalloc.start()
    with pytest.raises(am.FitError, match="line 32,002: it has 2 fields, expected 4"):
        read_records(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * 32_000  # bytes; rows of text would take ten times as much


@given(st.integers(0, 3000), st.sampled_from(["day", "week", "month", "quarter", "year"]))
def test_dates_fall_into_periods_in_order(days, period):
    day = dt.date(2019, 11, 25) + dt.timedelta(days)
    later = day + dt.timedelta(1)
    calendar = PeriodCalendar(period)
    step = calendar.parse(later.isoformat()) - calendar.parse(day.isoformat())
    new = {
        "day": True, "week": later.weekday() == 0, "month": later.day == 1,
        "quarter": later.day == 1 and later.month % 3 == 1, "year": later.day == 1 and later.month == 1,
    }[period]  # fmt: skip
    assert step == int(new)


def test_times_can_be_divided_into_periods():
    calendar = PeriodCalendar(0.1)
    assert [calendar.parse(text) for text in ("0", "0.3", "0.31", "7", "1e2")] == [0, 3, 3, 70, 1000]
    assert "divided by 0.1" in str(calendar.diagnostics()[0])
    assert PeriodCalendar("year").parse("2020") == 2020
    mixed = PeriodCalendar("year")
    mixed.parse("3")
    with pytest.raises(am.FitError, match="a date where those before are numbers"):
        mixed.parse("2020-01-01")
    for wrong in (0, -1, float("nan"), True, "fortnight"):
        with pytest.raises(am.FitError, match="period"):
            PeriodCalendar(wrong)


def test_names_sort_as_people_sort_them():
    names = ["10", "9", "grade 10", "grade 9", "2.5", "b", "a"]
    assert sorted(names, key=natural) == ["2.5", "9", "10", "a", "b", "grade 9", "grade 10"]


def test_progress_of_reading_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "LINES_BETWEEN_CALLS", 2)
    news = []
    path = file(tmp_path, GOOD)
    read_records(path, progress=lambda *now: news.append(now))
    assert news
    assert all(doing == "reading" and 0 < done <= total == path.stat().st_size for doing, done, total in news)


def test_a_default_action_with_a_slip_is_an_error_and_a_new_one_is_told():
    seen = {"unit": [1, 1, 1], "time": [0, 1, 3], "state": ["a", "b", "b"], "action": ["wait", "repair", "wait"]}
    with pytest.raises(am.FitError, match="unknown default action 'wiat'; did you mean 'wait'"):
        am.fit(seen, default_action="wiat", bootstrap=0, goodness=0)
    found = am.fit(seen, default_action="nothing", bootstrap=0, goodness=0)
    assert "No record names the default action 'nothing'; the records name wait, repair." in map(str, found.notes)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None])
def test_seeds_are_whole_numbers(seed):
    records = {"unit": [1, 1], "time": [0, 1], "state": ["a", "b"]}
    with pytest.raises(am.FitError, match=r"seed is .*, expected a whole number from 0 up"):
        am.fit(records, default_action="wait", seed=seed)
