"""fit: train the run of a spec, or go on with it, in one process or many, on Hugging Face Accelerate."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varclass.classifier import Classifier
from varclass.core.consistency import HeldOut
from varclass.training.batches import Plan, Source, seed_everything
from varclass.training.crossfit import CrossFit, spec_of_fold, wants_folds
from varclass.training.defaults import complete
from varclass.training.interruption import Interrupted
from varclass.training.launch import Launch, check_device, make_accelerator, make_deterministic, world_size
from varclass.training.model import build_model
from varclass.training.reporting import Reporter
from varclass.training.runs import FAILED, RUNNING, STOPPED, Run
from varclass.training.spec import RunSpec, check_data
from varclass.training.task import TrainingData, prepare
from varclass.training.trainer import Trainer
from varclass.training.validation import look_over

if TYPE_CHECKING:
    from accelerate import Accelerator

DEFAULT_LAUNCH = Launch()
PATIENCE = 2.0  # seconds to wait for somebody who looks whether a run is being trained


def fit(
    spec: RunSpec,
    runs_dir: str | Path = "runs",
    *,
    data_root: str | Path | None = None,
    launch: Launch = DEFAULT_LAUNCH,
    reporter: Reporter | None = None,
) -> Run:
    """Train the run of a spec, or go on with it; a finished one is returned as it is."""
    check_data(spec.data)
    data = prepare(spec.data, data_root, spec.seed)
    spec = complete(spec, data.task.kind, 0 if data.validation is None else len(data.validation))
    return _fit(Path(runs_dir) / spec.id, spec, data, data_root, launch, reporter or Reporter())


def resume(
    path: str | Path,
    *,
    data_root: str | Path | None = None,
    launch: Launch = DEFAULT_LAUNCH,
    reporter: Reporter | None = None,
) -> Run:
    """Go on with a run from its latest checkpoint, wherever its folder lies now."""
    run = Run.open(path)
    spec = run.spec.check()
    return _fit(run.path, spec, prepare(spec.data, data_root, spec.seed), data_root, launch, reporter or Reporter())


def _fit(
    path: Path, spec: RunSpec, data: TrainingData, data_root: str | Path | None, launch: Launch, reporter: Reporter
) -> Run:
    if launch.device:
        check_device(launch.device)
    if (path / "record.json").is_file() and (run := Run.open(path)).finished:
        _check_same_data(run, spec, data)
        run.tidy()  # if it was killed before it could
        return run
    # What a spec has wrong shows before there is a folder for it, and before processes meet: one that left with an error would
    # take the meeting point of the others along.
    _make_plan(spec, len(data.train), world_size())
    model = _make_model(spec, data)
    accelerator = make_accelerator(launch.device)
    plan = _make_plan(spec, len(data.train), accelerator.num_processes)
    with ExitStack() as held:
        if accelerator.is_main_process:
            path.mkdir(parents=True, exist_ok=True)
            held.enter_context(Run(path).locked(PATIENCE))
            Run.create(path, spec, _new_record(spec, data))
        accelerator.wait_for_everyone()
        run = Run.open(path)
        if run.finished:  # by another process, since we looked
            return run
        _check_same_data(run, spec, data)
        make_deterministic(launch)
        if spec.data.fold is None:
            reporter.open(run)
        crossed = None
        if wants_folds(spec, data, model):
            crossed = _cross_fit(run, spec, data_root, accelerator, launch, reporter)
        trainer = Trainer(run, spec, data, plan, model, accelerator, launch, reporter, crossed)
        held.callback(reporter.end)
        trainer.train()
    return run


def _check_same_data(run: Run, spec: RunSpec, data: TrainingData) -> None:
    if run.record["fingerprint"] != data.fingerprint:
        raise ValueError(f"{run.path} began on other data than {spec.data.name} holds now; train it in another --runs-dir")


def _cross_fit(
    run: Run, spec: RunSpec, data_root: str | Path | None, accelerator: Accelerator, launch: Launch, reporter: Reporter
) -> CrossFit:
    """Train a run for each fold, or go on with it, inside this one's folder, and ask each about the samples it left out."""
    folds, held, seconds = spec.data.cross_fit or 0, [], 0.0
    try:
        for fold in range(folds):
            if accelerator.is_main_process:
                reporter.message(f"fold {fold + 1} of {folds} says how sure to be (--cross-fit 0: none)")
            part = spec_of_fold(spec, fold)
            data = prepare(part.data, data_root, part.seed)
            trained = _fit(run.folds / str(fold), part, data, data_root, launch, reporter)
            assert data.validation is not None
            model = trained.load_model(accelerator.device)
            model.head.class_prior.settled = 1.0  # by its own fold: what is asked is what to settle by
            source = Source(data.validation, data.task, accelerator.device)
            held.append(look_over(model, source, spec.training.precision == "bf16"))
            seconds += trained.record["seconds"]
    except BaseException as error:
        if accelerator.is_main_process:
            stopped = isinstance(error, Interrupted)
            run.update(status=STOPPED if stopped else FAILED, error=None if stopped else str(error) or type(error).__name__)
        raise
    return CrossFit(HeldOut.of(held), folds, seconds)


def _new_record(spec: RunSpec, data: TrainingData) -> dict[str, Any]:
    samples = {"train": len(data.train), "validation": len(data.validation) if data.validation else 0}
    return {
        "id": spec.id,
        "status": RUNNING,
        "seed": spec.seed,
        "task": data.task.as_dict(),
        "samples": samples,
        "fingerprint": data.fingerprint,
        "seconds": 0.0,
    }


def _make_model(spec: RunSpec, data: TrainingData) -> Classifier:
    """The model as it starts: the same in every process."""
    seed_everything(spec.seed)
    return build_model(spec, data.task, data.train, data.samples)


def _make_plan(spec: RunSpec, samples: int, processes: int) -> Plan:
    """Batches that divide evenly among the processes and the parts of a step."""
    parts = processes * spec.training.accumulate
    batch = min(spec.training.batch_size, samples // parts * parts)
    if batch == 0 or batch % parts:
        raise ValueError(
            f"batch_size must be a multiple of processes x accumulate = {parts}, and at most the {samples} training samples; "
            f"got {spec.training.batch_size}"
        )
    return Plan(samples, batch, spec.training.epochs, spec.seed)
