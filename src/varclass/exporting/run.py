"""export_run: a trained run to a folder, with what was measured on its card. The training data need not be there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from torch import Tensor

from varclass.classifier import Classifier
from varclass.encoders.standardize import Standardize
from varclass.encoders.tokenizer import HashTokenizer
from varclass.evaluation.scorebook import read_rows
from varclass.evaluation.subject import Options, Subject
from varclass.exporting.about import About
from varclass.exporting.model import write_export
from varclass.training.model import as_tensor, model_input
from varclass.training.runs import Run
from varclass.training.spec import RunSpec, to_toml
from varclass.training.task import Task

RANDOM, REAL = 32, 32  # inputs a file is checked on
INPUTS = {
    "image": "Images as floats in [0, 1], channels first; scaling to mean 0 and deviation 1 is inside the model.",
    "vector": "Features as floats in their own units; scaling to mean 0 and deviation 1 is inside the model.",
    "text": "Token ids, padded with 0 at the end; the id of a word is 2 + CRC-32 mod (vocabulary - 2).",
}


def export_run(run: Run, to: str = "onnx", folder: str | Path | None = None, data_root: str | Path | None = None) -> Path:
    """Export a trained run, by default into its own folder; returns the path of the model file.

    It is checked on random inputs, and on test samples too where the data happens to be at hand.
    """
    model, task = run.load_model(), Task.from_dict(run.record["task"])
    example, real = random_inputs(model, task), _test_samples(run, data_root)
    about = describe(run, task)
    if real is not None:
        example = torch.cat([example, real])
        about = replace(about, checked_on=f"{RANDOM} random inputs and {len(real)} test samples")
    return write_export(model, example, run.path / to if folder is None else folder, to, about)


def describe(run: Run, task: Task) -> About:
    """What a run's files say of it."""
    spec, record = run.spec, run.record
    return About(
        name=run.path.name,
        classes=task.classes,
        input=INPUTS[task.kind],
        facts=tuple(_facts(spec, record)),
        head=str(record.get("head", "")),
        settings=to_toml(replace(spec, data=replace(spec.data, name=_public(spec.data.name)))),
        rows=tuple(read_rows(run)),
        tokenizer=HashTokenizer(length=task.shape[0]).spec() if task.kind == "text" else None,
        checked_on=f"{RANDOM} random inputs",
    )


def random_inputs(model: Classifier, task: Task) -> Tensor:
    """Inputs with the mean and spread of the training data, which the model knows; texts of words that do not exist."""
    rng = np.random.default_rng(0)
    if task.kind == "text":
        words = ["".join(map(chr, rng.integers(97, 123, 5))) for _ in range(200)]
        texts = [" ".join(rng.choice(words, rng.integers(0, 2 * task.shape[0]))) for _ in range(RANDOM)]
        return model_input(as_tensor(np.array(texts, dtype=object), task))
    noise = torch.from_numpy(rng.standard_normal((RANDOM, *task.shape), dtype=np.float32))
    scaling = next(part for part in model.modules() if isinstance(part, Standardize))
    size = (-1, 1, 1) if task.kind == "image" else (-1,)
    found = scaling.mean.view(size) + scaling.std.view(size) * noise
    return found.clamp(0, 1) if task.kind == "image" else found


def _test_samples(run: Run, data_root: str | Path | None) -> Tensor | None:
    """Some test samples, None where the data is not there: an export must not depend on it."""
    subject = Subject(run, Options(data_root))
    try:
        split = subject.test.take(np.arange(min(REAL, len(subject.test))))
        return model_input(as_tensor(np.asarray(split.inputs), subject.task)) if len(split) else None
    except (ValueError, OSError, ImportError):
        return None


def _facts(spec: RunSpec, record: dict[str, Any]) -> list[tuple[str, str]]:
    samples, origin = record["samples"], record.get("provenance", {})
    versions = ", ".join(f"{name} {version}" for name, version in origin.get("versions", {}).items())
    found = [
        ("data", _public(spec.data.name)),
        ("samples", f"{samples['train']} to train on, {samples['validation']} for validation"),
        ("fingerprint of the training data", str(record["fingerprint"])[:16]),
        ("encoder", str(spec.encoder.name)),
        ("objective", f"{spec.head.objective}, beta {spec.head.beta}"),
        ("prior", f"{spec.head.prior}, {spec.head.covariance}; means {spec.head.means}, separation {spec.head.separation}"),
        ("posterior", _posterior(spec)),
        ("training", f"{record.get('epochs', spec.training.epochs)} epochs, seed {spec.seed}, {record['seconds']:.0f} s"),
        ("device", str(origin.get("device", {}).get("name", "not recorded"))),
        ("versions", versions or "not recorded"),
        ("commit", str(origin.get("commit") or "not recorded")),
        ("SHA-256 of the weights", str(record.get("sha256", "not recorded"))),
    ]
    for name, title in (
        ("validation", "validation, in training"),
        ("cross_fit", "cross-fitted, by models without a fold each"),
    ):
        score = record.get(name) or {}
        if score.get("n"):
            found.append((title, f"accuracy {100 * score['accuracy']:.1f}%, NLL {score['nll']:.4f}, n = {score['n']}"))
    return found


def _posterior(spec: RunSpec) -> str:
    if spec.head.posterior != "gaussian":
        return str(spec.head.posterior)
    return "gaussian; the draws that predictions average over are fixed in the file, so the same input has the same output"


def _public(name: str) -> str:
    """A data set's name, or the last part of a path: where it lay is nobody's business."""
    return PurePath(name).name or name
