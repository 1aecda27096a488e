"""make test-extras: each extra with a bridge, alone in a new environment: it works, and the others say what to install.

A row is a name of pyproject's extras, what a user imports for it, and a few lines that use it. `python tests/extras.py onnx`
tries some only.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODEL = """
import torch
from torch import nn
from varclass import Classifier, VariationalHead
model = Classifier(nn.Linear(3, 8), VariationalHead(8, 2))
"""
NEEDS = {  # what fails without the extra
    "onnx": MODEL + "import tempfile, varclass\nvarclass.export(model, torch.randn(2, 3), tempfile.mkdtemp())",
    "lightning": "import varclass.integrations.lightning",
    "sklearn": "from varclass import VariationalClassifier",
    "transformers": "import varclass.integrations.transformers",
}
USES = {  # what works with it
    "onnx": NEEDS["onnx"],
    "lightning": MODEL
    + """
from lightning import Trainer
from varclass.integrations.lightning import VariationalModule
rows = [(torch.randn(3), 0), (torch.randn(3), 1)]
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu")
Trainer(max_epochs=1, **quiet).fit(VariationalModule(model), torch.utils.data.DataLoader(rows, batch_size=2))
""",
    "sklearn": NEEDS["sklearn"]
    + """
X, y = [[0.0], [0.1], [3.0], [3.1]], ["low", "low", "high", "high"]
assert VariationalClassifier(max_iter=20, random_state=0).fit(X, y).predict([[2.9]]) == ["high"]
""",
    "transformers": """
import torch
from transformers import BertConfig, BertForSequenceClassification
from varclass.integrations.transformers import convert
sizes = dict(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=3)
model = convert(BertForSequenceClassification(BertConfig(**sizes)))
found = model(input_ids=torch.ones(2, 5, dtype=torch.long), labels=torch.tensor([0, 2]))
found.loss.backward()
assert found.log_evidence.shape == (2,)
""",
}


def run(python: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)


def check(extra: str, folder: Path) -> list[str]:
    """What is wrong with one extra."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "-q", "-c", "constraints.txt", "-e", f".[{extra}]"]
    subprocess.run(install, check=True, cwd=ROOT, stderr=subprocess.DEVNULL)
    wrong = []
    used = run(python, USES[extra])
    if used.returncode:
        wrong.append(f"{extra}: does not work alone: {used.stderr.strip().splitlines()[-1]}")
    for other in NEEDS.keys() - {extra}:
        missed = run(python, NEEDS[other])
        last = (missed.stderr.strip().splitlines() or ["nothing"])[-1]
        if not missed.returncode or f"pip install 'varclass[{other}]'" not in last:
            wrong.append(f"{extra}: {other} must fail with its pip line; got {last}")
    return wrong


def main(chosen: list[str]) -> int:
    wrong = []
    for extra in chosen or list(USES):
        with tempfile.TemporaryDirectory() as folder:
            found = check(extra, Path(folder) / "env")
        print(f"{extra}: {'ok' if not found else 'wrong'}", flush=True)
        wrong += found
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
