"""What a variational head costs beside `nn.Linear` + `F.cross_entropy`: forward + backward time, and peak memory.

    python benchmarks/head.py [--device cpu|cuda] [--save results/head-cpu] [--seconds 20]

Every form of one shape runs in turn, in a new order every round, so that a busy machine slows all alike; a ratio is the
median over rounds of (form's time / softmax's time in the same round). Memory is the peak over one step, less what was held
before it: parameters, and the gradients they keep, are not counted. On a GPU the same step is timed three ways: launched
from Python (small kernels wait for the host), replayed as a CUDA graph (the device alone), and compiled by torch.compile;
each against softmax timed the same way. The last two skip the check of the labels.

| form      | what runs                                                                                        |
|-----------|--------------------------------------------------------------------------------------------------|
| softmax   | `F.cross_entropy(linear(x), y).backward()`                                                       |
| default   | `VariationalHead(D, C).loss(x, y).backward()`                                                    |
| ce gm vc  | the same with an objective of the paper's and its diagonal covariance                            |
| broadcast | Gaussian log densities from a (B, C, D) tensor of differences, cross-entropy of them; where it fits |
| chunked   | vc with the classes taken in chunks (`class_chunk`), where the direct form is large              |
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from varclass import VariationalHead, __version__
from varclass.core.many_classes import choose_chunk
from varclass.training.provenance import commit

SHAPES = [(1024, 10000, 512), (256, 1000, 2048), (256, 200, 2048), (256, 100, 640), (256, 10, 512)]
GPU_SHAPES = [*SHAPES, (4096, 100000, 256)]
BROADCAST_LIMIT = 2**27  # entries of the (B, C, D) tensor: 512 MiB in float32, and the step holds several of them
Step = Callable[[], Any]


def main() -> None:
    """Measure every shape, print the table as it grows, and save it with its provenance if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--save", type=Path, help="write FILE.json and FILE.md, anew after every shape")
    parser.add_argument("--seconds", type=float, default=20.0, help="about so long for each table cell's rounds")
    parser.add_argument("--commit", help="of the code that runs, where there is no checkout to ask")
    options = parser.parse_args()
    device = torch.device(options.device)
    source = provenance(device, options.seconds) | {"commit": options.commit or commit()}
    torch.manual_seed(0)
    random.seed(0)
    rows: list[dict[str, Any]] = []
    for shape in GPU_SHAPES if device.type == "cuda" else SHAPES:
        rows += measure_training(*shape, device, options.seconds)
        rows += measure_inference(*shape, device, options.seconds)
        print(f"measured {shape}", flush=True)
        if options.save:
            write(options.save.with_suffix(".json"), json.dumps(source | {"rows": rows}, indent=1) + "\n")
            write(options.save.with_suffix(".md"), as_markdown(rows, source))
    print(as_markdown(rows, source))


def measure_training(batch: int, classes: int, dim: int, device: torch.device, limit: float) -> list[dict[str, Any]]:
    """Forward + backward of every form at one shape."""
    x = torch.randn(batch, dim, device=device, requires_grad=True)
    y = torch.randint(classes, (batch,), device=device)
    modules: dict[str, tuple[nn.Module, Callable[[], Tensor]]] = {}
    linear = nn.Linear(dim, classes, device=device)
    modules["softmax"] = linear, lambda: F.cross_entropy(linear(x), y)
    recommended = VariationalHead(dim, classes).to(device)
    modules["default"] = recommended, lambda: recommended.loss(x, y)
    for objective in ("ce", "gm", "vc"):
        head = VariationalHead(dim, classes, objective=objective, class_chunk=classes).to(device)
        modules[objective] = head, lambda head=head: head.loss(x, y)  # type: ignore[misc]
    if choose_chunk(batch, classes):
        chunked = VariationalHead(dim, classes, objective="vc").to(device)
        modules["chunked"] = chunked, lambda: chunked.loss(x, y)
    if batch * classes * dim <= BROADCAST_LIMIT:
        gaussian = Broadcast(classes, dim).to(device)
        modules["broadcast"] = gaussian, lambda: F.cross_entropy(gaussian(x), y)

    def step(name: str) -> Step:
        module, loss = modules[name]

        def run() -> None:
            module.zero_grad(set_to_none=True)
            x.grad = None
            loss().backward()

        return run

    steps = {name: step(name) for name in modules}
    times = interleave(steps, device, limit)
    shape: dict[str, Any] = {"batch": batch, "classes": classes, "dim": dim, "what": "train"}
    rows = [shape | {"form": name, **summary(times, name, "softmax")} for name in modules]
    for row in rows:
        row["peak_bytes"] = peak_memory(steps[row["form"]], device)
    if device.type == "cuda":
        own = ("softmax", "default", "ce", "gm", "vc")
        for way, made in (("graph", {name: capture(steps[name]) for name in own}), ("compiled", compile_steps(modules, x))):
            times = interleave(made, device, limit)
            for row in rows:
                row[way] = summary(times, row["form"], "softmax") if row["form"] in made else None
    return rows


def compile_steps(modules: dict[str, tuple[nn.Module, Callable[[], Tensor]]], x: Tensor) -> dict[str, Step]:
    """The steps of softmax, the default and VC with a compiled loss."""
    torch.compiler.reset()

    def step(module: nn.Module, loss: Callable[[], Tensor]) -> Step:
        compiled = torch.compile(loss, fullgraph=True, dynamic=False)

        def run() -> None:
            module.zero_grad(set_to_none=True)
            x.grad = None
            compiled().backward()

        return run

    return {name: step(*modules[name]) for name in ("softmax", "default", "vc")}


def capture(step: Step) -> Step:
    """The step as a CUDA graph, ready to replay."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def measure_inference(batch: int, classes: int, dim: int, device: torch.device, limit: float) -> list[dict[str, Any]]:
    """The log joint of a head with shared covariance, and its folded form, against `nn.Linear`."""
    x = torch.randn(batch, dim, device=device)
    linear, head = nn.Linear(dim, classes, device=device), VariationalHead(dim, classes, covariance="shared").to(device)
    folded = head.as_linear()
    with torch.no_grad():
        steps: dict[str, Step] = {"linear": lambda: linear(x), "shared": lambda: head(x), "as_linear": lambda: folded(x)}
        times = interleave(steps, device, limit)
    shape = {"batch": batch, "classes": classes, "dim": dim, "what": "inference"}
    return [shape | {"form": name, **summary(times, name, "linear")} for name in steps]


class Broadcast(nn.Module):
    """Diagonal Gaussians as one writes them first: a (B, C, D) tensor of differences."""

    def __init__(self, classes: int, dim: int) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.randn(classes, dim))
        self.log_sigma = nn.Parameter(torch.zeros(classes, dim))

    def forward(self, z: Tensor) -> Tensor:
        """log p(z|y), (B, D) -> (B, C)."""
        standard = (z[:, None] - self.mean) * torch.exp(-self.log_sigma)
        return -(0.5 * standard.square() + self.log_sigma + 0.5 * math.log(2 * math.pi)).sum(-1)


def interleave(steps: dict[str, Step], device: torch.device, limit: float) -> dict[str, list[float]]:
    """Seconds of each step in each round; at least 5 rounds, at most 200, about `limit` seconds in all."""
    for step in steps.values():
        step()
        step()
    times: dict[str, list[float]] = {name: [] for name in steps}
    began = time.perf_counter()
    while len(times["softmax" if "softmax" in times else "linear"]) < 5 or time.perf_counter() - began < limit:
        for name in random.sample(list(steps), len(steps)):
            synchronize(device)
            start = time.perf_counter()
            steps[name]()
            synchronize(device)
            times[name].append(time.perf_counter() - start)
        if len(times[name]) >= 200:
            break
    return times


def summary(times: dict[str, list[float]], name: str, against: str) -> dict[str, Any]:
    """Median seconds and median ratio over rounds, with the middle half of the ratios."""
    ratios = [a / b for a, b in zip(times[name], times[against], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "rounds": len(ratios),
        "seconds": statistics.median(times[name]),
        "ratio": middle,
        "ratio_quartiles": [low, high],
    }


def peak_memory(step: Step, device: torch.device) -> int | None:
    """Bytes a step takes at its peak beyond what is held before and after it (parameters and their gradients)."""
    step()  # leaves the gradients in place
    gc.collect()
    if device.type == "cuda":
        synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        held = torch.cuda.memory_allocated(device)
        step()
        synchronize(device)
        return torch.cuda.max_memory_allocated(device) - held
    clear, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not status.exists() or not os.access(clear, os.W_OK):
        return None
    ctypes.CDLL(None).malloc_trim(0)  # else the step is served from memory that is free but still held
    clear.write_text("5")  # reset the high-water mark
    held = _resident(status, "VmRSS")
    step()
    return max(0, _resident(status, "VmHWM") - held)


def _resident(status: Path, field: str) -> int:
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def synchronize(device: torch.device) -> None:
    """Wait for the device, so that a clock read means something."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def provenance(device: torch.device, seconds: float) -> dict[str, Any]:
    """Where the numbers come from."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.machine()} CPU"
    return {
        "command": f"python benchmarks/head.py --device {device.type} --seconds {seconds:g}",
        "device": name,
        "threads": torch.get_num_threads(),
        "versions": {"varclass": __version__, "torch": torch.__version__, "python": platform.python_version()},
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }


def as_markdown(rows: list[dict[str, Any]], source: dict[str, Any]) -> str:
    """One table for training, one for inference."""
    versions = ", ".join(f"{name} {value}" for name, value in source["versions"].items())
    where = f"{source['device']} ({source['threads']} threads)"
    head = f"`{source['command']}` on {where}, {versions}, float32, commit {source['commit']}.\n"
    lines = [head, "Forward + backward, median of the per-round ratios to softmax (middle half), n rounds:\n"]
    trained = [row for row in rows if row["what"] == "train"]
    ways = [way for way in ("graph", "compiled") if way in trained[0]]
    lines.append(
        "| B, C, D | form | peak MiB | ms | x softmax | n |" + "".join(f" {way}: ms | x softmax | n |" for way in ways)
    )
    lines.append("|---" * (6 + 3 * len(ways)) + "|")
    for row in trained:
        memory = "-" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**20:.0f}"
        cells = [_time(row), *(_time(row[way]) if row[way] else "- | - | -" for way in ways)]
        lines.append(f"| {_shape(row)} | {row['form']} | {memory} | {' | '.join(cells)} |")
    lines += ["\nInference, no gradient, shared covariance: `head(x)` (the log joint) and `head.as_linear()(x)`:\n"]
    lines += ["| B, C, D | form | ms | x nn.Linear | n |", "|---|---|---|---|---|"]
    lines += [f"| {_shape(row)} | {row['form']} | {_time(row)} |" for row in rows if row["what"] == "inference"]
    return "\n".join(lines) + "\n"


def _shape(row: dict[str, Any]) -> str:
    return f"{row['batch']}, {row['classes']}, {row['dim']}"


def _time(row: dict[str, Any]) -> str:
    low, high = row["ratio_quartiles"]
    return f"{row['seconds'] * 1e3:.3g} | {row['ratio']:.2f} ({low:.2f} to {high:.2f}) | {row['rounds']}"


def write(path: Path, text: str) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(path.suffix + ".partial")
    partial.write_text(text)
    partial.replace(path)


if __name__ == "__main__":
    main()
