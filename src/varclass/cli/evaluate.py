"""varclass evaluate: suites on trained runs, predictions and scores written beside them."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from varclass.evaluation.scorebook import Row

EXAMPLES = """Examples:

varclass evaluate runs/digits-lenet-vc-s0-1a2b3c4d

varclass evaluate runs/cifar10-* --suite clean,shift,ood,adversarial,latents --ood svhn,cifar100

varclass evaluate runs/cifar10-* --suite shift --corrupted ~/data/CIFAR-10-C --severities 1,5
"""
MOST_CLASSES = 20
SHOWN = ("accuracy", "nll", "ece", "brier", "auroc", "fpr95", "coverage", "size", "variance", "kl")


def evaluate(
    runs: Annotated[list[Path], typer.Argument(help="Folders of trained runs.")],
    suite: Annotated[str, typer.Option("--suite", help="Of clean, natural, shift, ood, adversarial, latents, with commas between.")] = "clean",
    ood: Annotated[str, typer.Option("--ood", help="Data sets of outliers, with commas between; 'oos' is the set's own, 'noise' needs none.")] = "",
    corruptions: Annotated[str, typer.Option("--corruptions", help="Types of corruption; the 15 standard ones.")] = "",
    severities: Annotated[str, typer.Option("--severities", help="Of 1,2,3,4,5.")] = "1,2,3,4,5",
    corrupted: Annotated[Path | None, typer.Option("--corrupted", help="Folder of the published CIFAR-C arrays, instead of generated ones.")] = None,
    keep_log_joints: Annotated[bool, typer.Option("--keep-log-joints", help="Of corrupted images too.")] = False,
    epsilons: Annotated[str, typer.Option("--epsilons", help="Magnitudes of the attacks, pixels in [0, 1].")] = "0.01,0.02,0.05,0.1,0.2",
    pgd_steps: Annotated[int, typer.Option("--pgd-steps")] = 20,
    training_loss: Annotated[bool, typer.Option("--training-loss", help="Attack the whole training loss too.")] = False,
    samples: Annotated[int | None, typer.Option("--samples", help="Test samples of the shift, ood and adversarial suites; all.")] = None,
    mc_dropout: Annotated[int, typer.Option("--mc-dropout", help="Passes of Monte-Carlo dropout; 0 for none.")] = 0,
    splits: Annotated[str, typer.Option("--splits", help="Further labelled splits of the run's data, for the natural suite.")] = "",
    ensemble: Annotated[bool, typer.Option("--ensemble", help="Score the average of all these runs' test predictions too.")] = False,
    alpha: Annotated[float, typer.Option("--alpha", help="What conformal sets may miss.")] = 0.1,
    data_root: Annotated[Path | None, typer.Option("--data-root", help="Where data sets lie.")] = None,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print every row as JSON.")] = False,
) -> None:  # fmt: skip
    """Score trained runs: accuracy, calibration, shift, outliers, attacks, latents. Predictions keep the log joint."""
    from varclass.cli.progress import quiet_libraries  # noqa: PLC0415
    from varclass.cli.table import print_table  # noqa: PLC0415
    from varclass.evaluation.clean import average_runs  # noqa: PLC0415
    from varclass.evaluation.evaluate import evaluate as measure  # noqa: PLC0415
    from varclass.evaluation.scorebook import plain  # noqa: PLC0415
    from varclass.evaluation.subject import Options  # noqa: PLC0415
    from varclass.training.launch import check_device  # noqa: PLC0415

    if ensemble and len(runs) < 2:
        raise ValueError(f"an ensemble needs at least two members; got {len(runs)}: name several runs")
    quiet_libraries()
    options = Options(
        data_root=data_root, device=check_device(device), corruptions=read_names(corruptions), severities=read_numbers("--severities", severities, int),
        corrupted=None if corrupted is None else str(corrupted), samples=samples, splits=read_names(splits), outliers=read_names(ood),
        epsilons=read_numbers("--epsilons", epsilons, float), pgd_steps=pgd_steps, training_loss=training_loss, passes=mc_dropout,
        alpha=alpha, keep_log_joints=keep_log_joints,
    )  # fmt: skip
    printed: list[dict[str, Any]] = []
    for run in runs:
        found = measure(run, read_names(suite), options, watch=_tell)
        _tell(None)
        if as_json:
            printed += [{"run": str(run), **plain(asdict(row))} for row in found]
            continue
        found, hidden = few_classes(found)
        shown = [name for name in SHOWN if any(name in row.scores for row in found)]
        cells = [
            [row.suite, row.method, _condition(row), str(row.n), *(_cell(row.scores.get(name)) for name in shown)]
            for row in found
        ]
        typer.echo(str(run))
        print_table(("suite", "method", "condition", "n", *shown), cells, numbers=("n", *shown))
        if hidden:
            typer.echo(f"latents of {hidden} classes one by one: {run / 'scores.json'}, or --json")
    if ensemble:
        row = average_runs(runs)
        printed.append({"run": "ensemble", **plain(asdict(row))})
        if not as_json:
            shown = [name for name in SHOWN if name in row.scores]
            typer.echo(f"ensemble of {len(runs)} runs, n = {row.n}: " + ", ".join(f"{k} {_cell(row.scores[k])}" for k in shown))
    if as_json:
        typer.echo(json.dumps(printed, indent=1))


def _tell(row: Row | None) -> None:
    """One line that follows the work, where somebody watches."""
    if sys.stderr.isatty():
        text = "" if row is None else f"{row.suite}: {_condition(row)}"
        sys.stderr.write(f"\r\x1b[2K{text[:120]}")


def few_classes(rows: list[Row]) -> tuple[list[Row], int]:
    """Without the latents of each class where they would fill the screen; and how many these are."""
    rest = [row for row in rows if row.suite != "latents" or row.condition["class"] == "all"]
    hidden = len(rows) - len(rest)
    return (rest, hidden) if hidden > MOST_CLASSES else (rows, 0)


def _condition(row: Row) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.condition.items() if name != "seed")


def read_names(given: str) -> tuple[str, ...]:
    """Names with commas between."""
    return tuple(name for name in given.split(",") if name)


def read_numbers(flag: str, given: str, kind: type) -> tuple[Any, ...]:
    """Numbers with commas between."""
    try:
        return tuple(kind(each) for each in read_names(given))
    except ValueError:
        raise ValueError(f"{flag} must be numbers with commas between; got {given!r}") from None


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "-" if value is None else str(value)
