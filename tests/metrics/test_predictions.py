import numpy as np
import pytest
from scipy.special import entr, log_softmax, logsumexp, softmax

from varclass.metrics import Predictions, predictions

CLOSE = {"rtol": 1e-9, "atol": 1e-15}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_everything_derived_is_that_of_scipy_in_float64(dtype):
    rows = (5 * np.random.default_rng(0).standard_normal((50, 7)) - 100).astype(dtype)
    held, exact = Predictions.of(rows), rows.astype(np.float64)
    probabilities = softmax(exact, axis=1)
    for got, expected in [
        (held.probabilities, probabilities),
        (held.log_posterior, log_softmax(exact, axis=1)),
        (held.log_evidence, logsumexp(exact, axis=1)),
        (held.confidence, probabilities.max(1)),
        (held.log_confidence, log_softmax(exact, axis=1).max(1)),
        (held.entropy, entr(probabilities).sum(1)),
    ]:
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, expected, **CLOSE)
    np.testing.assert_array_equal(held.predicted, exact.argmax(1))


def test_a_huge_log_joint_costs_no_digits_of_the_posterior():
    near = Predictions.of([[0.0, -1.0, -3.0]])
    far = Predictions.of(near.log_joint - 2.0**40)
    np.testing.assert_array_equal(far.log_posterior, near.log_posterior)
    np.testing.assert_array_equal(far.probabilities, near.probabilities)
    assert far.log_evidence == -(2.0**40) + near.log_evidence
    lost = Predictions.of(np.array([[-1e30, 0.0], [-1e30, -2e30]], dtype=np.float32))
    assert lost.probabilities.tolist() == [[0, 1], [1, 0]]
    assert lost.entropy.tolist() == [0, 0]


def test_the_tail_of_a_posterior_that_rounds_to_one_is_kept():
    small = np.exp(-50.0)
    held = Predictions.of([[0.0, -50.0]])
    assert held.confidence[0] == 1
    np.testing.assert_allclose(held.log_confidence, -np.log1p(small), rtol=1e-9)
    np.testing.assert_allclose(held.entropy, np.log1p(small) + small / (1 + small) * 50, rtol=1e-9)


def test_equal_classes_share_exactly_and_ties_go_to_the_first():
    held = Predictions.of([[1.0, 1.0], [-7.0, -7.0]])
    assert held.probabilities.tolist() == [[0.5, 0.5]] * 2
    assert held.confidence.tolist() == [0.5, 0.5]
    assert held.predicted.tolist() == [0, 0]
    for classes in range(1, 65):
        even = Predictions.of(np.zeros((1, classes)))
        assert even.confidence[0] == 1 / classes  # on the edge of a bin, not just below it


def test_a_class_ruled_out_has_probability_zero_and_adds_no_entropy():
    held = Predictions.of([[0.0, -np.inf, 0.0]])
    assert held.probabilities.tolist() == [[0.5, 0, 0.5]]
    np.testing.assert_allclose(held.entropy, np.log(2), rtol=1e-9)
    np.testing.assert_allclose(held.log_evidence, np.log(2), rtol=1e-9)


def test_rows_are_taken_with_their_labels_and_index():
    held = Predictions(np.eye(3), np.array([2, -1, 0]), np.array([10, 20, 30]))
    assert held.in_scope().index.tolist() == [10, 30]
    assert held.in_scope().labels.tolist() == [2, 0]
    assert held.take(np.array([2, 0])).index.tolist() == [30, 10]
    assert held.correct.tolist() == [False, False, False]
    assert len(held) == held.num_classes == 3
    whole = Predictions.of(np.eye(2), [0, 1])
    assert whole.in_scope() is whole


def test_arrays_cannot_be_written_through_the_predictions_and_the_callers_own_can():
    rows = np.zeros((2, 2))
    held = Predictions.of(rows, [0, 1])
    with pytest.raises(ValueError, match="read-only"):
        held.log_joint[0, 0] = 1
    rows[0, 0] = 1.0
    with pytest.raises(AttributeError):
        held.labels = np.array([1, 1])


@pytest.mark.parametrize(
    ("log_joint", "labels", "index", "message"),
    [
        (np.zeros(3), [0], [0], r"shape \(N, C\); got float64 with shape \(3,\)"),
        (np.zeros((3, 0)), [0] * 3, [0] * 3, r"got float64 with shape \(3, 0\)"),
        (np.zeros((2, 2), int), [0, 1], [0, 1], "must be floating .* got int64"),
        (np.zeros((2, 2)), [0], [0, 1], r"labels must have shape \(2,\); got \(1,\)"),
        (np.zeros((2, 2)), [0.0, 1.0], [0, 1], "labels must be whole numbers; got float64"),
        (np.zeros((2, 2)), [0, 2], [0, 1], "labels must lie from -1 to 1; got 0 to 2"),
        (np.zeros((2, 2)), [0, -2], [0, 1], "labels must lie from -1 to 1; got -2 to 0"),
        (np.zeros((2, 2)), [0, 1], [0], "index must hold 2 whole numbers"),
        (np.zeros((2, 2)), [0, 1], [0.5, 1.5], "index must hold 2 whole numbers"),
        (np.array([[0, 0], [np.nan, 0]]), [0, 1], [0, 1], "got nan in row 1"),
        (np.array([[0, 0], [np.inf, 0]]), [0, 1], [0, 1], "got inf in row 1"),
        (np.array([[-np.inf, -np.inf]]), [0], [0], "got -inf in row 0"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(log_joint, labels, index, message):
    with pytest.raises(ValueError, match=message) as caught:
        Predictions(log_joint, labels, index)
    assert "\n" not in str(caught.value)


# --------------------------------------------------------------------------------------------------------------- files


def test_float32_predictions_come_back_to_the_bit_and_the_file_is_the_same_every_time(tmp_path):
    rows = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    rows[0, 0] = -np.inf
    held = Predictions(rows, np.arange(20) % 4 - 1, np.arange(20)[::-1])
    held.save(tmp_path / "one.npz")
    held.save(str(tmp_path / "two.npz"))
    back = Predictions.load(tmp_path / "one.npz")
    for name in ("log_joint", "labels", "index"):
        np.testing.assert_array_equal(getattr(back, name), getattr(held, name))
    assert back.log_joint.dtype == np.float32
    assert back.labels.dtype == back.index.dtype == np.int64
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.npz", "two.npz"]


def test_float64_predictions_lose_what_the_docstring_says(tmp_path):
    held = Predictions.of(np.random.default_rng(0).standard_normal((200, 5)) - 1000)
    held.save(tmp_path / "a.npz")
    moved = np.abs(Predictions.load(tmp_path / "a.npz").log_posterior - held.log_posterior).max()
    assert 0 < moved <= 2.0**-23 * np.abs(held.log_joint).max()


def test_no_rows_are_saved_and_loaded(tmp_path):
    Predictions.of(np.empty((0, 3))).save(tmp_path / "a.npz")
    assert Predictions.load(tmp_path / "a.npz").log_joint.shape == (0, 3)


def test_a_save_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    Predictions.of(np.zeros((1, 2))).save(path)
    before = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(predictions.np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        Predictions.of(np.ones((1, 2))).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.npz"]


def test_what_float32_cannot_hold_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"beyond 3\.4e38"):
        Predictions.of([[0.0, -1e39]]).save(tmp_path / "a.npz")
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_something_else_are_refused_in_one_line(tmp_path):
    rows = np.zeros((2, 2), np.float32)
    np.savez(tmp_path / "missing.npz", log_joint=rows, labels=[0, 1])
    np.savez(tmp_path / "pickle.npz", log_joint=rows, labels=np.array([{}, 1], dtype=object), index=[0, 1])
    np.savez(tmp_path / "wrong.npz", log_joint=rows, labels=[0, 5], index=[0, 1])
    np.save(tmp_path / "array.npy", rows)
    Predictions.of(rows).save(tmp_path / "whole.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:200])
    (tmp_path / "text.npz").write_text("not a zip")
    (tmp_path / "empty.npz").touch()
    for name in ("missing.npz", "pickle.npz", "wrong.npz", "array.npy", "cut.npz", "text.npz", "empty.npz"):
        with pytest.raises(ValueError, match=rf"{name}: expected an .npz with log_joint, labels, index; got ") as caught:
            Predictions.load(tmp_path / name)
        assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError):
        Predictions.load(tmp_path / "nowhere.npz")
