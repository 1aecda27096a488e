"""The chunked path over classes: the direct path's value and gradient, without its (B, C) tensors."""

import pytest
import torch
from tests.combinations import refused, skip_if_refused
from tests.shapes import Shapes

from varclass import VariationalHead
from varclass.core import many_classes
from varclass.core.head import OBJECTIVES, PRIORS

B, C, D = 6, 10, 4
CASES = [(name, covariance) for name, family in PRIORS.items() for covariance in family.covariances]


def terms_and_gradients(objective, prior, covariance, *, soft, chunk, **options):
    torch.manual_seed(0)
    options |= {"prior": prior, "covariance": covariance, "means": "learned", "posterior_moves_pi": objective != "authors"}
    head = VariationalHead(D, C, objective=objective, class_chunk=chunk, **options).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    features = torch.randn(B, D, dtype=torch.float64, requires_grad=True)
    probs = torch.rand(B, C, dtype=torch.float64)
    y = probs / probs.sum(1, keepdim=True) if soft else torch.randint(C, (B,))
    torch.manual_seed(1)
    terms = head.terms(features, y)
    terms.total.backward()
    return terms.as_dict(), {"features": features.grad} | {name: p.grad for name, p in head.named_parameters()}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("prior", "covariance"), CASES)
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_chunked_and_direct_agree_in_value_and_in_every_gradient(objective, prior, covariance, soft):
    skip_if_refused(objective, prior)
    expected, expected_grads = terms_and_gradients(objective, prior, covariance, soft=soft, chunk=None)
    for chunk in (1, 3, 7, C, 1000):
        got, grads = terms_and_gradients(objective, prior, covariance, soft=soft, chunk=chunk)
        assert got == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert set(grads) == set(expected_grads)
        for name, grad in grads.items():
            torch.testing.assert_close(grad, expected_grads[name], rtol=1e-9, atol=1e-11, msg=f"{name} at chunk {chunk}")


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_chunked_and_direct_agree_under_class_weights(soft):
    weight = torch.arange(C).float()
    expected, expected_grads = terms_and_gradients("vc", "gaussian", "diagonal", soft=soft, chunk=None, class_weight=weight)
    got, grads = terms_and_gradients("vc", "gaussian", "diagonal", soft=soft, chunk=3, class_weight=weight)
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-12)
    for name, grad in grads.items():
        torch.testing.assert_close(grad, expected_grads[name], rtol=1e-9, atol=1e-11)


def shapes_of_a_training_step(chunk: int | None, objective: str, prior: str, batch: int, classes: int) -> set[tuple[int, ...]]:
    torch.manual_seed(2)
    head = VariationalHead(D, classes, objective=objective, prior=prior, means="learned", class_chunk=chunk)
    features, y = torch.randn(batch, D, requires_grad=True), torch.randint(classes, (batch,))
    with Shapes() as shapes:
        head.loss(features, y).backward()
    return shapes.seen


def holds_both(shape: tuple[int, ...], batch: int, classes: int) -> bool:
    return batch in shape and classes in shape


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("prior", PRIORS)
def test_the_chunked_path_never_makes_a_batch_by_classes_tensor_in_training(objective, prior):
    skip_if_refused(objective, prior)
    batch, classes, chunk = 37, 53, 11
    direct = shapes_of_a_training_step(None, objective, prior, batch, classes)
    assert any(holds_both(shape, batch, classes) for shape in direct)
    chunked = shapes_of_a_training_step(chunk, objective, prior, batch, classes)
    assert (batch, chunk) in chunked
    assert [shape for shape in chunked if holds_both(shape, batch, classes)] == []


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_path_makes_a_batch_by_classes_by_dimensions_tensor(objective):
    for prior in [prior for prior in PRIORS if not refused(objective, prior)]:
        for chunk in (None, 11):
            shapes = shapes_of_a_training_step(chunk, objective, prior, 37, 53)
            assert [shape for shape in shapes if len(shape) > 2 and {37, 53} <= set(shape)] == []


def test_the_chunk_is_chosen_by_size():
    limit, entries = many_classes.DIRECT_LIMIT, many_classes.CHUNK_ENTRIES
    assert entries <= limit
    assert many_classes.choose_chunk(0, 10**9) is None
    for batch in (1, 4096, 2 * entries):
        if batch <= limit:
            assert many_classes.choose_chunk(batch, limit // batch) is None
        chunk = many_classes.choose_chunk(batch, limit // batch + 1)
        assert chunk >= 1
        assert chunk * batch <= max(entries, batch)
    assert many_classes.choose_chunk(1024, 10_000) is None  # the CPU benchmark's largest, in one piece
    assert many_classes.choose_chunk(4096, 100_000) is not None  # the GPU's, in chunks
    head = VariationalHead(2, 3, objective="vc")
    assert head.chunk_for(10) is None
    assert head.chunk_for(limit) == 1
    assert VariationalHead(2, 3, objective="vc", class_chunk=2).chunk_for(1) == 2


def test_a_large_batch_by_classes_takes_the_chunked_path_by_itself(monkeypatch):
    monkeypatch.setattr(many_classes, "DIRECT_LIMIT", 100)
    monkeypatch.setattr(many_classes, "CHUNK_ENTRIES", 37 * 11)
    shapes = shapes_of_a_training_step(None, "vc", "gaussian", 37, 53)
    assert (37, 11) in shapes
    assert not any(holds_both(shape, 37, 53) for shape in shapes)


def test_slices_cover_every_class_once():
    for chunk in (1, 3, 10, 11):
        covered = [k for part in many_classes.class_slices(10, chunk) for k in range(10)[part]]
        assert covered == list(range(10))
