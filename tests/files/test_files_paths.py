"""Names, folders, permissions, full disks; and files that are there completely or not at all."""

import errno
import os
from pathlib import Path

import pytest
from model_strategies import small_model

import actmeasure as am
from actmeasure import file_access

SUFFIXES = (".json", ".npz", ".pomdp")
MODEL = small_model()


@pytest.mark.parametrize("suffix", [".JSON", ".Npz", ".POMDP"])
def test_endings_in_any_case(suffix, tmp_path):
    path = tmp_path / f"model{suffix}"
    MODEL.save(str(path))
    assert am.Model.load(path).equals(MODEL)


@pytest.mark.parametrize("name", ["model.jsn", "model", ".json", "model.json.gz", "model."])
def test_unknown_endings(name, tmp_path):
    for action in (MODEL.save, am.Model.load):
        with pytest.raises(
            am.ModelError, match=r"unknown file ending .* [Cc]hoose one of: (.drn, )?.json, .*.npz, .pomdp"
        ):
            action(tmp_path / name)
    with pytest.raises(am.ModelError, match=r"did you mean '.json'"):
        am.Model.load("model.jsn")


@pytest.mark.parametrize("path", [None, 3, b"model.json", "mod\0el.json", "mod\ud800el.json"])
def test_what_is_no_path(path):
    for action in (MODEL.save, am.Model.load):
        with pytest.raises(am.ModelError, match="the path is"):
            action(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_reading_what_is_not_there(suffix, tmp_path):
    with pytest.raises(am.ModelError, match="there is no such file; check the path"):
        am.Model.load(tmp_path / f"model{suffix}")
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    with pytest.raises(am.ModelError, match="it is a folder"):
        am.Model.load(folder)
    with pytest.raises(am.ModelError, match="it is a folder"):
        MODEL.save(folder)
    with pytest.raises(am.ModelError, match="its folder does not exist; create it first"):
        MODEL.save(tmp_path / "nowhere" / f"model{suffix}")
    (tmp_path / "file").write_text("")
    with pytest.raises(am.ModelError, match="its folder does not exist"):
        MODEL.save(tmp_path / "file" / f"model{suffix}")
    with pytest.raises(am.ModelError, match="its name is too long"):
        MODEL.save(tmp_path / ("x" * 300 + suffix))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", f"folder{suffix}"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_empty_files(suffix, tmp_path):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"")
    with pytest.raises(am.ModelError, match=str(path)):
        am.Model.load(path)


def test_no_permission(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    MODEL.save(path)

    def refuse(*_args, **_kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(am.ModelError, match="no permission to read it"):
        am.Model.load(path)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(am.ModelError, match="no permission to write it"):
        MODEL.save(path)


def test_a_file_that_may_not_be_written_stays(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    path.write_text("precious")
    monkeypatch.setattr(os, "access", lambda *_args: False)
    with pytest.raises(am.ModelError, match="no permission to write it"):
        MODEL.save(path)
    assert path.read_text() == "precious"


def test_too_large_for_memory(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    MODEL.save(path)

    def too_much(_self):
        raise MemoryError

    monkeypatch.setattr(Path, "read_bytes", too_much)
    with pytest.raises(am.ModelError, match="too large for the memory"):
        am.Model.load(path)


def failing(error):
    def fail(*_args, **_kwargs):
        raise error

    return fail


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("where", "name"), [(os, "replace"), (os, "fsync"), (os, "rename"), (Path, "replace"), (Path, "chmod")]
)
def test_an_existing_file_survives_a_failed_write(suffix, where, name, tmp_path, monkeypatch):
    path = tmp_path / f"model{suffix}"
    MODEL.save(path)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(where, name, failing(OSError(errno.ENOSPC, "No space left on device")))
        other = MODEL.replace(measuring_cost=1.0)
        if name == "rename":  # not used: the write succeeds
            other.save(path)
            assert path.read_bytes() != before
        else:
            with pytest.raises(am.ModelError, match="the disk is full; make room"):
                other.save(path)
            assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


class FullDisk:
    """A file that takes some bytes and then no more."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(data)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *details):
        self.file.close()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("room", [0, 100, 700])
def test_a_full_disk(suffix, room, tmp_path, monkeypatch):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"precious")
    real = Path.open
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda self, mode="r", *rest: FullDisk(real(self, mode, *rest), room))
        with pytest.raises(am.ModelError, match="the disk is full; make room"):
            MODEL.save(path)
    assert path.read_bytes() == b"precious"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_an_interrupted_write_leaves_nothing(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(b"precious")

    def write():
        with file_access.replacing(path) as file:
            file.write(b"half a mo")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_bytes() == b"precious"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_links_are_followed_and_permissions_kept(tmp_path):
    target = tmp_path / "target.json"
    MODEL.save(target)
    target.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(target)
    MODEL.replace(measuring_cost=2.0).save(link)
    assert link.is_symlink()
    assert am.Model.load(target).measuring_cost == 2.0
    assert target.stat().st_mode & 0o777 == 0o640


def test_new_files_have_ordinary_permissions(tmp_path):
    MODEL.save(tmp_path / "model.json")
    (tmp_path / "other").write_text("")
    assert (tmp_path / "model.json").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize(
    ("code", "message"),
    [(errno.EIO, "check the disk"), (errno.EROFS, "no permission"), (errno.EDQUOT, "disk is full"), (None, "odd")],
)
def test_other_errors_are_sentences(code, message):
    error = OSError("odd") if code is None else OSError(code, os.strerror(code))
    assert message in str(file_access.explain(error, Path("model.json"), "write"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_or_device_is_not_replaced(tmp_path):
    path = tmp_path / "model.json"
    os.mkfifo(path)
    with pytest.raises(am.ModelError, match="it is a device or a pipe, which only a whole file could replace"):
        MODEL.save(path)
    with pytest.raises(am.PlanError, match="it is a device or a pipe; give the name of a file"):
        file_access.check_writable(path, "the picture", am.PlanError)
    assert path.is_fifo()
    assert list(tmp_path.iterdir()) == [path]
