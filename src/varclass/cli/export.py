"""varclass export: a trained run as a file that runs without varclass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """Examples:

varclass export runs/cifar10-wrn-28-10-vc-s0-1a2b3c4d --to onnx

varclass export runs/digits-mlp-vc-s0-1a2b3c4d --to torch -o exported/
"""


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a trained run.")],
    to: Annotated[str, typer.Option("--to", help=r"onnx (pip install 'varclass\[onnx]') or torch (torch.export, .pt2).")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder to write; RUN/onnx or RUN/torch.")] = None,
    data_root: Annotated[Path | None, typer.Option("--data-root", help="Where data lies, if the check may use it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the paths as JSON.")] = False,
) -> None:
    """Export a run: log p(z, y), p(y|x) and log p(z) as named outputs, any batch size, with a model card.

    The file is compared with PyTorch before it is put in place. The training data need not be there.
    """
    from varclass.cli.progress import quiet_libraries  # noqa: PLC0415
    from varclass.exporting.model import CARD, LABELS  # noqa: PLC0415
    from varclass.exporting.run import export_run  # noqa: PLC0415
    from varclass.training.runs import Run  # noqa: PLC0415

    quiet_libraries()
    path = export_run(Run.open(run), to, output, data_root)
    paths = {"model": str(path), "labels": str(path.with_name(LABELS)), "card": str(path.with_name(CARD))}
    typer.echo(json.dumps(paths, indent=1) if as_json else "\n".join(paths.values()))
