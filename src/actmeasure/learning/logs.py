"""Callbacks of `train` that write every episode down as it ends: for TensorBoard, or as CSV."""

from __future__ import annotations

import csv
import os
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from actmeasure.episodes import Episode
from actmeasure.errors import AgentError, import_extra
from actmeasure.file_access import explain

__all__ = ["CsvLog", "EpisodeLog", "TensorBoardLog", "log_to"]

#: Titles of the figures of an episode in TensorBoard.
TAGS = {
    "scalarized_return": "episode/return",
    "reward": "episode/reward",
    "measurements": "episode/looks",
    "measuring_cost": "episode/looks_cost",
    "steps": "episode/steps",
}
#: Name of the file in a folder.
FILE = "episodes.csv"


class EpisodeLog:
    """A callback that writes episodes down until it is closed; a context manager that closes it."""

    def __call__(self, episode: Episode) -> None:
        """Write an episode."""
        raise NotImplementedError

    def close(self) -> None:
        """Write what is left, and end."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


class CsvLog(EpisodeLog):
    """Writes a row for every episode into a CSV file, at once, so that it can be watched; an existing file is replaced.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[str] = self.path.open("w", encoding="utf-8", newline="", buffering=1)
        except OSError as error:
            raise AgentError(str(explain(error, self.path, "write"))) from error
        self._rows = csv.writer(self._file, lineterminator="\n")
        self._rows.writerow(Episode._fields)

    def __call__(self, episode: Episode) -> None:
        self._rows.writerow(episode)

    def close(self) -> None:
        self._file.close()


class TensorBoardLog(EpisodeLog):
    """Writes return, reward, looks, their cost and the steps of every episode for TensorBoard (needs the extra `tensorboard`).

    `tensorboard --logdir FOLDER` shows them. Stable-Baselines3 writes files of the same kind.

    Parameters
    ----------
    folder : path
        Of one run; folders of several runs beside each other are compared.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder)
        library: Any = import_extra("tensorboard.summary", "TensorBoardLog", "tensorboard")
        try:
            self._writer = library.Writer(str(self.path))
        except OSError as error:
            raise AgentError(str(explain(error, self.path, "write"))) from error

    def __call__(self, episode: Episode) -> None:
        for name, tag in TAGS.items():
            self._writer.add_scalar(tag, float(getattr(episode, name)), step=episode.number)

    def close(self) -> None:
        self._writer.close()


def log_to(folder: str | os.PathLike[str]) -> EpisodeLog:
    """Return a callback for `train` that writes into a folder: for TensorBoard if that is installed, otherwise `episodes.csv`.

    Examples
    --------
    >>> import actmeasure as am, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, am.learning.log_to(folder) as log:
    ...     episodes = am.train(am.agents.make("random"), am.problems.chain(), 5, callback=log)
    """
    try:
        is_installed = find_spec("tensorboard") is not None
    except ValueError:  # it is None in `sys.modules`
        is_installed = False
    return TensorBoardLog(folder) if is_installed else CsvLog(Path(folder) / FILE)
