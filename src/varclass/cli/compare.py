"""varclass compare: objectives x seeds, trained, evaluated and reported by one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from varclass.training.spec import RunSpec

EXAMPLES = """Examples:

varclass compare digits --objectives ce,vc,pull --seeds 5

varclass compare mnist --encoder lenet --epochs 60 --limits 100,500,2000 --suite clean,shift,adversarial,latents

varclass compare cifar10 --config wrn.toml --seeds 3 --suite clean,ood --ood svhn,cifar100
"""


def compare(
    data: Annotated[str | None, typer.Argument(help="A name ('varclass data list') or a path.")] = None,
    objectives: Annotated[str, typer.Option("--objectives", help="With commas between.")] = "ce,gm,vc,pull",
    seeds: Annotated[int, typer.Option("--seeds", help="How many: 0, 1, 2, ...")] = 3,
    limits: Annotated[str, typer.Option("--limits", help="Training-set sizes, with commas between; all samples.")] = "",
    suite: Annotated[str, typer.Option("--suite", help="Of clean, shift, ood, adversarial, latents.")] = "clean,latents",
    ood: Annotated[str, typer.Option("--ood", help="Data sets of outliers, with commas between.")] = "",
    severities: Annotated[str, typer.Option("--severities", help="Of the corruptions.")] = "1,2,3,4,5",
    epsilons: Annotated[str, typer.Option("--epsilons", help="Of the attacks.")] = "0.01,0.02,0.05,0.1,0.2",
    samples: Annotated[int | None, typer.Option("--samples", help="Test samples of the shift, ood and adversarial suites; all.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    config: Annotated[Path | None, typer.Option("--config", help="A TOML file of settings that all runs share; flags override it.")] = None,
    encoder: Annotated[str | None, typer.Option("--encoder", help="As fit has them, of all runs.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", help="Of every run.")] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="Of every run.")] = None,
    lr: Annotated[float | None, typer.Option("--lr", help="Peak learning rate of every run.")] = None,
    data_root: Annotated[Path | None, typer.Option("--data-root", help="Where data sets lie.")] = None,
    runs_dir: Annotated[Path, typer.Option("--runs-dir", help="Where runs are written.")] = Path("runs"),
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1; a GPU if there is one.")] = None,
) -> int:  # fmt: skip
    """Fit every objective on every seed with the same settings, evaluate all of them, and write one page.

    Stopped, the same command goes on where it was: finished runs and evaluations are not done again.
    """
    import torch  # noqa: PLC0415

    from varclass.cli.evaluate import read_names, read_numbers  # noqa: PLC0415
    from varclass.cli.progress import Progress, quiet_libraries  # noqa: PLC0415
    from varclass.evaluation import compare as comparing  # noqa: PLC0415
    from varclass.evaluation.subject import Options  # noqa: PLC0415
    from varclass.report.page import report  # noqa: PLC0415
    from varclass.training.interruption import Interrupted  # noqa: PLC0415
    from varclass.training.launch import Launch, check_device  # noqa: PLC0415
    from varclass.training.spec import RunSpec, override, read_spec  # noqa: PLC0415

    if data is None and config is None:
        raise ValueError("compare needs DATA or --config; got neither (varclass compare --help has examples)")
    quiet_libraries()
    changes: dict[str, Any] = {"data.name": data, "encoder.name": encoder, "training.epochs": epochs}
    changes |= {"training.batch_size": batch_size, "training.lr": lr}
    spec = override(RunSpec() if config is None else read_spec(config), changes)
    sizes = read_numbers("--limits", limits, int) or (spec.data.limit,)
    specs = comparing.plan(spec, read_names(objectives), range(seeds), sizes)
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    options = Options(
        data_root=None if data_root is None else str(data_root), device=check_device(where), outliers=read_names(ood),
        severities=read_numbers("--severities", severities, int), epsilons=read_numbers("--epsilons", epsilons, float), samples=samples,
    )  # fmt: skip

    def began(position: int, spec: RunSpec) -> None:
        size = "" if spec.data.limit is None else f", {spec.data.limit} samples"
        typer.echo(f"[{position + 1}/{len(specs)}] {spec.head.objective}, seed {spec.seed}{size}", err=True)

    try:
        runs = comparing.compare(
            specs,
            read_names(suite),
            options,
            runs_dir,
            launch=Launch(device),
            reporter=lambda: Progress(brief=True),
            began=began,
        )
    except Interrupted as interrupted:
        typer.echo("stopped and saved: the same command goes on where it was", err=True)
        return interrupted.exit_code
    typer.echo(str(report([run.path for run in runs], output)))
    return 0
