"""Trainer: one run in progress, from its first step or its latest checkpoint to its last."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from varclass.classifier import Classifier
from varclass.core.anticipation import anticipate
from varclass.core.axes import AxesPrior
from varclass.core.consistency import FEWEST, settle_shape
from varclass.core.targets import Target
from varclass.training.augmentation import smooth
from varclass.training.batches import Plan, Share, Source, chances, on_device, seed_everything, transform
from varclass.training.checkpoint import Checkpoint, load_checkpoint, optimizer_tensors, restore_optimizer, save_checkpoint
from varclass.training.crossfit import CrossFit
from varclass.training.defaults import FOLDS
from varclass.training.history import finite
from varclass.training.interruption import Interrupted, Interruption
from varclass.training.launch import Launch, share_of
from varclass.training.optimization import Average, clip_groups, make_optimizer, set_rates
from varclass.training.provenance import provenance
from varclass.training.reporting import Reporter
from varclass.training.runs import FAILED, RUNNING, STOPPED, Run
from varclass.training.schedule import lr_factor
from varclass.training.spec import RunSpec
from varclass.training.step import TrainingStep
from varclass.training.task import TrainingData
from varclass.training.validation import Score, look_over, validate

if TYPE_CHECKING:
    from accelerate import Accelerator

LOG_EVERY = 50  # steps at most between two lines of the history
WORTH_COMPILING = 2000  # steps
CURES = "training stopped: try a smaller --lr, --clip 1, or a smaller --beta"
UNSETTLED = f"separation auto needs {FEWEST} samples that --validation or --cross-fit {FOLDS} holds out: it stays at"


class NonFinite(ValueError):
    """A term of the loss became NaN or infinite."""


class Trainer:
    """One run in progress. Every process has its own; the main one writes."""

    def __init__(
        self,
        run: Run,
        spec: RunSpec,
        data: TrainingData,
        plan: Plan,
        model: Classifier,
        accelerator: Accelerator,
        launch: Launch,
        reporter: Reporter,
        crossed: CrossFit | None = None,
    ) -> None:
        self.run, self.spec, self.data, self.accelerator, self.launch = run, spec, data, accelerator, launch
        self.crossed = crossed
        self.reporter = reporter if accelerator.is_main_process else Reporter()
        self.options, self.device, self.share = spec.training, accelerator.device, share_of(accelerator)
        self.plan, self.model = plan, model.to(self.device)
        if self.device.type == "cuda" and data.task.kind == "image":
            self.model = self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = make_optimizer(self.model, self.options)
        self.names = {id(parameter): name for name, parameter in self.model.named_parameters()}
        self.average = Average(self.model, self.options.ema) if self.options.ema else None
        self.source = Source(data.train, data.task, self.device)
        self.held_out = Source(data.validation, data.task, self.device) if data.validation else None

        self.done, self.seconds = 0, 0.0
        self.best: dict[str, Tensor] | None = None
        self.progress: dict[str, Any] = {"best_nll": math.inf, "best_epoch": None, "worse_epochs": 0, "score": None}
        if self._settles():
            self.model.head.widen()
        self._restore()
        step = TrainingStep(self.model, self.options.precision)
        if self._compiles():
            step.compile_parts()
        self.logged = step.logged
        self.step = accelerator.prepare_model(step)
        self.pending: deque[tuple[int, Tensor]] = deque()  # what was logged on the device and not yet looked at

    # -------------------------------------------------------------------------------------------------------- the loop

    def train(self) -> None:
        """From the step where it is to the end, unless interrupted."""
        head = repr(self.model.head)
        self._write(status=RUNNING, error=None, head=head, provenance=provenance(self.device), processes=self.share.processes)
        self.reporter.begin(self.run, self.plan, self.done, self.data)
        if self.model.head.settles and not self._settles():
            expected = anticipate(self.model.head.class_prior).accuracy
            self.reporter.message(f"{UNSETTLED} {self.model.head.separation:.2f}, where {expected:.0%} accuracy is anticipated")
        began, self.saved_at = time.monotonic() - self.seconds, time.monotonic()
        try:
            with Interruption() as interruption:
                for epoch in range(self.done // self.plan.steps_per_epoch, self.plan.epochs):
                    if self._stopped_early():
                        break
                    self._train_epoch(epoch, interruption, lambda: time.monotonic() - began)
            self._finish()
        except Interrupted:
            self._write(status=STOPPED, seconds=self.seconds)
            raise
        except BaseException as error:
            with contextlib.suppress(OSError):
                self._write(status=FAILED, error=str(error) or type(error).__name__)
            raise

    def _train_epoch(self, epoch: int, interruption: Interruption, clock: Callable[[], float]) -> None:
        self.model.train()
        first = self.done - epoch * self.plan.steps_per_epoch
        batches = list(self.plan.batches(epoch, first))
        for index, stored in zip(batches, self.source.read(self.share.of(b) for b in batches), strict=True):
            rates = set_rates(self.optimizer, lr_factor(self.options.schedule, self.done, self.plan.steps, self.options.warmup))
            self._train_step(index, stored)
            self.done += 1
            self.seconds = clock()
            last = self.done == (epoch + 1) * self.plan.steps_per_epoch
            row = self._log(epoch, rates) if self.done % LOG_EVERY == 0 or last or self.device.type == "cpu" else None
            if last:
                self._end_epoch(epoch)
            self.reporter.step(self.done, row)
            due = time.monotonic() - self.saved_at >= self.launch.checkpoint_seconds
            stop, due = self._agreed(interruption.requested, due, row is not None)
            if stop or due:
                self._log(epoch, rates)
                self._save()
            if stop:
                raise Interrupted(stop)
            if last and self._stopped_early():
                return

    def _train_step(self, index: np.ndarray, stored: Tensor) -> None:
        """One update. Its random choices are the same however many processes share the batch."""
        options, parts = self.options, self.options.accumulate
        seed_everything(self.spec.seed, self.done)
        labels = self.source.labels[on_device(index, self.device)]
        share = float(np.random.beta(options.mixup, options.mixup)) if options.mixup else 1.0  # noqa: NPY002
        chance, drawn = chances(len(labels), self.device), self._draw(labels, share)
        mine = self.share.rows(len(labels))
        seed_everything(self.spec.seed, self.done, 1 + self.share.rank)
        size = len(stored) // parts
        self.optimizer.zero_grad(set_to_none=True)
        for part in range(parts):
            rows = slice(part * size, (part + 1) * size)
            x, y = transform(stored[rows], labels[mine][rows], chance[mine][rows], share, len(self.data.task.classes), options)
            own = None if drawn is None else (drawn[0][mine][rows], drawn[1][mine][rows])
            with self.accelerator.no_sync(self.step) if part < parts - 1 else contextlib.nullcontext():
                loss, values = self.step(x, y, own)
                (loss / parts).backward()
            self.pending.append((self.done + 1, values))
        if options.clip:
            clip_groups(self.optimizer, options.clip)
        self.optimizer.step()
        if self.average:
            self.average.update(self.model, self.done)

    def _draw(self, labels: Tensor, share: float) -> tuple[Tensor, Tensor] | None:
        """Prior samples for the whole batch, so that every process can take its own of the same."""
        head, options = self.model.head, self.options
        if not head.objective.uses_ratio:
            return None
        if not (options.label_smoothing or options.mixup):
            return head.draw_from(Target(labels, None))
        soft = smooth(labels, head.num_classes, options.label_smoothing)
        parts = soft.reshape(self.share.processes * options.accumulate, -1, head.num_classes)
        mixed = share * parts + (1 - share) * parts.flip(1)
        return head.draw_from(Target(None, mixed.reshape(soft.shape)))

    # ------------------------------------------------------------------------------------------- logs, scores, checkpoints

    def _log(self, epoch: int, rates: dict[str, float]) -> dict[str, Any] | None:
        """Look at what was logged on the device since the last time; the latest step becomes a line of the history."""
        if not self.pending:
            return None
        steps, values = zip(*self.pending, strict=True)
        self.pending.clear()
        table = self.accelerator.reduce(torch.stack(values), "mean").cpu()
        steps, table = steps[:: self.options.accumulate], table.unflatten(0, (-1, self.options.accumulate)).mean(1)
        bad = (~table.isfinite()).nonzero()
        if len(bad):
            step, term = steps[int(bad[0, 0])], self.logged[int(bad[0, 1])]
            raise NonFinite(
                f"the {term} term became {float(table[bad[0, 0], bad[0, 1]])} at step {step} of {self.plan.steps}; {CURES}"
            )
        row = {"step": steps[-1], "epoch": epoch, **dict(zip(self.logged, table[-1].tolist(), strict=True)), "lr": rates}
        if self.accelerator.is_main_process and (steps[-1] % LOG_EVERY == 0 or steps[-1] % self.plan.steps_per_epoch == 0):
            self.run.history.append(**row)
        return row

    def _end_epoch(self, epoch: int) -> None:
        score = self._validate()
        if score is not None:
            if not math.isfinite(score.nll):
                raise NonFinite(f"the validation NLL became {score.nll} after step {self.done} of {self.plan.steps}; {CURES}")
            row = finite({name: value for name, value in asdict(score).items() if value is not None})
            if score.temperature is not None:
                with self._averaged():
                    row["separation"] = self.model.head.settle_by(score.temperature)
            if self.accelerator.is_main_process:
                self.run.history.append(step=self.done, epoch=epoch, validation=row)
            better = score.nll < self.progress["best_nll"]
            if better:
                self.progress |= {"best_nll": score.nll, "best_epoch": epoch, "worse_epochs": 0}
                if self.options.patience:
                    self.best = self._weights()
            else:
                self.progress["worse_epochs"] += 1
            if better or not self.options.patience:
                self.progress["score"] = row  # of the weights that are kept
        self.reporter.epoch(epoch, score)

    def _validate(self) -> Score | None:
        if self.held_out is None:
            return None
        with self._averaged():
            low = self.options.precision == "bf16"
            add_up, settle = lambda total: self.accelerator.reduce(total, "sum"), self.crossed is None
            return validate(self.model, self.held_out, self.share, add_up, low, settle)

    def _settles(self) -> bool:
        """Whether there is held-out data enough to settle the width of the class priors by; all folds together have it."""
        enough = self.held_out is not None and len(self.held_out) >= FEWEST
        return self.model.head.settles and (enough or self.crossed is not None or self.spec.data.fold is not None)

    def _settle(self) -> None:
        """What is left to settle at the end: all of it by the folds, or the covariance by held-out data, and the score anew."""
        if not self._settles():
            return
        head, low = self.model.eval().head, self.options.precision == "bf16"
        prior = head.class_prior
        if self.crossed is not None:
            head.settle_from(self.crossed.held)
        elif self.held_out is not None and isinstance(prior, AxesPrior):
            settle_shape(prior, head.log_label(), look_over(self.model, self.held_out, low))
        shaped = isinstance(prior, AxesPrior) and prior.root.numel() > 0
        if self.held_out is not None and self.progress["score"] and (shaped or self.crossed is not None):
            score = validate(self.model, self.held_out, Share(0, 1), lambda total: total, low, settle=False)
            self.progress["score"] |= finite({"nll": score.nll, "accuracy": score.accuracy, "separation": head.separation})
        if self.accelerator.is_main_process and not any("settled" in row for row in self.run.history.rows()):
            row = {"separation": head.separation, "sigma": prior.settled, "covariance": shaped}
            self.run.history.append(step=self.done, epoch=self.done // self.plan.steps_per_epoch - 1, settled=row)

    def _stopped_early(self) -> bool:
        return 0 < self.options.patience <= self.progress["worse_epochs"]

    def _agreed(self, requested: int, due: bool, together: bool) -> tuple[int, bool]:
        """The signal that any process got, and whether a checkpoint is due. Several must agree, which they do when they log."""
        if self.share.processes == 1:
            return requested, due
        if not together:
            return 0, False
        said = self.accelerator.gather(torch.tensor([[requested, int(due)]], device=self.device)).amax(0).tolist()
        return said[0], bool(said[1])

    def _save(self) -> None:
        self.saved_at = time.monotonic()
        if not self.accelerator.is_main_process:
            return
        checkpoint = Checkpoint(
            self.done,
            self.model.state_dict(),
            optimizer_tensors(self.optimizer, self.names),
            {**self.progress, "seed": self.spec.seed, "seconds": self.seconds},
            self.average.parameters if self.average else None,
            self.best,
        )
        try:
            save_checkpoint(self.run.checkpoints, checkpoint)
        except OSError as error:
            kept = [path.name for path in sorted(self.run.checkpoints.glob("step-????????"))]
            raise OSError(
                f"cannot save a checkpoint in {self.run.checkpoints}: {error.strerror or error}; "
                f"{f'the last good one is {kept[-1]}' if kept else 'there was none before'}: "
                f"make room, then varclass fit --resume {self.run.path}"
            ) from error

    def _restore(self) -> None:
        found = load_checkpoint(self.run.checkpoints, self.reporter.message)
        if found is None:
            self.done = 0
            if self.accelerator.is_main_process:
                self.run.history.rewind(0)
            return
        self.model.load_state_dict(found.model)
        restore_optimizer(self.optimizer, found.optimizer, self.names)
        if self.average and found.average:
            # in the order of the model's parameters: a file has another
            self.average.parameters = {name: found.average[name].to(self.device) for name in self.average.parameters}
        self.best, self.done = found.best, found.step
        self.seconds = found.progress.pop("seconds")
        self.progress = {name: found.progress[name] for name in self.progress}
        if self.accelerator.is_main_process:
            self.run.history.rewind(self.done)

    def _averaged(self) -> contextlib.AbstractContextManager[None]:
        """The model with the weights that would be kept now: the average's, if there is one."""
        return self.average.swapped_into(self.model) if self.average else contextlib.nullcontext()

    def _weights(self) -> dict[str, Tensor]:
        """The weights to keep."""
        with self._averaged():
            return {name: value.detach().cpu().clone().contiguous() for name, value in self.model.state_dict().items()}

    def _finish(self) -> None:
        """Write the model and the results, then let the checkpoints go."""
        if self.options.patience and self.best:
            self.model.load_state_dict(self.best)
        elif self.average:
            self.model.load_state_dict(self._weights())
        self.average = None  # the model has its weights
        self._settle()
        weights = self._weights()
        if self.accelerator.is_main_process:
            self.run.finish(
                weights,
                seconds=self.seconds,
                steps=self.done,
                epochs=self.done // self.plan.steps_per_epoch,
                head=repr(self.model.head),
                validation=self.progress["score"],
                best_epoch=self.progress["best_epoch"],
                **({} if self.crossed is None else {"cross_fit": self.crossed.record}),
            )
        self.accelerator.wait_for_everyone()

    def _write(self, **changes: Any) -> None:
        if self.accelerator.is_main_process:
            self.run.update(**changes)

    def _compiles(self) -> bool:
        if self.launch.compile is not None:
            return self.launch.compile
        return self.device.type == "cuda" and self.plan.steps - self.done >= WORTH_COMPILING
