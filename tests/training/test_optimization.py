"""Optimizers, clipping, the average of the weights and the schedules against plain implementations."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from varclass import Classifier, VariationalHead
from varclass.training.optimization import Average, clip_groups, make_optimizer, set_rates
from varclass.training.schedule import SCHEDULES, lr_factor
from varclass.training.spec import TrainingSpec


def make() -> Classifier:
    torch.manual_seed(0)
    return Classifier(nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5)), VariationalHead(5, 4, objective="vc"))


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_each_group_has_its_rate_and_its_decay(optimizer):
    options = TrainingSpec(
        optimizer=optimizer, lr=0.1, weight_decay=0.01, lr_multipliers={"psi": 3.0}, weight_decays={"theta": 0.5}, momentum=0.7
    )
    made = make_optimizer(make(), options)
    set_rates(made, 0.5)
    held = {group["name"]: group for group in made.param_groups}
    assert {name: group["lr"] for name, group in held.items()} == {
        "phi": 0.05,
        "theta": 0.05,
        "pi": 0.05,
        "psi": 0.5 * 0.1 * 3.0,
    }
    assert held["phi"]["weight_decay"] == 0.01
    assert held["theta"]["weight_decay"] == 0.5
    assert all(group.get("momentum") == 0.7 or group["betas"] == (0.7, 0.999) for group in held.values())
    assert sum(p.numel() for group in held.values() for p in group["params"]) == sum(p.numel() for p in make().parameters())


def test_rates_start_from_the_peak_every_time():
    made = make_optimizer(make(), TrainingSpec(optimizer="sgd", lr=0.1, weight_decay=0.0))
    for factor in (0.5, 0.1, 1.0):
        assert set(set_rates(made, factor).values()) == {0.1 * factor}


def test_each_group_is_clipped_by_its_own_norm():
    model = make()
    optimizer = make_optimizer(model, TrainingSpec(optimizer="sgd", lr=0.1, weight_decay=0.0))
    generator = torch.Generator().manual_seed(0)
    for group, size in zip(optimizer.param_groups, (1e3, 1e-3, 1e-4, 10.0), strict=True):
        for parameter in group["params"]:
            parameter.grad = size * torch.randn(parameter.shape, generator=generator)
    before = {group["name"]: [p.grad.clone().double().numpy() for p in group["params"]] for group in optimizer.param_groups}
    clip_groups(optimizer, 2.0)
    for group in optimizer.param_groups:
        norm = math.sqrt(sum((grad**2).sum() for grad in before[group["name"]]))
        assert (norm > 2) == (group["name"] in ("phi", "psi"))
        for parameter, grad in zip(group["params"], before[group["name"]], strict=True):
            # torch divides by the norm + 1e-6
            np.testing.assert_allclose(parameter.grad, grad * min(1, 2 / (norm + 1e-6)), rtol=1e-5)


def test_the_average_is_the_recursion_of_its_definition():
    model = make()
    average = Average(model, 0.8)
    expected = {name: value.detach().double().numpy().copy() for name, value in model.named_parameters()}
    start = {name: value.copy() for name, value in expected.items()}
    for done in range(40):
        with torch.no_grad():
            for value in model.parameters():
                value.add_(torch.randn(value.shape, generator=torch.Generator().manual_seed(done)))
        average.update(model, done)
        decay = min(0.8, (1 + done) / (10 + done))
        for name, value in model.named_parameters():
            expected[name] = decay * expected[name] + (1 - decay) * value.detach().double().numpy()
    for name, value in average.parameters.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-5)
        assert not np.allclose(expected[name], start[name])


def test_the_average_is_in_the_model_only_while_swapped_in():
    model = make()
    average = Average(model, 0.5)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(1.0)
    average.update(model, 100)
    latest = {name: value.clone() for name, value in model.state_dict().items()}
    with average.swapped_into(model):
        for name, value in model.named_parameters():
            torch.testing.assert_close(value.detach(), latest[name] - 0.5, rtol=1e-5, atol=1e-6)
        assert torch.equal(model.encoder[1].running_mean, latest["encoder.1.running_mean"])
    assert all(torch.equal(value, latest[name]) for name, value in model.state_dict().items())


TOTAL = 200


def cosine_of_torch(factor):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule, found = factor(optimizer), []
    for _ in range(TOTAL):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return found


def test_cosine_is_that_of_torch():
    found = [lr_factor("cosine", done, TOTAL, 0.0) for done in range(TOTAL)]
    expected = cosine_of_torch(lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, TOTAL))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_one_cycle_is_that_of_torch():
    """Whose cycle takes total - 1 steps, the first of which is its start."""
    found = [SCHEDULES["one-cycle"](done / (TOTAL - 1), peak=0.3) for done in range(TOTAL)]
    expected = cosine_of_torch(
        lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(
            optimizer, 1.0, total_steps=TOTAL, pct_start=(0.3 * (TOTAL - 1) + 1) / TOTAL, div_factor=25, final_div_factor=1e12
        )
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_step_is_that_of_torch():
    found = [lr_factor("step", done, TOTAL, 0.0) for done in range(TOTAL)]
    expected = cosine_of_torch(lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, [60, 120, 160], gamma=0.2))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warmup_rises_linearly_and_then_leaves_the_schedule_alone(schedule):
    plain = [lr_factor(schedule, done, TOTAL, 0.0) for done in range(TOTAL)]
    warm = [lr_factor(schedule, done, TOTAL, 0.1) for done in range(TOTAL)]
    rise = [1.0 if schedule == "one-cycle" else min(1.0, (done + 1) / 20) for done in range(TOTAL)]
    np.testing.assert_allclose(warm, np.multiply(plain, rise), rtol=1e-12)
    assert all(0 < factor <= 1 for factor in warm)  # a step with a rate of 0 would be a wasted one
