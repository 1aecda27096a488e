"""export: a classifier to a folder with the file, its labels and its card; written and checked first, then put in place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from varclass.classifier import Classifier
from varclass.core.options import check_choice
from varclass.exporting import onnx, program
from varclass.exporting.about import About
from varclass.exporting.card import write_card
from varclass.exporting.checking import enough_rows
from varclass.exporting.onnx import need_onnx, write_onnx
from varclass.exporting.outputs import Outputs
from varclass.exporting.program import write_program
from varclass.training.files import new_folder, write_text

FILES = {"onnx": onnx.FILE, "torch": program.FILE}
LABELS, CARD = "labels.json", "MODEL_CARD.md"
INTEGERS = (torch.int32, torch.int64)


def export(
    model: Classifier, example: Tensor, folder: str | Path, *, to: str = "onnx", classes: Sequence[str] | None = None
) -> Path:
    """Export a classifier: log p(z, y), p(y|x) and log p(z) as named outputs, for any batch size, checked against PyTorch.

    Writes model.onnx or model.pt2, labels.json and MODEL_CARD.md into the folder, or nothing if the check fails. The model
    given stays as it is. `varclass export RUN` does the same for a run, with what was measured on the card.

    Args:
        model: the classifier; it is exported in eval mode and float32.
        example: inputs as the model takes them, one tensor, batch first; the file is checked on them.
        folder: a new folder, or one with an earlier export of the same kind.
        to: "onnx" (`pip install 'varclass[onnx]'`) or "torch".
        classes: names of the classes; "0", "1", ... if None.
    """
    if not isinstance(model, Classifier):
        raise TypeError(f"export takes a Classifier; got {type(model).__name__}: Classifier(encoder, head) makes one")
    count = model.head.num_classes
    names = tuple(str(k) for k in range(count)) if classes is None else tuple(str(name) for name in classes)
    if len(names) != count:
        raise ValueError(f"classes must have {count} names, as the head has classes; got {len(names)}")
    about = About(type(model.encoder).__name__, names, "As the encoder takes it.", head=repr(model.head))
    return write_export(model, example, folder, to, about)


def write_export(model: Classifier, example: Tensor, folder: str | Path, to: str, about: About) -> Path:
    """`export` with a card that knows more."""
    folder = Path(folder)
    check_choice("to", to, FILES)
    check_folder(folder, to)
    if to == "onnx":
        need_onnx()
    example = enough_rows(_checked(example))
    outputs = Outputs(model)
    with new_folder(folder) as partial:
        labels = about.labels_text(example)
        if to == "onnx":
            worst = write_onnx(outputs, example, partial, about.labels(example))
        else:
            worst = write_program(outputs, example, partial, labels)
        write_text(partial / LABELS, labels)
        write_text(partial / CARD, write_card(about, to, example, worst))
    return folder / FILES[to]


def check_folder(folder: Path, to: str) -> None:
    """A ValueError if anything but an earlier export would be replaced."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} must be a folder to export into; it is a file")
    held = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
    others = sorted(held - {FILES[to], LABELS, CARD})
    if others:
        raise ValueError(f"{folder} must be new, or hold an earlier export to {to}; it has {others[0]}: name another folder")


def _checked(example: Tensor) -> Tensor:
    if not isinstance(example, Tensor) or example.dim() < 2 or not len(example):
        got = f"shape {tuple(example.shape)}" if isinstance(example, Tensor) else type(example).__name__
        raise TypeError(f"example must be one tensor of inputs (B, ...), B at least 1; got {got}")
    if not example.is_floating_point() and example.dtype not in INTEGERS:
        raise TypeError(f"example must hold floats or token ids (int32, int64); got {example.dtype}")
    example = example.detach().cpu()
    return example.float() if example.is_floating_point() else example
