"""What a trial is made of: a problem and an agent, each with its settings and a label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actmeasure.errors import StudyError, quoted
from actmeasure.experiments.plain import checked_label, digest, plain_settings
from actmeasure.files.atomic import explain
from actmeasure.settings import whole

__all__ = ["MOST", "AgentSpec", "ProblemSpec", "is_model_file"]

#: Results of more seeds or episodes than this fit into no memory.
MOST = 10**9


@dataclass(frozen=True)
class ProblemSpec:
    """A problem and its settings.

    Attributes
    ----------
    label : str
        What tables and figures call it.
    name : str
        A name of the catalogue (`actmeasure.problems`), or the path of a model file.
    settings : mapping
        What the problem is built with; for a file `measuring_cost` and `discount`, if they are to be others.
    content : str or None
        SHA-256 of a model file, which is read to find it; it is part of what a trial is, the path is not.
    """

    label: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    content: str | None = None

    def __post_init__(self) -> None:
        label = checked_label(self.label, "a problem")
        if not isinstance(self.name, str) or not self.name:
            raise StudyError(f"the problem {label!r} is called {quoted(self.name)}, expected a name or a file")
        object.__setattr__(self, "settings", plain_settings(self.settings, f"the problem {label!r}"))
        if self.is_file and self.content is None:
            object.__setattr__(self, "content", digest(self.read()))

    @property
    def is_file(self) -> bool:
        """Whether a model file is meant."""
        return is_model_file(self.name)

    def read(self) -> bytes:
        """The contents of the model file."""
        try:
            return Path(self.name).read_bytes()
        except OSError as error:
            raise StudyError(str(explain(error, Path(self.name), "read"))) from error

    def identity(self) -> dict[str, Any]:
        """What counts: not the label, and of a file its content."""
        which = {"content": self.content} if self.is_file else {"name": self.name}
        return {**which, "settings": dict(self.settings)}

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        data = {"label": self.label, "name": self.name, "settings": dict(self.settings)}
        return data | ({"content": self.content} if self.is_file else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ProblemSpec:
        """From what `to_json` gives."""
        return cls(data["label"], data["name"], data["settings"], data.get("content"))


@dataclass(frozen=True)
class AgentSpec:
    """An agent and its settings.

    Attributes
    ----------
    label : str
        What tables and figures call it.
    name : str
        As for `actmeasure.agents.make`.
    settings : mapping
        What the agent is made with, such as a `preset`.
    seeds, episodes : int or None
        Where this agent has other than the part's.
    """

    label: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    episodes: int | None = None

    def __post_init__(self) -> None:
        label = checked_label(self.label, "an agent")
        if not isinstance(self.name, str) or not self.name:
            raise StudyError(f"the agent {label!r} is called {quoted(self.name)}, expected a name")
        object.__setattr__(self, "settings", plain_settings(self.settings, f"the agent {label!r}"))
        for what in ("seeds", "episodes"):
            if getattr(self, what) is not None:
                count = whole(getattr(self, what), f"{what} of the agent {label!r}", 1, MOST, StudyError)
                object.__setattr__(self, what, count)

    def identity(self) -> dict[str, Any]:
        """What counts: not the label, and seeds and episodes belong to the trial."""
        return {"name": self.name, "settings": dict(self.settings)}

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        own = {"seeds": self.seeds, "episodes": self.episodes}
        data = {"label": self.label, "name": self.name, "settings": dict(self.settings)}
        return data | {name: value for name, value in own.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AgentSpec:
        """From what `to_json` gives."""
        return cls(data["label"], data["name"], data["settings"], data.get("seeds"), data.get("episodes"))


def is_model_file(name: str) -> bool:
    """Whether a file is meant: no problem of the catalogue has a dot or a slash in its name."""
    return bool(Path(name).suffix) or "/" in name or "\\" in name
