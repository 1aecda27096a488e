"""from_model over timm's and torchvision's architectures: predictions kept, trained, saved, and timm's conventions."""

import pytest
import timm
import torch
import torchvision

from varclass import Classifier, VariationalHead, from_model

C = 7
SIZES = {"swin_tiny_patch4_window7_224": 224, "mixer_s32_224": 224, "vit_b_16": 224, "inception_v3": 96}
TIMM = [
    "resnet18",
    "vit_tiny_patch16_224",
    "deit_tiny_patch16_224",
    "swin_tiny_patch4_window7_224",
    "mixer_s32_224",
    "convnext_atto",
    "efficientnet_b0",
    "mobilenetv3_small_050",
    "regnetx_002",
    "densenet121",
    "repvgg_a0",
    "ghostnet_050",
    "mobilevit_xxs",
    "poolformer_s12",
    "edgenext_xx_small",
]
TORCHVISION = [
    "resnet18",
    "vgg11",
    "alexnet",
    "squeezenet1_1",
    "densenet121",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "shufflenet_v2_x0_5",
    "mnasnet0_5",
    "regnet_y_400mf",
    "efficientnet_b0",
    "convnext_tiny",
    "swin_t",
    "vit_b_16",
]
CONVOLUTIONAL_OUTPUT = ("squeezenet1_1",)  # its classes are channels of a convolution, averaged: there is no linear layer
MODELS = [("timm", name) for name in TIMM] + [("torchvision", name) for name in TORCHVISION]


def make(library: str, name: str) -> torch.nn.Module:
    """A model without downloads, its weights moved from where they start: some start at zero, and let no gradient through."""
    torch.manual_seed(0)
    if library == "timm":
        size = {"img_size": side(name)} if name.startswith(("vit", "deit")) else {}
        model = timm.create_model(name, pretrained=False, num_classes=C, **size)
    else:
        model = torchvision.models.get_model(name, weights=None, num_classes=C)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model.eval()


def side(name: str) -> int:
    return SIZES.get(name, 64)


def images(name: str, count: int = 2) -> torch.Tensor:
    return torch.randn(count, 3, side(name), side(name), generator=torch.Generator().manual_seed(1))


HEADS = {  # options, and what of the head must move
    "default": ({}, {"head.projection.weight", "head.projection.bias", "head.label_prior.logits"}),
    "vc": ({"objective": "vc"}, {"head.class_prior.offset", "head.class_prior.log_scale", "head.label_prior.logits"}),
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(("library", "name"), [each for each in MODELS if each[1] not in CONVOLUTIONAL_OUTPUT])
def test_predictions_are_kept_everything_trains_and_the_state_is_read_back(library, name, head):
    options, moving = HEADS[head]
    model, x = make(library, name), images(name)
    converted = from_model(model, example=x, label_prior="learned", **options)
    with torch.no_grad():
        expected = torch.softmax(model(x), -1)
        torch.testing.assert_close(converted.log_posterior(x).exp(), expected, rtol=0, atol=1e-4)

    learned = dict(converted.named_parameters())
    before = {key: value.detach().clone() for key, value in learned.items()}
    optimizer = torch.optim.SGD(converted.parameter_groups(0.01))  # an untrained mnasnet's features are in the thousands
    converted.train()(x, torch.tensor([0, C - 1])).backward()
    assert [key for key, value in learned.items() if value.grad is None] == []
    optimizer.step()
    moved = [key for key, value in learned.items() if not torch.equal(before[key], value)]
    assert len(moved) > 0.8 * len(learned)  # a bias before a batch norm has no gradient, nor has a dead ReLU
    assert moving <= set(moved)

    again = from_model(make(library, name), label_prior="learned", **options).eval()
    again.load_state_dict(converted.eval().state_dict())
    with torch.no_grad():
        assert torch.equal(again(x), converted(x))


@pytest.mark.parametrize("name", TIMM)
def test_the_conventions_of_timm_hold_after_conversion(name):
    model, x = make("timm", name), images(name)
    converted = from_model(model)
    with torch.no_grad():
        assert torch.equal(converted.forward_features(x), model.forward_features(x))
        assert torch.equal(converted.encoder.forward_features(x), model.forward_features(x))
    for holder in (converted, converted.encoder):
        assert timm.data.resolve_model_data_config(holder) == timm.data.resolve_model_data_config(model)
    assert converted.encoder.default_cfg == model.default_cfg
    with torch.no_grad():  # pooled features, as forward_head(pre_logits=True) gives them
        pooled = model.forward_head(model.forward_features(x), pre_logits=True)
        torch.testing.assert_close(converted.encoder(x), pooled)
    converted.encoder.reset_classifier(3)
    assert converted.encoder(x).shape == (2, 3)


@pytest.mark.parametrize(("library", "name"), [("timm", "resnet18"), ("timm", "convnext_atto"), ("torchvision", "resnet18")])
def test_reset_classifier_gives_a_head_for_other_classes(library, name):
    converted, x = from_model(make(library, name), objective="gm", beta=0.5, covariance="diagonal"), images(name)
    features = converted.encoder(x)
    converted.reset_classifier(11)
    assert converted(x).shape == (2, 11)
    assert torch.equal(converted.encoder(x), features)
    assert repr(converted.head.objective) == "GM(beta=0.5)"
    assert not converted.head.training
    converted.reset_classifier(2, objective="ce", beta=None)
    assert repr(converted.head.objective) == "CE()"
    converted.train()(x, torch.tensor([0, 1])).backward()


def test_a_convolution_as_output_is_refused_in_one_line():
    with pytest.raises(ValueError, match=r"SqueezeNet has no nn\.Linear to replace; build Classifier"):
        from_model(make("torchvision", "squeezenet1_1"))


def test_an_architecture_with_two_heads_is_found_out_by_an_example():
    model = timm.create_model("deit_tiny_distilled_patch16_224", num_classes=C, img_size=64).eval()
    with pytest.raises((ValueError, RuntimeError)):
        from_model(model, example=images("resnet18"))


def test_the_shape_a_classifier_takes_is_timms_own_feature_model():
    encoder = timm.create_model("resnet18", num_classes=0)
    model = Classifier(encoder, VariationalHead(encoder.num_features, C))
    assert model(images("resnet18")).shape == (2, C)
