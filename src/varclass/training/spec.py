"""RunSpec: everything that decides what a run will be. The same spec is the same run."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from varclass.core import presets, vmf  # noqa: F401 (importing vmf registers the family)
from varclass.core.axes import AxesPrior
from varclass.core.consistency import AUTO
from varclass.core.objectives import OBJECTIVES
from varclass.core.options import check_choice, check_count, check_positive
from varclass.core.posterior import POSTERIORS
from varclass.core.priors import MEANS, PRIORS, ClassPrior
from varclass.core.ratio import RATIOS
from varclass.training.augmentation import AUGMENTATIONS
from varclass.training.optimization import OPTIMIZERS
from varclass.training.schedule import SCHEDULES

PRECISIONS = ("fp32", "bf16")
LATER = ("cross_fit", "fold")  # settings of the data that came later: where they say nothing, a run keeps the id it had


@dataclass(frozen=True)
class DataSpec:
    """Which samples: a name of the catalogue or a path, and how much of its training split."""

    name: str = "digits"
    validation: float = 0.1  # share of the training split set aside, unless a validation split is published; 0 for none
    limit: int | None = None  # training samples at most, classes in proportion
    per_class: int | None = None  # training samples of every class
    size: int | None = None  # height and width that your own images of several sizes are scaled to
    length: int = 64  # tokens of a text
    cross_fit: int | None = None  # folds that settle sigma; None: 5 where it can be settled and fewer than 20 are held out
    fold: int | None = None  # the one of them, from 0, that is held out: of the runs that cross-fitting makes


@dataclass(frozen=True)
class EncoderSpec:
    """f_omega, by the names of `varclass.encoders.build`."""

    name: str | None = None  # None: what suits the kind of inputs
    dropout: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class HeadSpec:
    """The options of `VariationalHead`; what is not given is the preset's."""

    objective: str | None = None
    beta: float | str | None = None
    latent_dim: int | None = None
    prior: str | None = None
    covariance: str | None = None
    means: str | None = None
    separation: float | str | None = None
    ratio: str | None = None
    label_prior: str | None = None
    posterior: str | None = None
    preset: str | None = None


@dataclass(frozen=True)
class TrainingSpec:
    """How phi, theta, pi and psi are moved. None: what suits the encoder, see `varclass.training.defaults`."""

    epochs: int = 30
    batch_size: int = 128  # of one step, over all processes and accumulated parts together
    optimizer: str | None = None
    lr: float | None = None
    momentum: float = 0.9
    weight_decay: float | None = None
    lr_multipliers: dict[str, float] = field(default_factory=dict)  # by group: theta, pi, psi
    weight_decays: dict[str, float] = field(default_factory=dict)
    schedule: str = "cosine"
    warmup: float = 0.05  # share of the steps
    accumulate: int = 1
    clip: float | None = None  # largest gradient norm of each group
    ema: float = 0.0  # decay of the average of the weights; 0 for none
    mixup: float = 0.0  # alpha of the Beta distribution; 0 for none
    label_smoothing: float = 0.0
    augment: tuple[str, ...] = ()
    patience: int = 0  # epochs without a better validation NLL before stopping; 0 never stops
    precision: str = "fp32"


@dataclass(frozen=True)
class RunSpec:
    """One run. `complete` fills in every default, `id` names it, and TOML files carry it."""

    data: DataSpec = DataSpec()
    encoder: EncoderSpec = EncoderSpec()
    head: HeadSpec = HeadSpec()
    training: TrainingSpec = TrainingSpec()
    seed: int = 0

    @property
    def id(self) -> str:
        """What it is, readably, and a digest of every setting."""
        values = asdict(self)
        values["data"] = {name: value for name, value in values["data"].items() if name not in LATER or value is not None}
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]
        data = Path(self.data.name).stem or "data"
        named = (data, (self.encoder.name or "encoder").rpartition(":")[2], self.head.objective or "head", f"s{self.seed}")
        return "-".join("".join(c if c.isalnum() or c in "._-" else "_" for c in part) for part in (*named, digest))

    def check(self) -> RunSpec:
        """Itself, if every value is one that training can use; a ValueError of one line otherwise."""
        check_count("seed", self.seed, 0)
        check_data(self.data)
        _check_head(self.head)
        _check_training(self.training)
        if self.training.patience and not self.data.validation:
            raise ValueError(f"training.patience needs validation data; got data.validation={self.data.validation!r}")
        if self.data.cross_fit and self.training.patience:
            raise ValueError(
                "training.patience holds out data to stop by, and they settle too: leave out data.cross_fit; got both"
            )
        if self.data.cross_fit and self.head.separation != AUTO:
            raise ValueError(
                f"data.cross_fit settles head.separation={AUTO!r}, as the default has it; got {self.head.separation!r} "
                f"with objective {self.head.objective!r}"
            )
        return self


def read_spec(path: Path) -> RunSpec:
    """A spec from a TOML file: tables [data], [encoder], [head], [training], and `seed`."""
    try:
        return from_mapping(tomllib.loads(path.read_text()), str(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected TOML; {error}") from None


def from_mapping(values: Mapping[str, Any], where: str = "spec") -> RunSpec:
    """A spec from nested mappings; names that do not exist and values of another type are refused."""
    spec = _read(RunSpec, values, where)
    assert isinstance(spec, RunSpec)
    return spec


def override(spec: RunSpec, changes: Mapping[str, Any]) -> RunSpec:
    """The spec with some values replaced, each by its dotted name such as "training.lr"; None changes nothing.

    >>> override(RunSpec(), {"training.lr": 0.1, "seed": 3}).training.lr
    0.1
    """
    for name, value in changes.items():
        section, _, key = name.rpartition(".")
        if value is None:
            continue
        spec = replace(spec, **{section: replace(getattr(spec, section), **{key: value})} if section else {key: value})
    return spec


def to_toml(spec: RunSpec) -> str:
    """The spec as TOML, the seed first; what is None is left out, since TOML has no word for it."""
    import tomli_w  # noqa: PLC0415

    values = asdict(spec)
    held = {"seed": values.pop("seed")} | {name: _present(section) for name, section in values.items()}
    return tomli_w.dumps(held)


def complete_head(head: HeadSpec) -> HeadSpec:
    """Every option of the head as the preset has it, so that a later default cannot change what this spec means."""
    named = {each.name: getattr(head, each.name) for each in fields(head) if each.name != "preset"}
    default = presets.defaults_for(head.preset, **named)
    filled = {name: default[name] for name in ("objective", "prior", "covariance", "means", "separation", "ratio", "posterior")}
    head = replace(head, **{name: value for name, value in filled.items() if getattr(head, name) is None})
    if head.covariance is None:
        head = replace(head, covariance=_family(head).covariances[0])
    if head.label_prior is None:
        given = default["label_prior"] or ("learned" if OBJECTIVES.pick(head.objective).uses_label_prior else "uniform")
        head = replace(head, label_prior=given)
    if head.beta is None and hasattr(OBJECTIVES.pick(head.objective).with_beta(1.0), "beta"):
        head = replace(head, beta=default["beta"])
    return head


def _present(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _present(each) for name, each in value.items() if each is not None}
    return list(value) if isinstance(value, tuple) else value


def _read(kind: type, values: Any, where: str) -> Any:
    if not isinstance(values, Mapping):
        raise ValueError(f"{where}: expected a table; got {values!r}")
    hints = get_type_hints(kind)
    known = {each.name for each in fields(kind)}
    unknown = [name for name in values if name not in known]
    if unknown:
        raise ValueError(f"{where}: no setting {unknown[0]!r}; there are {', '.join(sorted(known))}")
    found = {name: _convert(hints[name], value, f"{where}: {name}") for name, value in values.items()}
    return kind(**found)


def _convert(hint: Any, value: Any, where: str) -> Any:
    if is_dataclass(hint):
        return _read(hint, value, where)  # type: ignore[arg-type]
    text = str(hint)
    if text.startswith("dict") and isinstance(value, dict):
        _, of = get_args(hint)
        return {name: each if of is Any else _convert(of, each, f"{where}.{name}") for name, each in value.items()}
    if text.startswith("tuple") and isinstance(value, list):
        return tuple(_convert(str, each, where) for each in value)
    plain = not text.startswith(("dict", "tuple"))
    kinds = tuple(kind for kind in (int, float, str) if plain and kind.__name__ in text)
    if isinstance(value, bool) or not isinstance(value, (*kinds, *((int,) if float in kinds else ()))):
        raise ValueError(f"{where}: expected {text.removeprefix('<class ').strip('<>')}; got {value!r}")
    return float(value) if float in kinds and int not in kinds and isinstance(value, int) else value


def check_data(data: DataSpec) -> None:
    """A ValueError of one line unless samples can be chosen by this; the rest of a spec is checked once the kind is known."""
    if not 0 <= data.validation < 1:
        raise ValueError(f"data.validation must be a share from 0 to 1; got {data.validation!r}")
    for name in ("limit", "per_class", "size"):
        if getattr(data, name) is not None:
            check_count(f"data.{name}", getattr(data, name), 1)
    if data.limit is not None and data.per_class is not None:
        raise ValueError("data.limit and data.per_class exclude each other; got both")
    check_count("data.length", data.length, 1)
    if data.cross_fit is not None and check_count("data.cross_fit", data.cross_fit, 0) == 1:
        raise ValueError("data.cross_fit must be a number of folds from 2 on, or 0 for none; got 1")
    if data.fold is not None and not 0 <= data.fold < (data.cross_fit or 0):
        raise ValueError(f"data.fold must be one of data.cross_fit={data.cross_fit!r} folds, from 0; got {data.fold!r}")


def _family(head: HeadSpec) -> type[ClassPrior]:
    family: type[ClassPrior] = PRIORS.pick(head.prior)
    return AxesPrior if head.means == "axes" else family


def _check_head(head: HeadSpec) -> None:
    check_choice("head.objective", head.objective, OBJECTIVES)
    check_choice("head.prior", head.prior, PRIORS)
    check_choice("head.means", head.means, MEANS)
    check_choice("head.covariance", head.covariance, _family(head).covariances)
    check_choice("head.ratio", head.ratio, RATIOS)
    check_choice("head.posterior", head.posterior, POSTERIORS)
    check_choice("head.label_prior", head.label_prior, ("learned", "uniform"))
    if isinstance(head.separation, str) and head.separation != AUTO:
        raise ValueError(f"head.separation must be a number or {AUTO!r}; got {head.separation!r}")
    if head.beta is not None:
        presets.check_beta("head.beta", head.beta, head.objective)


def _check_training(t: TrainingSpec) -> None:
    check_count("training.epochs", t.epochs, 1)
    check_count("training.batch_size", t.batch_size, 1)
    check_count("training.accumulate", t.accumulate, 1)
    check_count("training.patience", t.patience, 0)
    check_choice("training.optimizer", t.optimizer, OPTIMIZERS)
    check_choice("training.schedule", t.schedule, SCHEDULES)
    check_choice("training.precision", t.precision, PRECISIONS)
    check_positive("training.lr", t.lr)
    check_positive("training.weight_decay", t.weight_decay, zero=True)
    check_positive("training.mixup", t.mixup, zero=True)
    if t.clip is not None:
        check_positive("training.clip", t.clip)
    for name in ("momentum", "warmup", "ema", "label_smoothing"):
        if not 0 <= getattr(t, name) < 1:
            raise ValueError(f"training.{name} must lie in [0, 1); got {getattr(t, name)!r}")
    for each in t.augment:
        check_choice("training.augment", each, AUGMENTATIONS)
    if t.batch_size % t.accumulate:
        raise ValueError(f"training.batch_size must be a multiple of training.accumulate={t.accumulate}; got {t.batch_size}")
    for table in ("lr_multipliers", "weight_decays"):
        for group, value in getattr(t, table).items():
            check_choice(f"training.{table}", group, ("phi", "theta", "pi", "psi"))
            check_positive(f"training.{table}.{group}", value, zero=True)
