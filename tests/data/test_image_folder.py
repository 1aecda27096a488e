import logging

import numpy as np
import pytest
from PIL import Image

from varclass.data import DataError, load
from varclass.data.loading import load_entry, pick

RNG = np.random.default_rng(0)


def save(path, size=(8, 8), gray=False):
    pixels = RNG.integers(0, 256, size if gray else (*size, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return pixels


def own(root, *parts, counts=(3, 2)):
    saved = {}
    for part in parts:
        for name, count in zip(("cat", "dog"), counts, strict=True):
            saved[part, name] = [save(root / part / name / f"{number}.png") for number in range(count)]
    return saved


def test_own_train_test_and_validation_folders(tmp_path):
    saved = own(tmp_path, "train", "val", "test")
    splits = load(str(tmp_path))
    assert list(splits) == ["train", "validation", "test"]
    for split, part in {"train": "train", "validation": "val", "test": "test"}.items():
        assert splits[split].classes == ("cat", "dog")
        assert splits[split].labels.tolist() == [0, 0, 0, 1, 1]
        np.testing.assert_array_equal(splits[split].inputs, saved[part, "cat"] + saved[part, "dog"])


def test_folders_of_classes_alone_give_up_a_stratified_fifth_and_say_so(tmp_path, caplog):
    own(tmp_path, ".", counts=(20, 10))
    with caplog.at_level(logging.WARNING):
        splits = load(tmp_path)
    assert "no test part" in caplog.text
    assert "n = 6" in caplog.text
    assert np.bincount(splits["train"].labels).tolist() == [16, 8]
    assert np.bincount(splits["test"].labels).tolist() == [4, 2]
    again = load(tmp_path)
    np.testing.assert_array_equal(again["test"].inputs, splits["test"].inputs)


def test_too_few_images_to_set_a_fifth_aside_are_said_with_their_classes(tmp_path):
    save(tmp_path / "cat" / "1.png")
    with pytest.raises(DataError, match=r"set a fifth aside for the test; got 1 in all, of 1 class\(es\): add some"):
        load(tmp_path)


def test_several_sizes_need_one_to_be_scaled_to(tmp_path):
    own(tmp_path, "train", "test")
    save(tmp_path / "train" / "cat" / "large.png", (12, 9))
    with pytest.raises(DataError, match=r"got 2 sizes \(8x8, 12x9, ...\): scale them all with --image-size 64"):
        load(tmp_path)
    with pytest.raises(DataError, match="at least 1; got 0"):
        load(tmp_path, size=0)
    assert load(tmp_path, size=6)["train"].inputs.shape == (6, 6, 6, 3)
    assert load(tmp_path, size=(5, 7))["test"].inputs.shape == (5, 5, 7, 3)


def test_gray_folders_have_one_channel(tmp_path):
    for part in ("train", "test"):
        gray = save(tmp_path / part / "a" / "1.png", gray=True)
    assert load(tmp_path)["test"].inputs.shape == (1, 8, 8, 1)
    np.testing.assert_array_equal(np.asarray(load(tmp_path)["test"].inputs)[0, :, :, 0], gray)


def test_what_is_wrong_with_a_folder_is_said(tmp_path):
    with pytest.raises(DataError, match="got no folder"):
        load(tmp_path)
    own(tmp_path, "train")
    with pytest.raises(DataError, match="expected a folder test beside train"):
        load(tmp_path)
    own(tmp_path, "test")
    save(tmp_path / "test" / "emu" / "1.png")
    with pytest.raises(DataError, match="'emu' is none of them"):
        load(tmp_path)
    (tmp_path / "test" / "emu" / "1.png").unlink()
    (tmp_path / "test" / "emu").rmdir()
    (tmp_path / "train" / "fox").mkdir()
    with pytest.raises(DataError, match="fox: expected images"):
        load(tmp_path)
    (tmp_path / "train" / "fox").rmdir()
    (tmp_path / "train" / "dog" / "0.png").write_bytes(b"x")
    with pytest.raises(DataError, match=r"train/dog/0\.png"):
        load(tmp_path)


def test_a_test_folder_without_train_is_not_taken_for_a_class(tmp_path):
    own(tmp_path, "test")
    with pytest.raises(DataError, match="expected a folder train beside test"):
        load(tmp_path)


@pytest.fixture
def tiny(tmp_path):
    root = tmp_path / "tiny-imagenet-200"
    saved = {
        key: [save(root / "train" / key / "images" / f"{key}_{n}.JPEG", (64, 64)) for n in range(2)] for key in ("n2", "n1")
    }
    (root / "wnids.txt").write_text("n2\nn1\n")
    (root / "words.txt").write_text("n1\tgoldfish, Carassius\nn2\tcrane\nn3\tcrane\n")
    for number in range(3):
        save(root / "val" / "images" / f"val_{number}.JPEG", (64, 64), gray=number == 1)
    rows = ["val_0.JPEG\tn1\t0\t0\t62\t62", "val_1.JPEG\tn2\t1\t2\t3\t4", "val_2.JPEG\tn1\t0\t0\t62\t62"]
    (root / "val" / "val_annotations.txt").write_text("\n".join(rows) + "\n")
    return tmp_path, saved


def test_tiny_imagenet_in_its_official_layout(tiny):
    root, saved = tiny
    splits = load("tiny_imagenet", root)
    assert splits["train"].classes == ("crane", "goldfish")
    assert splits["train"].labels.tolist() == [0, 0, 1, 1]
    assert splits["test"].labels.tolist() == [1, 0, 1]
    assert splits["test"].inputs.shape == (3, 64, 64, 3)
    first = np.asarray(Image.open(root / "tiny-imagenet-200" / "train" / "n2" / "images" / "n2_0.JPEG"))
    np.testing.assert_array_equal(np.asarray(splits["train"].inputs)[0], first)
    assert np.abs(first.astype(float) - saved["n2"][0]).mean() < 64  # JPEG of noise: near, not equal


def test_two_classes_of_one_name_are_told_apart(tiny):
    root, _ = tiny
    (root / "tiny-imagenet-200" / "words.txt").write_text("n1\tcrane\nn2\tcrane\n")
    assert load("tiny_imagenet", root)["train"].classes == ("crane (n2)", "crane (n1)")


@pytest.mark.parametrize(
    ("file", "text", "match"),
    [
        ("words.txt", "n1\tgoldfish\n", "got 'n2'"),
        ("wnids.txt", "", "got 'nothing'"),
        ("wnids.txt", "n1\n", "'n2' is none of them"),
        ("val/val_annotations.txt", "val_0.JPEG\tn9\t0\t0\t1\t1\n", "line 1: expected 6 columns with a known id"),
        ("val/val_annotations.txt", "val_0.JPEG\tn1\n", "line 1"),
        ("val/val_annotations.txt", "", "one line per image"),
        ("val/val_annotations.txt", "absent.JPEG\tn1\t0\t0\t1\t1\n", r"absent\.JPEG"),
    ],
)
def test_what_is_wrong_with_tiny_imagenet_is_said(tiny, file, text, match):
    root, _ = tiny
    (root / "tiny-imagenet-200" / file).write_text(text)
    with pytest.raises(DataError, match=match):
        load_entry(pick("tiny_imagenet"), root)
