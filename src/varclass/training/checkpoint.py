"""Checkpoints: weights, optimizer and progress as safetensors and JSON, each a folder that is whole or not there.

    checkpoints/step-00000120/
        model.safetensors  optimizer.safetensors  [average.safetensors]  [best.safetensors]
        state.json         the step, what early stopping knows, the seed that every random number follows from, SHA-256 of
                           the others and of itself

Random numbers are a function of the seed and the step (see `batches`), so these two are the state of every generator and of
the sampler.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from varclass.training.files import new_folder, save_tensors, sha256, write_json

KEPT = 2  # checkpoints: the latest, and the one before in case the latest is damaged
FORMAT = 1
Tensors = dict[str, Tensor]


@dataclass
class Checkpoint:
    """Everything a run needs to go on as if it had not stopped."""

    step: int
    model: Tensors
    optimizer: Tensors
    progress: dict[str, Any] = field(default_factory=dict)
    average: Tensors | None = None
    best: Tensors | None = None


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint; once it is on disk the others go, except the one before it."""
    path = folder / f"step-{checkpoint.step:08d}"
    with new_folder(path) as partial:
        digests = {}
        for name in ("model", "optimizer", "average", "best"):
            tensors = getattr(checkpoint, name)
            if tensors is not None:
                save_tensors(partial / f"{name}.safetensors", {key: _plain(value) for key, value in tensors.items()})
                digests[name] = sha256(partial / f"{name}.safetensors")
        state = {"format": FORMAT, "step": checkpoint.step, "progress": checkpoint.progress, "sha256": digests}
        write_json(partial / "state.json", state | {"digest": _digest(state)})
    found = saved_steps(folder)
    done = found.index(path) + 1
    for other in (*found[: max(0, done - KEPT)], *found[done:]):  # later ones were damaged, or the run had gone on from there
        shutil.rmtree(other)
    return path


def load_checkpoint(folder: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The latest checkpoint that is whole; `warn` is told of each that is not. None if there is none to go on from."""
    found = saved_steps(folder)
    for path in reversed(found):
        try:
            return read_checkpoint(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            warn(f"checkpoint {path} is damaged ({error}); falling back to the one before it")
    if found:
        warn(f"no checkpoint in {folder} is whole: training starts again")
    return None


def read_checkpoint(path: Path) -> Checkpoint:
    """One checkpoint, its files checked against their digests."""
    from safetensors.torch import load_file  # noqa: PLC0415

    state = json.loads((path / "state.json").read_text())
    if state["format"] != FORMAT:
        raise ValueError(f"expected format {FORMAT}; got {state['format']!r}")
    if state.pop("digest") != _digest(state):
        raise ValueError("state.json does not match its checksum")
    held: dict[str, Any] = {}
    for name, digest in state["sha256"].items():
        file = path / f"{name}.safetensors"
        if sha256(file) != digest:
            raise ValueError(f"{file.name} does not match its checksum")
        held[name] = load_file(file)
    return Checkpoint(int(state["step"]), progress=state["progress"], **held)


def saved_steps(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted(path for path in folder.glob("step-????????") if path.is_dir())


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> Tensors:
    """An optimizer's state as named tensors: "<parameter>/<what>"."""
    held = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            for what, value in optimizer.state.get(parameter, {}).items():
                if value is not None:
                    held[f"{names[id(parameter)]}/{what}"] = torch.as_tensor(value)
    return held


def restore_optimizer(optimizer: torch.optim.Optimizer, held: Tensors, names: dict[int, str]) -> None:
    """Put named tensors back where `optimizer_tensors` found them."""
    states: dict[str, dict[str, Tensor]] = {}
    for key, value in held.items():
        name, _, what = key.rpartition("/")
        states.setdefault(name, {})[what] = value
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = states.pop(names[id(parameter)], None)
            if state is not None:
                # a step count stays on the CPU, where the optimizer keeps it
                moved = {what: v if what == "step" else v.to(parameter.device) for what, v in state.items()}
                optimizer.state[parameter] = moved
    if states:
        raise ValueError(f"the optimizer has no parameter {next(iter(states))!r}")


def _digest(state: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _plain(value: Tensor) -> Tensor:
    return value.detach().cpu().contiguous()
