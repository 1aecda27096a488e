"""Classifier(encoder, head), and from_model on the shapes models come in."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from varclass import Classifier, VariationalHead, from_model
from varclass.classifier import find_output_layer
from varclass.core.head import OBJECTIVES

B, IN, WIDTH, C = 6, 3, 8, 4
OPTIONS = {"objective": "ce"}


def body() -> nn.Sequential:
    return nn.Sequential(nn.Linear(IN, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU())


class Fc(nn.Module):
    """torchvision's ResNets."""

    def __init__(self):
        super().__init__()
        self.layers, self.fc = body(), nn.Linear(WIDTH, C)

    def forward(self, x):
        return self.fc(self.layers(x))


class ClassifierSequential(nn.Module):
    """torchvision's MobileNets and EfficientNets."""

    def __init__(self):
        super().__init__()
        self.features, self.classifier = body(), nn.Sequential(nn.Dropout(0.2), nn.Linear(WIDTH, C))

    def forward(self, x):
        return self.classifier(self.features(x))


class HiddenClassifier(nn.Module):
    """VGG and AlexNet: hidden layers inside the classifier."""

    def __init__(self):
        super().__init__()
        self.features = body()
        self.classifier = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Dropout(), nn.Linear(WIDTH, C))

    def forward(self, x):
        return self.classifier(self.features(x))


class Head(nn.Module):
    """timm's vision transformers."""

    def __init__(self):
        super().__init__()
        self.blocks, self.norm, self.head = body(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, C)

    def forward(self, x):
        return self.head(self.norm(self.blocks(x)))


class NestedHeads(nn.Module):
    """torchvision's vision transformers: heads.head."""

    def __init__(self):
        super().__init__()
        self.encoder, self.heads = body(), nn.Sequential()
        self.heads.add_module("head", nn.Linear(WIDTH, C))

    def forward(self, x):
        return self.heads(self.encoder(x))


class Auxiliary(nn.Module):
    """GoogLeNet: an auxiliary head, and here it even comes after fc."""

    def __init__(self):
        super().__init__()
        self.layers, self.aux1, self.fc, self.aux2 = body(), nn.Linear(WIDTH, C), nn.Linear(WIDTH, C), nn.Linear(WIDTH, C)

    def forward(self, x):
        return self.fc(self.layers(x))


class HiddenFc(nn.Module):
    """A hand-written model in which the usual name `fc` is a hidden layer, and the output is called `out`."""

    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(IN, WIDTH), nn.Linear(WIDTH, C)

    def forward(self, x):
        return self.out(F.relu(self.fc(x)))


class Unusual(nn.Module):
    """Names of one's own: the last linear layer is the output."""

    def __init__(self):
        super().__init__()
        self.stem, self.decide = body(), nn.Linear(WIDTH, C)

    def forward(self, x):
        return self.decide(self.stem(x))


class Functional(nn.Module):
    """Something of its own after the layer: a log-softmax that no module shows."""

    def __init__(self):
        super().__init__()
        self.layers, self.fc = body(), nn.Linear(WIDTH, C)

    def forward(self, x):
        return F.log_softmax(self.fc(self.layers(x)), dim=-1)


def sequential(*after: nn.Module) -> nn.Module:
    return nn.Sequential(body(), nn.Linear(WIDTH, C), *after)


LOGITS = {
    "fc": (Fc, "fc"),
    "classifier": (ClassifierSequential, "classifier.1"),
    "hidden classifier": (HiddenClassifier, "classifier.3"),
    "head": (Head, "head"),
    "heads.head": (NestedHeads, "heads.head"),
    "auxiliary": (Auxiliary, "fc"),
    "hidden fc": (HiddenFc, "out"),
    "unusual": (Unusual, "decide"),
    "sequential": (sequential, "1"),
    "sequential, flatten": (lambda: sequential(nn.Flatten(), nn.Identity()), "1"),
    "bare linear": (lambda: nn.Linear(IN, C), ""),
    "bare linear, no bias": (lambda: nn.Linear(IN, C, bias=False), ""),
    "nested sequential": (lambda: nn.Sequential(body(), nn.Sequential(nn.Dropout(), nn.Linear(WIDTH, C))), "1.1"),
}
PROBABILITIES = {
    "log-softmax": (lambda: sequential(nn.LogSoftmax(dim=-1)), torch.exp),
    "softmax": (lambda: sequential(nn.Softmax(dim=-1)), lambda out: out),
    "nested log-softmax": (
        lambda: nn.Sequential(body(), nn.Sequential(nn.Dropout(), nn.Linear(WIDTH, C)), nn.LogSoftmax(dim=-1)),
        torch.exp,
    ),
}


def trained(make, seed: int = 0) -> nn.Module:
    """A model with running statistics and weights that are not those it started with, in eval mode."""
    torch.manual_seed(seed)
    model = make()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
        model(torch.randn(64, IN))
    return model.eval()


def inputs() -> torch.Tensor:
    return torch.randn(B, IN, generator=torch.Generator().manual_seed(1))


# --------------------------------------------------------------------------------------------------------- Classifier


def make_classifier(objective: str = "vc") -> Classifier:
    torch.manual_seed(0)
    return Classifier(body(), VariationalHead(WIDTH, C, objective=objective, latent_dim=5))


def test_forward_is_the_log_joint_without_labels_and_the_loss_with_them():
    model, x, y = make_classifier().eval(), inputs(), torch.arange(B) % C
    features = model.encoder(x)
    assert torch.equal(model(x), model.head(features))
    torch.manual_seed(1)
    loss = model(x, y)
    torch.manual_seed(1)
    assert torch.equal(loss, model.head.loss(features, y))
    assert loss.shape == ()
    torch.manual_seed(1)
    assert torch.equal(loss, model(x, y=y))


def test_the_other_views_are_the_heads_on_the_encoders_features():
    model, x = make_classifier().eval(), inputs()
    features = model.encoder(x)
    assert torch.equal(model.log_posterior(x), model.head.log_posterior(features))
    assert torch.equal(model.log_evidence(x), model.head.log_evidence(features))
    assert torch.equal(model.latent(x), model.head.latent(features))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_backward_reaches_every_parameter_and_the_input(objective):
    model, x = make_classifier(objective), inputs().requires_grad_()
    model(x, torch.arange(B) % C).backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
    assert bool((model.encoder[0].weight.grad != 0).any())
    assert bool((x.grad != 0).any())


def test_parameter_groups_put_the_encoder_into_phi():
    model = make_classifier()
    groups = {g["name"]: g for g in model.parameter_groups(0.1, 0.01, lr_multipliers={"psi": 2.0}, weight_decays={"pi": 0.5})}
    phi = {id(p) for p in groups["phi"]["params"]}
    assert {id(p) for module in (model.encoder, model.head.projection) for p in module.parameters()} == phi
    assert sum(len(g["params"]) for g in groups.values()) == len(list(model.parameters()))
    assert (groups["phi"]["lr"], groups["phi"]["weight_decay"]) == (0.1, 0.01)
    assert (groups["psi"]["lr"], groups["pi"]["weight_decay"]) == (0.2, 0.5)


# --------------------------------------------------------------------------------------------------------- from_model


@pytest.mark.parametrize("name", LOGITS)
def test_the_output_layer_is_found_and_the_predictions_are_kept(name):
    make, layer = LOGITS[name]
    model, x = trained(make), inputs()
    assert find_output_layer(model) == layer
    found = from_model(model, **OPTIONS)
    assert isinstance(found, Classifier)
    expected = torch.softmax(model(x), dim=-1)
    torch.testing.assert_close(found.log_posterior(x).exp(), expected, rtol=0, atol=1e-4)
    assert found(x).shape == (B, C)
    torch.testing.assert_close(found.head.label_prior.probs(), torch.full((C,), 1 / C), rtol=1e-5, atol=0)
    checked = from_model(model, example=x, **OPTIONS)
    assert torch.equal(checked(x), found(x))


@pytest.mark.parametrize("name", PROBABILITIES)
@pytest.mark.parametrize("with_example", [False, True])
def test_a_probability_layer_goes_with_the_output_layer(name, with_example):
    make, to_probabilities = PROBABILITIES[name]
    model, x = trained(make), inputs()
    found = from_model(model, example=x if with_example else None, **OPTIONS)
    torch.testing.assert_close(found.log_posterior(x).exp(), to_probabilities(model(x)), rtol=0, atol=1e-4)


@pytest.mark.parametrize("after", [[], [nn.Sigmoid()], [nn.LogSigmoid()]], ids=["logit", "sigmoid", "log-sigmoid"])
@pytest.mark.parametrize("with_example", [False, True])
def test_one_output_and_a_sigmoid_become_two_classes(after, with_example):
    model, x = trained(lambda: nn.Sequential(body(), nn.Linear(WIDTH, 1), *after)), inputs()
    found = from_model(model, example=x if with_example else None, **OPTIONS)
    second = torch.sigmoid(model[1](model[0](x)))[:, 0]
    torch.testing.assert_close(found.log_posterior(x).exp(), torch.stack([1 - second, second], 1), rtol=0, atol=1e-4)


def test_several_sigmoids_are_not_one_posterior():
    model = trained(lambda: sequential(nn.Sigmoid()))
    with pytest.raises(ValueError, match="Sigmoid"):
        from_model(model, **OPTIONS)


def test_a_named_layer_is_the_one_replaced():
    model, x = trained(Auxiliary), inputs()
    found = from_model(model, "fc", **OPTIONS)
    torch.testing.assert_close(found.log_posterior(x).exp(), torch.softmax(model(x), -1), rtol=0, atol=1e-4)
    found = from_model(trained(lambda: nn.Sequential(body(), nn.Linear(WIDTH, C))), "1", **OPTIONS)
    assert isinstance(found.encoder[1], nn.Identity)


@pytest.mark.parametrize("name", LOGITS)
@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was_and_its_mode_is_kept(name, training):
    model = trained(LOGITS[name][0]).train(training)
    before, names = copy.deepcopy(model.state_dict()), [n for n, _ in model.named_modules()]
    found = from_model(model, example=inputs(), **OPTIONS)
    assert found.training is found.encoder.training is found.head.training is training
    assert model.training is training
    assert [n for n, _ in model.named_modules()] == names
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", LOGITS)
def test_gradients_flow_end_to_end(name):
    found = from_model(trained(LOGITS[name][0]), objective="vc", label_prior="learned").train()
    if name == "auxiliary":
        found.encoder.aux1.requires_grad_(False)
        found.encoder.aux2.requires_grad_(False)
    x = inputs().requires_grad_()
    found(x, torch.arange(B) % C).backward()
    assert [key for key, p in found.named_parameters() if p.requires_grad and p.grad is None] == []
    assert bool((x.grad != 0).any())


def test_options_reach_the_head_and_a_label_prior_is_kept():
    model, x = trained(Fc), inputs()
    probs = torch.tensor([0.4, 0.3, 0.2, 0.1])
    found = from_model(model, label_prior=probs, objective="gm", beta=0.25, covariance="unit")
    assert repr(found.head.objective) == "GM(beta=0.25)"
    assert found.head.class_prior.covariance == "unit"
    torch.testing.assert_close(found.head.label_prior.probs(), probs, rtol=1e-5, atol=0)
    torch.testing.assert_close(found.log_posterior(x).exp(), torch.softmax(model(x), -1), rtol=0, atol=1e-4)


def test_a_model_in_float64_gives_a_classifier_in_float64():
    model, x = trained(Fc).double(), inputs().double()
    found = from_model(model, example=x, **OPTIONS)
    assert found(x).dtype == torch.float64
    torch.testing.assert_close(found.log_posterior(x).exp(), torch.softmax(model(x), -1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_an_example_finds_out_a_function_after_the_layer(training):
    model = trained(Functional).train(training)
    with pytest.raises(ValueError, match="after its output layer: predictions differ by"):
        from_model(model, example=inputs(), **OPTIONS)
    assert model.training is training


def test_the_mode_is_restored_even_if_the_check_fails_on_the_way():
    model = trained(Fc).train()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        from_model(model, example=torch.randn(B, IN + 1), **OPTIONS)
    assert model.training


def test_an_output_that_is_no_tensor_of_logits_is_refused():
    class Dictionary(Fc):
        def forward(self, x):
            return {"logits": super().forward(x)} if isinstance(self.fc, nn.Linear) else super().forward(x)

    with pytest.raises(ValueError, match="not a tensor of logits"):
        from_model(trained(Dictionary), example=inputs(), **OPTIONS)


def test_a_layer_that_is_not_the_last_is_refused():
    model = trained(lambda: nn.Sequential(nn.Linear(IN, 2), nn.ReLU(), nn.Linear(2, 2)))
    with pytest.raises(ValueError, match="layer '0' is not the last: ReLU follows it"):
        from_model(model, "0", **OPTIONS)
    with pytest.raises(ValueError, match="layer '1' is not the last: BatchNorm1d follows it"):
        from_model(nn.Sequential(body(), nn.Linear(WIDTH, C), nn.BatchNorm1d(C)), **OPTIONS)


def test_models_that_cannot_be_split_are_refused_in_one_line():
    cases = [
        (nn.Sequential(nn.Conv1d(1, 1, 1), nn.ReLU()), None, ValueError, ("Sequential", "no nn.Linear")),
        (Fc(), "output", ValueError, ("no layer 'output'",)),
        (Fc(), "layers.9", ValueError, ("no layer 'layers.9'",)),
        (Fc(), "layers", ValueError, ("'layers'", "nn.Linear", "Sequential")),
        (nn.Sequential(nn.LazyLinear(C)), None, ValueError, ("'0'", "initialised nn.Linear", "LazyLinear")),
        (lambda x: x, None, TypeError, ("torch.nn.Module", "function")),
    ]
    for model, layer, kind, parts in cases:
        with pytest.raises(kind) as caught:
            from_model(model, layer)
        text = str(caught.value)
        assert "\n" not in text
        assert [part for part in parts if part not in text] == [], text


def test_calibrating_a_classifier_calibrates_its_head_on_the_encoded_inputs():
    torch.manual_seed(0)
    model = Classifier(nn.Linear(4, 3), VariationalHead(3, 2, objective="vc")).eval()
    x, y = torch.randn(50, 4), torch.randint(2, (50,))
    factor = model.calibrate(x, y)
    assert factor == pytest.approx(model.head.class_prior.scale_factor)
    model.head.class_prior.scale_factor = 1.0
    assert model.head.calibrate(model.encoder(x), y) == pytest.approx(factor, rel=1e-4)
    assert factor > 1.5  # random labels: the head was overconfident


class Timm(Fc):
    """timm's conventions on a model: forward_features, and a config of its data."""

    pretrained_cfg = {"input_size": (3, 1, 1)}  # noqa: RUF012

    def forward_features(self, x):
        return self.layers(x)


def test_the_encoders_feature_map_and_config_are_reached_through_the_classifier():
    model, x = trained(Timm), inputs()
    found = from_model(model, **OPTIONS)
    assert torch.equal(found.forward_features(x), model.layers(x))
    assert found.pretrained_cfg == Timm.pretrained_cfg
    plain = from_model(trained(Fc), **OPTIONS)
    assert not hasattr(plain, "pretrained_cfg")
    with pytest.raises(TypeError, match=r"Fc has no forward_features; model\.encoder\(x\) gives the features"):
        plain.forward_features(x)


def test_reset_classifier_keeps_the_encoder_and_the_options_and_changes_the_classes():
    options = {"objective": "gm", "beta": 0.25, "covariance": "isotropic", "class_weight": torch.ones(C), "ignore_index": -1}
    found, x = from_model(trained(Fc).double(), **options), inputs().double()
    features = found.encoder(x)
    found.reset_classifier(9)
    assert found(x).shape == (B, 9)
    assert torch.equal(found.encoder(x), features)
    head = found.head
    assert (repr(head.objective), head.class_prior.covariance, head.ignore_index) == ("GM(beta=0.25)", "isotropic", -1)
    assert (head.class_weight, head.class_prior.log_scale.dtype, head.training) == (None, torch.float64, False)
    found.reset_classifier(2, covariance="shared", label_prior="learned")
    assert found.head.class_prior.covariance == "shared"
    assert found.head.label_prior.learned
    with pytest.raises(ValueError, match="num_classes"):
        found.reset_classifier(1)


def test_reset_classifier_of_the_recommended_head_gives_it_the_axes_and_the_beta_of_the_new_classes():
    found, x = from_model(trained(Fc), samples=8000 * C), inputs()
    assert found.head.objective.beta == pytest.approx((100 / 8000) ** 2 * min(0.5, 10 / C**2))
    found.reset_classifier(C)
    assert found.head.objective.beta == pytest.approx((100 / 8000) ** 2 * min(0.5, 10 / C**2))
    found.reset_classifier(50)
    assert found(x).shape == (B, 50)
    per_class = 8000 * C / 50
    assert (found.head.latent_dim, found.head.class_prior.means, found.head.objective.beta) == (
        50,
        "axes",
        pytest.approx((100 / per_class) ** 2 * 10 / 50**2),
    )
    assert found.head.settles
    found.reset_classifier(50, samples=50)
    assert found.head.objective.beta == 10 / 50**2
