import numpy as np
import pytest
from PIL import Image

from varclass.data import DataError, ImageFiles, images, load

PARTITION = [("000001.jpg", 0), ("000002.jpg", 0), ("000003.jpg", 1), ("000004.jpg", 2), ("000005.jpg", 2)]
SMILES = [1, -1, 1, -1, 1]
BRIGHTNESS = 40  # from one image to the next: more than JPEG can blur


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "celeba"
    (folder / "img_align_celeba").mkdir(parents=True)
    for number, (name, _) in enumerate(PARTITION):
        pixels = np.full((218, 178, 3), number * BRIGHTNESS, np.uint8)
        Image.fromarray(pixels).save(folder / "img_align_celeba" / name)
    (folder / "list_eval_partition.txt").write_text("".join(f"{name} {part}\r\n" for name, part in PARTITION))
    rows = "".join(f"{name} {-smile:2} {smile:2} \r\n" for (name, _), smile in zip(PARTITION, SMILES, strict=True))
    (folder / "list_attr_celeba.txt").write_text(f"{len(PARTITION)}\r\nBald Smiling \r\n{rows}")
    return tmp_path


def test_splits_and_smiles_are_those_of_the_lists(root):
    splits = load("celeba", root)
    marks = {name: np.round(np.asarray(split.inputs).mean((1, 2, 3)) / BRIGHTNESS).tolist() for name, split in splits.items()}
    assert marks == {"train": [0, 1], "validation": [2], "test": [3, 4]}
    assert {name: split.labels.tolist() for name, split in splits.items()} == {
        "train": [1, 0],
        "validation": [1],
        "test": [0, 1],
    }
    assert splits["test"].inputs.shape == (2, 218, 178, 3)
    assert splits["test"].classes == ("not smiling", "smiling")


def test_more_than_fits_into_memory_is_left_in_its_files(root, monkeypatch):
    monkeypatch.setattr(images, "IN_MEMORY", 0)
    inputs = load("celeba", root, splits=["test"])["test"].inputs
    assert isinstance(inputs, ImageFiles)
    assert round(float(inputs[1].mean()) / BRIGHTNESS) == 4


@pytest.mark.parametrize(
    ("file", "change", "match"),
    [
        ("list_eval_partition.txt", ("000004.jpg 2", "000004.jpg 3"), r"partition\.txt: line 4: .* 0, 1 or 2"),
        ("list_eval_partition.txt", ("000004.jpg 2", "000004.jpg"), r"partition\.txt: line 4: "),
        ("list_eval_partition.txt", (" 2", " 1"), "expected images of the split 'test'; got none"),
        ("list_eval_partition.txt", ("000004.jpg", "000009.jpg"), r"list_attr_celeba\.txt: expected a line for 000009\.jpg"),
        ("list_attr_celeba.txt", ("Smiling", "Frowning"), "expected an attribute 'Smiling' in line 2"),
        ("list_attr_celeba.txt", ("000005.jpg -1  1", "000005.jpg -1  0"), "line 7: expected a name and -1 or 1"),
        ("list_attr_celeba.txt", ("000005.jpg -1  1", "000005.jpg -1"), "line 7: expected a name and -1 or 1"),
    ],
)
def test_what_is_wrong_with_the_lists_is_said(root, file, change, match):
    path = root / "celeba" / file
    text = path.read_bytes().decode()
    assert change[0] in text
    path.write_bytes(text.replace(*change).encode())
    with pytest.raises(DataError, match=match):
        load("celeba", root, splits=["test"])


def test_an_image_of_another_size_is_refused(root):
    Image.new("RGB", (64, 64)).save(root / "celeba" / "img_align_celeba" / "000005.jpg")
    with pytest.raises(DataError, match=r"000005\.jpg: expected 218x178 pixels; got 64x64"):
        load("celeba", root, splits=["test"])
