"""What a run says about files of every kind."""

import numpy as np
import pytest
from PIL import Image

from varclass.data import load
from varclass.evaluation.evaluate import evaluate
from varclass.evaluation.verdict import judge, read_inputs
from varclass.metrics.predictions import Predictions
from varclass.training.task import Task

DIGIT = Task("image", (1, 8, 8), tuple("0123456789"))
VECTOR = Task("vector", (3,), ("a", "b"))
TEXT = Task("text", (16,), ("a", "b"))


def test_images_and_arrays_get_the_same_verdict_and_a_rank_among_validation_samples(run, tmp_path):
    evaluate(run, ["clean"])
    images = load("digits")["test"].inputs[:20]
    Image.fromarray(images[0, ..., 0]).save(tmp_path / "digit.png")
    np.save(tmp_path / "digits.npy", images)
    np.savez(tmp_path / "noise.npz", x=np.random.default_rng(0).integers(256, size=(20, 8, 8, 1), dtype=np.uint8))
    found = judge(run, [tmp_path / "digit.png", tmp_path / "digits.npy", tmp_path / "noise.npz"])
    assert [v.input for v in found[:2]] == [str(tmp_path / "digit.png"), f"{tmp_path / 'digits.npy'}:0"]
    assert (found[0].predicted, found[0].conformal_set) == (found[1].predicted, found[1].conformal_set)
    assert found[0].log_evidence == pytest.approx(found[1].log_evidence, rel=1e-5)
    kept = Predictions.load(run.path / "predictions" / "test.npz")
    assert [v.predicted for v in found[1:21]] == [str(c) for c in kept.predicted[:20]]
    assert np.allclose([v.log_evidence for v in found[1:21]], kept.log_evidence[:20], rtol=1e-4)
    reference = Predictions.load(run.path / "predictions" / "validation.npz").log_evidence
    for verdict in found:
        below, above = (reference <= verdict.log_evidence).sum(), (reference >= verdict.log_evidence).sum()
        assert verdict.typicality == pytest.approx(min(1, 2 * (1 + min(below, above)) / (len(reference) + 1)))
    assert all(v.predicted in v.conformal_set for v in found[1:21] if v.conformal_set)


def test_without_validation_predictions_there_is_no_p_value_and_no_set(run, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 8, 8, 1), dtype=np.uint8))
    (verdict,) = judge(run, [tmp_path / "x.npy"])
    assert verdict.typicality is None
    assert verdict.conformal_set is None


def test_texts_are_lines_and_vectors_are_rows(tmp_path):
    (tmp_path / "t.txt").write_text("one\ntwo\n")
    names, split = read_inputs([tmp_path / "t.txt"], TEXT)
    assert names == [f"{tmp_path / 't.txt'}:0", f"{tmp_path / 't.txt'}:1"]
    assert split.inputs.tolist() == ["one", "two"]
    np.save(tmp_path / "v.npy", np.ones((2, 3)))
    _, split = read_inputs([tmp_path / "v.npy"], VECTOR)
    assert split.inputs.dtype == np.float32


@pytest.mark.parametrize("shape", [(2, 8, 8), (2, 8, 8, 1), (2, 8, 8, 3)])
def test_images_are_taken_as_fit_takes_them(tmp_path, shape):
    np.save(tmp_path / "x.npy", np.full(shape, 7, np.uint8))
    _, split = read_inputs([tmp_path / "x.npy"], DIGIT)
    assert np.array_equal(split.inputs, np.full((2, 8, 8, 1), 7))


def test_wrong_files_are_one_line_errors(tmp_path):
    (tmp_path / "t.txt").write_text("one")
    (tmp_path / "bad.npy").write_bytes(b"no array")
    np.save(tmp_path / "wide.npy", np.ones((2, 4)))
    np.savez(tmp_path / "y.npz", y=np.ones(2))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "nan.npy", np.array([[0, 0, 0], [0, np.nan, 0]]))
    np.save(tmp_path / "first.npy", np.zeros((2, 3, 8, 8), np.uint8))
    (tmp_path / "latin.txt").write_bytes(b"Gr\xf6\xdfe")
    cases = [
        ("nan.npy", VECTOR, "nan.npy: expected finite floats; got nan in row 1"),
        ("first.npy", DIGIT, r"first.npy: .*\(N, height, width, channels\)"),
        ("latin.txt", TEXT, "latin.txt: expected UTF-8 text; line 1"),
        ("none.png", DIGIT, "there is none"),
        ("t.txt", DIGIT, "expected images, .npy or .npz"),
        ("bad.npy", VECTOR, "numpy array without pickles"),
        ("objects.npy", VECTOR, "numpy array without pickles"),
        ("wide.npy", VECTOR, r"shape \(N, 3\)"),
        ("wide.npy", DIGIT, "uint8 images"),
        ("y.npz", VECTOR, "array called x"),
    ]
    for name, task, message in cases:
        with pytest.raises(ValueError, match=message) as caught:
            read_inputs([tmp_path / name], task)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="at least one file"):
        read_inputs([], DIGIT)
