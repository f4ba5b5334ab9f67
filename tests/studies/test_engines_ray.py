"""Ray clusters as people start them, a head and a second node: the same tables, also when the second node is killed."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from study_tools import InlineEngine, small_study, stored, tables
from test_engines_local import SOME, release, until

import actmeasure as am
from actmeasure.studies import Part, RayEngine, Study, run_study
from actmeasure.studies.code_digest import code_of
from actmeasure.studies.engines import ray as ray_engine
from actmeasure.studies.engines.base import Order

HERE = Path(__file__).parent
SCRIPT = """
import sys
sys.path[:0] = sys.argv[1], sys.argv[1] + "/.."
from actmeasure.experiments import RayEngine, run_study
from study_tools import small_study
import test_engines_local

if __name__ == "__main__":
    study, address, progress = small_study(), None, None
    if len(sys.argv) > 3:
        study, address, progress = test_engines_local.SOME, sys.argv[3], test_engines_local.hold(sys.argv[2])
    summary = run_study(study, sys.argv[2], RayEngine(address), progress)
    print(summary.stopped, *summary.failures)
"""
TINY = Study("tiny", "Tiny", [Part("a", "A", ["chain"], ["random"], episodes=5, seeds=1)])

needs_ray = pytest.mark.extras("ray")

#: Of a node: small, in the foreground. Everything else is as `ray start` has it, but for addresses on the loopback interface.
NODE = ["--block", "--num-cpus", "1", "--object-store-memory", str(80 << 20), "--node-ip-address"]
HEAD, SECOND = "127.0.0.2", "127.0.0.3"


class Node:
    """A node that was started with `ray start --block`, and the processes that belong to it.

    `ray stop` is not for tests: it ends whatever else of Ray runs on the machine.
    """

    def __init__(self, environment, log, *arguments):
        command = [Path(sys.executable).with_name("ray"), "start", *NODE, *arguments]
        with log.open("wb") as out:
            self.process = psutil.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)
        self._log, self._family = log, []
        try:
            until(lambda: "Ray runtime started" in log.read_text() or self.process.poll() is not None)
            assert self.process.poll() is None, log.read_text()
        except BaseException:
            self.kill()
            raise

    def kill(self):
        """End it as a power cut would."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._family = [self.process, *self.process.children(recursive=True)]
        for process in self._family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self._family, timeout=60)


class RayCluster:
    """A head and a second node on this machine, and the environment of somebody who has the token of its head."""

    def __init__(self, place, **variables):
        home = place / "home"
        home.mkdir()
        unset = (ray_engine.AUTH_MODE, ray_engine.AUTH_TOKEN, ray_engine.AUTH_TOKEN_PATH, "RAY_ADDRESS")
        inherited = {name: value for name, value in os.environ.items() if name not in unset}
        self.environment = inherited | ray_engine.QUIET | {"HOME": str(home)}
        ray = Path(sys.executable).with_name("ray")
        subprocess.run([ray, "get-auth-token", "--generate"], env=self.environment, check=True, capture_output=True)
        with socket.create_server((HEAD, 0)) as free:
            port = free.getsockname()[1]
        self.address = f"{HEAD}:{port}"
        start = self.environment | variables
        self.head = Node(
            start, place / "head.log", HEAD, "--head", "--port", str(port), "--temp-dir", str(place / "ray")
        )
        try:
            # The way to join a cluster with a token, by the documentation of Ray.
            join = start if variables else start | {ray_engine.AUTH_MODE: "token"}
            self.second = Node(join, place / "second.log", SECOND, "--address", self.address)
        except BaseException:
            self.head.kill()
            raise

    def stop(self):
        self.second.kill()
        self.head.kill()


@contextlib.contextmanager
def cluster(**variables):
    """A cluster that is gone afterwards; in a folder with a short path, as Ray's sockets need it."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as place:
        nodes = RayCluster(Path(place), **variables)
        try:
            yield nodes
        finally:
            nodes.stop()


@pytest.fixture(scope="module")
def with_token():
    """A cluster as `ray start` makes it where there is a token: it asks for it."""
    with cluster() as nodes:
        yield nodes


def start(tmp_path, out, nodes=None):
    """A study in a process of its own: on a cluster it is held up after two trials, until `release(out)`."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, script, HERE, out, *([nodes.address] if nodes else [])]
    environment = nodes.environment if nodes else os.environ | {"HOME": str(tmp_path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)


@needs_ray
@pytest.mark.parametrize("has_token", [True, False])
def test_a_node_killed_in_mid_study_changes_nothing(tmp_path, has_token):
    out = tmp_path / "ray"
    variables = {} if has_token else {ray_engine.AUTH_MODE: "disabled"}
    with cluster(**variables) as nodes, start(tmp_path, out, nodes) as study:
        until(lambda: len(stored(out)) >= 2 or study.poll() is not None)
        assert len(stored(out)) == 2, study.communicate(timeout=300)
        nodes.second.kill()
        release(out)
        said, _ = study.communicate(timeout=300)
    assert said == "done\n"
    run_study(SOME, tmp_path / "here", InlineEngine())
    assert tables(out) == tables(tmp_path / "here")


@needs_ray
def test_a_cluster_that_is_lost_is_a_sentence(tmp_path):
    out = tmp_path / "ray"
    with cluster() as nodes, start(tmp_path, out, nodes) as study:
        until(lambda: len(stored(out)) >= 2 or study.poll() is not None)
        nodes.stop()
        release(out)
        _, said = study.communicate(timeout=300)
        assert study.returncode == 1
    assert "the Ray cluster is lost" in said
    assert 2 <= len(stored(out)) < len(SOME.trials())


@needs_ray
@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"HOME": "/nowhere"}, "asks for a token, and there is none on this machine; `ray get-auth-token` prints it"),
        ({"RAY_AUTH_TOKEN": "0" * 64}, "that of the environment variable RAY_AUTH_TOKEN is not the right one"),
        ({"RAY_AUTH_TOKEN_PATH": "/nowhere/token"}, "that of the file /nowhere/token"),
        ({"RAY_AUTH_MODE": "disabled"}, "but RAY_AUTH_MODE is 'disabled'; unset it"),
    ],
)
def test_a_token_that_is_missing_or_wrong_is_a_sentence(tmp_path, monkeypatch, with_token, variables, sentence):
    for name, value in (with_token.environment | variables).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(am.StudyError) as caught:
        run_study(TINY, tmp_path, RayEngine(with_token.address))
    assert f"the Ray cluster at {with_token.address!r} asks for a token" in str(caught.value)
    assert sentence in str(caught.value)
    assert not stored(tmp_path)


@needs_ray
def test_the_token_is_read_although_ray_was_loaded_before(tmp_path, with_token):
    """As in a notebook, where a first attempt found no token."""
    code = (
        "import os, sys, ray\n"
        "from actmeasure.studies import RayEngine, run_study\n"
        "sys.path[:0] = sys.argv[1], sys.argv[1] + '/..'\n"
        "from test_engines_ray import TINY\n"
        "assert not run_study(TINY, sys.argv[2], RayEngine(sys.argv[3])).failures\n"
        "assert 'RAY_AUTH_MODE' not in os.environ\n"
    )
    command = [sys.executable, "-c", code, HERE, tmp_path / "out", with_token.address]
    done = subprocess.run(command, env=with_token.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(stored(tmp_path / "out")) == 1


@needs_ray
def test_ray_on_this_machine_alone(tmp_path):
    with start(tmp_path, tmp_path / "ray") as study:
        assert study.communicate(timeout=300)[0] == "done\n"
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


def test_modules_in_the_present_folder_do_not_stand_in_for_those_of_python(tmp_path, monkeypatch):
    """A `code.py` beside the study once kept Ray from being loaded."""
    (tmp_path / "code.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ray_engine, "PROBE", "import code")
    assert ray_engine._probe("127.0.0.1:1") == ("", True)


def test_nodes_with_another_version_are_refused():
    table, _, why = ray_engine._perform_there("{}", None, "0.0.0")
    assert table is None
    assert f"a node has actmeasure {am.__version__}, but the study is run by 0.0.0" in why


class LosesResults:
    """What the engine needs of Ray, with results that are lost a number of times."""

    class exceptions:  # noqa: N801
        RayError = type("RayError", (Exception,), {})
        RaySystemError = type("RaySystemError", (RayError,), {})
        ObjectLostError = type("ObjectLostError", (RayError,), {})

    def __init__(self, losses):
        self._losses = losses

    def remote(self, **_):
        return lambda function: SimpleNamespace(remote=lambda *arguments: (function, arguments, object()))

    def wait(self, references, **_):
        return references[:1], references[1:]

    def get(self, reference):
        if self._losses:
            self._losses -= 1
            raise self.exceptions.ObjectLostError("Failed to retrieve object.\nThe object's owner has exited.")
        function, arguments, _ = reference
        return function(*arguments)


@pytest.mark.parametrize("losses", [0, 1, ray_engine.RETRIES, ray_engine.RETRIES + 1])
def test_a_result_that_died_with_its_node_is_made_again(losses):
    """Ray says that the owner has died, as a node goes while its result is fetched; but the owner is this process."""
    trial = TINY.trials()[0]
    queue = ray_engine._ClusterQueue(LosesResults(losses), [Order(trial, None, 0, code_of(trial))], None, print)
    outcomes = []
    while queue.is_busy:
        queue.submit()
        outcomes.append(queue.next_outcome())
    assert outcomes[:-1] == [None] * min(losses, ray_engine.RETRIES)
    assert bool(outcomes[-1].table) == (losses <= ray_engine.RETRIES)
    assert outcomes[-1].failure == (
        "the cluster could not run it: The object's owner has exited." if losses > ray_engine.RETRIES else ""
    )
