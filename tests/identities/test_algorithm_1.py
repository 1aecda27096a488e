"""Algorithm 1 (alg:train): the four gradients, and which parameters each term of each objective may move."""

import math

import pytest
import torch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional as F

from varclass import Authors, VariationalHead

BATCH, INPUTS, FEATURES, DIM, CLASSES, BETA = 24, 5, 4, 3, 4, 0.7
SEED = 11
RATIOS = ("linear", "quadratic", "mlp", "shared")
CASES = [("gaussian", c, r, "delta") for c in ("diagonal", "isotropic", "shared", "unit") for r in RATIOS] + [
    ("vmf", c, r, "delta") for c in ("isotropic", "shared", "unit") for r in RATIOS
]
CASES += [("gaussian", "diagonal", "quadratic", "gaussian"), ("vmf", "isotropic", "quadratic", "gaussian")]


def problem(prior="gaussian", covariance=None, ratio="quadratic", posterior="delta", objective="vc", **options):
    """An encoder and a head with a projection, every parameter moved off its start, and a batch."""
    torch.manual_seed(0)
    if objective in ("gm", "vc"):
        options["beta"] = BETA
    head = VariationalHead(
        FEATURES,
        CLASSES,
        latent_dim=DIM,
        objective=objective,
        prior=prior,
        covariance=covariance,
        ratio=ratio,
        posterior=posterior,
        separation=1.5,
        **options,
    )
    model = nn.ModuleDict({"encoder": nn.Sequential(nn.Linear(INPUTS, FEATURES), nn.Tanh()), "head": head}).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model, torch.randn(BATCH, INPUTS, dtype=torch.float64), torch.randint(CLASSES, (BATCH,))


def groups(model):
    """phi, theta, pi, psi by parameter name, in the words of Algorithm 1; every parameter is in exactly one."""
    starts = {"phi": ("encoder.", "head.projection.", "head.posterior."), "theta": ("head.class_prior.",)}
    starts |= {"pi": ("head.label_prior.",), "psi": ("head.ratio.",)}
    found = {g: {n: p for n, p in model.named_parameters() if n.startswith(s)} for g, s in starts.items()}
    assert sum(map(len, found.values())) == len(list(model.parameters()))
    return found


# ------------------------------------------------------------------------------------ the reference, in the paper's terms


def bounded_log_sigma(prior):
    limit, units = math.log(prior.scale_limit), DIM**-0.5 if prior.log_scale.shape[-1] == 1 else 1.0
    return limit * torch.sin(prior.log_scale * units / limit)


def log_p_z_given_y(prior, z):
    """(B, C), by torch.distributions, or the closed form of a von Mises-Fisher density in three dimensions."""
    sigma = bounded_log_sigma(prior).exp()
    if hasattr(prior, "mean"):
        return Normal(prior.mean, sigma.expand(CLASSES, DIM)).log_prob(z[:, None]).sum(-1)
    kappa = (prior.initial_kappa / sigma.square())[:, 0].expand(CLASSES)
    log_constant = torch.log(kappa / (2 * math.pi * (1 - torch.exp(-2 * kappa)))) - kappa
    return log_constant + kappa * (z @ (prior.direction / prior.direction.norm(dim=1, keepdim=True)).T)


def log_ratio(ratio_name, ratio, prior, z, y):
    """T_psi(z_i, y_i), (B,), each family written out; theta enters "shared" as a constant."""
    if ratio_name == "linear":
        return torch.einsum("bd,bd->b", ratio.weight[y], z) + ratio.bias[y]
    if ratio_name == "quadratic":
        linear, square = ratio.weight[y].split(DIM, dim=1)
        return (linear * z + square * z**2).sum(1) + ratio.bias[y]
    if ratio_name == "mlp":
        first, second = ratio.trunk[0], ratio.trunk[2]
        h = F.silu(F.silu(z @ first.weight.T + first.bias) @ second.weight.T + second.bias)
        return (ratio.weight[y] * h).sum(1) + ratio.bias[y]
    with torch.no_grad():
        if hasattr(prior, "mean"):
            shift, linear_map = prior.mean[y], torch.diag_embed(1 / bounded_log_sigma(prior).exp().expand(CLASSES, DIM))[y]
        else:  # the Householder reflection that takes the mean direction to the first axis
            direction = prior.direction / prior.direction.norm(dim=1, keepdim=True)
            v = direction - torch.eye(DIM, dtype=torch.float64)[0]
            reflect = torch.eye(DIM) - 2 * v[:, :, None] * v[:, None, :] / v.square().sum(1)[:, None, None]
            shift, linear_map = torch.zeros(()), reflect[y]
    u = torch.einsum("bij,bj->bi", linear_map, z - shift)
    linear, square = ratio.linear.weight[0].split(DIM)
    return u @ linear + u**2 @ square + ratio.linear.bias[0]


def algorithm_1(model, x, y, ratio_name):
    """g_theta, g_phi, g_pi, g_psi of Algorithm 1, each by its own autograd.grad of its own line, to be ascended."""
    head, prior = model["head"], model["head"].class_prior
    torch.manual_seed(SEED)
    features = model["encoder"](x)
    z = features @ head.projection.weight.T + head.projection.bias
    if head.posterior.stochastic:
        limit = head.posterior.log_limit
        log_s = features @ head.posterior.log_scale.weight.T + head.posterior.log_scale.bias
        z = z + torch.exp(limit * torch.sin(log_s / limit)) * torch.randn(BATCH, DIM, dtype=torch.float64)
    if not hasattr(prior, "mean"):
        z = z / z.norm(dim=1, keepdim=True)
    sampled = prior.sample(y)  # z'

    def log_posterior(z):
        log_joint = log_p_z_given_y(prior, z) + torch.log_softmax(head.label_prior.logits, 0).detach()
        return (log_joint - log_joint.exp().sum(1, keepdim=True).log())[torch.arange(BATCH), y]

    def ratio(z):
        return log_ratio(ratio_name, head.ratio, prior, z, y)

    fixed = z.detach()
    lines = {
        "theta": log_posterior(fixed) + BETA * log_p_z_given_y(prior, fixed)[torch.arange(BATCH), y],
        "phi": log_posterior(z) - BETA * ratio(z),
        "pi": torch.log_softmax(head.label_prior.logits, 0)[y],
        "psi": torch.sigmoid(ratio(fixed)).log() + (1 - torch.sigmoid(ratio(sampled))).log(),
    }
    found = {}
    for group, parameters in groups(model).items():
        if parameters:
            gradients = torch.autograd.grad(lines[group].mean(), list(parameters.values()), retain_graph=True)
            found |= dict(zip(parameters, gradients, strict=True))
    return found


@pytest.mark.parametrize(("prior", "covariance", "ratio", "posterior"), CASES)
def test_algorithm_1_is_the_gradient_of_one_backward_pass(prior, covariance, ratio, posterior):
    # loss.backward() leaves -g_theta, -g_phi, -g_pi, -g_psi on every parameter of every group.
    model, x, y = problem(prior, covariance, ratio, posterior)
    expected = algorithm_1(model, x, y, ratio)
    torch.manual_seed(SEED)
    model["head"].loss(model["encoder"](x), y).backward()
    assert expected.keys() == dict(model.named_parameters()).keys()
    for name, parameter in model.named_parameters():
        size = float(expected[name].abs().max())
        assert size > 0, name
        torch.testing.assert_close(
            parameter.grad, -expected[name], rtol=1e-9, atol=1e-9 * size, msg=lambda m, n=name: f"{n}: {m}"
        )


def test_algorithm_1_with_its_misprint_would_be_another_gradient():
    # The LaTeX drops the log of log p(z|y) in g_theta; the control shows that the test above tells the two apart.
    model, x, y = problem()
    prior = model["head"].class_prior
    z = model["head"].latent(model["encoder"](x)).detach()
    expected = algorithm_1(model, x, y, "quadratic")["head.class_prior.offset"]
    of_log = log_p_z_given_y(prior, z)[torch.arange(BATCH), y]
    (difference,) = torch.autograd.grad(BETA * (of_log.exp() - of_log).mean(), [prior.offset])
    assert float(difference.abs().max()) > 1e-3 * float(expected.abs().max())


# ------------------------------------------------------------------------------- the table at the head of objectives.py

TERMS = ("posterior", "label", "prior", "ratio", "discriminator")
TABLE = {
    "posterior": {"phi", "theta"},
    "label": {"pi"},
    "prior": {"phi", "theta"},
    "ratio": {"phi"},
    "discriminator": {"psi"},
}
USED = {
    "ce": ("posterior", "label"),
    "gm": ("posterior", "label", "prior"),
    "vc": TERMS,
    "authors": ("posterior", "prior", "ratio", "discriminator"),
}


def moved_groups(model, term):
    """The groups that a term moves: all of a group's parameters, or none (a part would be an error)."""
    found = set()
    for group, parameters in groups(model).items():
        gradients = (
            torch.autograd.grad(term, list(parameters.values()), retain_graph=True, allow_unused=True) if parameters else ()
        )
        moved = [g is not None and bool((g != 0).any()) for g in gradients]
        assert all(moved) or not any(moved), (group, moved)
        if moved and moved[0]:
            found.add(group)
    return found


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("prior", ["gaussian", "vmf"])
@pytest.mark.parametrize("objective", USED)
def test_algorithm_1_each_term_moves_only_the_parameters_its_table_says(objective, prior, ratio):
    # Every cell of the table in objectives.py, "yes" and "no", and None where an objective has no such term.
    model, x, y = problem(prior, ratio=ratio, objective=objective)
    terms = model["head"].terms(model["encoder"](x), y)
    for name in TERMS:
        term = getattr(terms, name)
        if name not in USED[objective]:
            assert term is None, name
            continue
        expected = TABLE[name] - ({"phi"} if (objective, name) == ("vc", "prior") else set())
        if not term.requires_grad:
            assert not expected, name
        else:
            assert moved_groups(model, term) == expected, name


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("objective", USED)
def test_algorithm_1_the_total_moves_every_parameter_there_is(objective, ratio):
    # No parameter is built that the objective does not train.
    model, x, y = problem(ratio=ratio, objective=objective)
    total = model["head"].terms(model["encoder"](x), y).total
    assert moved_groups(model, total) == {g for g, parameters in groups(model).items() if parameters}


@pytest.mark.parametrize("objective", ["ce", "gm", "vc"])
def test_eq_lvc_2_differentiated_as_it_stands_moves_pi_by_the_posterior_too(objective):
    # posterior_moves_pi=True: d/dlogits of -log p(y|z) is p(y|z) - 1{y}, on top of p(y) - 1{y} of the label term.
    model, x, y = problem(objective=objective, posterior_moves_pi=True)
    head = model["head"]
    terms = head.terms(model["encoder"](x), y)
    assert moved_groups(model, terms.posterior) == {"phi", "theta", "pi"}
    one_hot = F.one_hot(y, CLASSES).double()
    posterior, label = head.log_posterior(model["encoder"](x)).exp(), head.label_prior.probs()
    for term, residual in ((terms.posterior, posterior - one_hot), (terms.label, label - one_hot)):
        (gradient,) = torch.autograd.grad(term, [head.label_prior.logits], retain_graph=True)
        expected = residual.detach().mean(0)
        torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max()))


@pytest.mark.parametrize("objective", ["ce", "gm", "vc"])
def test_algorithm_1_weights_the_terms_by_beta_and_sums_them(objective):
    # The value of the loss is the sum of its terms, the KL's two parts (GM: the prior) times beta.
    model, x, y = problem(objective=objective)
    terms = model["head"].terms(model["encoder"](x), y)
    parts = {"ce": (), "gm": (terms.prior,), "vc": (terms.prior, terms.ratio)}[objective]
    expected = terms.posterior + terms.label + BETA * sum(parts) + (terms.discriminator if objective == "vc" else 0)
    torch.testing.assert_close(terms.total, expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("objective", "l1", "l2"), [("authors", 0.01, 0.01), (Authors(l1=0.3, l2=0.07), 0.3, 0.07)])
def test_the_authors_objective_weights_the_prior_by_l1_and_the_ratio_by_l2(objective, l1, l2):
    # The released code: CE + l1 (-log p(z|y)) + l2 T(z), by default l1 = l2 = 0.01, no label term.
    model, x, y = problem(objective=objective)
    terms = model["head"].terms(model["encoder"](x), y)
    expected = terms.posterior + l1 * terms.prior + l2 * terms.ratio + terms.discriminator
    torch.testing.assert_close(terms.total, expected, rtol=1e-9, atol=0)
