import numpy as np
import pytest
from PIL import Image

from varclass.data import DataError, ImageFiles, images, load
from varclass.data.loading import pick
from varclass.data.verifying import Finding, verify

HEADER = ",patient,node,x_coord,y_coord,tumor,slide,center,split\n"
ROWS = [  # patient, node, x, y, tumor, slide, center, split
    ("004", 4, 3328, 21792, 1, 0, 0, 0),
    ("004", 4, 3200, 22272, 0, 0, 3, 0),
    ("017", 1, 10, 20, 1, 5, 4, 1),
    ("020", 4, 30, 40, 0, 7, 1, 0),
    ("042", 3, 50, 60, 1, 9, 2, 1),
    ("042", 3, 70, 80, 0, 9, 2, 0),
]


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "camelyon17_v1.0"
    for number, (patient, node, x, y, *_) in enumerate(ROWS):
        place = folder / "patches" / f"patient_{patient}_node_{node}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = np.full((96, 96, 4), [number, number, number, 255], np.uint8)  # RGBA, as published
        Image.fromarray(pixels).save(place / f"patch_patient_{patient}_node_{node}_x_{x}_y_{y}.png")
    table = "".join(f"{number}," + ",".join(map(str, row)) + "\n" for number, row in enumerate(ROWS))
    (folder / "metadata.csv").write_text(HEADER + table)
    return tmp_path


def test_the_official_splits_go_by_hospital(root):
    splits = load("camelyon17", root)
    marks = {name: np.asarray(split.inputs)[:, 0, 0, 0].tolist() for name, split in splits.items()}
    assert marks == {"train": [0, 1], "id_validation": [2], "validation": [3], "test": [4, 5]}
    assert {name: split.labels.tolist() for name, split in splits.items()} == {
        "train": [1, 0],
        "id_validation": [1],
        "validation": [0],
        "test": [1, 0],
    }
    assert splits["test"].inputs.shape == (2, 96, 96, 3)
    assert splits["test"].classes == ("normal", "tumor")


def test_a_large_set_is_left_in_its_files(root, monkeypatch):
    monkeypatch.setattr(images, "IN_MEMORY", 0)
    entry = pick("camelyon17")
    inputs = load("camelyon17", root)["test"].inputs
    assert isinstance(inputs, ImageFiles)
    assert int(inputs[1][0, 0, 0]) == 5
    monkeypatch.setitem(entry.samples, "test", 2)
    assert verify(entry, root)[-1] == Finding("test", "ok", "2 samples, 2 classes")
    next((root / "camelyon17_v1.0" / "patches").rglob("*_x_70_y_80.png")).write_bytes(b"")
    assert "x_70_y_80.png" in verify(entry, root)[-1].detail


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (("0,004,4,3328,21792,1,0,0,0", "0,004,4,3328,21792,1,0,7,0"), "line 2: expected center 0 to 4"),
        (("0,004,4,3328,21792,1,0,0,0", "0,004,4,3328,21792,1,0,0,2"), "split 0 or 1; got '0' and '2'"),
        (("0,004,4,3328,21792,1,0,0,0", "0,004,4,3328,21792,2,0,0,0"), "line 2: expected tumor to be 0 or 1"),
        (("0,004,4,3328,21792,1,0,0,0", "0,004,4,3328"), "line 2: expected 9 columns"),
        (("0,004,4,3328,21792,1,0,0,0", "0,004,4,3329,21792,1,0,0,0"), r"x_3329_y_21792\.png"),
        (("tumor", "tumour"), "expected a column 'tumor'"),
    ],
)
def test_what_is_wrong_with_the_table_is_said(root, change, match):
    table = root / "camelyon17_v1.0" / "metadata.csv"
    table.write_text(table.read_text().replace(*change))
    with pytest.raises(DataError, match=match):
        load("camelyon17", root)
