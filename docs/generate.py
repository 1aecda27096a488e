"""What the documentation shows of the code, into docs/generated: the guides' outputs and figures, tables, the command line.

Every guide runs anew, so a page can show nothing that its script does not print. `make docs` calls it before the build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tables import tables

ROOT = Path(__file__).parents[1]
GUIDES, OUT = ROOT / "examples" / "guides", ROOT / "docs" / "generated"
TWICE = "many_gpus"  # also under torchrun
VERBS = ("fit", "evaluate", "predict", "export", "compare", "report", "reproduce", "runs", "data")


def run(*command: str) -> str:
    """What a command prints; one that fails ends the build. One thread, so that a machine repeats its numbers."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment).stdout


def run_guide(script: Path) -> str:
    """The session that a reader would see."""
    shown = script.relative_to(ROOT).as_posix()
    session = f"$ python {shown}\n" + run(sys.executable, "-W", "error", shown, str(OUT))
    if script.stem == TWICE:
        launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
        session += f"$ torchrun --standalone --nproc-per-node 2 {shown}\n" + run(*launcher, shown)
    return session


def command_line() -> str:
    """The help of every verb."""
    pages = [((), "varclass"), *(((verb,), f"varclass {verb}") for verb in VERBS)]
    blocks = []
    for verb, title in pages:
        text = run(str(Path(sys.executable).with_name("varclass")), *verb, "--help")
        lines = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
        blocks.append(f"## {title}\n\n```text\n{lines.strip()}\n```\n")
    return "\n".join(blocks)


def main() -> None:
    """Everything, from an empty folder."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    for name, text in {**tables(), "cli.md": command_line()}.items():
        (OUT / name).write_text(text)
    for script in sorted(GUIDES.glob("*.py")):
        print(f"running {script.name}", flush=True)
        (OUT / f"{script.stem}.txt").write_text(run_guide(script))


if __name__ == "__main__":
    main()
