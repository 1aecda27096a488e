"""What a training step costs: VC beside softmax in the same loop, and that loop beside a plain DataLoader one.

    python benchmarks/train.py [--device cpu|cuda] [--encoder wrn-28-10] [--save results/train-h200]

Images are random, of CIFAR-10's shape and number: arithmetic does not look at them. `loop` is `varclass fit`'s own: data on
the device, augmentation there in batches, channels last, bf16 and compile on a GPU. `DataLoader` is what one writes first:
images one at a time through crop and flip in worker processes, the same model, precision and compile. Blocks of steps of
all forms alternate, in a new order every round, so that a busy machine slows all alike; a ratio is the median over rounds.

| form       | what runs                                                              |
|------------|------------------------------------------------------------------------|
| softmax    | the loop with `nn.Linear` + `F.cross_entropy` on the encoder           |
| ce gm vc   | the loop with a `VariationalHead`                                      |
| DataLoader | softmax, fed by `torch.utils.data.DataLoader`                          |
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from varclass.classifier import Classifier
from varclass.data.split import Split
from varclass.training.defaults import complete
from varclass.training.files import write_json, write_text
from varclass.training.launch import Launch, make_accelerator, make_deterministic
from varclass.training.loop import _make_model, _make_plan, _new_record
from varclass.training.model import model_input
from varclass.training.provenance import provenance
from varclass.training.reporting import Reporter
from varclass.training.runs import Run
from varclass.training.spec import EncoderSpec, HeadSpec, RunSpec, TrainingSpec
from varclass.training.step import TrainingStep
from varclass.training.task import TrainingData, task_of
from varclass.training.trainer import Trainer

IMAGES, SIZE, CLASSES = 50_000, 32, 10
FORMS = ("softmax", "ce", "gm", "vc", "DataLoader")


def main() -> None:
    """Measure every form, print the table, save it with its provenance if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--encoder", default=None, help="wrn-28-10 on a GPU, wrn-10-1 on a CPU")
    parser.add_argument("--batch-size", type=int, default=None, help="512 on a GPU, 64 on a CPU")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=None, help="steps of a block; 20 on a GPU, 2 on a CPU")
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--deterministic", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--save", type=Path, help="write FILE.json and FILE.md")
    options = parser.parse_args()
    gpu = options.device.startswith("cuda")
    encoder, batch = options.encoder or ("wrn-28-10" if gpu else "wrn-10-1"), options.batch_size or (512 if gpu else 64)
    steps = options.steps or (20 if gpu else 2)
    launch = Launch(options.device, compile=gpu, deterministic=options.deterministic)
    make_deterministic(launch)
    with tempfile.TemporaryDirectory() as folder:
        forms = {name: make_form(name, encoder, batch, launch, Path(folder)) for name in options.forms.split(",")}
        times = interleave(forms, steps, options.rounds, gpu)
    rows = [summary(name, times, steps, batch) for name in times]
    source = provenance(torch.device(options.device)) | {
        "command": ["benchmarks/train.py"],
        "deterministic": options.deterministic,
    }
    source |= {"encoder": encoder, "batch_size": batch, "steps_per_block": steps}
    text = as_markdown(rows, source)
    print(text)
    if options.save:
        write_json(options.save.with_suffix(".json"), source | {"rows": rows})
        write_text(options.save.with_suffix(".md"), text)


def make_form(name: str, encoder: str, batch: int, launch: Launch, folder: Path) -> Callable[[], None]:
    """One training step of a form, ready to be called again and again."""
    if name == "DataLoader":
        return plain_loop(encoder, batch, launch)
    trainer = make_trainer("ce" if name == "softmax" else name, encoder, batch, launch, folder / name)
    if name == "softmax":
        use_softmax(trainer)
    batches = endless(trainer)

    def step() -> None:
        trainer._train_step(*next(batches))
        trainer.pending.clear()

    return step


def make_trainer(objective: str, encoder: str, batch: int, launch: Launch, folder: Path) -> Trainer:
    """`varclass fit`'s trainer on random images."""
    split = random_split()
    data = TrainingData(task_of(split, 64), split, None, "random")
    precision = "bf16" if launch.compile else "fp32"
    training = TrainingSpec(epochs=10**6, batch_size=batch, augment=("crop", "flip"), precision=precision)
    spec = RunSpec(encoder=EncoderSpec(encoder), head=HeadSpec(objective), training=training)
    spec = complete(replace(spec, training=training), "image")
    run = Run.create(folder, spec, _new_record(spec, data))
    accelerator = make_accelerator(launch.device)
    plan, model = _make_plan(spec, IMAGES, 1), _make_model(spec, data)
    return Trainer(run, spec, data, plan, model, accelerator, launch, Reporter())


def random_split() -> Split:
    """Random images of CIFAR-10's shape, the same every time."""
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(IMAGES, SIZE, SIZE, 3), dtype=np.uint8)
    return Split("image", images, rng.integers(CLASSES, size=IMAGES), tuple(map(str, range(CLASSES))))


def endless(trainer: Trainer) -> Iterator[tuple[np.ndarray, Tensor]]:
    """Batches of one epoch after another."""
    for epoch in itertools.count():
        batches = list(trainer.plan.batches(epoch))
        yield from zip(batches, trainer.source.read(iter(batches)), strict=True)


class SoftmaxStep(TrainingStep):
    """The step of a trainer with the usual output layer."""

    def __init__(self, model: Classifier, precision: str) -> None:
        super().__init__(model, precision)
        self.linear = nn.Linear(model.head.in_features, CLASSES)

    def _judge(self, features: Tensor, y: Tensor, drawn: object) -> tuple[Tensor, Tensor]:
        """Cross-entropy, twice: to descend and to log."""
        with torch.autocast(features.device.type, torch.bfloat16, enabled=self.low_precision):
            logits = self.linear(features)
        loss = F.cross_entropy(logits.float(), y)
        return loss, loss.detach()[None]


def use_softmax(trainer: Trainer) -> None:
    """Put the usual output layer in the place of the trainer's head."""
    step = SoftmaxStep(trainer.model, trainer.options.precision).to(trainer.device)
    if trainer.launch.compile:
        step.compile_parts()
    trainer.step = step
    learned = [*trainer.model.encoder.parameters(), *step.linear.parameters()]
    trainer.optimizer = torch.optim.SGD(learned, lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)


class OneByOne(torch.utils.data.Dataset[tuple[Tensor, int]]):
    """Images with a random crop and flip, one at a time, as a plain data set does it."""

    def __init__(self, split: Split) -> None:
        self.images, self.labels = np.asarray(split.inputs), split.labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, position: int) -> tuple[Tensor, int]:
        image = np.pad(self.images[position], ((4, 4), (4, 4), (0, 0)), mode="reflect")
        top, left = random.randrange(9), random.randrange(9)
        image = image[top : top + SIZE, left : left + SIZE]
        image = image[:, ::-1] if random.random() < 0.5 else image
        return torch.from_numpy(image.transpose(2, 0, 1).copy()), int(self.labels[position])


def plain_loop(encoder: str, batch: int, launch: Launch) -> Callable[[], None]:
    """The loop one writes first, around the same softmax model."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer("ce", encoder, batch, launch, Path(folder) / "plain")
    use_softmax(trainer)
    workers = 8 if trainer.device.type == "cuda" else 1
    loader = torch.utils.data.DataLoader(
        OneByOne(random_split()),
        batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        pin_memory=workers > 1,
        persistent_workers=True,
    )
    batches = (each for _ in itertools.count() for each in loader)

    def step() -> None:
        images, y = next(batches)
        x = model_input(images.to(trainer.device, non_blocking=True))
        if x.is_cuda:
            x = x.contiguous(memory_format=torch.channels_last)
        trainer.optimizer.zero_grad(set_to_none=True)
        trainer.step(x, y.to(trainer.device, non_blocking=True), None)[0].backward()
        trainer.optimizer.step()

    return step


def interleave(forms: dict[str, Callable[[], None]], steps: int, rounds: int, gpu: bool) -> dict[str, list[float]]:
    """Seconds of each form's block of steps in each round."""
    for step in forms.values():
        for _ in range(3):
            step()
    times: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(rounds):
        for name in random.sample(list(forms), len(forms)):
            synchronize(gpu)
            began = time.perf_counter()
            for _ in range(steps):
                forms[name]()
            synchronize(gpu)
            times[name].append(time.perf_counter() - began)
    return times


def synchronize(gpu: bool) -> None:
    """Wait for the device, so that a clock read means something."""
    if gpu:
        torch.cuda.synchronize()


def summary(name: str, times: dict[str, list[float]], steps: int, batch: int) -> dict[str, Any]:
    """Median step and epoch, and the median ratio to softmax with its quartiles."""
    ratios = [a / b for a, b in zip(times[name], times["softmax"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    seconds = statistics.median(times[name]) / steps
    epoch = seconds * (IMAGES // batch)
    return {
        "form": name,
        "step_seconds": seconds,
        "epoch_seconds": epoch,
        "ratio": middle,
        "quartiles": [low, high],
        "rounds": len(ratios),
    }


def as_markdown(rows: list[dict[str, Any]], source: dict[str, Any]) -> str:
    """The table and where it comes from."""
    versions = ", ".join(f"{name} {value}" for name, value in source["versions"].items())
    kernels = "deterministic kernels" if source["deterministic"] else "the fastest kernels"
    lines = [
        f"`python benchmarks/train.py` on {source['device']['name']}, {versions}; {source['encoder']}, {IMAGES:,} random "
        f"images of {SIZE}x{SIZE}x3, batches of {source['batch_size']}, {kernels}, commit {source['commit']}.\n",
        "| form | ms a step | s an epoch | x softmax (middle half) | rounds |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        low, high = row["quartiles"]
        times = f"{row['step_seconds'] * 1e3:.2f} | {row['epoch_seconds']:.2f}"
        lines.append(f"| {row['form']} | {times} | {row['ratio']:.3f} ({low:.3f} to {high:.3f}) | {row['rounds']} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
