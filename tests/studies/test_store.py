"""Folders of results: complete files or none, and whatever is not what its name says is noticed."""

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from study_tools import InlineEngine, place_of, small_study, stored, tables

import actmeasure as am
from actmeasure.studies import AgentSpec, Part, ProblemSpec, Study, Trial, read_results, run_study, study_record
from actmeasure.studies.store import ABOUT, DamagedError, open_store

LAKE = ProblemSpec("lake", "frozen-lake", {"size": 4})
TRIAL, OTHER = (Trial.train(LAKE, AgentSpec("a", "atmq"), 10, seed) for seed in (0, 1))
TABLE = pa.table({"episode": [0, 1, 2], "reward": [0.1, math.nan, -math.inf], "stopped": ["closed", "beliefs", "tüv"]})
CODE = "0123456789abcdef"
#: A study of one trial, for what only needs any.
TINY = Study("tiny", "Tiny", [Part("a", "A", [LAKE], ["random"], episodes=5, seeds=1)])


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "results", "mine") as opened:
        yield opened


def test_what_is_written_is_read(store):
    assert store.read(TRIAL, CODE) is None
    store.write(TRIAL, TABLE, 1.5, CODE)
    found = store.read(TRIAL, CODE)
    assert found.table.schema == TABLE.schema
    assert str(found.table.to_pylist()) == str(TABLE.to_pylist())  # as text, for nan is not nan
    assert (found.seconds, found.version, found.code) == (1.5, am.__version__, CODE)
    assert store.read(OTHER, CODE) is None
    assert list((store.directory / "trials").iterdir()) == [store.path(TRIAL, CODE)]


def rewritten(contents, **changes):
    """The same Parquet file with other metadata of ours, or without if it is None."""
    table = pq.read_table(pa.BufferReader(contents))
    about = json.loads(table.schema.metadata[ABOUT]) | changes
    sink = pa.BufferOutputStream()
    metadata = {k: v for k, v in about.items() if v is not None}
    pq.write_table(table.replace_schema_metadata({ABOUT: json.dumps(metadata).encode()} if about else None), sink)
    return sink.getvalue().to_pybytes()


def foreign():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda contents: b"", "cannot be read"),
        (lambda contents: contents[:-1], "cannot be read"),
        (lambda contents: contents[: len(contents) // 2], "cannot be read"),
        (lambda contents: b"episode,reward\n1,2\n", "cannot be read"),
        (lambda contents: foreign(), "cannot be read"),
        (lambda contents: rewritten(contents, sha256="0" * 64), "checksum"),
        (lambda contents: rewritten(contents, sha256=None), "cannot be read"),
        (lambda contents: rewritten(contents, specification=OTHER.specification), "another trial"),
        (lambda contents: rewritten(contents, specification=3), "another trial"),
        (lambda contents: rewritten(contents, seconds="long"), "cannot be read"),
    ],
)
def test_damage_is_noticed(store, damage, why):
    store.write(TRIAL, TABLE, 1.5, CODE)
    place = store.path(TRIAL, CODE)
    place.write_bytes(damage(place.read_bytes()))
    with pytest.raises(DamagedError, match=why):
        store.read(TRIAL, CODE)


def test_a_folder_in_the_place_of_a_file_is_noticed(store):
    store.path(TRIAL, CODE).mkdir()
    with pytest.raises(DamagedError, match="folder"):
        store.read(TRIAL, CODE)


def test_no_flipped_bit_changes_what_is_read(store):
    store.write(TRIAL, TABLE, 1.5, CODE)
    place = store.path(TRIAL, CODE)
    contents = place.read_bytes()
    noticed = 0
    for position in range(0, len(contents), 7):
        place.write_bytes(contents[:position] + bytes([contents[position] ^ 0x10]) + contents[position + 1 :])
        try:
            found = store.read(TRIAL, CODE)
        except DamagedError:
            noticed += 1
        else:
            assert str(found.table.to_pylist()) == str(TABLE.to_pylist())
    assert noticed > len(contents) / 7 / 3


def test_damaged_files_are_set_aside_and_done_again(tmp_path):
    study = small_study()
    run_study(study, tmp_path / "one", InlineEngine())
    before = tables(tmp_path / "one")
    broken = study.trials()[3]
    place = place_of(tmp_path / "one", broken)
    place.write_bytes(place.read_bytes()[:-10])
    half = read_results(tmp_path / "one")
    assert [trial.hash for trial in half.missing] == [broken.hash]
    assert len(half.runs) + len(half.plans) < len(study.parts[0].trials()) + len(study.parts[1].trials())
    for number in (1, 2):
        engine = InlineEngine()
        summary = run_study(study, tmp_path / "one", engine)
        assert [trial.hash for trial in engine.ran] == [broken.hash]
        assert (tmp_path / "one" / "damaged" / f"{place.stem}-{number}.parquet").exists()
        assert "damaged" in summary.notes[0]
        assert tables(tmp_path / "one") == before
        place.write_bytes(b"")


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / ".actmeasure-0123456789abcdef.tmp").write_bytes(b"half")
    (tmp_path / "trials" / "mine.txt").write_text("stays")
    run_study(TINY, tmp_path, InlineEngine())
    assert {path.suffix for path in (tmp_path / "trials").iterdir()} == {".txt", ".parquet"}


def test_a_study_of_another_name_is_refused(tmp_path):
    run_study(TINY, tmp_path, InlineEngine())
    before = (tmp_path / "study.json").read_bytes()
    with pytest.raises(am.StudyError, match=r"holds the study 'tiny', not 'small'; choose another folder"):
        run_study(small_study(), tmp_path, InlineEngine())
    assert (tmp_path / "study.json").read_bytes() == before
    assert len(stored(tmp_path)) == 1


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(am.StudyError, match=r"holds something else .*'report.html'.*; choose an empty folder"):
        run_study(TINY, tmp_path, InlineEngine())
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "mine"


def test_time_is_added_up_even_if_the_study_breaks(tmp_path, monkeypatch):
    monkeypatch.setattr(study_record, "KEEP_SECONDS", 0.0)
    run_study(TINY, tmp_path, InlineEngine())
    first = json.loads((tmp_path / "study.json").read_text())
    assert first["wall_seconds"] > 0
    assert first["source"] == {"file": None, "quick": False}

    def told():
        return json.loads((tmp_path / "study.json").read_text())

    class Broken(InlineEngine):
        def run(self, orders, interrupts, note):
            yield next(iter(super().run(orders, interrupts, note)))
            seen.append(told()["wall_seconds"])  # what is left if it is killed now
            raise RuntimeError("broken")

    seen = []
    for path in (tmp_path / "trials").iterdir():
        path.unlink()
    (tmp_path / "study.json").write_text(json.dumps(first | {"started": "long ago"}))
    with pytest.raises(RuntimeError, match="broken"):
        run_study(TINY, tmp_path, Broken())
    assert first["wall_seconds"] < seen[0] < told()["wall_seconds"]
    assert (told()["started"], told()["finished"]) == ("long ago", None)


def test_a_damaged_study_file_is_set_aside_where_there_are_trials(tmp_path):
    run_study(TINY, tmp_path, InlineEngine())
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(am.StudyError, match="is damaged, it is no JSON"):
        read_results(tmp_path)
    engine = InlineEngine()
    run_study(TINY, tmp_path, engine)
    assert not engine.ran
    assert (tmp_path / "damaged" / "study-1.json").read_text() == "{"
    assert not read_results(tmp_path).missing


@pytest.mark.parametrize("text", ["[1]", "no JSON", '{"name": 3}'])
def test_a_study_file_of_something_else_stays(tmp_path, text):
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(am.StudyError, match="is not of a study"):
        run_study(TINY, tmp_path, InlineEngine())
    assert (tmp_path / "study.json").read_text() == text


@pytest.mark.parametrize(
    ("data", "why"),
    [({"name": "x"}, "does not describe a study"), ({"name": "x", "title": "X", "parts": [3]}, "does not describe")],
)
def test_half_a_description_is_a_sentence(tmp_path, data, why):
    (tmp_path / "study.json").write_text(json.dumps(data))
    with pytest.raises(am.StudyError, match=why):
        read_results(tmp_path)


def test_folders_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(am.StudyError, match="is, or is below, a file"):
            run_study(TINY, place, InlineEngine())
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(am.StudyError, match="cannot be made"):
        run_study(TINY, "/proc/none", InlineEngine())
    with pytest.raises(am.StudyError, match="there is no study in"):
        read_results(tmp_path / "nowhere")


def test_a_folder_without_permission(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda place, mode: False)  # root may write everywhere
    with pytest.raises(am.StudyError, match="no permission to write"):
        run_study(TINY, tmp_path, InlineEngine())


def test_one_study_at_a_time(tmp_path):
    seen = []

    def second(progress):
        if not seen:
            seen.append(progress)
            with pytest.raises(am.StudyError, match=rf"another study \(process {os.getpid()}\) is writing to"):
                run_study(TINY, tmp_path, InlineEngine())

    summary = run_study(TINY, tmp_path, InlineEngine(), second)
    assert seen
    assert summary.stopped == "done"


def test_the_lock_ends_with_its_process(tmp_path):
    code = """
import sys, pathlib
from actmeasure.studies.store import locked
with locked(pathlib.Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(am.StudyError, match=f"process {holder.pid}"):
            run_study(TINY, tmp_path, InlineEngine())
        holder.send_signal(signal.SIGKILL)
    assert run_study(TINY, tmp_path, InlineEngine()).stopped == "done"


@pytest.mark.slow
def test_a_full_disk_loses_nothing(tmp_path):
    """Files may not grow beyond what the first trials need; the long one does not fit, until there is room."""
    code = """
import resource, sys
sys.path[:0] = sys.argv[2], sys.argv[2] + "/studies"
from study_tools import InlineEngine
from test_store import FULL
from actmeasure.errors import StudyError
from actmeasure.experiments import run_study
run_study(FULL, sys.argv[1] + "-before", InlineEngine())  # compiled code, if it is not kept yet, is larger
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
try:
    run_study(FULL, sys.argv[1], InlineEngine())
except StudyError as error:
    sys.exit(str(error))
"""
    folder = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code, tmp_path, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the disk is full; make room or choose another place; what is stored already is safe" in done.stderr
    short, long = FULL.trials()
    assert stored(tmp_path) == {short.hash}
    assert not list((tmp_path / "trials").glob(".*"))
    engine = InlineEngine()
    run_study(FULL, tmp_path, engine)
    assert [trial.hash for trial in engine.ran] == [long.hash]
    assert not read_results(tmp_path).missing


#: The trial that comes first, because it is expected to take less time, is the one with little to write.
AGENTS = [AgentSpec("short", "random", episodes=60), AgentSpec("long", "random", episodes=5000)]
FULL = Study("full", "Full", [Part("a", "A", [LAKE], AGENTS, seeds=1)])
