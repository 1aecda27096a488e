"""build_encoder: from a name to an encoder that fits the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from varclass.encoders import resnet, small, sprint, text, wide_resnet  # noqa: F401 (importing registers them)
from varclass.encoders.contract import ENCODERS, SHAPES, Encoder, check_dropout, check_shape
from varclass.encoders.imported import PATTERN, import_encoder

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class Entry(NamedTuple):
    """One line of help: how a name is written, the kinds of inputs, what it is."""

    pattern: str
    kinds: tuple[str, ...]
    summary: str


def build_encoder(
    name: str, *, kind: str, shape: tuple[int, ...], dropout: float = 0.0, options: Mapping[str, Any] = NO_OPTIONS
) -> Encoder:
    """An encoder by its name, for inputs of this kind and shape; it returns features (B, `out_features`).

    Args:
        name: as `list_encoders` writes it, such as "wrn-28-10", or an import path "package.module:ClassName".
        kind: "image", "vector" or "text", as `Split.kind`.
        shape: of one input as the encoder gets it: (channels, height, width), (features,) or (tokens,).
        dropout: probability; where it acts is in the encoder's docstring.
        options: further arguments of the encoder's constructor, such as {"hidden": [512, 256]} for "mlp".

    >>> build_encoder("mlp", kind="vector", shape=(13,), options={"hidden": [32], "features": 8}).out_features
    8
    >>> build_encoder("wrn-16-4", kind="text", shape=(64,))
    Traceback (most recent call last):
    ValueError: encoder 'wrn-16-4' takes inputs of kind image; got 'text': use 'text' or 'package.module:ClassName'
    """
    sizes, dropout = check_shape(kind, shape), check_dropout(dropout)
    if not isinstance(options, Mapping) or not all(isinstance(option, str) for option in options):
        raise TypeError(f"options must be a mapping from names to values; got {options!r}")
    if isinstance(name, str) and ":" in name:
        return import_encoder(name, kind=kind, shape=sizes, dropout=dropout, options=options)
    family, numbers = _read(name)
    if kind not in family.kinds:
        fitting = " or ".join(repr(entry.pattern) for entry in list_encoders(kind))
        raise ValueError(f"encoder {name!r} takes inputs of kind {' or '.join(family.kinds)}; got {kind!r}: use {fitting}")
    fixed = family.arguments(numbers, sizes)
    known = family.options(fixed)
    unknown = [option for option in options if option not in known]
    if unknown:
        choices = f"its options are {', '.join(known)}" if known else "it has none beside dropout"
        raise ValueError(f"encoder {name!r} has no option {unknown[0]!r}; {choices}")
    return family(**fixed, dropout=dropout, **options)


def list_encoders(kind: str | None = None) -> list[Entry]:
    """Every encoder there is, or those that take one kind of input; for help texts.

    >>> [entry.pattern for entry in list_encoders("vector")]
    ['mlp', 'package.module:ClassName']
    """
    found = [Entry(each.pattern, each.kinds, (each.__doc__ or "").partition("\n")[0]) for each in ENCODERS.values()]
    found.append(Entry(PATTERN, tuple(SHAPES), "Any nn.Module that returns features (B, F), by its import path."))
    return [entry for entry in found if kind is None or kind in entry.kinds]


def _read(name: object) -> tuple[type[Encoder], tuple[int, ...]]:
    """The class a name stands for, and the numbers in it."""
    first, *rest = name.split("-") if isinstance(name, str) else [""]
    # Every number has one spelling, as the same spec must be the same run.
    plain = all(part.isascii() and part.isdigit() and part[0] != "0" for part in rest)
    if first not in ENCODERS or len(rest) != ENCODERS[first].pattern.count("-") or not plain:
        listed = ", ".join(repr(entry.pattern) for entry in list_encoders())
        raise ValueError(f"encoder must be one of {listed}; got {name!r}")
    return ENCODERS[first], tuple(int(part) for part in rest)
