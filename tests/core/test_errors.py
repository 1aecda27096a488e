"""Every mistake at the public boundary: one line that says what was expected and what came."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from varclass import GM, VC, Authors, VariationalHead, estimate_label_prior

B, C, FEATURES = 4, 3, 5
X, Y = torch.zeros(B, FEATURES), torch.tensor([0, 1, 2, 0])


def message(kind: type[Exception], function, *args, **kwargs) -> str:
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    assert type(caught.value) is kind
    text = str(caught.value)
    assert "\n" not in text
    assert text
    return text


def assert_says(text: str, *parts: str) -> None:
    assert [part for part in parts if part not in text] == [], text


@pytest.fixture(params=[{}, {"objective": "vc"}], ids=["recommended", "paper"])
def head(request):
    torch.manual_seed(0)
    return VariationalHead(FEATURES, C, **request.param)


# ----------------------------------------------------------------------------------------------------------- features


@pytest.mark.parametrize("method", ["forward", "loss", "terms", "latent", "log_posterior", "log_evidence"])
def test_features_of_the_wrong_width(head, method):
    args = (Y,) if method in ("loss", "terms") else ()
    assert_says(message(ValueError, getattr(head, method), torch.zeros(B, 7), *args), "(..., 5)", "(4, 7)")
    assert_says(message(ValueError, getattr(head, method), torch.tensor(1.0), *args), "(..., 5)", "()")


@pytest.mark.parametrize("method", ["forward", "loss", "latent"])
def test_features_that_are_not_floating_point(head, method):
    args = (Y,) if method == "loss" else ()
    assert_says(message(TypeError, getattr(head, method), X.long(), *args), "floating-point", "torch.int64")
    assert_says(message(TypeError, getattr(head, method), [[0.0] * FEATURES], *args), "floating-point", "list")


def test_float64_features_into_a_float32_head(head):
    assert_says(message(TypeError, head, X.double()), "float64", "float32", "head.double()")
    assert head.double()(X).dtype == torch.float64  # the other way round loses nothing


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_head_in_half_precision(head, dtype):
    head.to(dtype)
    assert_says(message(TypeError, head, X.to(dtype)), "float32 or float64", str(dtype), "head.float()")
    message(TypeError, head.loss, X.to(dtype), Y)


# ------------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("wrong", [-1, 3, 1000])
def test_labels_out_of_range(head, wrong):
    y = torch.tensor([0, 1, 2, wrong])
    for method in (head.loss, head.terms, head.calibrate):
        assert_says(message(ValueError, method, X, y), "0..2", str(wrong))
    assert_says(message(ValueError, head.sample, y), "0..2", str(wrong))
    assert_says(message(ValueError, head.standardize, torch.zeros(B, head.latent_dim), y), "0..2", str(wrong))


def test_labels_out_of_range_beside_ignored_ones(head):
    y = torch.tensor([-100, 0, 5, 1])
    assert_says(message(ValueError, head.loss, X, y), "0..2", "ignore_index=-100", "got 5")


def test_labels_of_the_wrong_shape(head):
    assert_says(message(ValueError, head.loss, X, Y[:3]), "(4,)", "(3,)")
    assert_says(message(ValueError, head.loss, X, Y[:, None]), "(4,)", "(4, 1)")
    assert_says(message(ValueError, head.loss, X[None], Y), "(1, 4)", "(4,)")
    assert_says(message(ValueError, head.loss, X, torch.zeros(B, 2)), "(4, 3)", "(4, 2)")
    assert_says(message(ValueError, head.loss, X, torch.zeros(B)), "(4, 3)", "(4,)")
    dim = head.latent_dim
    assert_says(message(ValueError, head.standardize, torch.zeros(3, dim), Y), f"(4, {dim})", f"(3, {dim})")


def test_labels_of_the_wrong_type(head):
    assert_says(message(TypeError, head.loss, X, Y.bool()), "integers", "torch.bool")
    assert_says(message(TypeError, head.loss, X, Y.to(torch.complex64)), "integers", "torch.complex64")
    assert_says(message(TypeError, head.loss, X, [0, 1, 2, 0]), "tensor", "list")
    settles = VariationalHead(FEATURES, C).eval()
    assert_says(message(TypeError, settles.settle, torch.zeros(4, FEATURES), [0, 1, 2, 0]), "tensor", "list")
    assert_says(message(ValueError, head.loss, X, Y.float()), "labels must be integers, y.long()", "torch.float32")
    assert_says(message(TypeError, head.sample, Y.float()), "integer", "torch.float32")
    z = torch.zeros(B, head.latent_dim)
    assert_says(message(TypeError, head.standardize, z, Y.bool()), "integer", "torch.bool")


def test_small_integer_types_are_labels_too(head):
    for dtype in (torch.int32, torch.uint8, torch.int16):
        torch.manual_seed(1)
        got = head.loss(X, Y.to(dtype))
        torch.manual_seed(1)
        assert torch.equal(got, head.loss(X, Y))


@pytest.mark.parametrize(
    ("row", "shown"), [([0.5, 0.2, 0.1], "0.8"), ([1.5, -0.5, 0.0], "-0.5"), ([math.nan, 0.5, 0.5], "nan")]
)
def test_soft_labels_that_are_not_distributions(head, row, shown):
    y = torch.tensor([[1.0, 0.0, 0.0]] * (B - 1) + [row])
    assert_says(message(ValueError, head.loss, X, y), "non-negative", "sum to 1", shown)


def test_soft_labels_where_calibrate_wants_hard_ones(head):
    assert_says(message(ValueError, head.calibrate, X, F.one_hot(Y, C).float()), "hard label", "(4, 3)")


# ------------------------------------------------------------------------------------------------------------ options


@pytest.mark.parametrize("value", [1, 0, -3, 2.0, True, "10", None])
def test_a_number_of_classes_below_two_or_not_a_number(value):
    assert_says(message(ValueError, VariationalHead, FEATURES, value), "num_classes", "at least 2", repr(value))


@pytest.mark.parametrize("name", ["in_features", "latent_dim", "samples", "draws", "class_chunk"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "8"])
def test_sizes_that_are_not_whole_positive_numbers(name, value):
    options = {"in_features": FEATURES, "num_classes": C} | {name: value}
    assert_says(message(ValueError, VariationalHead, **options), name, "at least 1", repr(value))


@pytest.mark.parametrize("value", [-1, -1e-9, math.nan, math.inf, "1", True])
@pytest.mark.parametrize("objective", ["gm", "vc", "pull", "bottleneck", None])
def test_a_beta_that_is_no_weight(value, objective):
    text = message(ValueError, VariationalHead, FEATURES, C, objective=objective, beta=value)
    assert_says(text, "beta", ">= 0", repr(value), *(["'auto'"] if isinstance(value, str) else []))


@pytest.mark.parametrize("make", [GM, VC, Authors, lambda value: Authors(0.1, value)])
def test_an_objective_with_a_negative_weight(make):
    assert_says(message(ValueError, make, -0.5), ">= 0", "-0.5")


def test_beta_zero_is_a_weight():
    assert VariationalHead(FEATURES, C, beta=0).objective.beta == 0.0


def test_beta_beside_an_objective_that_has_one():
    assert_says(message(ValueError, VariationalHead, FEATURES, C, objective=GM(0.5), beta=1.0), "beta", "1.0", "GM(beta=0.5)")


@pytest.mark.parametrize(
    ("option", "choices"),
    [
        ("objective", "'ce', 'gm', 'pull', 'vc', 'bottleneck', 'authors'"),
        ("prior", "'gaussian', 'vmf'"),
        ("covariance", "'diagonal', 'isotropic', 'shared', 'unit'"),
        ("means", "'learned', 'simplex', 'axes'"),
        ("ratio", "'linear', 'quadratic', 'mlp', 'shared'"),
        ("posterior", "'delta', 'gaussian'"),
        ("preset", "'recommended', 'paper', 'authors'"),
        ("label_prior", "'learned', 'uniform'"),
    ],
)
@pytest.mark.parametrize("value", ["nonsense", "Linear", ""])
def test_an_unknown_name_lists_the_choices(option, choices, value):
    assert_says(message(ValueError, VariationalHead, FEATURES, C, **{option: value}), option, choices, repr(value))


def test_an_unknown_ratio_is_an_error_even_where_none_is_used():
    assert_says(message(ValueError, VariationalHead, FEATURES, C, objective="ce", ratio="cubic"), "ratio", "'cubic'")


def test_an_option_of_the_wrong_kind():
    assert_says(message(ValueError, VariationalHead, FEATURES, C, objective=3), "objective", "'vc'", "3")
    assert_says(message(ValueError, VariationalHead, FEATURES, C, objective=GM), "objective", "'vc'", "GM")


def test_a_sphere_has_no_diagonal_and_no_single_dimension():
    text = message(ValueError, VariationalHead, FEATURES, C, prior="vmf", covariance="diagonal")
    assert_says(text, "covariance", "'isotropic', 'shared', 'unit'", "'diagonal'")
    assert_says(message(ValueError, VariationalHead, 1, C, prior="vmf"), "latent_dim >= 2", "got 1")


@pytest.mark.parametrize("value", [0, -1.0, math.nan, "4"])
def test_a_separation_that_is_no_distance(value):
    assert_says(message(ValueError, VariationalHead, FEATURES, C, separation=value), "separation", "> 0", repr(value))


def test_fixed_means_need_a_separation():
    text = message(ValueError, VariationalHead, FEATURES, C, means="simplex", preset="authors")
    assert_says(text, "simplex", "separation", "None")


@pytest.mark.parametrize(
    ("probs", "shown"),
    [
        (torch.tensor([0.5, 0.5]), "(2,)"),
        (torch.full((1, 3), 1 / 3), "(1, 3)"),
        (torch.tensor([0.5, 0.3, 0.3]), "1.1"),
        (torch.tensor([0.6, 0.6, -0.2]), "-0.2"),
        (torch.tensor([math.nan, 0.5, 0.5]), "nan"),
    ],
)
def test_a_label_prior_that_is_no_distribution(head, probs, shown):
    for function in (lambda: VariationalHead(FEATURES, C, label_prior=probs), lambda: head.with_label_prior(probs)):
        assert_says(message(ValueError, function), "label_prior", shown)
    log_posterior = torch.log_softmax(torch.zeros(2, C), 1)
    assert_says(message(ValueError, estimate_label_prior, log_posterior, probs), "trained", shown)


@pytest.mark.parametrize(
    ("weight", "shown"),
    [
        (torch.ones(2), "(2,)"),
        (torch.ones(3, 1), "(3, 1)"),
        (torch.tensor([1.0, -1.5, 1.0]), "-1.5"),
        (torch.tensor([1.0, math.nan, 1.0]), "nan"),
        (torch.tensor([1.0, math.inf, 1.0]), "inf"),
    ],
)
def test_class_weights_that_are_no_weights(weight, shown):
    text = message(ValueError, VariationalHead, FEATURES, C, class_weight=weight)
    assert_says(text, "class_weight", "3 ", ">= 0", shown)


@pytest.mark.parametrize(
    ("weight", "shown"),
    [
        (torch.ones(3), "(3,)"),
        (torch.ones(2, 1), "(2, 1)"),
        ([1.0, 1.0], "list"),
        (torch.tensor([1.0, -1.5]), "-1.5"),
        (torch.tensor([1.0, math.nan]), "nan"),
    ],
)
def test_sample_weights_that_are_no_weights(head, weight, shown):
    text = message(ValueError, head.loss, torch.zeros(2, FEATURES), torch.tensor([0, 1]), sample_weight=weight)
    assert_says(text, "sample_weight", shown)


def test_a_learned_label_prior_that_nothing_would_train():
    text = message(ValueError, VariationalHead, FEATURES, C, objective="authors", label_prior="learned")
    assert_says(text, "label_prior='learned'", "Authors")


# ------------------------------------------------------------------------------------------------ the other entrances


def test_parameter_groups_of_unknown_names(head):
    for option in ("lr_multipliers", "weight_decays"):
        text = message(ValueError, head.parameter_groups, 0.1, **{option: {"omega": 1.0}})
        assert_says(text, "'phi', 'theta', 'pi', 'psi'", "'omega'")


@pytest.mark.parametrize("objective", [None, "pull", "ce", "vc"])
@pytest.mark.parametrize("name", ["latent_dim", "means", "separation", "prior"])
def test_from_linear_refuses_what_it_sets_itself(name, objective):
    text = message(ValueError, VariationalHead.from_linear, nn.Linear(5, 3), objective=objective, **{name: "simplex"})
    assert_says(text, name, "'simplex'")


def test_from_linear_takes_a_finite_linear_layer():
    assert_says(message(TypeError, VariationalHead.from_linear, nn.Conv2d(1, 1, 1)), "nn.Linear", "Conv2d")
    layer = nn.Linear(5, 3)
    nn.init.constant_(layer.weight, math.nan)
    assert_says(message(ValueError, VariationalHead.from_linear, layer), "finite", "NaN")


@pytest.mark.parametrize("covariance", ["diagonal", "isotropic"])
def test_as_linear_refuses_class_log_odds_that_are_not_linear(covariance):
    head = VariationalHead(FEATURES, C, covariance=covariance)
    assert_says(message(ValueError, head.as_linear), "shared or unit", covariance)


def test_as_linear_refuses_a_sphere_and_a_stochastic_posterior():
    assert_says(message(ValueError, VariationalHead(FEATURES, C, prior="vmf").as_linear), "Gaussian", "VonMisesFisher")
    head = VariationalHead(FEATURES, C, covariance="shared", posterior="gaussian")
    assert_says(message(ValueError, head.as_linear), "delta", "GaussianPosterior")


def test_estimating_a_label_prior_from_nothing_or_nonsense():
    uniform = torch.full((C,), 1 / 3)
    assert_says(message(ValueError, estimate_label_prior, torch.zeros(0, C), uniform), "(N, C)", "(0, 3)")
    assert_says(message(ValueError, estimate_label_prior, torch.zeros(C), uniform), "(N, C)", "(3,)")
    assert_says(message(ValueError, estimate_label_prior, torch.full((2, C), math.nan), uniform), "finite", "NaN")
