"""Run: one folder under runs/, and what is in it.

runs/<id>/  spec.toml           every setting
            record.json         status, task, versions, commit, device, seconds, results
            history.jsonl       what was logged
            model.safetensors   the trained weights, once it has finished
            checkpoints/        to go on from, until it has
            folds/              the runs of cross-fitting, until it has
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from varclass.atomic import PARTIAL
from varclass.classifier import Classifier
from varclass.training.files import save_tensors, sha256, write_json, write_text
from varclass.training.history import History
from varclass.training.model import build_model
from varclass.training.spec import RunSpec, read_spec, to_toml
from varclass.training.task import Task

FINISHED, STOPPED, RUNNING, FAILED = "finished", "stopped", "running", "failed"


@dataclass(frozen=True)
class Run:
    """A run on disk."""

    path: Path

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """The run in a folder; a ValueError says what is missing if it is none."""
        path = Path(path)
        for name in ("spec.toml", "record.json"):
            if not (path / name).is_file():
                raise ValueError(f"{path} is not a run: it has no {name} (varclass runs lists them)")
        return cls(path)

    @classmethod
    def create(cls, path: Path, spec: RunSpec, record: dict[str, Any]) -> Run:
        """A new run folder, or the one that is there already."""
        path.mkdir(parents=True, exist_ok=True)
        if not (path / "record.json").exists():
            write_text(path / "spec.toml", to_toml(spec))
            write_json(path / "record.json", record)
        return cls(path)

    @property
    def spec(self) -> RunSpec:
        return read_spec(self.path / "spec.toml")

    @property
    def record(self) -> dict[str, Any]:
        try:
            return json.loads((self.path / "record.json").read_text())
        except json.JSONDecodeError as error:
            raise ValueError(f"{self.path / 'record.json'}: expected JSON; {error}") from None

    @property
    def history(self) -> History:
        return History(self.path / "history.jsonl")

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def folds(self) -> Path:
        return self.path / "folds"

    @property
    def weights(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def finished(self) -> bool:
        return self.weights.exists() and self.record["status"] == FINISHED

    def update(self, **changes: Any) -> None:
        """Change some entries of the record."""
        write_json(self.path / "record.json", self.record | changes)

    def finish(self, weights: dict[str, torch.Tensor], **results: Any) -> None:
        """Write the trained weights and the results, then let the checkpoints go."""
        partial = self.weights.with_name(self.weights.name + PARTIAL)
        try:
            save_tensors(partial, weights)
            partial.replace(self.weights)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        self.update(status=FINISHED, sha256=sha256(self.weights), **results)
        self.tidy()

    def tidy(self) -> None:
        """Remove what is of no use to a run that has finished."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        shutil.rmtree(self.folds, ignore_errors=True)

    def load_model(self, device: str | torch.device = "cpu") -> Classifier:
        """The trained classifier in eval mode, without its training data."""
        from safetensors import SafetensorError  # noqa: PLC0415
        from safetensors.torch import load_file  # noqa: PLC0415

        if not self.finished:
            raise ValueError(f"{self.path} has no trained model yet ({self.status}): varclass fit --resume {self.path}")
        spec, record = self.spec, self.record
        samples = record["samples"]["train"] + (0 if spec.data.fold is None else record["samples"]["validation"])
        model = build_model(spec, Task.from_dict(record["task"]), samples=samples)
        try:
            model.load_state_dict(load_file(self.weights))
        except (SafetensorError, RuntimeError) as error:
            raise ValueError(
                f"{self.weights}: expected the weights of this run; got {error}: train it again elsewhere"
            ) from None
        return model.to(device).eval()

    @contextmanager
    def locked(self, patience: float = 0.0) -> Iterator[None]:
        """No two processes train the same run at once; a lock dies with the process that holds it.

        Who only looks (`status`) holds it for a moment, so who trains has some seconds of patience.
        """
        try:
            import fcntl  # noqa: PLC0415
        except ImportError:  # Windows has none: there, nobody watches
            yield
            return
        end = time.monotonic() + patience
        with (self.path / "lock").open("w") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= end:
                        raise ValueError(f"{self.path} is being trained by another process") from None
                    time.sleep(0.05)
            yield

    @property
    def status(self) -> str:
        """What the record says, except that a run nobody is training is not running: it was killed."""
        status = str(self.record["status"])
        if status == RUNNING and (self.path / "lock").exists():
            try:
                with self.locked():
                    return STOPPED
            except ValueError:
                return RUNNING
        return status


def list_runs(folder: Path) -> list[Run]:
    """Every run in a folder, by name."""
    if not folder.is_dir():
        return []
    return [Run(path) for path in sorted(folder.iterdir()) if (path / "record.json").is_file()]
