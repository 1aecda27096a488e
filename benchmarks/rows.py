"""Rows of a benchmark in a file that grows: what it has is not run again, and other machines' rows are taken in."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from varclass.training.files import write_json, write_text

Rows = dict[tuple[Any, ...], dict[str, Any]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """--save and --merge."""
    parser.add_argument("--save", type=Path, help="write FILE.json after every run, and FILE.md at the end")
    parser.add_argument("--merge", type=Path, action="append", default=[], help="a FILE.json to take rows from; repeatable")


def read_rows(parser: argparse.ArgumentParser, options: argparse.Namespace, key: Sequence[str]) -> Rows:
    """Those of --save and --merge, by what makes two rows the same; the first of the same stays."""
    own = [options.save.with_suffix(".json")] if options.save and options.save.with_suffix(".json").is_file() else []
    rows: Rows = {}
    for path in [*own, *options.merge]:
        try:
            for row in json.loads(path.read_text())["rows"]:
                rows.setdefault(tuple(row[name] for name in key), row)
        except (OSError, ValueError, KeyError, TypeError) as error:
            parser.error(f"{path}: expected rows of this benchmark; got {error!r}: give another file, or move it away")
    return rows


def save_rows(options: argparse.Namespace, rows: Rows, text: str | None = None) -> None:
    """To FILE.json, and the tables to FILE.md once there are any; nowhere without --save."""
    if options.save:
        write_json(options.save.with_suffix(".json"), {"rows": list(rows.values())})
    if options.save and text is not None:
        write_text(options.save.with_suffix(".md"), text)
