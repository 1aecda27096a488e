"""MODEL_CARD.md: what an exported model is, how it was trained, what was measured, how to use it, what it does not say."""

from __future__ import annotations

import torch
from torch import Tensor

from varclass.exporting import onnx
from varclass.exporting.about import About
from varclass.exporting.checking import TOLERANCE
from varclass.exporting.markdown import fenced, table, text
from varclass.exporting.measured import sections
from varclass.exporting.outputs import INPUT, OUTPUTS

ONNX = """\
import json, numpy, onnxruntime

session = onnxruntime.InferenceSession("model.onnx")
classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
x = numpy.zeros({shape}, dtype="{dtype}")  # your inputs, any number of them
log_joint, posterior, log_evidence = session.run(["log_joint", "posterior", "log_evidence"], {{"input": x}})
print([classes[k] for k in posterior.argmax(1)], posterior.max(1), log_evidence)"""

TORCH = """\
import json, torch

labels = {{"labels.json": ""}}
model = torch.export.load("model.pt2", extra_files=labels).module()  # it unpickles: load files you trust
classes = json.loads(labels["labels.json"])["classes"]
found = model(torch.zeros({shape}, dtype=torch.{dtype}))  # your inputs, any number of them
print([classes[k] for k in found["posterior"].argmax(1)], found["posterior"].max(1), found["log_evidence"])"""

TOKENS = """\
import numpy
from varclass.encoders.tokenizer import HashTokenizer

x = HashTokenizer(vocabulary={vocabulary}, length={length})(numpy.array(["a text", "another"], dtype=object)).numpy()"""

LIMITS = """\
- log p(z) is a density in latent space, not of the input: compare its values between inputs of this model only. It may be
  above 0, and an input unlike the training data can still have a high one.
- p(y|x) is over the classes below alone. An input that belongs to none of them still gets a distribution over them.
- Accuracy, NLL and ECE hold for data like the split they were measured on, and n is how much of it there was. They were
  measured on the PyTorch model; the file agrees with it as said above.
- Accuracy under FGSM or PGD is an upper bound of what stronger attacks leave. FGSM is not robustness."""


def write_card(about: About, to: str, example: Tensor, worst: dict[str, float]) -> str:
    """The card of one export, as markdown."""
    return "\n\n".join(_parts(about, to, example, worst)) + "\n"


def _parts(about: About, to: str, example: Tensor, worst: dict[str, float]) -> list[str]:
    dtype, shape = str(example.dtype).removeprefix("torch."), tuple(example.shape[1:])
    written = f"(batch, {', '.join(map(str, shape))})"
    snippet = (ONNX if to == "onnx" else TORCH).format(shape=(2, *shape), dtype=dtype)
    parts = [
        f"# {text(about.name)}",
        "A classifier with class-conditional priors p(z|y) in its latent space and a label prior p(y): it predicts by Bayes' "
        "rule, and says with log p(z) how expected an input's latent is.",
        table(["", ""], [("classes", len(about.classes)), *about.facts]),
        "## Use",
        f"Input: `{INPUT}`, {dtype} {written}. {text(about.input)}",
        table(["output", "meaning"], OUTPUTS.items()),
        fenced(snippet, "python"),
    ]
    if about.tokenizer:
        parts += ["Texts to token ids:", fenced(TOKENS.format(**about.tokenizer), "python")]
    parts += [
        _checked(to, about.checked_on, worst),
        "## Measured",
        sections(about.rows),
        "## Limits",
        LIMITS,
        "## Classes",
        ", ".join(f"{index}: {text(name)}" for index, name in enumerate(about.classes)),
    ]
    if about.head:
        parts += ["## Head", fenced(about.head)]
    if about.settings:
        parts += ["## Settings", fenced(about.settings, "toml")]
    return parts


def _checked(to: str, on: str, worst: dict[str, float]) -> str:
    versions = f"torch {torch.__version__}"
    if to == "onnx":
        versions += f", {onnx.versions()}"
    differences = ", ".join(f"{name} {value:.1e}" for name, value in worst.items())
    return (
        f"Compared with PyTorch at batch sizes 1, 2, 7 on {on} (tolerance {text(TOLERANCE)}; {versions}). "
        f"Largest differences: {text(differences)}."
    )
