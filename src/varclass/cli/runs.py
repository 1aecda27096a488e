"""varclass runs: list the runs there are, or show one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from varclass.training.runs import Run

EXAMPLES = """Examples:

varclass runs --where data=digits --where objective=vc --sort nll

varclass runs digits-lenet-vc-s0-1a2b3c4d

varclass runs --json | jq -r '.[] | select(.status == "finished").path'
"""
COLUMNS = ("id", "status", "data", "encoder", "objective", "seed", "epochs", "nll", "accuracy", "seconds")
NUMBERS = ("seed", "epochs", "nll", "accuracy", "seconds")


def runs(
    name: Annotated[str | None, typer.Argument(help="A run to show: its id, the beginning of it, or its folder.")] = None,
    where: Annotated[list[str] | None, typer.Option("--where", help="column=value; repeat for several.")] = None,
    sort: Annotated[str | None, typer.Option("--sort", help=f"One of {', '.join(COLUMNS)}; -nll for largest first.")] = None,
    runs_dir: Annotated[Path, typer.Option("--runs-dir", help="Where runs lie.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")] = False,
) -> None:
    """List the runs of a folder, filtered and sorted, or show one with its settings and history."""
    from varclass.training.runs import list_runs  # noqa: PLC0415

    if name is not None:
        _show(_find(name, runs_dir), as_json)
        return
    rows = [_row(run) for run in list_runs(runs_dir)]
    for condition in where or []:
        column, equals, value = condition.partition("=")
        _check_column("--where", column)
        if not equals:
            raise ValueError(f"--where must be column=value; got {condition!r}")
        rows = [row for row in rows if str(row[column]) == value]
    if sort is not None:
        column = sort.removeprefix("-")
        _check_column("--sort", column)
        held = [row for row in rows if row[column] is not None]
        held.sort(key=lambda row: row[column], reverse=sort.startswith("-"))
        rows = held + [row for row in rows if row[column] is None]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
    elif rows:
        from varclass.cli.table import print_table  # noqa: PLC0415

        print_table(COLUMNS, [[_cell(row[column]) for column in COLUMNS] for row in rows], numbers=NUMBERS)
    else:
        typer.echo(f"no runs in {runs_dir}{' that match' if where else ''}: varclass fit digits makes one")


def _row(run: Run) -> dict[str, Any]:
    try:
        record, spec, status = run.record, run.spec, run.status
    except (ValueError, KeyError):  # one damaged run does not hide the others
        return dict.fromkeys(COLUMNS) | {"id": run.path.name, "path": str(run.path), "status": "damaged"}
    score = record.get("validation") or record.get("cross_fit") or {}
    return {
        "id": run.path.name,
        "path": str(run.path),
        "status": status,
        "data": spec.data.name,
        "encoder": spec.encoder.name,
        "objective": spec.head.objective,
        "seed": spec.seed,
        "epochs": spec.training.epochs,
        "nll": score.get("nll"),
        "accuracy": score.get("accuracy"),
        "seconds": record["seconds"],
    }


def _show(run: Run, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"path": str(run.path), **run.record, "history": run.history.rows()}, indent=1))
        return
    from varclass.cli.progress import described  # noqa: PLC0415

    record = run.record
    typer.echo(f"{run.path}\n{run.status}, {record['seconds']:.1f} s, {record['samples']['train']} training samples\n")
    typer.echo((run.path / "spec.toml").read_text())
    if "head" in record:
        typer.echo(f"head: {described(record['head'])}\n")
    if crossed := record.get("cross_fit"):
        typer.echo(f"cross-fitted: accuracy {crossed['accuracy']:.4g}, NLL {crossed['nll']:.4g}, n = {crossed['n']}\n")
    scores = [row for row in run.history.rows() if "validation" in row]
    if scores:
        from varclass.cli.table import print_table  # noqa: PLC0415

        names = ("nll", "accuracy", "latent_mean", "latent_variance")
        cells = [[str(row["epoch"] + 1), *(_cell(row["validation"].get(name)) for name in names)] for row in scores]
        print_table(("epoch", *names), cells, numbers=("epoch", *names))


def _find(name: str, runs_dir: Path) -> Run:
    from varclass.training.runs import Run, list_runs  # noqa: PLC0415

    if (Path(name) / "record.json").is_file():
        return Run.open(name)
    found = [run for run in list_runs(runs_dir) if run.path.name.startswith(name)]
    if len(found) != 1:
        listed = ", ".join(run.path.name for run in found[:4])
        raise ValueError(f"expected one run in {runs_dir} whose id begins with {name!r}; got {listed or 'none'}")
    return found[0]


def _check_column(flag: str, column: str) -> None:
    if column not in COLUMNS:
        raise ValueError(f"{flag} must name one of {', '.join(COLUMNS)}; got {column!r}")


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
