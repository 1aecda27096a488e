"""convert: predictions kept over architectures, the stock Trainer, safetensors and back, pipelines, and what is refused."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from varclass import Authors, VariationalHead
from varclass.core.recall import options_of

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'varclass[transformers]'")
from varclass.integrations.transformers import VariationalConfig, VariationalModel, convert  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # transformers' own
C, WORDS = 3, 50
TEXT = {"vocab_size": WORDS, "num_labels": C, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
IMAGE = {**SMALL, "image_size": 16, "patch_size": 8, "num_labels": C}
GPT = {"n_embd": 16, "n_layer": 2, "n_head": 2}
STAGES = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_labels": C}

# the class, its config, and the layer that is taken out
SEQUENCE = {
    "bert": ("Bert", {**TEXT, **SMALL}, "classifier"),
    "distilbert": ("DistilBert", {**TEXT, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}, "classifier"),
    "roberta": ("Roberta", {**TEXT, **SMALL}, "classifier.out_proj"),
    "deberta": ("DebertaV2", {**TEXT, **SMALL}, "classifier"),
    "gpt2": ("GPT2", {**TEXT, **GPT, "n_positions": 32}, "score"),
    "llama": ("Llama", {**TEXT, **SMALL}, "score"),
    "xlnet": ("XLNet", {**TEXT, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}, "logits_proj"),
    "t5": (
        "T5",
        {**TEXT, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0},
        "classification_head.out_proj",
    ),
}
VISION = {
    "vit": ("ViT", IMAGE, "classifier"),
    "resnet": ("ResNet", {**STAGES, "embedding_size": 8, "layer_type": "basic"}, "classifier.1"),
    "convnext": ("ConvNext", {**STAGES, "num_stages": 2}, "classifier"),
}
UNUSED = {  # parameters of these architectures that no classification reaches, with or without a new head
    "xlnet": ("mask_emb", "seg_embed", "r_s_bias"),
}


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    transformers.utils.logging.disable_progress_bar()


def make(name: str, **changes):
    """A small model with random weights that are not those of its initialisation, in eval mode."""
    kind, options, _ = {**SEQUENCE, **VISION}[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**{**options, **changes})
    model = getattr(transformers, f"{kind}For{'Image' if name in VISION else 'Sequence'}Classification")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def example(name: str) -> dict[str, torch.Tensor]:
    if name in VISION:
        return {"pixel_values": torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(1))}
    ids = torch.randint(3, WORDS, (4, 7), generator=torch.Generator().manual_seed(1))
    ids[:, -1] = 2
    mask = torch.ones_like(ids)
    if name in ("bert", "distilbert", "gpt2", "llama"):  # padding must not change what a sentence says
        ids[0, 4:], mask[0, 4:] = 0, 0
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("name", [*SEQUENCE, *VISION])
def test_predictions_are_kept_trained_on_and_read_back(name, tmp_path):
    model, inputs = make(name), example(name)
    expected = model(**inputs).logits
    converted = convert(model, example=inputs, label_prior="learned")
    assert converted.config.layer == {**SEQUENCE, **VISION}[name][2]
    output = converted(**inputs)
    torch.testing.assert_close(output.logits.softmax(-1), expected.softmax(-1), rtol=0, atol=1e-4)
    torch.testing.assert_close(output.log_evidence, output.logits.logsumexp(-1))
    assert output.loss is None
    assert torch.equal(model(**inputs).logits, expected)  # the original is left alone
    assert converted.encoder.config._attn_implementation == model.config._attn_implementation

    converted.train()(**inputs, labels=torch.tensor([0, 1, 2, 0])).loss.backward()
    still = [key for key, p in converted.named_parameters() if p.grad is None]
    assert [key for key in still if not key.endswith(UNUSED.get(name, ("-",)))] == []

    converted.eval().save_pretrained(tmp_path)
    expected = converted(**inputs).logits  # batch norms have moved
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    auto = transformers.AutoModelForImageClassification if name in VISION else transformers.AutoModelForSequenceClassification
    for kind in (VariationalModel, auto):
        again, info = kind.from_pretrained(tmp_path, output_loading_info=True)
        assert type(again) is VariationalModel
        assert not any(info.values())
        assert torch.equal(again(**inputs).logits, expected)
        assert again.main_input_name == model.main_input_name


def test_the_loss_is_the_heads_on_the_features_the_encoder_gives():
    inputs, labels = example("bert"), torch.tensor([0, 1, 2, -100])
    converted = convert(make("bert"), objective="vc", beta=0.5)
    features = converted.encoder(**inputs).logits
    torch.manual_seed(1)
    loss = converted(**inputs, labels=labels).loss
    torch.manual_seed(1)
    assert torch.equal(loss, converted.head.loss(features, labels))
    soft = torch.full((4, C), 1 / C)
    assert converted(**inputs, labels=soft).loss.shape == ()


def test_outputs_carry_hidden_states_and_attentions_and_come_as_a_tuple_where_asked():
    inputs = example("bert")
    converted = convert(make("bert", attn_implementation="eager"))
    output = converted(**inputs, output_hidden_states=True, output_attentions=True)
    assert len(output.hidden_states) == 3
    assert len(output.attentions) == 2
    first, second = converted(**inputs, return_dict=False)
    assert torch.equal(first, output.logits)
    assert torch.equal(second, output.log_evidence)


@pytest.mark.parametrize("keep", [True, False])
def test_the_samples_to_train_on_make_the_pulls_weight_and_survive_a_file(keep, tmp_path):
    converted = convert(make("bert"), keep=keep, samples=C * 400)
    assert converted.head.objective.beta == pytest.approx(0.0625 * min(0.5, 10 / C**2), rel=1e-12)
    converted.save_pretrained(tmp_path)
    again = VariationalModel.from_pretrained(tmp_path).head
    assert (again.samples, again.objective.beta) == (C * 400, converted.head.objective.beta)
    assert options_of(again) == options_of(converted.head)


def test_names_of_classes_options_and_calibration_survive_a_file(tmp_path):
    names = ("no", "maybe", "yes")
    model = make("bert", id2label=dict(enumerate(names)), label2id={name: i for i, name in enumerate(names)})
    inputs = example("bert")
    options = {"objective": "gm", "beta": 0.25, "covariance": "diagonal", "class_weight": torch.tensor([1.0, 2.0, 3.0])}
    converted = convert(model, label_prior=torch.tensor([0.5, 0.3, 0.2]), **options)
    converted.head.class_prior.scale_factor = 1.5
    converted.save_pretrained(tmp_path)
    again = VariationalModel.from_pretrained(tmp_path)
    assert (again.num_labels, again.config.id2label[1], again.config.label2id["yes"]) == (3, "maybe", 2)
    assert options_of(again.head) == options_of(converted.head)
    assert repr(again.head.objective) == "GM(beta=0.25)"
    assert again.head.class_prior.scale_factor == pytest.approx(1.5)
    assert torch.equal(again.head.class_weight, options["class_weight"])
    torch.testing.assert_close(again.head.label_prior.probs(), torch.tensor([0.5, 0.3, 0.2]))
    assert torch.equal(again(**inputs).logits, converted.eval()(**inputs).logits)


def test_a_new_head_takes_every_option(tmp_path):
    converted = convert(make("bert"), keep=False, latent_dim=4, prior="vmf", means="simplex", posterior="gaussian", ratio="mlp")
    assert converted.head.latent_dim == 4
    converted.save_pretrained(tmp_path)
    again = VariationalModel.from_pretrained(tmp_path)
    for key, value in converted.state_dict().items():
        assert torch.equal(again.state_dict()[key], value), key
    assert VariationalModel(VariationalConfig.from_pretrained(tmp_path))(**example("bert")).logits.shape == (4, C)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_head_stays_in_float32_beside_a_half_precision_encoder(dtype, tmp_path):
    inputs = example("bert")
    converted = convert(make("bert").to(dtype))
    expected = converted(**inputs).logits
    assert (converted.dtype, expected.dtype) == (dtype, torch.float32)
    converted.save_pretrained(tmp_path)
    again = VariationalModel.from_pretrained(tmp_path, dtype=dtype)
    assert again.dtype == dtype
    assert {value.dtype for value in again.head.parameters()} == {torch.float32}
    assert torch.equal(again(**inputs).logits, expected)


def test_autocast_reaches_the_encoder_and_not_the_head():
    converted = convert(make("bert")).train()
    with torch.autocast("cpu", torch.bfloat16):
        output = converted(**example("bert"), labels=torch.tensor([0, 1, 2, 0]))
    assert (output.logits.dtype, output.loss.dtype) == (torch.float32, torch.float32)


def test_pipelines_give_the_probabilities_of_the_original():
    image = (np.random.default_rng(0).random((16, 16, 3)) * 255).astype(np.uint8)
    from PIL import Image  # noqa: PLC0415

    processor = transformers.ViTImageProcessor(size={"height": 16, "width": 16})
    model, found = make("vit"), []
    for each in (model, convert(model)):
        pipe = transformers.pipeline("image-classification", model=each, image_processor=processor, device="cpu")
        found.append({one["label"]: one["score"] for one in pipe(Image.fromarray(image), top_k=C)})
    assert found[0] == pytest.approx(found[1], abs=1e-4)


# ------------------------------------------------------------------------------------------------------------ Trainer


def sentences(count: int = 96) -> list[dict[str, object]]:
    """A class is the first word's: easy enough for a few steps."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % C
    rows = rng.integers(10, WORDS, (count, 6))
    rows[:, 0], rows[:, 1] = 1, 3 + labels
    return [
        {"input_ids": row.tolist(), "attention_mask": [1] * 6, "labels": int(y)} for row, y in zip(rows, labels, strict=True)
    ]


def train(model, folder, rows, **arguments):
    options = {"num_train_epochs": 8, "per_device_train_batch_size": 16, "learning_rate": 3e-3, "logging_steps": 6}
    arguments = transformers.TrainingArguments(
        str(folder), use_cpu=True, seed=0, report_to=[], disable_tqdm=True, save_strategy="no", **{**options, **arguments}
    )
    seen = []

    def metrics(prediction):
        logits, log_evidence = prediction.predictions
        seen.append((logits, log_evidence))
        return {"accuracy": float((logits.argmax(-1) == prediction.label_ids).mean())}

    trainer = transformers.Trainer(model, arguments, train_dataset=rows, eval_dataset=rows, compute_metrics=metrics)
    trainer.train()
    return trainer, trainer.evaluate(), seen[-1]


def test_the_stock_trainer_trains_evaluates_and_saves(tmp_path):
    model = convert(make("bert"), objective="vc", label_prior="learned")
    before = {key: value.clone() for key, value in model.named_parameters()}
    trainer, scores, (logits, log_evidence) = train(model, tmp_path / "run", sentences())
    assert [key for key, value in model.named_parameters() if torch.equal(before[key], value)] == []
    assert scores["eval_accuracy"] > 0.95
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(log_evidence, np.logaddexp.reduce(logits.astype(np.float64), -1), rtol=1e-5)
    trainer.save_model(str(tmp_path / "saved"))
    again = VariationalModel.from_pretrained(tmp_path / "saved")
    inputs = example("bert")
    assert torch.equal(again(**inputs).logits, model.eval()(**inputs).logits)


def test_it_settles_on_the_trainers_held_out_batches_and_keeps_that_in_a_file(tmp_path):
    torch.manual_seed(0)
    rows = sentences()
    model = convert(make("bert"))
    inputs = {name: torch.tensor([row[name] for row in rows]) for name in rows[0]}
    batches = [{name: value[start : start + 40] for name, value in inputs.items()} for start in (0, 40, 80)]
    with pytest.raises(ValueError, match=r"settle needs a model in eval mode .* got a model in training mode"):
        model.train().settle(batches)
    before = model.eval()(**inputs).logits
    for wrong, got in (
        ({"input_ids": inputs["input_ids"]}, "input_ids"),
        ((inputs, 1), "tuple"),
        (inputs | {"labels": [0]}, ""),
    ):
        with pytest.raises(ValueError, match=r"dictionaries of tensors, 'labels' among them; got .*" + got):
            model.settle([wrong])
    batches[0]["text"] = ["not a tensor"]
    separation = model.settle(batches)
    assert separation == model.head.separation
    assert not torch.allclose(model(**inputs).logits, before, atol=1e-3)
    once = convert(make("bert")).eval()
    assert once.settle([inputs]) == pytest.approx(separation, rel=1e-5)
    model.save_pretrained(tmp_path)
    read = VariationalModel.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(read(**inputs).logits, model(**inputs).logits, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match=r"got separation=4\.0"):
        convert(make("bert"), keep=False, objective="vc").eval().settle(batches)


def test_a_settled_covariance_is_kept_in_a_file(tmp_path):
    model = convert(make("bert")).eval()
    classes = model.head.num_classes
    model.head.class_prior.root = torch.eye(classes) + 0.2
    model.save_pretrained(tmp_path)
    read, info = VariationalModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["mismatched_keys"]
    torch.testing.assert_close(read.eval().head.class_prior.root, model.head.class_prior.root)
    inputs = example("bert")
    torch.testing.assert_close(read(**inputs).logits, model(**inputs).logits, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("objective", ["ce", "gm"])
def test_the_trainer_with_bf16_checkpointing_and_a_new_head(objective, tmp_path):
    model = convert(make("bert"), keep=False, objective=objective)
    _, scores, _ = train(model, tmp_path, sentences(), bf16=True, gradient_checkpointing=True, num_train_epochs=10)
    assert model.encoder.is_gradient_checkpointing
    assert scores["eval_accuracy"] > 0.9


def test_accumulated_batches_weigh_as_one_large_batch(tmp_path):
    results = []
    for steps in (1, 4):
        model = convert(make("bert", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), objective="ce")
        size = {"per_device_train_batch_size": 16 // steps, "gradient_accumulation_steps": steps, "max_steps": 1}
        train(model, tmp_path / str(steps), sentences(), **size, optim="sgd", learning_rate=0.1, max_grad_norm=0.0)
        results.append(model.encoder.bert.pooler.dense.weight.detach())
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-6)


# ------------------------------------------------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda: convert(torch.nn.Linear(3, 2)), "convert takes a sequence or image classification model"),
        (lambda: convert(transformers.BertModel(make("bert").config)), "classification model of transformers; got BertModel"),
        (lambda: convert(convert(make("bert"))), "got VariationalModel"),
        (lambda: convert(make("bert", num_labels=1)), r"exclusive classes .*; got num_labels=1"),
        (lambda: convert(make("bert", problem_type="multi_label_classification")), "got multi_label_classification"),
        (lambda: convert(make("bert", problem_type="regression")), "got regression"),
        (lambda: convert(make("bert"), "bert.pooler.dense"), "must have 3 outputs, one a class; got 16"),
        (lambda: convert(make("bert"), "nowhere"), "layer 'nowhere' of BertForSequenceClassification must have"),
        (lambda: convert(make("bert"), objective=Authors(l1=0.5)), "objective must be a name, which config.json can hold"),
        (lambda: convert(make("bert"), keep=False, example=example("bert")), "example checks that predictions are kept"),
        (lambda: VariationalModel(VariationalConfig(architecture="os.system")), "architecture must name"),
    ],
)
def test_what_cannot_be_converted_is_said_in_one_line(broken, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        broken()
    assert "\n" not in str(caught.value)


def test_without_transformers_the_error_is_the_line_to_type():
    code = "import sys; sys.modules['transformers'] = None; import varclass.integrations.transformers"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    expected = "ImportError: varclass.integrations.transformers needs transformers: pip install 'varclass[transformers]'"
    assert done.stderr.strip().splitlines()[-1] == expected


def test_options_read_back_from_a_head_build_its_like():
    torch.manual_seed(0)
    paper = ({"preset": "authors"}, {"objective": "ce"}, {"latent_dim": 3, "prior": "vmf", "ratio": "shared"})
    axes = (
        {},
        {"preset": "recommended"},
        {"objective": "bottleneck"},
        {"objective": "vc", "means": "axes"},
        {"separation": 3.0},
    )
    for options in (
        *paper,
        *axes,
        {"samples": 1000},
        {"objective": "pull", "latent_dim": 3},
        {"objective": "pull", "means": "learned"},
    ):
        head = VariationalHead(6, C, **options)
        again = VariationalHead(6, C, **options_of(head))
        again.load_state_dict(head.state_dict())
        assert options_of(again) == options_of(head)
        assert repr(again) == repr(head)
        assert again.lr_multipliers == head.lr_multipliers
