"""Where a run's numbers come from: versions, commit, device."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import varclass


def provenance(device: torch.device) -> dict[str, Any]:
    """Versions of what computes, the commit if the package runs from a checkout, and the device's name."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.machine()} CPU"
    return {
        "versions": {
            "varclass": varclass.__version__,
            "python": platform.python_version(),
            **{package: metadata.version(package) for package in ("torch", "numpy", "accelerate")},
        },
        "commit": commit(),
        "device": {"type": device.type, "name": name, "threads": torch.get_num_threads()},
        "platform": platform.platform(),
        "command": sys.argv,
    }


COMMIT = "VARCLASS_COMMIT"  # says it where the code is a copy: an image, another machine


def commit() -> str | None:
    """The commit of the checkout the package runs from, with "+" if files differ from it, unless COMMIT says it."""
    if said := os.environ.get(COMMIT):
        return said
    here = Path(varclass.__file__).resolve().parent
    try:
        _git(here, "ls-files", "--error-unmatch", "__init__.py")  # else it is a package installed inside another checkout
        head = _git(here, "rev-parse", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no", "--", ".")
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()
