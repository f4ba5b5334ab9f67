"""A real Ray cluster of a head and a second node on loopback: the same tables, also when the second node is killed."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from study_tools import InlineEngine, small_study, stored, tables
from test_study_local import SLOW, until

import actmeasure as am
from actmeasure.experiments import Part, RayEngine, Study, run_study
from actmeasure.experiments.engines import ray as ray_engine

HERE = Path(__file__).parent
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from actmeasure.experiments import RayEngine, run_study
from study_tools import small_study
from test_study_local import SLOW

if __name__ == "__main__":
    study, address = (SLOW, sys.argv[3]) if len(sys.argv) > 3 else (small_study(), None)
    summary = run_study(study, sys.argv[2], RayEngine(address))
    print(summary.stopped, *summary.failures)
"""
TINY = Study("tiny", "Tiny", [Part("a", "A", ["chain"], ["random"], episodes=5, seeds=1)])

needs_ray = pytest.mark.skipif(
    not ray_engine.is_installed(), reason="Ray is not installed; see requirements-ray.lock and .ci/run"
)


@contextlib.contextmanager
def cluster():
    """The process of a cluster, and its address."""
    environment = os.environ | ray_engine.QUIET | ray_engine.LOOPBACK
    with subprocess.Popen(
        [sys.executable, HERE / "ray_cluster.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.stdin.close()


def start(tmp_path, out, *address):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, script, HERE, out, *address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@needs_ray
def test_a_node_killed_in_mid_study_changes_nothing(tmp_path):
    out = tmp_path / "ray"
    with cluster() as (nodes, address), start(tmp_path, out, address) as study:
        assert address.startswith("127.0.0.1:")
        until(lambda: len(stored(out)) >= 2 or study.poll() is not None)
        assert len(stored(out)) < len(SLOW.trials())
        nodes.stdin.write("kill\n")
        nodes.stdin.flush()
        assert nodes.stdout.readline() == "killed\n"
        said, _ = study.communicate()
    assert said == "done\n"
    run_study(SLOW, tmp_path / "here", InlineEngine())
    assert tables(out) == tables(tmp_path / "here")


@needs_ray
def test_a_cluster_that_is_lost_is_a_sentence(tmp_path):
    out = tmp_path / "ray"
    with cluster() as (nodes, address), start(tmp_path, out, address) as study:
        until(lambda: stored(out) or study.poll() is not None)
        nodes.stdin.close()
        nodes.wait()
        assert study.wait(60) == 1
        assert "the Ray cluster is lost" in study.stderr.read()
    assert run_study(SLOW, out, InlineEngine()).parts[0].found >= 1


@needs_ray
def test_ray_on_this_machine_alone(tmp_path):
    with start(tmp_path, tmp_path / "ray") as study:
        assert study.communicate()[0] == "done\n"
    run_study(small_study(), tmp_path / "here", InlineEngine())
    assert tables(tmp_path / "ray") == tables(tmp_path / "here")


@needs_ray
@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("127.0.0.1:1", "no Ray cluster can be reached at '127.0.0.1:1'"),
        ("ray://127.0.0.1:1", "no Ray cluster can be reached"),
        ("127.0.0.1:99999999", "no Ray cluster can be reached"),
        ("nowhere", "the Ray address is 'nowhere', expected HOST:PORT"),
        (":6379", "expected HOST:PORT"),
    ],
)
def test_an_unreachable_address_is_a_sentence(tmp_path, address, sentence):
    with pytest.raises(am.StudyError) as caught:
        run_study(TINY, tmp_path, RayEngine(address))
    assert sentence in str(caught.value)
    assert not stored(tmp_path)


@needs_ray
def test_something_else_at_the_address_is_a_sentence_in_bounded_time(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_engine, "ANSWER_SECONDS", 3.0)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(am.StudyError, match="has not answered as a Ray cluster for 3 s"),
    ):
        run_study(TINY, tmp_path, RayEngine(f"127.0.0.1:{silent.getsockname()[1]}"))


def test_without_ray_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(am.MissingExtraError, match=r"pip install 'actmeasure\[ray\]'"):
        run_study(TINY, tmp_path, RayEngine())


def test_nodes_with_another_version_are_refused():
    table, _, why = ray_engine._perform_there("{}", None, "0.0.0")
    assert table is None
    assert f"a node has actmeasure {am.__version__}, but the study is run by 0.0.0" in why
