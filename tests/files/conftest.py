"""For tests of files: a model from the text of a file."""

import pytest

import actmeasure as am


@pytest.fixture
def load_as(tmp_path):
    """A function that returns the model of a file with an ending and contents, text or bytes."""

    def loaded(ending, contents):
        path = tmp_path / f"model.{ending}"
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
        return am.Model.load(path)

    return loaded


@pytest.fixture
def load(load_as):
    """A function that returns the model of a .pomdp file with this text."""
    return lambda text: load_as("pomdp", text)


@pytest.fixture
def written(tmp_path):
    """A function that returns the text of a model's .pomdp file."""

    def text_of(model):
        model.save(tmp_path / "written.pomdp")
        return (tmp_path / "written.pomdp").read_text(encoding="ascii")

    return text_of
