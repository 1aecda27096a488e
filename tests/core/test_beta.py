"""The pull's weight gives way to data: beta="auto" is min(1/2, 10 / D^2) min(1, (100 / n)^2), n training samples a class."""

import copy
import math
import pickle

import pytest
import torch

from varclass import VariationalHead
from varclass.core.objectives import GM, OBJECTIVES, Pull
from varclass.core.presets import PRESETS, defaults_for
from varclass.core.recall import options_of

# By the number of dimensions.
STRONGEST = {2: 0.5, 3: 0.5, 4: 0.5, 5: 0.4, 6: 10 / 36, 7: 10 / 49, 8: 10 / 64, 10: 0.1, 1000: 1e-5, 10_000: 1e-7}


@pytest.mark.parametrize("classes", STRONGEST)
@pytest.mark.parametrize(
    ("per_class", "share"),
    [(1, 1.0), (50, 1.0), (100, 1.0), (101, (100 / 101) ** 2), (1000, 0.01), (4800, 1 / 2304), (10**6, 1e-8)],
)
def test_it_is_at_its_strongest_up_to_a_hundred_samples_a_class_and_falls_with_their_number(classes, per_class, share):
    head = VariationalHead(4, classes, samples=per_class * classes)
    assert head.objective.beta == pytest.approx(share * STRONGEST[classes], rel=1e-12)


@pytest.mark.parametrize("classes", [2, 7, 10_000])
def test_more_samples_never_make_it_stronger_and_from_enough_on_they_weaken_it(classes):
    sizes = [1, 2, classes, 50 * classes, 99 * classes, 100 * classes, 100 * classes + 1, 150 * classes, 10**9]
    found = [VariationalHead(4, classes, samples=size).objective.beta for size in sizes]
    assert found[:6] == [STRONGEST[classes]] * 6
    assert found[5:] == sorted(set(found[5:]), reverse=True)


def test_samples_that_nobody_counted_are_taken_as_a_thousand_a_class():
    for classes in (2, 10, 10_000):
        unknown, known = VariationalHead(4, classes), VariationalHead(4, classes, samples=1000 * classes)
        assert unknown.objective.beta == known.objective.beta == pytest.approx(0.01 * STRONGEST[classes], rel=1e-12)
        assert (unknown.samples, known.samples) == (None, 1000 * classes)


@pytest.mark.parametrize(
    ("options", "dim"),
    [
        ({}, 5),
        ({"preset": "recommended"}, 5),
        ({"separation": 3.0}, 5),
        ({"objective": "pull", "means": "simplex"}, 8),
        ({"objective": "pull", "means": "simplex", "latent_dim": 6}, 6),
        ({"objective": "pull", "means": "learned"}, 8),
        ({"objective": "pull", "latent_dim": 6}, 6),
        ({"objective": "pull", "covariance": "diagonal"}, 8),
        ({"objective": "pull", "prior": "vmf"}, 8),
        ({"objective": "pull", "posterior": "gaussian"}, 5),
        ({"objective": "pull", "ratio": "mlp"}, 5),
        ({"preset": "authors", "objective": "pull", "label_prior": "learned"}, 8),
    ],
    ids=str,
)
def test_it_is_the_pulls_default_whatever_the_geometry(options, dim):
    head = VariationalHead(8, 5, samples=5 * 400, **options)
    assert type(head.objective) is Pull
    assert head.objective.beta == pytest.approx(0.0625 * STRONGEST[dim], rel=1e-12)
    assert options_of(head)["beta"] == "auto"
    assert VariationalHead(8, 5, samples=5 * 400, beta="auto", **options).objective.beta == head.objective.beta


@pytest.mark.parametrize("preset", [None, *PRESETS])
@pytest.mark.parametrize("objective", [None, *OBJECTIVES])
@pytest.mark.parametrize("means", [None, "axes", "simplex", "learned"])
@pytest.mark.parametrize("latent_dim", [None, 4])
def test_every_other_objective_keeps_the_default_it_had(preset, objective, means, latent_dim):
    named = {"objective": objective, "means": means, "latent_dim": latent_dim}
    default = defaults_for(preset, **named)
    asked = objective or default["objective"]
    expected = 1.0 if preset == "paper" else "auto" if asked == "pull" else "1/D"
    assert default["beta"] == expected


def test_what_is_written_wins_and_takes_no_notice_of_the_samples():
    for beta, expected in ((0.3, 0.3), (0, 0.0), ("1/D", 1 / 4), ("3/D", 3 / 4)):
        head = VariationalHead(8, 4, beta=beta, samples=10**6)
        assert (head.objective.beta, head.samples) == (expected, 10**6)
    assert VariationalHead(8, 4, objective="vc", samples=10**6).objective.beta == 1 / 8
    assert VariationalHead(8, 4, objective=Pull(0.7), samples=10**6).objective.beta == 0.7


def test_the_loss_has_the_weight_in_it():
    torch.manual_seed(0)
    head = VariationalHead(8, 4, samples=4 * 250).double()
    terms = head.terms(torch.randn(6, 8).double(), torch.tensor([0, 1, 2, 3, 0, 1]))
    expected = terms.posterior + terms.label + 0.16 * 0.5 * terms.prior
    torch.testing.assert_close(terms.total, expected, rtol=1e-12, atol=0)
    assert not math.isclose(terms.total.item(), (terms.posterior + terms.label).item(), rel_tol=1e-3)


# ------------------------------------------------------------------------------------------------------------- kept and shown


def test_it_survives_copies_pickles_another_p_of_y_and_a_state_dict_that_knows_nothing_of_it():
    head, plain = VariationalHead(8, 4, samples=4 * 700), VariationalHead(8, 4, beta=0.5)
    assert list(head.state_dict()) == list(plain.state_dict())
    shifted = head.with_label_prior(torch.tensor([0.1, 0.2, 0.3, 0.4]))
    for again in (copy.copy(head), copy.deepcopy(head), pickle.loads(pickle.dumps(head)), shifted):
        assert again.objective.beta == head.objective.beta == pytest.approx((1 / 7) ** 2 / 2, rel=1e-12)
        assert (options_of(again)["samples"], options_of(again)["beta"]) == (2800, "auto")
    head.load_state_dict(plain.state_dict())
    assert head.objective.beta == pytest.approx((1 / 7) ** 2 / 2, rel=1e-12)


@pytest.mark.parametrize("samples", [None, 40, 4 * 321])
def test_a_head_rebuilt_from_its_options_has_its_beta_and_one_for_other_classes_theirs(samples):
    head = VariationalHead(8, 4, samples=samples)
    again = VariationalHead(8, 4, **options_of(head))
    assert again.objective.beta == head.objective.beta
    assert (again.samples, repr(again)) == (samples, repr(head))
    other = VariationalHead(8, 20, **options_of(head))
    assert other.objective.beta == VariationalHead(8, 20, samples=samples).objective.beta


def test_an_objective_set_by_hand_is_what_is_read_back():
    head = VariationalHead(8, 4, samples=4000)
    head.objective = Pull(0.3)
    assert options_of(head)["beta"] == 0.3
    assert "Pull(beta=0.3), covariance" in repr(head)


def test_a_linear_layer_takes_it_along():
    layer = torch.nn.Linear(8, 4)
    assert VariationalHead.from_linear(layer, samples=4 * 500).objective.beta == pytest.approx(0.04 * STRONGEST[4])
    assert VariationalHead.from_linear(
        layer, objective="pull", means="learned", samples=4 * 500
    ).objective.beta == pytest.approx(0.04 * STRONGEST[8])


def test_repr_says_the_number_and_how_it_came_about():
    assert "objective=Pull(beta=4.34e-05) (auto: 4800 samples a class), " in repr(VariationalHead(8, 10, samples=48_000))
    assert "objective=Pull(beta=0.045) (auto: 333.3 samples a class), " in repr(VariationalHead(8, 3, samples=1000))
    assert "objective=Pull(beta=0.001) (auto: samples unknown), " in repr(VariationalHead(8, 10))
    assert "objective=Pull(beta=0.1), " in repr(VariationalHead(8, 10, beta="1/D", samples=48_000))


# ------------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("objective", [name for name in OBJECTIVES if name != "pull"])
def test_other_objectives_refuse_it_and_say_what_to_write(objective):
    expected = f"beta='auto' is for the objective 'pull': write '1/D' or nothing for others; got '{objective}'"
    for preset in (None, "recommended"):
        with pytest.raises(ValueError, match=r"beta='auto'") as caught:
            VariationalHead(8, 4, objective=objective, beta="auto", preset=preset)
        assert str(caught.value) == expected
    with pytest.raises(ValueError, match=r"beta belongs to the objective; got beta='auto' beside GM"):
        VariationalHead(8, 4, objective=GM(0.5), beta="auto")


@pytest.mark.parametrize("beta", ["Auto", "automatic", "auto/D", "/D", "D", "-1/D", "1/C", ""])
def test_a_word_that_is_none_is_refused_in_one_line_that_names_it(beta):
    with pytest.raises(ValueError, match="'auto', or a text such as '1/D'") as caught:
        VariationalHead(8, 4, beta=beta)
    assert str(caught.value).endswith(f"got {beta!r}")
