"""varclass predict: what a trained run says about files."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """Examples:

varclass predict runs/cifar10-wrn-28-10-vc-s0-1a2b3c4d photos/*.png

varclass predict runs/ag_news-text-vc-s0-1a2b3c4d headlines.txt --json

varclass predict runs/mine-mlp-vc-s0-1a2b3c4d measurements.npy > predictions.csv
"""
EMPTY = "{}"  # a conformal set without a class; a blank is no set
FILES = (
    "Images; .npy, or .npz with an array x: uint8 images (N, height, width) or (N, height, width, 1 or 3), "
    "or float vectors (N, features); .txt with a text on each line."
)


def predict(
    run: Annotated[Path, typer.Argument(help="Folder of a trained run.")],
    files: Annotated[list[Path], typer.Argument(help=FILES)],
    alpha: Annotated[float, typer.Option("--alpha", help="What the conformal sets may miss.")] = 0.1,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of CSV.")] = False,
) -> None:
    """Class, probability, log p(z) with a typicality p-value, and a conformal set for each input; CSV on stdout.

    The p-value says how unusual log p(z) is among validation samples: small for inputs unlike the training data. It and
    the set need the run's validation predictions, and are blank without them: varclass evaluate RUN writes them. A set
    without a class is {}.
    """
    from varclass.cli.progress import quiet_libraries  # noqa: PLC0415
    from varclass.evaluation.verdict import judge  # noqa: PLC0415
    from varclass.training.launch import check_device  # noqa: PLC0415
    from varclass.training.runs import Run  # noqa: PLC0415

    quiet_libraries()
    rows = judge(Run.open(run), files, alpha, check_device(device))
    if rows and rows[0].typicality is None:
        typer.echo(f"note: no validation predictions beside {run}: varclass evaluate {run}", err=True)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=1))
        return
    writer = csv.writer(sys.stdout)
    writer.writerow(["input", "class", "probability", "log_p_z", "typicality", "conformal_set"])
    for row in rows:
        p_value = "" if row.typicality is None else f"{row.typicality:.4g}"
        members = "" if row.conformal_set is None else "|".join(row.conformal_set) or EMPTY
        writer.writerow([row.input, row.predicted, f"{row.probability:.6f}", f"{row.log_evidence:.4f}", p_value, members])
