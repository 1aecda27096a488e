"""ONNX: the model as one file with named inputs and outputs, compared with PyTorch in onnxruntime."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from varclass.exporting.checking import check_same
from varclass.exporting.outputs import INPUT, OUTPUTS, Outputs
from varclass.exporting.program import quiet, trace

FILE = "model.onnx"
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
LARGEST = 2**31 - 2**20  # bytes of one protobuf file, with room for the graph


def need_onnx() -> None:
    """An ImportError that says what to install, unless all of it is there."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise ImportError(f"export to ONNX needs {', '.join(missing)}: pip install 'varclass[onnx]'")


def versions() -> str:
    """The packages that wrote and checked a file."""
    return ", ".join(f"{name} {version(name)}" for name in PACKAGES)


def write_onnx(outputs: Outputs, example: Tensor, folder: Path, metadata: Mapping[str, Any]) -> dict[str, float]:
    """Write model.onnx, and return the largest differences from PyTorch."""
    need_onnx()
    import onnx  # noqa: PLC0415

    size = sum(value.numel() * value.element_size() for value in outputs.state_dict().values() if isinstance(value, Tensor))
    if size > LARGEST:
        raise ValueError(f"an ONNX file holds up to 2 GiB; got {size / 2**30:.1f} GiB of weights: --to torch has no such limit")
    with _silent(), quiet():
        made = torch.onnx.export(
            trace(outputs, example), input_names=[INPUT], output_names=list(OUTPUTS), dynamo=True, verbose=False
        )
    assert made is not None
    proto = made.model_proto
    _name_batch(proto)
    for node in proto.graph.node:
        del node.metadata_props[:]  # names files of the machine that exports
    onnx.helper.set_model_props(proto, {name: _text(value) for name, value in metadata.items()})
    onnx.checker.check_model(proto, full_check=True)
    content = proto.SerializeToString()
    worst = check_same(_runner(content), outputs, example)
    (folder / FILE).write_bytes(content)
    return worst


def _runner(content: bytes) -> Any:
    """The file as a function of a batch, on one CPU."""
    import onnxruntime  # noqa: PLC0415

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = list(OUTPUTS)
    return lambda x: dict(zip(names, session.run(names, {INPUT: x.numpy()}), strict=True))


def _name_batch(proto: Any) -> None:
    """Call the dynamic dimension "batch": the exporter gives it a number."""
    graph = proto.graph
    symbol = graph.input[0].type.tensor_type.shape.dim[0].dim_param
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if symbol and dim.dim_param == symbol:
                dim.dim_param = "batch"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@contextmanager
def _silent() -> Iterator[None]:
    """The exporter logs which optional packages it did not find."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
