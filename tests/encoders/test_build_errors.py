"""Every mistake in naming an encoder: one line that says what was expected, what came, and what to do."""

import pytest

from varclass.encoders.build import build_encoder, list_encoders
from varclass.encoders.contract import ENCODERS

IMAGE = {"kind": "image", "shape": (3, 32, 32)}
TEXT = {"kind": "text", "shape": (64,)}
VECTOR = {"kind": "vector", "shape": (13,)}


def message(*args, **kwargs) -> str:
    with pytest.raises((ValueError, TypeError)) as caught:
        build_encoder(*args, **kwargs)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    "name", ["vgg", "wrn", "wrn-28", "wrn-28-x", "wrn-28-10-1", "wrn-028-10", "resnet", "mlp-3", "", None, 3]
)
def test_a_name_that_is_none_lists_those_that_are(name):
    text = message(name, **IMAGE)
    assert repr(name) in text
    assert all(entry.pattern in text for entry in list_encoders())


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("wrn-27-10", ["6n + 4", "28", "27"]),
        ("wrn-4-1", ["at least 10", "4"]),
        ("resnet-19", ["18, 34, 50, 101", "19"]),
    ],
)
def test_a_depth_that_does_not_exist(name, parts):
    text = message(name, **IMAGE)
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize(
    ("name", "inputs", "fitting"), [("wrn-28-10", TEXT, "text"), ("text", VECTOR, "mlp"), ("mlp", TEXT, "text")]
)
def test_a_wrong_pairing_names_encoders_that_fit(name, inputs, fitting):
    text = message(name, **inputs)
    assert f"'{fitting}'" in text
    assert "package.module:ClassName" in text
    assert repr(inputs["kind"]) in text


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 2, float("nan"), True, "0.5", None])
def test_dropout_out_of_range(dropout):
    assert "from 0 to below 1" in message("mlp", **VECTOR, dropout=dropout)


@pytest.mark.parametrize(
    ("kind", "shape"), [("image", (32, 32)), ("image", (3, 0, 32)), ("vector", (3, 4)), ("vector", 13), ("text", (2.0,))]
)
def test_a_shape_that_is_not_the_kinds(kind, shape):
    text = message("mlp", kind=kind, shape=shape)
    assert kind in text
    assert repr(shape) in text


def test_an_unknown_kind():
    assert "'image', 'vector', 'text'" in message("mlp", kind="audio", shape=(3,))


def test_unknown_options_list_the_known():
    text = message("mlp", **VECTOR, options={"widths": [3]})
    assert "'widths'" in text
    assert "hidden, features" in text
    assert "none beside dropout" in message("wrn-10-1", **IMAGE, options={"depth": 28})
    assert "mapping" in message("mlp", **VECTOR, options=["hidden"])


@pytest.mark.parametrize(
    ("name", "inputs", "options", "part"),
    [
        ("mlp", VECTOR, {"hidden": []}, "[256, 256]"),
        ("mlp", VECTOR, {"hidden": 256}, "[256, 256]"),
        ("mlp", VECTOR, {"hidden": [10, 0]}, "at least 1"),
        ("mlp", VECTOR, {"features": 0}, "features"),
        ("lenet", IMAGE, {"widths": [32]}, "2 numbers"),
        ("lenet", IMAGE, {"hidden": 1.5}, "hidden"),
        ("text", TEXT, {"width": 130}, "multiple of heads"),
        ("text", TEXT, {"vocabulary": 2}, "at least 3"),
        ("text", TEXT, {"layers": 0}, "layers"),
    ],
)
def test_options_out_of_range(name, inputs, options, part):
    assert part in message(name, **inputs, options=options)


def test_lenet_on_a_tiny_image():
    text = message("lenet", kind="image", shape=(1, 7, 9))
    assert "8x8" in text
    assert "7x9" in text
    assert "'mlp'" in text


def test_the_list_has_every_registered_encoder_in_one_line_each():
    entries = list_encoders()
    assert len(entries) == len(ENCODERS) + 1
    assert all(entry.summary.endswith(".") and len(entry.summary) < 110 and entry.kinds for entry in entries)
    assert {entry.pattern for entry in list_encoders("text")} == {"text", "package.module:ClassName"}


def test_options_as_a_settings_file_holds_them():
    encoder = build_encoder("mlp", **VECTOR, options={"hidden": [32, 16], "features": 8})
    assert [layer.out_features for layer in encoder.layers if hasattr(layer, "out_features")] == [32, 16, 8]
    assert encoder.out_features == 8
