"""Evaluated: what a run's folder holds, read from its files alone; no model, no data, no torch."""

from __future__ import annotations

import json
import math
import shlex
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = 1  # of scores.json


@dataclass(frozen=True)
class Row:
    """One measurement of scores.json: suite, method, condition, n samples, scores, and curves for figures."""

    suite: str
    method: str
    condition: dict[str, Any]
    n: int
    scores: dict[str, float]
    curves: dict[str, Any]

    @property
    def key(self) -> tuple[tuple[str, Any], ...]:
        """The condition without its seed: equal for what may be compared between runs."""
        return tuple(sorted((name, value) for name, value in self.condition.items() if name != "seed"))


@dataclass(frozen=True)
class Evaluated:
    """One run with its scores."""

    path: Path
    spec: dict[str, Any]
    record: dict[str, Any]
    history: list[dict[str, Any]]
    rows: list[Row]
    provenance: dict[str, Any]
    view: dict[str, Any] | None

    @property
    def seed(self) -> int:
        return int(self.spec.get("seed", 0))

    @property
    def classes(self) -> list[str]:
        return [str(name) for name in self.record["task"]["classes"]]

    @property
    def kind(self) -> str:
        return str(self.record["task"]["kind"])

    @property
    def samples(self) -> int:
        """How many it was trained on."""
        return int(self.record["samples"]["train"])

    @property
    def suites(self) -> set[str]:
        return {row.suite for row in self.rows}


def read_runs(paths: Iterable[str | Path]) -> list[Evaluated]:
    """The runs in these folders, each once; a ValueError of one line if one is no run, or has no scores."""
    folders = list(dict.fromkeys(Path(path) for path in paths))
    if not folders:
        raise ValueError("expected at least one evaluated run; got none: varclass runs lists them")
    seen: dict[Path, Evaluated] = {}
    for folder in folders:
        if folder.resolve() not in seen:
            seen[folder.resolve()] = read_run(folder)
    return list(seen.values())


def read_run(path: Path) -> Evaluated:
    """One evaluated run."""
    for name in ("spec.toml", "record.json"):
        if not (path / name).is_file():
            raise ValueError(f"{path} is not a run: it has no {name} (varclass runs lists them)")
    try:
        spec = tomllib.loads((path / "spec.toml").read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path / 'spec.toml'}: expected TOML; {error}") from None
    record, held = _json(path / "record.json"), _json(path / "scores.json")
    if not held or not held.get("rows"):
        raise ValueError(f"{path} is not evaluated: varclass evaluate {shlex.quote(str(path))} --suite clean")
    rows, view = _rows(path / "scores.json", held), _json(path / "view.json")
    for section, name in (("task", "classes"), ("task", "kind"), ("samples", "train")):
        if name not in record.get(section, {}):
            raise ValueError(f"{path / 'record.json'}: expected {section}.{name}; got none")
    return Evaluated(path, spec, record, _history(path / "history.jsonl"), rows, held.get("provenance", {}), view or None)


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: expected JSON; {error}") from None
    if not isinstance(held, dict):
        raise ValueError(f"{path}: expected a JSON object; got {type(held).__name__}")
    return held


def _rows(path: Path, held: dict[str, Any]) -> list[Row]:
    if held.get("format") != FORMAT:
        raise ValueError(f"{path}: expected format {FORMAT}; got {held.get('format')!r}: evaluate the run again")
    try:
        return [
            Row(
                row["suite"],
                row["method"],
                row["condition"],
                int(row["n"]),
                {name: math.nan if value is None else float(value) for name, value in row["scores"].items()},
                row.get("curves") or {},
            )
            for row in held["rows"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path}: expected the scores of a run; got {error!r}: evaluate it again") from None


def _history(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:  # the last line of a run that was killed
            break
    return found
