"""varclass data: which sets there are, where they lie, getting them, and checking them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from varclass.cli.table import print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from varclass.data.entry import Entry
    from varclass.data.getting import Watch

app = typer.Typer(no_args_is_help=True, help="Data sets: list them, say where they lie, get them, check them.")
Name = Annotated[str, typer.Argument(help="A name that 'varclass data list' shows.", metavar="NAME")]
Root = Annotated[
    Path | None,
    typer.Option(
        "--data-root", help="The folder all sets are under. Default: $VARCLASS_DATA, else the platform's cache folder."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


@app.command("list", epilog="Example: varclass data list --json | jq '.[] | select(.present).name'")
def list_sets(data_root: Root = None, as_json: Json = False) -> None:
    """Every set that has a name: what it is, its size, whether it is here, its license."""
    from varclass.data.catalogue import CATALOGUE  # noqa: PLC0415
    from varclass.data.root import data_root as resolve  # noqa: PLC0415

    root = resolve(data_root)
    rows = [_summary(entry, root) for entry in CATALOGUE.values()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    columns = ("name", "kind", "classes", "train", "test", "size", "here", "license")
    print_table(columns, [[_cell(row, column) for column in columns] for row in rows], numbers=columns[2:6])


@app.command(epilog="Example: varclass data where mnist --data-root ~/data")
def where(
    name: Annotated[str | None, typer.Argument(help="A set; without one, only the data root.", metavar="[NAME]")] = None,
    data_root: Root = None,
    as_json: Json = False,
) -> None:
    """The data root, and the files a set wants under it."""
    from varclass.data.loading import pick  # noqa: PLC0415
    from varclass.data.root import data_root as resolve  # noqa: PLC0415

    root = resolve(data_root)
    if name is None:
        typer.echo(json.dumps({"root": str(root)}) if as_json else str(root))
        return
    entry = pick(name)
    wanted = dict.fromkeys(file for files in entry.files.values() for file in files)
    found = {file: entry.find(root, file) for file in wanted}
    if as_json:
        files = [{"file": str(path or root / file), "present": path is not None} for file, path in found.items()]
        typer.echo(json.dumps({"root": str(root), "name": name, "files": files}, indent=2))
        return
    typer.echo(f"{root}\n{name}: {entry.about} ({entry.license}; {entry.homepage})")
    for file, path in found.items():
        typer.echo(f"  {'here' if path else 'missing':<7}  {path or root / file}")
    if not all(found.values()):
        typer.echo(f"get what is missing with: varclass data get {name}")


@app.command(epilog="Example: varclass data get cifar10    (interrupted? the same command goes on where it stopped)")
def get(
    name: Name,
    data_root: Root = None,
    force: Annotated[bool, typer.Option("--force", help="Download again what is here already.")] = False,
    as_json: Json = False,
) -> None:
    """Download a set from its publisher, check it and unpack it."""
    from varclass.data.getting import get as bring  # noqa: PLC0415
    from varclass.data.loading import pick  # noqa: PLC0415
    from varclass.data.root import data_root as resolve  # noqa: PLC0415

    entry, root = pick(name), resolve(data_root)
    with _bars() as watch:
        done = bring(entry, root, watch, force=force)
    if as_json:
        typer.echo(json.dumps({"name": name, "root": str(root), "files": done}, indent=2))
        return
    for file, state in done.items():
        typer.echo(f"{state:<10}  {file}")
    typer.echo(f"{name} is under {root}" if done else f"{name}: nothing to get, it comes with scikit-learn")


@app.command(epilog="Example: varclass data verify mnist && echo complete")
def verify(name: Name, data_root: Root = None, as_json: Json = False) -> None:
    """Check a set's files and read them: exit code 1 if anything is missing, changed or not what it should be."""
    from dataclasses import asdict  # noqa: PLC0415

    from varclass.data.loading import pick  # noqa: PLC0415
    from varclass.data.root import data_root as resolve  # noqa: PLC0415
    from varclass.data.verifying import verify as check  # noqa: PLC0415

    findings = check(pick(name), resolve(data_root))
    fine = all(finding.state != "wrong" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"name": name, "ok": fine, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        print_table(("what", "state", "detail"), [[finding.what, finding.state, finding.detail] for finding in findings])
        open_ones = sum(finding.state == "unverified" for finding in findings)
        fully = f"complete ({open_ones} without a published checksum)" if open_ones else "complete"
        typer.echo(f"{name}: {fully if fine else 'not complete, or not as published'}")
    if not fine:
        raise typer.Exit(1)


def _summary(entry: Entry, root: Path) -> dict[str, Any]:
    here = entry.present(root)
    return {
        "name": entry.name,
        "about": entry.about,
        "kind": entry.kind,
        "classes": entry.num_classes,
        "samples": dict(entry.samples),
        "bytes": entry.size,
        "present": len(here) == len(entry.files),
        "splits_present": here,
        "license": entry.license,
        "homepage": entry.homepage,
    }


def _cell(row: dict[str, Any], column: str) -> str:
    if column in {"train", "test"}:
        return f"{row['samples'][column]:,}"
    if column == "size":
        return "-" if row["bytes"] == 0 else "?" if row["bytes"] is None else f"{row['bytes'] / 1e6:,.1f} MB"
    if column == "here":
        return "yes" if row["present"] else "partly" if row["splits_present"] else "no"
    return str(row[column])


@contextmanager
def _bars() -> Iterator[Watch]:
    """One progress bar per download, on stderr."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:

        def watch(source: Any) -> Any:
            bar = progress.add_task(source.path, total=source.size)
            return lambda have, total: progress.update(bar, completed=have, total=total or source.size)

        yield watch
