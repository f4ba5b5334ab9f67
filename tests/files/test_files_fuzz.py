"""Damaged files give a `ModelError` or a sound model, and never anything else."""

import io

import numpy as np
import pytest
from model_strategies import check_sound, damaged, measuring_model, small_model

import actmeasure as am
from actmeasure.files import npz

MODELS = {
    "small": small_model(),
    "random start": small_model(initial=[0.5, 0.5, 0, 0]),
    "plain": small_model(
        state_names=None, action_names=None, initial=[0.25, 0.75, 0, 0], reveal_start=False,
        measuring_cost=np.arange(8.0).reshape(4, 2),
    ),
    "lake": am.problems.frozen_lake(map=["SF", "HG"]),
    "measurements": measuring_model(initial=[0.5, 0.5, 0, 0], reveal_start=True),
    "passive": measuring_model(measurements=[]),
    "undiscounted": am.problems.measuring_value(discount=1),
}  # fmt: skip


def attempt(path, contents):
    """Load bytes as a file; whether it was accepted."""
    path.write_bytes(contents)
    try:
        model = am.Model.load(path)
    except am.ModelError:
        return False
    check_sound(model)
    return True


@pytest.mark.parametrize("suffix", [".json", ".npz", ".pomdp"])
@pytest.mark.parametrize("which", MODELS)
def test_damaged_bytes(which, suffix, tmp_path):
    path = tmp_path / f"model{suffix}"
    MODELS[which].save(path)
    contents = path.read_bytes()
    for copy in damaged(contents, np.random.default_rng(len(contents)), times=300):
        attempt(path, copy)


@pytest.mark.parametrize("suffix", [".json", ".npz", ".pomdp"])
@pytest.mark.parametrize("which", ["small", "measurements"])
def test_truncated_anywhere(which, suffix, tmp_path):
    path = tmp_path / f"model{suffix}"
    model = MODELS[which]
    model.save(path)
    contents = path.read_bytes()
    step = 1 if which == "small" else 7
    accepted = [end for end in range(0, len(contents), step) if attempt(path, contents[:end])]
    # Nothing may be missing but the last line break or, of the last number, digits that change nothing.
    assert min(accepted, default=len(contents)) >= len(contents) - 3
    for end in accepted:
        path.write_bytes(contents[:end])
        assert am.Model.load(path).equals(model)


def altered(array, rng):
    """A copy of an array with an entry, its type or its shape changed."""
    values = [0, 1, -1, 0.5, 1e300, -1e300, np.nan, np.inf, 2**31, 2**62, -(2**62), 7]
    types = ["<f8", "<i8", "<i4", "|u1", "|b1", "<f4", "<U3", "<c16"]
    flat = array.reshape(-1)
    somewhere = int(rng.integers(flat.size))
    other = flat.copy()
    other[somewhere] = np.array(values[int(rng.integers(len(values)))]).astype(flat.dtype)
    choices = [
        np.delete(flat, somewhere), np.append(flat, flat[:1]), rng.permutation(flat).reshape(array.shape),
        array.astype(rng.choice(types)), array.reshape(-1, 1), other.reshape(array.shape),
    ]  # fmt: skip
    return choices[int(rng.integers(len(choices)))]


@pytest.mark.parametrize("which", MODELS)
def test_damaged_arrays(which, tmp_path):
    """Behind a sound archive with fitting check sums, so that our own checks are what is left."""
    path = tmp_path / "model.npz"
    file = io.BytesIO()
    npz.write(MODELS[which], file)
    with np.load(io.BytesIO(file.getvalue())) as archive:
        arrays = {name: archive[name] for name in archive.files}
    rng = np.random.default_rng(5)
    for _ in range(300):
        name = str(rng.choice([name for name in arrays if name != "about" and arrays[name].size]))
        copy = io.BytesIO()
        with np.errstate(all="ignore"):
            np.savez(copy, **(arrays | {name: altered(arrays[name], rng)}))
        attempt(path, copy.getvalue())
