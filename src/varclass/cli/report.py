"""varclass report: from evaluated runs to one self-contained page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """Examples:

varclass report runs/digits-*

varclass report runs/cifar10-*-ce-* runs/cifar10-*-vc-* -o cifar10.html
"""


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of evaluated runs.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page to write.")] = Path("report.html"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the page's path and the comparisons as JSON.")] = False,
) -> None:
    """Write one page from evaluated runs: what improved and what got worse, tables, figures, settings. No network."""
    from varclass.report.page import report as write  # noqa: PLC0415

    path = write(runs, output)
    if not as_json:
        typer.echo(str(path))
        return
    from varclass.report.comparing import listed  # noqa: PLC0415
    from varclass.report.groups import group_runs  # noqa: PLC0415
    from varclass.report.markup import finite  # noqa: PLC0415
    from varclass.report.reading import read_runs  # noqa: PLC0415

    comparisons = finite(listed(group_runs(read_runs(runs))))
    typer.echo(json.dumps({"output": str(path), "comparisons": comparisons}, indent=1))
