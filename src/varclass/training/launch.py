"""Where a run computes: the processes that `accelerate launch` started, or this one alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from varclass.core.options import check_positive
from varclass.training.batches import Share

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class Launch:
    """How to run: nothing in it changes what a run is, so it is no part of the spec."""

    device: str | None = None  # "cpu", "cuda", "cuda:1"; None takes a GPU if there is one
    compile: bool | None = None  # None: on a GPU, for runs long enough to earn it back
    deterministic: bool = True  # the same numbers again on the same machine; off, a GPU may be faster
    checkpoint_seconds: float = 30.0  # at least so long between two checkpoints; 0 saves every step

    def __post_init__(self) -> None:
        check_positive("checkpoint_seconds", self.checkpoint_seconds, zero=True)


def make_accelerator(device: str | None) -> Accelerator:
    """Accelerate's handle on the processes and the device of this one."""
    from accelerate import Accelerator  # noqa: PLC0415
    from accelerate.state import AcceleratorState, PartialState  # noqa: PLC0415

    kind = torch.device(check_device(device)).type if device else None
    state = PartialState._shared_state
    if state and state.get("num_processes", 1) == 1 and kind and state["device"].type != kind:
        AcceleratorState._reset_state(reset_partial_state=True)  # an earlier run in this process was on another device
    if device and device.startswith("cuda:"):
        torch.cuda.set_device(device)
    return Accelerator(cpu=kind == "cpu")


def world_size() -> int:
    """How many processes were launched together, as launchers say it to each."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def share_of(accelerator: Accelerator) -> Share:
    """This process's part of every batch."""
    return Share(accelerator.process_index, accelerator.num_processes)


def make_deterministic(launch: Launch) -> None:
    """Have cuDNN take the same kernels every time, or the fastest it finds."""
    torch.backends.cudnn.deterministic = launch.deterministic
    torch.backends.cudnn.benchmark = not launch.deterministic


def check_device(device: str) -> str:
    """The name of a device that is there."""
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise ValueError(f"device must be cpu, cuda or cuda:<number>; got {device!r}") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {device!r} was asked for, but torch sees no GPU here; got CPU only: use --device cpu")
    return device
