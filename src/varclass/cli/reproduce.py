"""varclass reproduce: a table or figure of the paper, our number beside the paper's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from varclass.paper.measured import Measured
    from varclass.paper.measuring import Job
    from varclass.paper.recipe import Recipe

EXAMPLES = """Examples:

varclass reproduce --list

varclass reproduce low-data --data-root data

varclass reproduce calibration corruptions ood adversarial --full --seeds 3 --only cifar10,cifar100 --drop-models

varclass reproduce calibration --full --only cifar10 --encoders sprint-128 --processes 8

varclass reproduce calibration --merge elsewhere/calibration.json
"""


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Which ('--list' names them), or all. Several share their models.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="Name every table and figure, and leave.")] = False,
    full: Annotated[bool, typer.Option("--full/--quick", help="The paper's encoders and 5 seeds; or a small encoder, in minutes on a CPU.")] = False,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="How many: 0, 1, 2, ...")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1)] = None,
    objectives: Annotated[str, typer.Option("--objectives", help="Some of ce, gm, vc, pull (the default), authors, vmf, ..., with commas between.")] = "",
    only: Annotated[str, typer.Option("--only", help="Some of the data sets, with commas between.")] = "",
    encoders: Annotated[str, typer.Option("--encoders", help="Some of the encoders, with commas between.")] = "",
    results_dir: Annotated[Path, typer.Option("--results-dir", help="Results and pages; what lies there is not measured again.")] = Path("reproduced"),
    runs_dir: Annotated[Path, typer.Option("--runs-dir", help="Where models are trained.")] = Path("runs"),
    drop_models: Annotated[bool, typer.Option("--drop-models", help="Remove each model once it is measured.")] = False,
    merge: Annotated[list[Path] | None, typer.Option("--merge", help="Take in results of NAME from another file, and train nothing.")] = None,
    processes: Annotated[int, typer.Option("--processes", min=1, help="Models at once, on the same device: small ones leave most of a GPU idle.")] = 1,
    data_root: Annotated[Path | None, typer.Option("--data-root", help="Where data sets lie.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1; a GPU if there is one.")] = None,
    deterministic: Annotated[bool, typer.Option("--deterministic/--no-deterministic", help="The same numbers again, or a GPU's fastest kernels.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print findings as JSON.")] = False,
) -> int:  # fmt: skip
    """Run a table or figure of the paper: a page and a results file with the paper's number, ours, and whether the claim holds.

    Stopped, the same command goes on where it was; results of several invocations and machines add up.
    """
    from varclass.cli.table import print_table  # noqa: PLC0415
    from varclass.paper.catalogue import RECIPES, pick_recipes  # noqa: PLC0415
    from varclass.training.interruption import Interrupted  # noqa: PLC0415

    if listing:
        print_table(("name", "in the paper", "what"), [[each.name, each.label, each.title] for each in RECIPES.values()])
        return 0
    if not names:
        raise ValueError(f"reproduce needs a name; got none: one of {', '.join(RECIPES)}, or all")
    recipes = pick_recipes(names)
    if results_dir.exists() and not results_dir.is_dir():
        raise ValueError(f"--results-dir must be a folder; got the file {results_dir}")
    try:
        if merge:
            held = _merge(recipes, merge, results_dir)
        else:
            from varclass.cli.evaluate import read_names  # noqa: PLC0415
            from varclass.paper.running import Request  # noqa: PLC0415

            request = Request(full, seeds, epochs, read_names(objectives), read_names(only), read_names(encoders))
            root = None if data_root is None else str(data_root)
            held = _run(recipes, request, results_dir, runs_dir, root, device, deterministic, drop_models, processes)
    except Interrupted as interrupted:
        typer.echo("stopped and saved: the same command goes on where it was", err=True)
        return interrupted.exit_code
    _tell(recipes, held, results_dir, as_json)
    return 0


def _run(
    recipes: list[Recipe],
    request: Any,
    results: Path,
    runs: Path,
    data_root: str | None,
    device: str | None,
    deterministic: bool,
    drop_models: bool,
    processes: int,
) -> dict[str, Measured]:
    import torch  # noqa: PLC0415

    from varclass.cli.progress import Progress, quiet_libraries  # noqa: PLC0415
    from varclass.core.options import check_choice  # noqa: PLC0415
    from varclass.paper import running  # noqa: PLC0415
    from varclass.paper.arms import ARMS, COMPARED  # noqa: PLC0415
    from varclass.paper.measuring import Place  # noqa: PLC0415
    from varclass.training.launch import Launch, check_device  # noqa: PLC0415

    quiet_libraries()
    for arm in request.arms:
        check_choice("objective", arm, ARMS if ":" in arm else COMPARED)
    where = check_device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    launch = Launch(where, deterministic=deterministic)
    place = Place(results, runs, data_root, launch, where, keep_runs=not drop_models, processes=processes)

    def began(position: int, total: int, job: Job) -> None:
        typer.echo(f"[{position + 1}/{total}] {job.experiment.key}, {job.arm}, seed {job.spec.seed}", err=True)

    def warn(message: str) -> None:
        typer.echo(f"note: {message}", err=True)

    return running.reproduce(recipes, request, place, reporter=lambda: Progress(brief=True), began=began, warn=warn)


def _merge(recipes: list[Recipe], files: list[Path], results: Path) -> dict[str, Measured]:
    from varclass.paper.measured import read_measured  # noqa: PLC0415

    if len(recipes) != 1:
        raise ValueError(f"--merge takes in the results of one recipe; got {', '.join(recipe.name for recipe in recipes)}")
    name = recipes[0].name
    path = results / f"{name}.json"
    held = read_measured(path, name)
    for file in files:
        if not file.is_file():
            raise ValueError(f"--merge expects a results file; there is no {file}")
        held = held.merged(read_measured(file, name))
    held.save(path)
    return {name: held}


def _tell(recipes: list[Recipe], held: dict[str, Measured], results: Path, as_json: bool) -> None:
    from varclass.paper.page import write_page  # noqa: PLC0415
    from varclass.paper.wording import forms  # noqa: PLC0415

    printed = []
    for recipe in recipes:
        measured = held[recipe.name]
        path = write_page(recipe, measured, results / f"{recipe.name}.html")
        found = [finding for part in forms(measured) for finding in recipe.findings(part)]
        sentences = [[check.sentence for check in finding.checks] for finding in found]
        for finding, lines in zip(found, sentences, strict=True):
            if not as_json:
                typer.echo(f"{finding.verdict}: {finding.claim} ({finding.counts})")
                for line in lines:
                    typer.echo(f"  {line}")
        typer.echo(str(path), err=as_json)
        claims = [{"claim": f.claim, "verdict": f.verdict, "hypothesis": f.hypothesis, "checks": s} for f, s in zip(found, sentences, strict=True)]  # fmt: skip
        printed.append({"recipe": recipe.name, "page": str(path), "findings": claims})
    if as_json:
        typer.echo(json.dumps(printed, indent=1))
