"""RunSpec: TOML there and back, one id for one spec, and errors that name the setting."""

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from varclass.core import presets
from varclass.core.objectives import OBJECTIVES
from varclass.core.priors import MEANS, PRIORS
from varclass.core.ratio import RATIOS
from varclass.training.augmentation import AUGMENTATIONS
from varclass.training.defaults import complete
from varclass.training.optimization import OPTIMIZERS
from varclass.training.schedule import SCHEDULES
from varclass.training.spec import (
    DataSpec,
    EncoderSpec,
    HeadSpec,
    RunSpec,
    TrainingSpec,
    complete_head,
    from_mapping,
    override,
    read_spec,
    to_toml,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
POSITIVE = st.floats(1e-12, 1e12)
SHARES = st.floats(0, 1, exclude_max=True)
VALUES = st.recursive(
    st.integers() | st.booleans() | st.floats(allow_nan=False) | TEXT, lambda each: st.lists(each, max_size=3)
)
GROUPS = st.dictionaries(st.sampled_from(["phi", "theta", "pi", "psi"]), POSITIVE)


def maybe(strategy):
    return st.none() | strategy


SPECS = st.builds(
    RunSpec,
    data=st.builds(
        DataSpec, name=TEXT, validation=SHARES, limit=maybe(st.integers(1)), size=maybe(st.integers(1)), length=st.integers(1)
    ),
    encoder=st.builds(EncoderSpec, maybe(TEXT), SHARES, st.dictionaries(TEXT, VALUES, max_size=3)),
    head=st.builds(
        HeadSpec,
        objective=maybe(st.sampled_from(list(OBJECTIVES))),
        beta=maybe(st.sampled_from(["1/D", "auto"]) | POSITIVE),
        latent_dim=maybe(st.integers(1)),
        prior=maybe(st.sampled_from(list(PRIORS))),
        means=maybe(st.sampled_from(list(MEANS))),
        separation=maybe(POSITIVE),
        ratio=maybe(st.sampled_from(list(RATIOS))),
        preset=maybe(st.sampled_from(list(presets.PRESETS))),
    ),
    training=st.builds(
        TrainingSpec,
        epochs=st.integers(1),
        optimizer=maybe(st.sampled_from(list(OPTIMIZERS))),
        lr=maybe(POSITIVE),
        weight_decay=maybe(POSITIVE),
        lr_multipliers=GROUPS,
        weight_decays=GROUPS,
        schedule=st.sampled_from(list(SCHEDULES)),
        warmup=SHARES,
        clip=maybe(POSITIVE),
        ema=SHARES,
        mixup=POSITIVE,
        augment=st.lists(st.sampled_from(list(AUGMENTATIONS)), max_size=3).map(tuple),
        patience=st.integers(0),
    ),
    seed=st.integers(0),
)


@given(SPECS)
def test_a_spec_comes_back_from_toml_as_it_was(tmp_path_factory, spec):
    path = tmp_path_factory.mktemp("spec") / "spec.toml"
    path.write_text(to_toml(spec), encoding="utf-8")
    back = read_spec(path)
    assert back == spec
    assert back.id == spec.id


@given(SPECS, st.sampled_from(["image", "vector", "text"]))
def test_a_complete_spec_stays_as_it_is_and_comes_back_from_toml(tmp_path_factory, spec, kind):
    if kind != "image":
        spec = replace(spec, training=replace(spec.training, augment=(), mixup=0.0))
    if spec.head.beta == "auto" and complete_head(spec.head).objective != "pull":
        spec = replace(spec, head=replace(spec.head, beta=None))  # refused: below
    if spec.training.patience and not spec.data.validation:
        spec = replace(spec, data=replace(spec.data, validation=0.5))
    full = complete(spec, kind)
    assert complete(full, kind) == full
    path = tmp_path_factory.mktemp("spec") / "spec.toml"
    path.write_text(to_toml(full), encoding="utf-8")
    assert complete(read_spec(path), kind).id == full.id
    # None is a choice of its own here: no limit, no clipping, the encoder's own dimension, the authors' start
    open_settings = {"data.limit", "data.per_class", "data.size", "data.cross_fit", "data.fold"}
    open_settings |= {"head.latent_dim", "head.preset", "training.clip"}
    if full.head.preset == "authors":
        open_settings.add("head.separation")
    if full.head.objective not in ("gm", "vc", "pull", "bottleneck"):
        open_settings.add("head.beta")
    values = asdict(full)
    values.pop("seed")
    silent = {f"{section}.{name}" for section, held in values.items() for name, value in held.items() if value is None}
    assert silent <= open_settings


OTHER = {
    "seed": 7,
    "data.name": "mnist",
    "data.validation": 0.25,
    "data.limit": 11,
    "data.per_class": 3,
    "data.size": 64,
    "data.length": 65,
    "data.cross_fit": 5,
    "data.fold": 2,
    "encoder.name": "mlp",
    "encoder.dropout": 0.3,
    "encoder.options": {"hidden": [3]},
    "head.objective": "gm",
    "head.beta": 0.5,
    "head.latent_dim": 5,
    "head.prior": "vmf",
    "head.covariance": "unit",
    "head.means": "simplex",
    "head.separation": 3.0,
    "head.ratio": "mlp",
    "head.label_prior": "uniform",
    "head.posterior": "gaussian",
    "head.preset": "paper",
    "training.epochs": 31,
    "training.batch_size": 64,
    "training.optimizer": "sgd",
    "training.lr": 0.5,
    "training.momentum": 0.8,
    "training.weight_decay": 0.2,
    "training.lr_multipliers": {"psi": 2.0},
    "training.weight_decays": {"psi": 2.0},
    "training.schedule": "step",
    "training.warmup": 0.2,
    "training.accumulate": 2,
    "training.clip": 1.0,
    "training.ema": 0.9,
    "training.mixup": 0.1,
    "training.label_smoothing": 0.1,
    "training.augment": ("crop",),
    "training.patience": 1,
    "training.precision": "bf16",
}


def test_every_setting_is_part_of_the_id():
    values = asdict(RunSpec())
    names = {"seed"} | {f"{section}.{name}" for section in values if section != "seed" for name in values[section]}
    assert set(OTHER) == names
    ids = [RunSpec().id, *(override(RunSpec(), {name: value}).id for name, value in OTHER.items())]
    assert len(set(ids)) == len(ids)


def test_an_id_is_a_file_name_that_says_what_it_is():
    spec = RunSpec(
        DataSpec("../my images/of cats.npz"), EncoderSpec("my.module:Net"), HeadSpec(objective="vc"), TrainingSpec(), seed=3
    )
    name, _, digest = spec.id.rpartition("-")
    assert name == "of_cats-Net-vc-s3"
    assert len(digest) == 8


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("epochs = 3", "no setting 'epochs'; there are data, encoder, head, seed, training"),
        ("[training]\nlearning_rate = 0.1", "training: no setting 'learning_rate'; there are accumulate, augment"),
        ("[training]\nepochs = '3'", "training: epochs: expected 'int'; got '3'"),
        ("[training]\nepochs = 3.0", "training: epochs: expected 'int'; got 3.0"),
        ("[training]\nepochs = true", "training: epochs: expected 'int'; got True"),
        ("[training]\nlr = 'fast'", "training: lr: expected float | None; got 'fast'"),
        ("[training]\nschedule = 3", "training: schedule: expected 'str'; got 3"),
        ("[training]\naugment = 'crop'", "training: augment: expected tuple[str, ...]; got 'crop'"),
        ("[training]\naugment = [1]", "training: augment: expected 'str'; got 1"),
        ("[training]\nlr_multipliers = 0.5", "training: lr_multipliers: expected dict[str, float]; got 0.5"),
        ("[training]\nlr_multipliers = {psi = 'x'}", "training: lr_multipliers.psi: expected 'float'; got 'x'"),
        ("[encoder]\noptions = 'wide'", "encoder: options: expected dict[str, typing.Any]; got 'wide'"),
        ("training = 3", "training: expected a table; got 3"),
        ("seed = ", "expected TOML; "),
    ],
)
def test_wrong_toml_is_an_error_that_names_the_file_and_the_setting(toml, message, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(toml)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the message is compared below)
        read_spec(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_whole_number_will_do_for_a_float_and_is_the_same_run():
    one, other = (from_mapping({"training": {"lr": lr, "lr_multipliers": {"psi": m}}}) for lr, m in ((1, 2), (1.0, 2.0)))
    assert one == other
    assert one.id == other.id


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("seed", -1, "seed must be a whole number of at least 0; got -1"),
        ("data.validation", 1.0, "data.validation must be a share from 0 to 1; got 1.0"),
        ("data.limit", 0, "data.limit must be a whole number of at least 1; got 0"),
        ("head.objective", "vcc", "objective must be one of 'ce', 'gm', 'pull', 'vc', 'bottleneck', 'authors'; got 'vcc'"),
        ("head.covariance", "full", "head.covariance must be one of"),
        ("head.beta", -1.0, "head.beta must be a finite number >= 0; got -1.0"),
        ("head.beta", "some", "head.beta must be a finite number >= 0, 'auto', or a text such as '1/D'; got 'some'"),
        ("head.beta", "1/C", "'auto', or a text such as '1/D'; got '1/C'"),
        ("training.epochs", 0, "training.epochs must be a whole number of at least 1; got 0"),
        ("training.lr", -0.1, "training.lr must be a finite number > 0; got -0.1"),
        ("training.lr", float("inf"), "training.lr must be a finite number > 0; got inf"),
        ("training.clip", 0.0, "training.clip must be a finite number > 0; got 0.0"),
        ("training.ema", 1.0, "training.ema must lie in [0, 1); got 1.0"),
        ("training.label_smoothing", float("nan"), "training.label_smoothing must lie in [0, 1); got nan"),
        ("training.schedule", "linear", "training.schedule must be one of"),
        ("training.augment", ("blur",), "training.augment must be one of 'crop', 'flip', 'cutout'; got 'blur'"),
        ("training.accumulate", 3, "training.batch_size must be a multiple of training.accumulate=3; got 128"),
        ("training.lr_multipliers", {"omega": 1.0}, "training.lr_multipliers must be one of 'phi', 'theta', 'pi', 'psi'"),
        ("training.weight_decays", {"psi": -1.0}, "training.weight_decays.psi must be a finite number >= 0; got -1.0"),
        ("training.precision", "fp8", "training.precision must be one of 'fp32', 'bf16'; got 'fp8'"),
    ],
)
def test_values_that_training_cannot_use_are_refused(name, value, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        complete(override(RunSpec(), {name: value}), "image")
    assert message in str(caught.value)


def test_limit_and_per_class_exclude_each_other():
    with pytest.raises(ValueError, match=r"data.limit and data.per_class exclude each other"):
        complete(override(RunSpec(), {"data.limit": 5, "data.per_class": 5}), "image")


def test_defaults_follow_the_encoder_and_the_kind():
    assert complete(RunSpec(), "vector").encoder.name == "mlp"
    assert complete(RunSpec(), "image").training.optimizer == "adamw"
    for name in ("wrn-16-4", "resnet-18", "sprint-8"):
        residual = complete(override(RunSpec(), {"encoder.name": name}), "image").training
        assert (residual.optimizer, residual.lr, residual.weight_decay) == ("sgd", 0.1, 5e-4)
    given = complete(override(RunSpec(), {"training.optimizer": "sgd", "training.lr": 0.3}), "image").training
    assert (given.lr, given.weight_decay) == (0.3, 5e-4)


@pytest.mark.parametrize("objective", [name for name in OBJECTIVES if name != "pull"])
def test_a_beta_that_gives_way_to_data_is_the_pulls_alone(objective):
    wanted = RunSpec(head=HeadSpec(objective=objective, beta="auto"))
    with pytest.raises(ValueError, match=rf"^head\.beta='auto' is for the objective 'pull': .* got '{objective}'$"):
        complete(wanted, "image")
    assert complete(override(wanted, {"head.objective": "pull"}), "image").head.beta == "auto"


def test_the_default_is_a_beta_that_gives_way_to_data_and_says_so_in_toml():
    full = complete(RunSpec(), "image")
    assert full.head.beta == "auto"
    assert 'beta = "auto"' in to_toml(full)
    assert {complete(RunSpec(head=HeadSpec(objective=name)), "image").head.beta for name in ("gm", "vc", "bottleneck")} == {
        "1/D"
    }


def test_a_run_of_the_time_before_keeps_its_id_and_its_beta():
    """As `complete` wrote it when "1/D" was the default."""
    before = complete(RunSpec(head=HeadSpec(beta="1/D")), "image")
    assert (before.head.beta, before.id) == ("1/D", "digits-lenet-pull-s0-33194959")
    assert before.id != complete(RunSpec(), "image").id
