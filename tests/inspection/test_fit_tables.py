"""Records as they come: dates, missing values, Excel, Parquet, wide tables, several header rows, contradictions."""

import re

import numpy as np
import pandas as pd
import pytest

import actmeasure as am
from actmeasure.inspection.calendars import PeriodCalendar
from actmeasure.inspection.records import read_records

QUICK = {"bootstrap": 0, "goodness": 0}
SEEN = {"unit": [1, 1, 2, 2], "time": [0, 1, 0, 1], "state": ["1", "2", "1", "1"], "action": ["x"] * 4}


def days(texts, **settings):
    calendar = PeriodCalendar("day", **settings)
    return calendar.resolved(np.array([calendar.parse(text) for text in texts])).tolist(), calendar


@pytest.mark.parametrize(
    "text",
    ["2012-04-13", "13.4.2012", "13.04.2012", "04/13/2012", "4/13/2012", "2012/04/13", "13 Apr 2012", "Apr 13, 2012",
     "13-Apr-2012",
     "April 13, 2012", "2012-04-13T08:00:00"],
)  # fmt: skip
def test_dates_are_recognised(text):
    assert days([text])[0] == [734606]


def test_months_are_their_middle():
    expected = days(["2012-03-15"])[0]
    for text in ("Mar 2012", "March 2012", "2012 Mar", "2012-03", "03/2012"):
        found, calendar = days([text])
        assert found == expected
        assert any("day 15" in str(one) for one in calendar.diagnostics())


def test_dates_with_two_readings_are_read_as_others_tell_or_asked_about():
    found, calendar = days(["03/04/2012", "13/04/2012", "03/03/2012"])
    assert found == days(["2012-04-03", "2012-04-13", "2012-03-03"])[0]
    assert any("the day is taken to come first, as in 13/04/2012" in str(one) for one in calendar.diagnostics())
    assert days(["03/04/2012", "04/13/2012"])[0] == days(["2012-03-04", "2012-04-13"])[0]
    with pytest.raises(
        am.FitError, match=r"can be read as 2012-03-04 or as 2012-04-03; say which.*--date-format %m/%d/%Y"
    ):
        days(["03/04/2012"])
    with pytest.raises(am.FitError, match="others prove both"):
        days(["03/04/2012", "13/04/2012", "04/13/2012"])
    assert days(["03/04/2012"], date_format="%d/%m/%Y")[0] == days(["2012-04-03"])[0]
    with pytest.raises(am.FitError, match="no date of the form"):
        days(["2012-04-03"], date_format="%d/%m/%Y")
    for wrong in ("dmy", "%q", "%d.%m.", 7, "%"):
        with pytest.raises(am.FitError, match="date_format is"):
            PeriodCalendar("day", date_format=wrong)


def test_a_file_with_only_dates_of_two_readings_is_asked_about():
    visits = {"unit": [1, 1], "time": ["03/04/2012", "05/06/2013"], "state": ["a", "b"]}
    with pytest.raises(am.FitError, match="2 dates such as 03/04/2012 can be read as 2012-03-04 or as 2012-04-03"):
        am.fit(visits, time="continuous", default_action="x", bootstrap=0, goodness=0)


@pytest.mark.parametrize(
    "text",
    [
        "31.2.2012",
        "45/45/2012",
        "Foo 2012",
        "13.4.12",
        "2012-13",
        "00/00/2012",
        "1/2/3/4",
        "Apr",
        "1/2/20121",
        "1/2/0000",
    ],
)
def test_what_is_no_date_is_a_sentence(text):
    with pytest.raises(am.FitError, match=r"neither a number nor a date|is a date"):
        days([text])


def test_missing_values_are_not_states():
    for text in ("NA", "n/a", "-", "", "NaN", "#N/A"):
        read = read_records(SEEN | {"state": ["1", "2", "1", text]})
        assert read.state_names == ("1", "2")
        assert read.state.tolist() == [0, 1, 0, -1]
        assert any(f"Cells that say {text} count as empty" in str(note) for note in read.notes) == bool(text)
    kept = read_records(SEEN | {"state": ["1", "2", "1", "NA"]}, states=["1", "2", "NA"])
    assert kept.state_names == ("1", "2", "NA")


def test_alphabetical_order_is_said():
    found = am.fit(SEEN | {"state": ["good", "bad", "good", "good"]}, **QUICK)
    assert any("in the order in which they sort, bad < good" in str(note) for note in found.notes)
    assert not any(note.code == "states-sorted" for note in am.fit(SEEN, **QUICK).notes)
    assert not any(
        note.code == "states-sorted"
        for note in am.fit(SEEN | {"state": list("baba")}, states=["b", "a"], **QUICK).notes
    )


def test_parquet_files_are_read(tmp_path):
    frame = pd.DataFrame(SEEN | {"time": pd.to_datetime(["2012-04-13", "2013-04-13"] * 2)})
    frame.to_parquet(tmp_path / "records.parquet")
    found = am.fit(tmp_path / "records.parquet", period="year", **QUICK)
    assert found.n_records == 4
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(am.FitError, match="not a sound Parquet file"):
        am.fit(tmp_path / "broken.parquet", **QUICK)
    (tmp_path / "no.parquet").write_text("unit,time\n")
    with pytest.raises(am.FitError, match="is not a Parquet file"):
        am.fit(tmp_path / "no.parquet", **QUICK)


def test_excel_files_are_read(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["unit", "time", "state", "action"], ["a", pd.Timestamp("2012-04-13").to_pydatetime(), 1, "x"], [],
                ["a", pd.Timestamp("2014-04-13").to_pydatetime(), 2, "x"], ["b", None, 1, "x"]):  # fmt: skip
        sheet.append(row)
    book.create_sheet("notes").append(["nothing here"])
    path = tmp_path / "records.xlsx"
    book.save(path)
    with pytest.raises(am.FitError, match=r"records\.xlsx, line 5: the time is empty"):
        am.fit(path, period="year", **QUICK)
    found = am.fit(path, period="year", skip_broken=True, **QUICK)
    assert found.n_records == 2
    with pytest.raises(am.FitError, match="unknown sheet 'note'"):
        am.fit(path, sheet="note", **QUICK)
    with pytest.raises(am.FitError, match="no column 'unit'"):
        am.fit(path, sheet="notes", **QUICK)
    for damaged in (path.read_bytes()[:2000], b"PK\x03\x04", b"not a zip"):
        (tmp_path / "damaged.xlsx").write_bytes(damaged)
        with pytest.raises(am.FitError, match="not a sound Excel workbook"):
            am.fit(tmp_path / "damaged.xlsx", **QUICK)


def test_formulas_and_errors_of_spreadsheets_are_not_states(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "visits.xlsx"
    for cell, part in (
        ("=1+1", "line 3: the value of the formula '=1\\+1' is not stored"),
        ("#REF!", "an error of a spread"),
    ):
        book = openpyxl.Workbook()
        for row in (("unit", "time", "state"), (1, 0, "1"), (1, 2, cell), (1, 4, "2")):
            book.active.append(row)
        book.save(path)
        with pytest.raises(am.FitError, match=part):
            am.fit(path, default_action="x", bootstrap=0, goodness=0)
    found = am.fit(path, default_action="x", bootstrap=0, goodness=0, skip_broken=True)
    assert found.state_names == ("1", "2")
    assert found.notes[0].code == "lines-skipped"


def test_a_bomb_is_not_unpacked(tmp_path):
    pytest.importorskip("openpyxl")
    import zipfile

    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", b"0" * (1 << 27))
    with pytest.raises(am.FitError, match="more than an Excel file of records has"):
        am.fit(tmp_path / "bomb.xlsx", **QUICK)


def workbook(path, change):
    """Write a workbook of ten records with a changed text of its sheet."""
    import zipfile

    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (("unit", "time", "state"), *((unit, time, 1 + time) for unit in range(5) for time in range(2))):
        book.active.append(row)
    book.save(path.with_suffix(".plain"))
    with zipfile.ZipFile(path.with_suffix(".plain")) as plain, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in plain.namelist():
            out.writestr(name, change(plain.read(name)) if name.startswith("xl/worksheets/") else plain.read(name))
    return path


def test_a_sheet_is_read_to_its_end_whatever_range_it_declares(tmp_path):
    for ref in (b"A1", b"A1:C3", b"A1:XFD1048576"):
        path = workbook(tmp_path / "a.xlsx", lambda xml, ref=ref: xml.replace(b'ref="A1:C11"', b'ref="' + ref + b'"'))
        assert len(read_records(path, default_action="x").unit) == 10
    note = b'<c r="XFD4" t="inlineStr"><is><t>a note</t></is></c></row><row r="5"'
    path = workbook(tmp_path / "a.xlsx", lambda xml: xml.replace(b'</row><row r="5"', note))
    assert len(read_records(path, default_action="x").unit) == 10


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (b'<row r="12">' + b"<c/>" * 1_100_000 + b"</row>", "more than 1,048,576 cells in a row"),
        (b'<row r="99999999999"><c r="A99999999999"><v>1</v></c></row>', "a row with a number above 1,048,576"),
        (b'<row r="7"><c r="A7"><v>9</v></c></row>', "a row with the number 7 after row 11"),
        (b'<row r="-5"><c r="A12"><v>9</v></c></row>', "a row with the number -5 after row 11"),
    ],
)
def test_sheets_that_would_fill_the_memory_or_lose_rows_are_refused(tmp_path, more, part):
    path = workbook(tmp_path / "a.xlsx", lambda xml: xml.replace(b"</sheetData>", more + b"</sheetData>"))
    with pytest.raises(am.FitError, match=part):
        read_records(path, default_action="x")


def test_texts_that_are_not_in_a_workbook_are_refused(tmp_path):
    """A negative number of a shared text would be counted from the end, so that another text is read."""
    for number in (b"-1", b"\n -2"):
        path = workbook(
            tmp_path / "a.xlsx",
            lambda xml, number=number: re.sub(
                b'<c r="A1".*?</c>', b'<c r="A1" t="s"><v>' + number + b"</v></c>", xml, count=1
            ),
        )
        with pytest.raises(am.FitError, match=r"row 1 with the negative number '-[12]' of a shared text"):
            read_records(path, default_action="x")


def test_merged_cells_are_named_as_a_reason_for_empty_ones(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (("unit", "time", "state"), (1, 0, 1), (1, 1, 2), (2, 0, 1), (2, 1, 1)):
        book.active.append(row)
    for name, part in (("A2:A3", "line 3: the unit is empty"), ("B4:B5", "line 5: the time is empty")):
        book.active.merge_cells(name)
        book.save(tmp_path / "merged.xlsx")
        book.active.unmerge_cells(name)
        book.active["A3"] = 1
        with pytest.raises(am.FitError, match=part + ".*unmerge them"):
            read_records(tmp_path / "merged.xlsx", default_action="x")


def parquet_file(path, **columns):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"unit": list("aabb"), "time": [0, 1, 0, 1], "state": list("1212")} | columns), path)
    return path


def test_columns_of_parquet_files_that_are_no_records_are_sentences(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    for columns, part in (
        ({"state": [[1], [2], [1], [2]]}, "the column 'state' has several values in a row"),
        ({"unit": [{"a": 1}] * 4}, "the column 'unit' has several values in a row"),
        ({"time": pa.array([0, 2**31 - 1, 0, 1], pa.date32())}, "a date outside of the years 1 to 9999"),
        ({"time": pa.array([0, 2**62, 0, 1], pa.timestamp("us"))}, "a date outside of the years 1 to 9999"),
        ({"state": pa.nulls(4)}, "no unit was inspected twice"),
    ):
        with pytest.raises(am.FitError, match=part):
            am.fit(parquet_file(path, **columns), time="continuous", default_action="x", **QUICK)
    parquet_file(
        path, other=[[1]] * 4, state=[b"1", None, b"1", b"2"]
    )  # lists in a column that is not read, bytes as texts
    found = read_records(path, default_action="x")
    assert found.state_names == ("1", "2")
    assert found.state.tolist() == [0, -1, 0, 1]


def test_small_parquet_files_do_not_fill_the_memory(tmp_path, monkeypatch):
    import tracemalloc

    pa = pytest.importorskip("pyarrow")
    path, rows = tmp_path / "a.parquet", 20_000
    long_text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["y" * 100_000]))
    parquet_file(path, unit=["a"] * rows, time=list(range(rows)), state=long_text)
    tracemalloc.start()
    assert len(read_records(path, default_action="x").unit) == rows  # 2 GB, were every text of its own
    assert tracemalloc.get_traced_memory()[1] < 1 << 26
    tracemalloc.stop()
    parquet_file(path, state=["1", "2", "1", "y" * (1 << 21)])
    with pytest.raises(am.FitError, match="'state' has a text of 2,097,152 bytes, more than"):
        read_records(path, default_action="x")
    parquet_file(path, unit=["a"] * rows, time=list(range(rows)), state=long_text)
    monkeypatch.setattr("actmeasure.inspection.table_files.MOST_PARQUET_ROWS", rows - 1)
    with pytest.raises(am.FitError, match="declares 20,000 rows, more than 19,999"):
        read_records(path, default_action="x")
    monkeypatch.undo()
    monkeypatch.setattr("actmeasure.inspection.table_files.MOST_UNPACKED", 1000)
    with pytest.raises(am.FitError, match=r"unpacks to [\d,]+ bytes, more than records have"):
        read_records(path, default_action="x")


def test_wide_tables_have_a_column_for_each_time(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("bridge,river,2010,2012,2015\nA,Elbe,1,1,2\nB,Oder,2,NA,\nC,Oder,1,,3\n")
    settings = QUICK | {"wide": True, "columns": {"unit": "bridge"}, "default_action": "nothing", "period": "year"}
    found = am.fit(path, **settings)
    assert found.n_records == found.n_inspections == 6
    assert found.exposure.sum() == pytest.approx(10)
    assert any("were not read: river" in str(note) for note in found.notes)
    with pytest.raises(am.FitError, match="a wide table has no actions"):
        am.fit(path, **(settings | {"default_action": None}))
    path.write_text("bridge,river\nA,Elbe\n")
    with pytest.raises(am.FitError, match="no column has a time as its name"):
        am.fit(path, **settings)


def test_a_column_of_groups_that_is_not_there_is_named(tmp_path):
    seen = {"unit": [1, 1], "time": [0, 1], "state": ["a", "b"]}
    with pytest.raises(am.FitError, match=r"the table: there is no column 'kind' .* name the column of the groups"):
        am.fit_groups(seen, "kind", default_action="x")


def test_several_header_rows_are_joined(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("what,,seen,\nunit,time,state,action\n1,0,a,x\n1,1,b,x\n")
    columns = {"unit": "what unit", "time": "what time", "state": "seen state", "action": "seen action"}
    found = am.fit(path, header=2, columns=columns, **QUICK)
    assert found.n_records == 2
    with pytest.raises(am.FitError, match="header is 0"):
        am.fit(path, header=0, **QUICK)


def test_contradictions_are_left_out_on_request_with_a_count():
    seen = {"unit": [1] * 5 + [2] * 3, "time": [0, 1, 2, 3, 3, 0, 1, 2], "state": list("11212112"), "action": ["x"] * 8}
    with pytest.raises(am.FitError, match="--skip-contradictions"):
        am.fit(seen, structure="deteriorate", **QUICK)
    found = am.fit(seen, structure="deteriorate", skip_contradictions=True, **QUICK)
    said = " ".join(map(str, found.notes))
    assert "what was recorded at 1 time at which" in said
    back = {"unit": [1] * 4 + [2] * 3, "time": [0, 1, 2, 3, 0, 1, 2], "state": list("1212122"), "action": ["x"] * 7}
    found = am.fit(back, structure="deteriorate", skip_contradictions=True, **QUICK)
    assert any("1 gap of 5 that cannot be" in str(note) and "line 3" in str(note) for note in found.notes)


def test_what_is_left_out_of_a_unit_leaves_the_rest_of_it_as_it_is():
    """Groups, ages and the number of units are those of the records, whatever gap is left out."""
    rows = [
        (unit, time, str(min(time // 3, 2)), "old" if unit < 5 else "new") for unit in range(10) for time in range(9)
    ]
    rows[4] = (0, 4, "2", "old")  # then back to 1
    rows[-3] = (9, 6, "0", "new")  # after 1
    seen = dict(zip(("unit", "time", "state", "kind"), zip(*rows, strict=True), strict=True))
    settings = QUICK | {"structure": "deteriorate", "default_action": "x", "skip_contradictions": True}
    by_group = am.fit_groups(seen, "kind", **settings)
    assert {name: one.n_units for name, one in by_group.fits.items()} == {"old": 5, "new": 5}
    for kind, line in (("old", 6), ("new", 88)):
        assert kind in by_group.fits
        assert any(str(line) in str(note) for note in by_group.shared.notes)
    aged = am.fit({name: seen[name] for name in ("unit", "time", "state")}, age_breaks=[3], **settings)
    assert aged.n_units == 10
    # All units leave 0 at age 3 at the latest: only what was recorded by mistake is left there, and was left out.
    assert aged.exposure[aged.action_names.index("x, age 3 or more"), 0] < 3


def test_a_reversed_order_is_asked_about():
    seen = {"unit": [1, 1, 1, 2, 2], "time": [0, 1, 2, 0, 1], "state": list("98797"), "action": ["x"] * 5}
    with pytest.raises(am.FitError, match=r"did you mean states=\['9', '8', '7'\] \(--states 9,8,7\)\?"):
        am.fit(seen, structure="no-healing", **QUICK)
    words = seen | {"state": ["good", "good", "fair", "good", "poor"]}
    with pytest.raises(am.FitError, match=r"fair < good < poor .* that is how they sort; give their order, .*--states"):
        am.fit(words, structure="no-healing", **QUICK)
    both = seen | {"state": list("98998")}
    with pytest.raises(am.FitError) as error:
        am.fit(both, structure="no-healing", **QUICK)
    assert "did you mean" not in str(error.value)


def test_structures_by_name_and_file(tmp_path):
    from actmeasure.inspection.structures import allowed_transitions, read_mask

    names = ["1", "2", "3"]
    masks = {kind: allowed_transitions(kind, ["x"], names)[0][0].astype(int).tolist() for kind in ("by-steps", "absorbing",
             "by-steps+absorbing", "no-healing")}  # fmt: skip
    assert masks["by-steps"] == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    assert masks["absorbing"] == [[1, 1, 1], [1, 1, 1], [0, 0, 1]]
    assert masks["by-steps+absorbing"] == [[1, 1, 0], [1, 1, 1], [0, 0, 1]]
    assert masks["no-healing"] == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    path = tmp_path / "mask.csv"
    path.write_text(",3,1,2\n3,1,0,0\n1,0,1,1\n2,1,0,1\n")
    assert allowed_transitions(read_mask(str(path)), ["x"], names)[0][0].astype(int).tolist() == [
        [1, 1, 0],
        [0, 1, 1],
        [0, 0, 1],
    ]
    with pytest.raises(am.FitError, match="has no row of '4'"):
        allowed_transitions(read_mask(str(path)), ["x"], ["1", "2", "3", "4"])
    for text, part in ((",1\n1,2\n", "expected 0"), ("", "is no structure"), (",1,2\n1,1,1\n", "is no structure")):
        path.write_text(text)
        with pytest.raises(am.FitError, match=part):
            read_mask(str(path))


def test_a_price_of_an_unknown_action_names_a_remedy_that_exists():
    found = am.fit(SEEN, **QUICK)
    prices = am.Economics("EUR", "year", 0.9, 1, actions={"x": 0, "replace": 100})
    with pytest.raises(am.FitError, match=r"unknown action 'replace'.*actmeasure fit --assume replace:1"):
        found.model(prices)
