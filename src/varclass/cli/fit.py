"""varclass fit: train one run, or go on with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLES = """Examples:

varclass fit digits

varclass fit cifar10 --encoder wrn-28-10 --objective vc --epochs 200 --augment crop,flip --precision bf16

varclass fit my-images/ --encoder resnet-18 --limit 1000 --seed 3

varclass fit --config run.toml --lr 0.05

varclass fit --resume runs/digits-lenet-vc-s0-1a2b3c4d

accelerate launch --num_processes 4 -m varclass fit cifar100 --encoder resnet-50
"""
DATA, MODEL, TRAINING, PLACE = "Data", "Encoder and head", "Training", "Where and how"


def option(*names: str, panel: str, help: str, **more: Any) -> Any:
    """A typer option under a heading of the help page."""
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, **more)


def fit(
    data: Annotated[str | None, typer.Argument(help="A name ('varclass data list') or a path: folder, .npz, .csv, .jsonl.")] = None,
    config: Annotated[Path | None, option("--config", panel=PLACE, help="A TOML file of settings; flags override it.")] = None,
    resume: Annotated[Path | None, option("--resume", panel=PLACE, help="Go on with the run in this folder.")] = None,
    limit: Annotated[int | None, option("--limit", panel=DATA, help="Training samples at most, stratified.")] = None,
    per_class: Annotated[int | None, option("--per-class", panel=DATA, help="Training samples of every class.")] = None,
    validation: Annotated[float | None, option("--validation", panel=DATA, help="Share of the training split held out; 0.1.")] = None,
    cross_fit: Annotated[int | None, option("--cross-fit", panel=DATA, help="Folds that say how sure to be; 5 where fewer than 20 are held out.")] = None,
    image_size: Annotated[int | None, option("--image-size", panel=DATA, help="Height and width that your own images are scaled to.")] = None,
    length: Annotated[int | None, option("--length", panel=DATA, help="Tokens of a text; 64.")] = None,
    encoder: Annotated[str | None, option("--encoder", panel=MODEL, help="wrn-28-10, resnet-18, sprint-128, lenet, mlp, text, ... or module:Class.")] = None,
    encoder_option: Annotated[list[str] | None, option("--encoder-option", panel=MODEL, help="name=value, value as JSON; repeatable.")] = None,
    dropout: Annotated[float | None, option("--dropout", panel=MODEL, help="Probability; 0.")] = None,
    objective: Annotated[str | None, option("--objective", panel=MODEL, help="pull (the default), ce, gm, vc, bottleneck, authors.")] = None,
    beta: Annotated[str | None, option("--beta", panel=MODEL, help="Weight of the KL or the pull: a number, one such as 1/D, or auto (the pull's): less from more samples.")] = None,
    latent_dim: Annotated[int | None, option("--latent-dim", panel=MODEL, help="Dimension of z; the classes', or that of the features.")] = None,
    prior: Annotated[str | None, option("--prior", panel=MODEL, help="gaussian, vmf (with --objective vc unless given).")] = None,
    covariance: Annotated[str | None, option("--covariance", panel=MODEL, help="diagonal, isotropic, shared, unit.")] = None,
    means: Annotated[str | None, option("--means", panel=MODEL, help="axes, simplex, learned.")] = None,
    separation: Annotated[str | None, option("--separation", panel=MODEL, help="|mu| in units of sigma; auto: as validation data justify.")] = None,
    ratio: Annotated[str | None, option("--ratio", panel=MODEL, help="linear, quadratic, mlp, shared.")] = None,
    label_prior: Annotated[str | None, option("--label-prior", panel=MODEL, help="learned, uniform.")] = None,
    posterior: Annotated[str | None, option("--posterior", panel=MODEL, help="delta, gaussian (with --objective vc unless given).")] = None,
    preset: Annotated[str | None, option("--preset", panel=MODEL, help="recommended, paper, authors.")] = None,
    epochs: Annotated[int | None, option("--epochs", panel=TRAINING, help="30.")] = None,
    batch_size: Annotated[int | None, option("--batch-size", panel=TRAINING, help="Of a step, over all processes; 128.")] = None,
    lr: Annotated[float | None, option("--lr", panel=TRAINING, help="Peak learning rate; 0.1 with sgd, 0.001 with adamw.")] = None,
    optimizer: Annotated[str | None, option("--optimizer", panel=TRAINING, help="sgd (residual networks, sprint), adamw (others).")] = None,
    momentum: Annotated[float | None, option("--momentum", panel=TRAINING, help="0.9.")] = None,
    weight_decay: Annotated[float | None, option("--weight-decay", panel=TRAINING, help="5e-4 with sgd, 0.01 with adamw.")] = None,
    schedule: Annotated[str | None, option("--schedule", panel=TRAINING, help="cosine, one-cycle, step, constant.")] = None,
    warmup: Annotated[float | None, option("--warmup", panel=TRAINING, help="Share of the steps; 0.05.")] = None,
    accumulate: Annotated[int | None, option("--accumulate", panel=TRAINING, help="Parts a batch is computed in; 1.")] = None,
    clip: Annotated[float | None, option("--clip", panel=TRAINING, help="Largest gradient norm of each parameter group.")] = None,
    ema: Annotated[float | None, option("--ema", panel=TRAINING, help="Decay of an average of the weights, such as 0.999.")] = None,
    mixup: Annotated[float | None, option("--mixup", panel=TRAINING, help="alpha of mixup's Beta distribution.")] = None,
    label_smoothing: Annotated[float | None, option("--label-smoothing", panel=TRAINING, help="Given away to all classes.")] = None,
    augment: Annotated[str | None, option("--augment", panel=TRAINING, help="Of crop, flip, cutout, with commas between.")] = None,
    patience: Annotated[int | None, option("--patience", panel=TRAINING, help="Stop after so many epochs without a better validation NLL.")] = None,
    precision: Annotated[str | None, option("--precision", panel=TRAINING, help="fp32, bf16 (of the encoder).")] = None,
    seed: Annotated[int | None, option("--seed", panel=TRAINING, help="0.")] = None,
    data_root: Annotated[Path | None, option("--data-root", panel=PLACE, help="Where data sets lie; $VARCLASS_DATA, else a cache folder.")] = None,
    runs_dir: Annotated[Path, option("--runs-dir", panel=PLACE, help="Where runs are written; runs.")] = Path("runs"),
    device: Annotated[str | None, option("--device", panel=PLACE, help="cpu, cuda, cuda:1; a GPU if there is one.")] = None,
    compile: Annotated[bool | None, option("--compile/--no-compile", panel=PLACE, help="torch.compile; on a GPU for long runs.")] = None,
    deterministic: Annotated[bool, option("--deterministic/--no-deterministic", panel=PLACE, help="The same numbers again, or a GPU's fastest kernels.")] = True,
    checkpoint_seconds: Annotated[float, option("--checkpoint-seconds", panel=PLACE, help="Least time between two checkpoints; 30.")] = 30.0,
    as_json: Annotated[bool, option("--json", panel=PLACE, help="Print the run's record as JSON at the end.")] = False,
) -> int:  # fmt: skip
    """Train an encoder with a variational head on a data set, into runs/<id>/.

    The same settings are the same run: a finished one is not trained again, an unfinished one goes on.
    """
    from varclass.cli.progress import Progress, quiet_libraries  # noqa: PLC0415
    from varclass.training import loop  # noqa: PLC0415
    from varclass.training.interruption import Interrupted  # noqa: PLC0415
    from varclass.training.launch import Launch  # noqa: PLC0415
    from varclass.training.spec import RunSpec, override, read_spec  # noqa: PLC0415

    changes = {
        "seed": seed, "data.name": data, "data.limit": limit, "data.per_class": per_class, "data.validation": validation, "data.cross_fit": cross_fit, "data.size": image_size,
        "data.length": length, "encoder.name": encoder, "encoder.dropout": dropout,
        "encoder.options": _read_options(encoder_option), "head.objective": objective, "head.beta": _number_or_word("--beta", beta, lambda text: text.endswith("/D") or text == "auto", "auto, or a text such as 1/D"),
        "head.latent_dim": latent_dim, "head.prior": prior, "head.covariance": covariance, "head.means": means,
        "head.separation": _number_or_word("--separation", separation, lambda text: text == "auto", "auto"), "head.ratio": ratio, "head.label_prior": label_prior, "head.posterior": posterior,
        "head.preset": preset, "training.epochs": epochs, "training.batch_size": batch_size, "training.lr": lr,
        "training.optimizer": optimizer, "training.momentum": momentum, "training.weight_decay": weight_decay,
        "training.schedule": schedule, "training.warmup": warmup, "training.accumulate": accumulate, "training.clip": clip,
        "training.ema": ema, "training.mixup": mixup, "training.label_smoothing": label_smoothing,
        "training.augment": None if augment is None else tuple(name for name in augment.split(",") if name),
        "training.patience": patience, "training.precision": precision,
    }  # fmt: skip
    quiet_libraries()
    launch = Launch(device, compile, deterministic, checkpoint_seconds)
    reporter = Progress()
    try:
        if resume is not None:
            given = [name for name, value in changes.items() if value is not None]
            if given or config:
                raise ValueError(
                    f"--resume goes on with the settings of the run; got {given[0] if given else '--config'} beside it"
                )
            run = loop.resume(resume, data_root=data_root, launch=launch, reporter=reporter)
        else:
            if data is None and config is None:
                raise ValueError("fit needs DATA, --config or --resume; got none of them (varclass fit --help has examples)")
            spec = override(RunSpec() if config is None else read_spec(config), changes)
            run = loop.fit(spec, runs_dir, data_root=data_root, launch=launch, reporter=reporter)
    except Interrupted as interrupted:
        reporter.message(f"stopped and saved: go on with varclass fit --resume {reporter.path}")
        return interrupted.exit_code
    reporter.summary(run)
    if as_json and reporter.watched:
        typer.echo(json.dumps({"path": str(run.path), **run.record}, indent=1))
    return 0


def _read_options(given: list[str] | None) -> dict[str, Any] | None:
    """name=value pairs, values as JSON where they are, as text where they are not."""
    if not given:
        return None
    found: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise ValueError(f"--encoder-option must be name=value; got {each!r}")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found


def _number_or_word(name: str, text: str | None, is_word: Callable[[str], bool], words: str) -> float | str | None:
    if text is None or is_word(text):
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number or {words}; got {text!r}") from None
