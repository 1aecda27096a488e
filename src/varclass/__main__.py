"""The command `varclass`, also as `python -m varclass` and `accelerate launch -m varclass`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line, if what it needs is installed."""
    try:
        from varclass.cli.app import run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("varclass"):
            raise
        sys.exit(f"error: the command line needs {error.name}: pip install 'varclass[train]'")
    leave(run())


def leave(code: int) -> None:
    """Exit; from one of several processes without the teardown in which gloo's threads now and then abort."""
    dist = sys.modules.get("torch.distributed")  # not imported to ask: many a verb does without torch
    if dist is not None and dist.is_available() and dist.is_initialized():
        if code == 0:
            dist.barrier()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
