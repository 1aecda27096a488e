"""The head on a GPU: the same numbers as on the CPU, under autocast, compiled, and captured in a CUDA graph."""

import pytest
import torch
from tests.combinations import skip_if_refused
from torch import nn

from varclass import Classifier, VariationalHead
from varclass.core.objectives import OBJECTIVES
from varclass.core.priors import PRIORS
from varclass.core.ratio import RATIOS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

FAMILIES = [(prior, covariance, "learned") for prior in PRIORS for covariance in PRIORS[prior].covariances]


def example(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    return torch.randn(32, 12, dtype=torch.float64), torch.randint(5, (32,))


@pytest.mark.parametrize(("prior", "covariance", "means"), [*FAMILIES, ("gaussian", "unit", "axes")])
def test_log_joint_and_gradients_are_those_of_the_cpu(prior, covariance, means):
    x, y = example()
    options = {"prior": prior, "covariance": covariance, "means": means, "objective": "gm"}
    head = VariationalHead(12, 5, **options).double()
    on_gpu = VariationalHead(12, 5, **options).double().cuda()
    on_gpu.load_state_dict(head.state_dict())
    torch.testing.assert_close(on_gpu(x.cuda()).cpu(), head(x), rtol=1e-9, atol=1e-9)
    head.loss(x, y).backward()
    on_gpu.loss(x.cuda(), y.cuda()).backward()
    for (name, a), b in zip(head.named_parameters(), on_gpu.parameters(), strict=True):
        torch.testing.assert_close(b.grad.cpu(), a.grad, rtol=1e-8, atol=1e-10, msg=name)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("prior", PRIORS)
def test_every_objective_trains_under_autocast_and_a_gradient_scaler(objective, ratio, prior):
    skip_if_refused(objective, prior)
    x, y = example()
    model = Classifier(nn.Linear(12, 8), VariationalHead(8, 5, objective=objective, ratio=ratio, prior=prior)).cuda()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.05), torch.amp.GradScaler()
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x.float().cuda(), y.cuda())
        assert loss.dtype == torch.float32
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert all(torch.isfinite(p).all() for p in model.parameters())
    assert sum(losses[-5:]) < sum(losses[:5])


@pytest.mark.parametrize("options", [{}, {"prior": "vmf", "ratio": "mlp"}, {"ratio": "shared", "class_chunk": 2}])
def test_a_compiled_classifier_gives_the_eager_loss_and_gradients(options):
    x, y = (part.cuda() for part in example())
    model = Classifier(nn.Linear(12, 8), VariationalHead(8, 5, objective="gm", **options)).cuda()
    found = []
    for step in (model, torch.compile(model, fullgraph=True)):
        model.zero_grad()
        loss = step(x.float(), y)
        loss.backward()
        found.append([loss.detach(), *(p.grad.clone() for p in model.parameters())])
    for eager, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, eager, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"objective": "vc"}])
def test_a_training_step_can_be_captured_in_a_cuda_graph(options):
    x, y = (part.cuda() for part in example())
    head = VariationalHead(12, 5, **options).cuda()
    x = x.float()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        head.loss(x, y).backward()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = head.loss(x, y)
    graph.replay()
    terms = head.terms(x, y)
    torch.testing.assert_close(loss, terms.total, rtol=1e-4, atol=1e-4)  # T is zero: prior samples make no difference


def test_a_label_out_of_range_is_a_one_line_error_that_leaves_the_gpu_usable():
    head = VariationalHead(4, 3).cuda()
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.2 .*; got 7"):
        head.loss(torch.randn(2, 4, device="cuda"), torch.tensor([0, 7], device="cuda"))
    assert torch.isfinite(head.loss(torch.randn(2, 4, device="cuda"), torch.tensor([0, 2], device="cuda")))
