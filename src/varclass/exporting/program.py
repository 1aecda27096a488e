"""torch.export: the model as a program with a dynamic batch, and as a .pt2 file."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from varclass.exporting.checking import check_same
from varclass.exporting.outputs import Outputs

if TYPE_CHECKING:
    from torch.export import ExportedProgram

FILE = "model.pt2"


def trace(outputs: Outputs, example: Tensor) -> ExportedProgram:
    """The graph of `outputs`, for any number of inputs shaped like the example's."""
    two = example[:2] if len(example) > 1 else torch.cat([example, example])  # a batch of one would be taken for a constant
    try:
        with quiet(), torch.no_grad():
            # strict: len(z), which the priors use, would be a constant otherwise
            made = torch.export.export(outputs, (two,), dynamic_shapes=({0: torch.export.Dim("batch")},), strict=True)
    except Exception as error:  # whatever an encoder of the user's own holds
        told = (str(error).splitlines() or [""])[0]
        raise ValueError(
            f"torch.export could not trace the model for any batch size: {type(error).__name__}: {told}"
        ) from error
    for node in made.graph.nodes:
        node.meta.pop("stack_trace", None)  # names files of the machine that exports
    made._example_inputs = None  # nobody's inputs travel with the file
    return made


def write_program(outputs: Outputs, example: Tensor, folder: Path, labels: str) -> dict[str, float]:
    """Write model.pt2 with labels.json inside it, and return the largest differences from PyTorch.

    The program is checked before it is saved: reading a .pt2 unpickles parts of it, and varclass reads no pickle.
    """
    program = trace(outputs, example)
    module = program.module()
    with torch.no_grad():
        worst = check_same(module, outputs, example)
    with quiet():
        torch.export.save(program, folder / FILE, extra_files={"labels.json": labels})
    return worst


@contextmanager
def quiet() -> Iterator[None]:
    """torch's exporters warn of their own inner workings, of which a user can change nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
