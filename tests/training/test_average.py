"""The moving average of the weights, against the sum written out by hand."""

from __future__ import annotations

import pytest
import torch

from prpn.model import PRPN
from prpn.training.average import WeightAverage

from .tiny import recipe


def network(*assignments: str) -> PRPN:
    torch.manual_seed(0)
    return PRPN(recipe(*assignments).model, 12)


def change(net: PRPN, step: int) -> None:
    """New weights, statistics and counters, as a training step would leave them."""
    generator = torch.Generator().manual_seed(step)
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if tensor.is_floating_point() and name != "decoder.weight":  # tied: the embedding's
                tensor.copy_(torch.randn(tensor.shape, generator=generator))
            elif not tensor.is_floating_point():
                tensor.fill_(step + 1)


@pytest.mark.parametrize("decay", [0.3, 0.999])
def test_against_a_hand_computation(decay: float) -> None:
    net = network()
    average = WeightAverage(net, decay)
    expected = {name: tensor.double() for name, tensor in net.state_dict().items()}
    for step in range(6):
        change(net, step)
        average.update(step)
        now = min(decay, (1 + step) / (10 + step))
        expected = {
            name: now * expected[name] + (1 - now) * tensor.double() for name, tensor in net.state_dict().items()
        }
    counters = [name for name, tensor in net.state_dict().items() if not tensor.is_floating_point()]
    assert counters, "batch normalisation counts its batches"
    for name, tensor in average.weights.items():
        if name in counters:
            assert tensor.item() == 6
        else:
            torch.testing.assert_close(tensor.double(), expected[name], rtol=1e-5, atol=1e-6)


def test_first_weights_are_soon_forgotten() -> None:
    net = network()
    with torch.no_grad():
        net.decoder.bias.fill_(1000.0)
    average = WeightAverage(net, 0.9999)
    with torch.no_grad():
        net.decoder.bias.fill_(1.0)
    for step in range(10):
        average.update(step)
    assert average.weights["decoder.bias"].max() < 1.1  # of 1000, after ten steps of a decay that alone would leave 999


def test_in_place_and_back() -> None:
    net = network()
    average = WeightAverage(net, 0.5)
    change(net, 0)
    average.update(0)
    own = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with average.in_place():
        for name, tensor in net.state_dict().items():
            assert torch.equal(tensor, average.weights[name])
        assert net.decoder.weight is net.embedding.weight
    assert all(torch.equal(tensor, own[name]) for name, tensor in net.state_dict().items())
    assert not torch.equal(own["decoder.bias"], average.weights["decoder.bias"])


def test_in_place_restores_after_a_failure() -> None:
    net = network()
    average = WeightAverage(net, 0.5)
    change(net, 0)
    own = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with pytest.raises(RuntimeError, match="inside"), average.in_place():
        raise RuntimeError("inside")
    assert all(torch.equal(tensor, own[name]) for name, tensor in net.state_dict().items())


def test_average_never_shares_memory_with_the_network() -> None:
    net = network()
    average = WeightAverage(net, 0.5)
    before = average.weights["embedding.weight"].clone()
    change(net, 0)
    assert torch.equal(average.weights["embedding.weight"], before)


@pytest.mark.parametrize("tied", ["true", "false"])
def test_through_a_checkpoint(tied: str) -> None:
    net = network(f"model.tied={tied}")
    average = WeightAverage(net, 0.5)
    change(net, 0)
    average.update(0)
    other = WeightAverage(network(f"model.tied={tied}"), 0.5)
    other.load(average.tensors(), "here")
    assert all(torch.equal(tensor, other.weights[name]) for name, tensor in average.weights.items())
