"""Where the data lie: a flag, an environment variable, or the platform's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "VARCLASS_DATA"


def data_root(flag: str | Path | None = None) -> Path:
    """The folder all published sets are under: `flag`, else $VARCLASS_DATA, else the platform's cache folder.

    It need not exist yet; nothing is created here.

    >>> str(data_root("somewhere"))
    'somewhere'
    """
    if flag is not None:
        return Path(flag).expanduser()
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    import pooch  # type: ignore[import-untyped]  # noqa: PLC0415

    return Path(pooch.os_cache("varclass"))
