"""How strong the pull should be where samples abound: betas on CIFAR, judged on training samples that were set aside.

    pip install 'varclass[train]'
    python benchmarks/weight.py [--data FOLDER] [--sets cifar10,cifar100] [--forms '0 0.1/D 1/D'] [--save results/weight]

No test sample is looked at: 5,000 samples of the training split are set aside and judged on, clean, corrupted (five types at
severity 3) and attacked (FGSM, PGD of ten steps). Of the others 4% are held out, and settle. The encoder is sprint-128, with
the schedule of the paper's recipes but fewer epochs. Beta 0 is softmax, settled as the others are. A form may name other
settings of the run after semicolons: '0;training.lr=1.2', '0.02;head.means="simplex";head.latent_dim=128'. A row that FILE.json
has is not run again; `--merge` takes those of another machine, and with `--seeds 0` nothing runs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rows import add_options, read_rows, save_rows
from varclass.data.loading import check_present
from varclass.data.sampling import subset
from varclass.data.split import Split
from varclass.evaluation.adversarial import adversarial
from varclass.evaluation.clean import TEMPERATURE, repairs
from varclass.evaluation.scorebook import Row
from varclass.evaluation.shift import shift
from varclass.evaluation.subject import Options, Subject
from varclass.metrics import over_seeds, score
from varclass.paper.arms import SOFTMAX
from varclass.paper.schedules import SPRINT, make_spec
from varclass.training.defaults import complete
from varclass.training.launch import Launch
from varclass.training.loop import fit
from varclass.training.provenance import provenance
from varclass.training.spec import RunSpec

ENCODER, EPOCHS, HELD_OUT, SET_ASIDE = "sprint-128", 25, 0.04, 5000
FORMS = ("0", "0.1/D", "1/D", "3/D", "10/D", "30/D")
CORRUPTIONS = ("gaussian_noise", "defocus_blur", "fog", "pixelate", "jpeg_compression")
MEASURED: dict[str, Any] = {
    "corruptions": CORRUPTIONS,
    "severities": (3,),
    "samples": 2500,
    "epsilons": (2 / 255, 8 / 255),
    "pgd_steps": 10,
}
KEY = ("set", "form", "seed")  # what makes two rows the same
COLUMNS = {  # unit and digits
    "accuracy": ("accuracy %", 100.0, 1),
    "nll": ("NLL", 1.0, 3),
    "ece": ("ECE %", 100.0, 1),
    "scaled_nll": ("after temperature scaling: NLL", 1.0, 3),
    "scaled_ece": ("ECE %", 100.0, 1),
    "corrupted_accuracy": ("corrupted: accuracy %", 100.0, 1),
    "corrupted_nll": ("NLL", 1.0, 3),
    "corrupted_ece": ("ECE %", 100.0, 1),
    "fgsm_2": ("FGSM 2/255: accuracy %", 100.0, 1),
    "fgsm_8": ("FGSM 8/255", 100.0, 1),
    "pgd_2": ("PGD 2/255", 100.0, 1),
}


class SetAside(Subject):
    """A run that is judged on the samples of the training split that it was not given, not on the test split."""

    @cached_property
    def test(self) -> Split:
        train = self.own("train")
        rows = replace(train, kind="vector", inputs=np.arange(len(train), dtype=np.float64)[:, None])
        given = np.asarray(subset(rows, self.run.spec.data.limit, self.seed).inputs)[:, 0].astype(int)
        rest = np.setdiff1d(np.arange(len(train)), given)
        return train.take(np.random.default_rng(0).permutation(rest)[:SET_ASIDE])


def main() -> None:
    """Train every form that FILE.json lacks, print the tables, save them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="the data root; as varclass.data finds it unless given")
    parser.add_argument("--sets", default="cifar10,cifar100")
    parser.add_argument("--forms", default=" ".join(FORMS), help="betas, with spaces between")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--limit", type=int, default=50_000 - SET_ASIDE, help="samples that are not set aside")
    parser.add_argument("--encoder", default=ENCODER)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=None)
    add_options(parser)
    options = parser.parse_args()
    rows = read_rows(parser, options, KEY)
    for name in options.sets.split(",") if options.seeds else ():
        try:
            check_present(name, options.data, ["train"])
            for form in options.forms.split():
                spec_of(name, form, 0, options)
        except (ValueError, TypeError) as error:
            parser.error(f"--sets {options.sets} --forms '{options.forms}': {error}")
    source = provenance(torch.device(options.device))
    origin = {"device": source["device"]["name"], "commit": source["commit"], "versions": source["versions"]}
    for name in options.sets.split(","):
        for form in options.forms.split():
            for seed in range(options.seeds):
                if (key := (name, form, seed)) in rows:
                    continue
                rows[key] = dict(zip(KEY, key, strict=True)) | measure(spec_of(*key, options), options) | origin
                print({each: value for each, value in rows[key].items() if each not in origin}, flush=True)
                save_rows(options, rows)
    text = as_markdown(list(rows.values()))
    print(text)
    save_rows(options, rows, text)


def spec_of(name: str, form: str, seed: int, options: argparse.Namespace) -> RunSpec:
    """The run of a form; a ValueError or TypeError if there is none such."""
    beta, *others = form.split(";")
    weight = float(beta) if beta.replace(".", "", 1).isdecimal() else beta
    head = {"head.objective": "pull", "head.beta": weight} if weight else SOFTMAX | {"head.separation": "auto"}
    changes = {key: json.loads(value) for key, _, value in (each.partition("=") for each in others)}
    changes = {key: tuple(value) if isinstance(value, list) else value for key, value in changes.items()}
    fewer = {"data.validation": HELD_OUT, "data.limit": options.limit, "training.epochs": options.epochs}
    return complete(make_spec(name, options.encoder, SPRINT | head | fewer | changes, seed), "image")


def measure(spec: RunSpec, options: argparse.Namespace) -> dict[str, Any]:
    """One form, trained on what is not set aside, and judged on what is."""
    with tempfile.TemporaryDirectory() as folder:
        run = fit(
            spec, Path(folder), data_root=options.data, launch=Launch(options.device, options.compile, deterministic=False)
        )
        print(f"{run.record['seconds']:.0f} s", flush=True)
        subject = SetAside(run, Options(data_root=options.data, device=options.device, **MEASURED))
        clean = score(subject.test_predictions)
        scaled = score(repairs(subject)[TEMPERATURE].apply(subject.test_predictions))
        found: dict[str, Any] = {"n": len(subject.test), "epochs": spec.training.epochs}
        found |= {each: clean[each] for each in ("accuracy", "nll", "ece")}
        found |= {f"scaled_{each}": scaled[each] for each in ("nll", "ece")}
        corrupted = [row for row in shift(subject) if row.method == "raw"]
        found |= {f"corrupted_{each}": _mean(corrupted, each) for each in ("accuracy", "nll", "ece")}
        for row in adversarial(subject):
            found[f"{row.condition['attack']}_{row.condition['epsilon'] * 255:.0f}"] = row.scores["accuracy"]
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in found.items()}


def _mean(rows: list[Row], name: str) -> float:
    return float(np.mean([row.scores[name] for row in rows]))


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """One table a set: means over seeds."""
    return "\n".join(_lines(rows)) + "\n"


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield (
        f"`python benchmarks/weight.py`, {ENCODER}. Judged on training samples that were set aside; means over seeds. Its "
        "docstring says what is measured."
    )
    for name in dict.fromkeys(row["set"] for row in rows):
        held = [row for row in rows if row["set"] == name]
        numbers = {each: " or ".join(map(str, sorted({row[each] for row in held}))) for each in ("epochs", "n")}
        yield from ("", f"{name}, {numbers['epochs']} epochs, n = {numbers['n']}:", "")
        yield f"| beta | {' | '.join(title for title, _, _ in COLUMNS.values())} | seeds |"
        yield "|---" * (len(COLUMNS) + 2) + "|"
        for form in dict.fromkeys(row["form"] for row in held):
            own = [row for row in held if row["form"] == form]
            cells = []
            for key, (_, unit, digits) in COLUMNS.items():
                values = [unit * row[key] for row in own if key in row]
                cells.append(f"{over_seeds(values).mean:.{digits}f}" if values else "-")
            yield f"| {'0: softmax, settled' if form == '0' else form} | {' | '.join(cells)} | {len(own)} |"
    for device, commit, versions in dict.fromkeys(
        (row["device"], row["commit"], ", ".join(f"{package} {number}" for package, number in row["versions"].items()))
        for row in rows
    ):
        yield from ("", f"On {device}; {versions}; commit {commit}.")


if __name__ == "__main__":
    main()
