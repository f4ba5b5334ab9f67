"""Small files that would take much memory are refused before they do."""

import io
import json
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

import actmeasure as am
from actmeasure.files import archive

#: What refusing a file may take, in bytes.
LITTLE = 32 << 20


def swelled(contents: bytes, **arrays: np.ndarray) -> bytes:
    """An archive with other arrays in place of its own."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(contents)) as old,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new,
    ):
        for name in old.namelist():
            plain = name.removesuffix(".npy")
            if plain not in arrays:
                new.writestr(name, old.read(name))
                continue
            with new.open(name, "w", force_zip64=True) as member:
                header = {"descr": arrays[plain].dtype.str, "fortran_order": False, "shape": arrays[plain].shape}
                np.lib.format.write_array_header_1_0(member, header)
                whole, part = arrays[plain].nbytes, bytes(1 << 24)
                for begin in range(0, whole, len(part)):
                    member.write(part[: min(len(part), whole - begin)])
    return file.getvalue()


def zeros(*shape: int, kind: str = "<f8") -> np.ndarray:
    """An array of that shape that takes no memory itself."""
    return np.broadcast_to(np.zeros((), kind), shape)


def peak(function, *arguments):
    """Call a function that must raise one of our errors; the error and the most memory that was taken meanwhile."""
    tracemalloc.start()
    try:
        with pytest.raises(am.ActMeasureError) as told:
            function(*arguments)
        return str(told.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def model_file(tmp_path):
    path = tmp_path / "model.npz"
    am.problems.frozen_lake(4, measuring_cost=0.05).save(path)
    return path


#: Numbers of 8 bytes that are more than may always be unpacked, and bytes that are more than `LITTLE`.
MANY = 9_000_000
MANY_BYTES = 40_000_000


@pytest.mark.parametrize(
    "arrays",
    [
        {"probabilities": zeros(MANY)},
        {"successors": zeros(MANY, kind="<i4"), "probabilities": zeros(MANY)},
        {
            "rewards": zeros(MANY // 4, 4),
            "offsets": zeros(MANY + 1, kind="<i8"),
            "terminal": zeros(MANY // 4, kind="|b1"),
        },
        {"initial_states": zeros(MANY, kind="<i8"), "initial_probabilities": zeros(MANY)},
        {"about": zeros(MANY_BYTES, kind="|u1")},
        {"measuring_cost": zeros(MANY // 4 + 1, 4)},
    ],
    ids="+".join,
)
def test_models(tmp_path, arrays):
    path = model_file(tmp_path)
    path.write_bytes(swelled(path.read_bytes(), **arrays))
    words, taken = peak(am.Model.load, path)
    assert "the file is damaged" in words
    assert taken < LITTLE


def test_shapes_are_compared_before_anything_is_read(tmp_path):
    """Also where the archive itself is large enough for what it declares."""
    path = model_file(tmp_path)
    contents = swelled(path.read_bytes(), probabilities=zeros(6_000_000))
    path.write_bytes(contents)
    words, taken = peak(am.Model.load, path)
    assert "'probabilities' has shape (6000000,)" in words
    assert taken < LITTLE


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")
@pytest.mark.parametrize("numbers", [30_000_000, pytest.param(300_000_000, marks=pytest.mark.slow)])
def test_a_process_with_little_memory_survives(tmp_path, numbers):
    sound = model_file(tmp_path)
    path = tmp_path / "bomb.npz"
    path.write_bytes(swelled(sound.read_bytes(), probabilities=zeros(numbers)))
    assert path.stat().st_size < numbers // 20
    code = (
        "import sys, actmeasure as am, resource\n"
        "am.Model.load(sys.argv[2])\n"  # so that everything is imported before memory is counted
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (128 << 20),) * 2)\n"
        "try: am.Model.load(sys.argv[1])\n"
        "except am.ModelError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path, sound], capture_output=True, text=True, check=True)
    assert f"bytes that unpack to {8 * numbers // 10**6:,}," in done.stdout


def test_fits(tmp_path):
    columns = {"unit": ["a"] * 4 + ["b"] * 4, "time": [0, 1, 2, 3] * 2, "state": [0, 0, 1, 1, 0, 1, 1, 1]}
    path = tmp_path / "fit.npz"
    am.fit(columns, bootstrap=3, goodness=0, default_action="wait").save(path)
    whole = path.read_bytes()
    for arrays in (
        {"bootstrap": zeros(MANY // 4 + 1, 1, 2, 2)},
        {"initial": zeros(MANY)},
        {"about": zeros(MANY_BYTES, kind="|u1")},
    ):
        path.write_bytes(swelled(whole, **arrays))
        words, taken = peak(am.Fit.load, path)
        assert "damaged" in words
        assert taken < LITTLE


def test_agents(tmp_path):
    path = tmp_path / "agent.npz"
    agent = am.agents.make("atmq")
    am.train(agent, am.problems.measuring_value(), 5)
    agent.save(path)
    whole = path.read_bytes()
    for arrays in (
        {"values": zeros(MANY)},
        {"first": zeros(1_000_000, kind="<i8")},
        {"times": zeros(MANY, kind="<i8")},
    ):
        path.write_bytes(swelled(whole, **arrays))
        words, taken = peak(am.agents.load, path)
        assert "damaged" in words
        assert taken < LITTLE


def test_what_we_write_ourselves_is_never_taken_for_a_bomb(tmp_path, monkeypatch):
    """A model whose arrays shrink by more than is believed is stored as it is."""
    monkeypatch.setattr(archive, "ALWAYS_UNPACKED", 1 << 16)
    monkeypatch.setattr(archive, "LARGEST_RATIO", 3)
    path = tmp_path / "model.npz"
    model = am.problems.frozen_lake(40, seed=0, measuring_cost=0.05)
    model.save(path)
    assert am.Model.load(path).equals(model)
    with zipfile.ZipFile(path) as stored:
        assert {info.compress_type for info in stored.infolist()} == {zipfile.ZIP_STORED}


def test_the_largest_lake_is_far_from_the_limit(tmp_path):
    path = tmp_path / "model.npz"
    am.problems.frozen_lake(150, seed=0, measuring_cost=0.05).save(path)
    with zipfile.ZipFile(path) as stored:
        unpacked = sum(info.file_size for info in stored.infolist())
        assert {info.compress_type for info in stored.infolist()} == {zipfile.ZIP_DEFLATED}
    assert unpacked < archive.LARGEST_RATIO / 2 * path.stat().st_size


def test_json_that_counts_terminal_states(tmp_path):
    n = 20_000
    lines = [{"state": 0, "action": action, "to": {"0": 1.0}, "reward": 0.0} for action in range(n)]
    data = {"format": "actmeasure model", "discount": 0.9, "states": n, "actions": n, "measuring_cost": 0.1}
    data |= {"terminal": list(range(1, n)), "transitions": lines}
    path = tmp_path / "model.json"
    path.write_text(json.dumps(data))
    words, taken = peak(am.Model.load, path)
    assert "20,000 states and 20,000 actions are too many for a text file; use the .npz format" in words
    assert taken < 2 * LITTLE


@pytest.mark.parametrize("statement", ["T: * identity", "T: 0 identity", "O: * : * : 0 1.0", "T: * uniform"])
def test_pomdp_statements_that_mean_millions_of_rows(tmp_path, statement):
    path = tmp_path / "model.pomdp"
    path.write_text(f"discount: 0.9\nvalues: reward\nstates: 2000000\nactions: 2\nobservations: 2\n{statement}\n")
    words, taken = peak(am.Model.load, path)
    assert "use the .npz format" in words
    assert taken < 3 * LITTLE


@pytest.mark.parametrize("count", ["1000000000", "99999999999999999999", "5000001"])
@pytest.mark.parametrize("kind", ["states", "actions", "observations"])
def test_pomdp_counts(tmp_path, kind, count):
    counts = {"states": "2", "actions": "2", "observations": "2"} | {kind: count}
    path = tmp_path / "model.pomdp"
    path.write_text("discount: 0.9\nvalues: reward\n" + "".join(f"{name}: {n}\n" for name, n in counts.items()))
    words, taken = peak(am.Model.load, path)
    assert f"the number of {kind} is" in words
    assert taken < LITTLE


@pytest.mark.parametrize("depth", [10_000, 1_000_000])
def test_nested_json_and_toml(tmp_path, depth):
    path = tmp_path / "model.json"
    path.write_text('{"format": "actmeasure model", "states": ' + "[" * depth)
    with pytest.raises(am.ModelError, match=r"model\.json"):
        am.Model.load(path)
    prices = tmp_path / "prices.toml"
    prices.write_text("currency = " + "[" * depth)
    with pytest.raises(am.FitError, match=r"prices\.toml"):
        am.Economics.load(prices)


def test_records_with_absurd_lines(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("," * 300_000 + "\n")
    with pytest.raises(am.FitError):
        am.fit(path)
    path.write_text("unit,time,state\na,0," + "x" * 300_000 + "\n")
    with pytest.raises(am.FitError):
        am.fit(path)


def told(contents: bytes, about: bytes) -> bytes:
    """An archive that tells something else about itself."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(contents)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != "about.npy":
                new.writestr(name, old.read(name))
        with new.open("about.npy", "w") as member:
            np.lib.format.write_array(member, np.frombuffer(about, dtype=np.uint8), version=(1, 0))
    return file.getvalue()


@pytest.mark.parametrize("kind", ["model", "fit", "agent"])
@pytest.mark.parametrize("value", [b"{}", b"[]", b'"ab"', b"1e9", b'"\\"["'])
def test_what_an_archive_tells_of_itself_is_counted_before_it_is_parsed(tmp_path, kind, value):
    """Three bytes of JSON are an object of 64, and all of them together pack into next to nothing."""
    path = tmp_path / "file.npz"
    if kind == "model":
        am.problems.frozen_lake(4, measuring_cost=0.05).save(path)
        load, key = am.Model.load, "state_names"
    elif kind == "fit":
        columns = {"unit": ["a"] * 4 + ["b"] * 4, "time": [0, 1, 2, 3] * 2, "state": [0, 0, 1, 1, 0, 1, 1, 1]}
        am.fit(columns, bootstrap=0, goodness=0, default_action="wait").save(path)
        load, key = am.Fit.load, "state_names"
    else:
        agent = am.agents.make("atmq")
        am.train(agent, am.problems.measuring_value(), 5)
        agent.save(path)
        load, key = am.agents.load, "settings"
    with np.load(path) as arrays:
        about = json.loads(arrays["about"].tobytes()) | {key: None}
    values = b"[" + b",".join([value] * ((3 << 20) // (len(value) + 1))) + b"]"
    text = json.dumps(about).encode().replace(b'"%b": null' % key.encode(), b'"%b": %b' % (key.encode(), values))
    path.write_bytes(told(path.read_bytes(), text))
    words, taken = peak(load, path)
    assert "values, more than there is to tell about arrays of these shapes" in words
    assert taken < LITTLE


def test_names_of_all_kinds_are_no_values(tmp_path):
    """However many there are, however long, and whatever is in them."""
    model = am.problems.frozen_lake(110, seed=0, measuring_cost=0.05)
    names = [f'[{{"{state}\\\\", ,' for state in range(model.n_states)]
    names[0] = "[" * (6 << 20)  # shrinks by more than is believed
    assert len(names) > archive.ALWAYS_VALUES
    named = model.replace(state_names=names)
    path = tmp_path / "model.npz"
    named.save(path)
    assert am.Model.load(path).state_names == named.state_names
