"""evaluate: suites on a trained run, their predictions and scores written beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

import torch

from varclass.core.options import check_choice
from varclass.data.catalogue import CATALOGUE
from varclass.data.loading import check_present
from varclass.evaluation.adversarial import adversarial
from varclass.evaluation.clean import clean
from varclass.evaluation.latents import latents
from varclass.evaluation.natural import natural
from varclass.evaluation.outliers import SELF, ood
from varclass.evaluation.scorebook import Row, read_rows, read_stamps, write_rows
from varclass.evaluation.shift import shift
from varclass.evaluation.subject import NOISE, Options, Subject
from varclass.evaluation.view import write_view
from varclass.training.provenance import provenance
from varclass.training.runs import Run

Suite = Callable[[Subject], Iterator[Row]]
SUITES: dict[str, Suite] = {
    "clean": clean,
    "natural": natural,
    "shift": shift,
    "ood": ood,
    "adversarial": adversarial,
    "latents": latents,
}
FOR_IMAGES = ("shift", "adversarial")
NONE: Mapping[str, Suite] = MappingProxyType({})


def evaluate(
    run: Run | str | Path,
    suites: Iterable[str] = ("clean",),
    options: Options | None = None,
    watch: Callable[[Row], None] = lambda row: None,
    *,
    again: bool = True,
    suites_beside: Mapping[str, Suite] = NONE,
) -> list[Row]:
    """Run suites on a trained run and write its scores.json; `watch` is told of each row as it comes.

    A suite's rows are written when all of it is done, in the place of its earlier ones; other suites' are kept. Without
    `again`, a suite that was measured on these weights with these options is left as it is. `suites_beside` are suites of
    the caller's own, by name.
    """
    subject = Subject(run if isinstance(run, Run) else Run.open(run), options or Options())
    chosen = list(dict.fromkeys(suites))
    known = {**SUITES, **suites_beside}
    check_asked(chosen, subject.options, subject.task.kind, known)
    found, stamp = [], stamp_of(subject)
    for name in chosen:
        if not again and read_stamps(subject.run).get(name) == stamp:
            found += [row for row in read_rows(subject.run) if row.suite == name]
            continue
        rows = []
        for row in known[name](subject):
            rows.append(row)
            watch(row)
        if name == "latents":
            write_view(subject)
        write_rows(subject.run, name, rows, stamp, provenance(torch.device(subject.options.device)))
        found += rows
    return found


def check_asked(
    suites: Iterable[str], options: Options, kind: str, known: Mapping[str, Suite] = MappingProxyType(SUITES)
) -> None:
    """A ValueError of what these suites cannot do for inputs of this kind, before anything is trained or measured."""
    for name in suites:
        check_choice("suite", name, known)
        if name in FOR_IMAGES and kind != "image":
            raise ValueError(f"suite {name!r} is for images; got inputs of kind {kind!r}")
    if "natural" in suites and not options.splits:
        raise ValueError("the natural suite needs further splits of the run's data; got none: --splits mnli")
    if "ood" not in suites:
        return
    if not options.outliers:
        raise ValueError("the ood suite needs data sets that belong to none of the classes; got none: --ood svhn,cifar100")
    for name in set(options.outliers) - {SELF, NOISE}:
        if name in CATALOGUE or not Path(name).expanduser().exists():
            check_present(name, options.data_root, ["test"])


def stamp_of(subject: Subject) -> str:
    """A digest of the weights and of every option that a score can depend on."""
    options = asdict(subject.options) | {"data_root": None, "device": None}
    held = json.dumps([subject.run.record.get("sha256"), options], sort_keys=True)
    return hashlib.sha256(held.encode()).hexdigest()[:16]
