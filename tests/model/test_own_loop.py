"""A network in somebody else's project: loops, optimisers, autocast, subclasses, copies and types."""

from __future__ import annotations

import copy
import dataclasses
import io
import math
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import prpn
from prpn.kernels import native
from prpn.model import PRPN, Output
from prpn.model.parsing import Parse, ParsingNetwork
from tests.model.cases import KERNELS, assert_all_same, assert_same, gradients_of, kernels_set

VOCABULARY = 23
CONFIG = prpn.ModelConfig(
    embedding=12, hidden=16, layers=2, residual_blocks=1, lookback=2, memory_slots=4, temperature=3.0
)
CHOICES = [*KERNELS, *(["fp32", "bf16"] if native.library() is not None else [])]
needs_native_core = pytest.mark.skipif(native.library() is None, reason="no native core was built")


@pytest.fixture(params=CHOICES)
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    with kernels_set(request.param):
        yield request.param


@pytest.fixture(params=["paper", "released"])
def config(request: pytest.FixtureRequest) -> prpn.ModelConfig:
    return dataclasses.replace(CONFIG, flavour=request.param)


def network_of(config: prpn.ModelConfig, kind: type[PRPN] = PRPN, **more: float) -> PRPN:
    """A network whose weights are far enough from zero to matter."""
    torch.manual_seed(1)
    network = kind(dataclasses.replace(config, **more), VOCABULARY)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return network


def text(streams: int = 3) -> Tensor:
    """Tokens (T, B), each of which tells the next one."""
    return torch.stack([(torch.arange(61) * 5 + b) % VOCABULARY for b in range(streams)], 1)


def losses_of_a_loop(network: PRPN, optimizer: torch.optim.Optimizer, chunk: int = 12, epochs: int = 8) -> list[float]:
    network.train()
    losses, tokens = [], text()
    for _ in range(epochs):
        state = None
        for start in range(0, len(tokens) - 1, chunk):
            output = network(tokens[start : start + chunk], state)
            loss = network.loss(output, tokens[start + 1 : start + chunk + 1])
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            state = output.state.detach()
            losses.append(loss.item())
    return losses


def test_an_own_loop_learns(config: prpn.ModelConfig, kernels: str) -> None:
    network = network_of(config, dropout_between=0.1, dropout_in_out=0.1)
    losses = losses_of_a_loop(network, torch.optim.AdamW(network.parameters(), lr=0.01))
    assert all(map(math.isfinite, losses))
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adagrad, torch.optim.RAdam])
def test_any_optimiser_will_do(kind: type[torch.optim.Optimizer]) -> None:
    network = network_of(CONFIG)
    losses = losses_of_a_loop(network, kind(network.parameters(), lr=0.05), epochs=4)
    assert losses[-1] < losses[0]


# Targets that do not count


def test_ignored_targets_count_as_if_they_were_not_there(config: prpn.ModelConfig, kernels: str) -> None:
    tokens, tolerance = text(), 0.03 if kernels == "bf16" else 1e-5
    ignored = torch.zeros(tokens[1:].shape, dtype=torch.bool)
    ignored[40:, 1] = ignored[::7] = True
    targets = tokens[1:].masked_fill(ignored, -100)

    def found(how: str) -> tuple[Tensor, dict[str, Tensor]]:
        network = network_of(config).eval()
        output = network(tokens[:-1])
        if how == "ignored":
            loss = network.loss(output, targets)
        elif how == "left out":
            kept = dataclasses.replace(output, features=output.features[~ignored.flatten()])
            loss = network.loss(kept, tokens[1:][~ignored][:, None])
        else:
            loss = F.cross_entropy(network.logits(output).flatten(0, 1), targets.flatten())
        loss.backward()
        return loss.detach(), gradients_of(network)

    expected_loss, expected = found("torch")
    for how in ("ignored", "left out"):
        loss, gradients = found(how)
        assert_same(loss, expected_loss, tolerance)
        assert_all_same(gradients, expected, tolerance)


def test_padding_may_be_masked_or_ignored(config: prpn.ModelConfig, kernels: str) -> None:
    network = network_of(config).eval()  # batch statistics are of the real positions, where there is a mask
    tokens, lengths = text()[:9], torch.tensor([8, 3, 5])
    mask = torch.arange(8)[:, None] < lengths
    masked = network.loss(network(tokens[:-1], None, mask), tokens[1:], mask)
    ignored = network.loss(network(tokens[:-1]), tokens[1:].masked_fill(~mask, -100))
    alone = sum(
        n * network.loss(network(tokens[:n, [b]]), tokens[1 : n + 1, [b]]) for b, n in enumerate(lengths.tolist())
    )
    assert_same(masked, ignored, 0.03 if kernels == "bf16" else 1e-5)
    assert_same(masked, alone / lengths.sum(), 0.03 if kernels == "bf16" else 1e-5)


# Autocast


@pytest.mark.parametrize("backward_within", [False, True], ids=["backward after it", "backward within it"])
def test_autocast(config: prpn.ModelConfig, kernels: str, backward_within: bool) -> None:
    def found(rounded: bool) -> tuple[list[float], dict[str, Tensor], Output]:
        network, tokens, losses = network_of(config), text(), []
        state = None
        for start in (0, 30):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=rounded):
                output = network(tokens[start : start + 30], state)
                loss = network.loss(output, tokens[start + 1 : start + 31])
                each = network.token_losses(output, tokens[start + 1 : start + 31])
                assert network.logits(output).dtype == torch.float32
                if backward_within:
                    loss.backward()
            if not backward_within:
                loss.backward()
            assert_same(each.mean(), loss.detach(), 0.02)
            state = output.state.detach()
            losses.append(loss.item())
        return losses, gradients_of(network), output

    (losses, gradients, output), (expected_losses, expected, _) = found(True), found(False)
    assert losses == pytest.approx(expected_losses, rel=0.02)
    assert output.features.dtype == output.hidden.dtype == torch.float32
    assert {tensor.dtype for tensor in output.state.tensors().values()} == {torch.float32}
    together, alone = (torch.cat([g.flatten() for g in each.values()]) for each in (gradients, expected))
    assert all(gradient.dtype == torch.float32 for gradient in gradients.values())
    assert F.cosine_similarity(together, alone, dim=0) > 0.95


def test_autocast_leaves_distances_as_they_are(config: prpn.ModelConfig, kernels: str) -> None:
    network, tokens = network_of(config).eval(), text()
    precise = network(tokens).parse
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = network(tokens).parse
    assert_same(rounded.distances, precise.distances, 1e-5)
    assert_same(rounded.reading_gates, precise.reading_gates, 1e-4)


def test_autocast_rounds_products_all_the_same() -> None:
    network, tokens = network_of(CONFIG).eval(), text()
    with kernels_set("off"), torch.no_grad():
        precise = network(tokens).hidden
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = network(tokens).hidden
    assert 0 < (rounded - precise).abs().max() < 0.1


def test_an_own_loop_under_autocast_learns(config: prpn.ModelConfig, kernels: str) -> None:
    network = network_of(config)
    optimizer, tokens, losses, state = torch.optim.AdamW(network.parameters(), lr=0.01), text(), [], None
    for step in range(40):
        start = 12 * (step % 5)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = network(tokens[start : start + 12], state)
            loss = network.loss(output, tokens[start + 1 : start + 13])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        state = output.state.detach()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


# Parts of one's own


class OwnParsing(ParsingNetwork):
    """Distances from the embedding alone, through a layer of its own, which autocast may round."""

    def __init__(self, config: prpn.ModelConfig) -> None:
        super().__init__(config)
        self.mixer = nn.Linear(config.embedding, config.embedding)

    def forward(
        self, embeddings: Tensor, past_embeddings: Tensor, past_distances: Tensor, mask: Tensor | None = None
    ) -> Parse:
        return super().forward(self.mixer(embeddings), past_embeddings, past_distances, mask)


class Own(PRPN):
    """With a parsing network of its own and another head."""

    def __init__(self, config: prpn.ModelConfig, vocabulary_size: int) -> None:
        super().__init__(config, vocabulary_size)
        self.parsing = OwnParsing(config)
        self.head = nn.Linear(config.hidden, 4)

    def total(self, output: Output, targets: Tensor) -> Tensor:
        return self.loss(output, targets) + F.cross_entropy(
            self.head(output.hidden).flatten(0, 1), targets.flatten() % 4
        )


@pytest.mark.parametrize("rounded", [False, True], ids=["fp32", "autocast"])
def test_a_subclass_trains_and_is_saved(config: prpn.ModelConfig, kernels: str, rounded: bool, tmp_path: Path) -> None:
    network, tokens, losses, state = network_of(config, Own), text(), [], None
    assert isinstance(network, Own)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    for step in range(30):
        start = 12 * (step % 5)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=rounded):
            output = network(tokens[start : start + 12], state)
            loss = network.total(output, tokens[start + 1 : start + 13])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        state = output.state.detach()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    torch.save(network.state_dict(), tmp_path / "own.pt")
    again = Own(config, VOCABULARY)
    again.load_state_dict(torch.load(tmp_path / "own.pt", weights_only=True))
    for mine, theirs in ((network, again), (network, copy.deepcopy(network)), (network, pickled(network))):
        assert_same(theirs.eval()(tokens).hidden, mine.eval()(tokens).hidden, 1e-6)


# Copies, types, modes


def pickled(network: PRPN) -> PRPN:
    return pickle.loads(pickle.dumps(network))


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled], ids=["deepcopy", "pickle"])
def test_copies(copied: object, config: prpn.ModelConfig, kernels: str) -> None:
    network = network_of(config, dropout_between=0.1)
    losses_of_a_loop(network, torch.optim.AdamW(network.parameters(), lr=0.01), epochs=1)
    again = copied(network)  # type: ignore[operator]
    assert (again.decoder.weight is again.embedding.weight) == config.tied
    assert_all_same(again.state_dict(), network.state_dict(), 0)
    for each in (network, again):
        torch.manual_seed(3)
        each.zero_grad()
        losses_of_a_loop(each, torch.optim.AdamW(each.parameters(), lr=0.01), epochs=1)
    assert_all_same(again.state_dict(), network.state_dict(), 1e-6)


def test_state_dicts_are_strict(config: prpn.ModelConfig) -> None:
    network, file = network_of(config), io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    weights = torch.load(file, weights_only=True)
    again = PRPN(config, VOCABULARY)
    assert again.load_state_dict(weights) == ([], [])
    with pytest.raises(RuntimeError, match=r"Missing key.*heads\.bias"):
        again.load_state_dict({name: tensor for name, tensor in weights.items() if name != "parsing.heads.bias"})
    with pytest.raises(RuntimeError, match=r"Unexpected key.*another"):
        again.load_state_dict({**weights, "another": torch.zeros(1)})
    with pytest.raises(RuntimeError, match="size mismatch"):
        PRPN(config, VOCABULARY + 1).load_state_dict(weights)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_other_types_work_with_any_kernels(config: prpn.ModelConfig, kernels: str, dtype: torch.dtype) -> None:
    network, tokens = network_of(config), text()
    with torch.no_grad():
        expected = network.eval()(tokens[:-1]).hidden
    network = network.to(dtype)
    output = network(tokens[:-1])
    loss = network.loss(output, tokens[1:])
    loss.backward()
    assert output.hidden.dtype == loss.dtype == dtype
    assert network.decoder.bias.grad is not None
    assert network.decoder.bias.grad.isfinite().all()
    if dtype == torch.float64:
        assert_same(output.hidden.float(), expected, 0.03 if kernels == "bf16" else 1e-4)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("training", [False, True])
def test_modes_without_gradients(config: prpn.ModelConfig, kernels: str, mode: type, training: bool) -> None:
    network, tokens = network_of(config).train(training), text()
    with mode():
        first = network(tokens[:30])
        second = network(tokens[30:60], first.state)
        loss = network.loss(second, tokens[31:])
        assert network.logits(second).isfinite().all()
        assert network.token_losses(second, tokens[31:]).isfinite().all()
    assert not loss.requires_grad
    network.loss(network(tokens[:-1]), tokens[1:]).backward()  # which the mode has not spoilt


def test_gradients_add_up(config: prpn.ModelConfig, kernels: str) -> None:
    network, tokens = network_of(config).eval(), text()
    halves = ((0, 30), (30, 60))
    single = []
    for start, end in halves:
        network.zero_grad()
        network.loss(network(tokens[start:end]), tokens[start + 1 : end + 1]).backward()
        single.append(gradients_of(network))
    network.zero_grad()
    for start, end in halves:
        (network.loss(network(tokens[start:end]), tokens[start + 1 : end + 1]) / 2).backward()
    expected = {name: (single[0][name] + single[1][name]) / 2 for name in single[0]}
    assert_all_same(gradients_of(network), expected, 0.02 if kernels == "bf16" else 1e-5)


@needs_native_core
def test_a_second_backward_pass_is_refused() -> None:
    network, tokens = network_of(CONFIG), text()
    with kernels_set("fp32"):
        loss = network.loss(network(tokens[:-1]), tokens[1:])
        loss.backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="can run once only"):
            loss.backward()


def test_gradients_of_gradients_where_pytorch_does_all(config: prpn.ModelConfig) -> None:
    network, tokens = network_of(config), text()
    for choice in ("autograd", "off"):
        with kernels_set(choice):
            loss = network.loss(network(tokens[:-1]), tokens[1:])
            gradients = torch.autograd.grad(loss, list(network.parameters()), create_graph=True, allow_unused=True)
            penalty = sum(gradient.square().sum() for gradient in gradients if gradient is not None)
            if choice == "off":
                with pytest.raises(RuntimeError, match="once_differentiable"):
                    penalty.backward()
            else:
                penalty.backward()
                assert all(gradient.isfinite().all() for gradient in gradients_of(network).values())


def test_frozen_parts_get_no_gradient(config: prpn.ModelConfig, kernels: str) -> None:
    network, tokens = network_of(config), text()
    network.parsing.requires_grad_(False)
    network.loss(network(tokens[:-1]), tokens[1:]).backward()
    assert all(parameter.grad is None for parameter in network.parsing.parameters())
    assert network.decoder.bias.grad is not None
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    assert not network.loss(network(tokens[:-1]), tokens[1:]).requires_grad


# Back to a model


def model_of(network: PRPN, **model: object) -> prpn.Model:
    words = [f"word{number}" for number in range(VOCABULARY - 2)]
    recipe = prpn.Recipe("own", text=prpn.TextConfig(tokenizer="none"), model=network.config).with_settings(
        {f"model.{name}": value for name, value in model.items()}
    )
    return prpn.Model(recipe, prpn.Vocabulary(("<unk>", "</s>", *words)), network)


def test_a_model_of_ones_own_network(config: prpn.ModelConfig, kernels: str, tmp_path: Path) -> None:
    network = network_of(config)
    losses_of_a_loop(network, torch.optim.AdamW(network.parameters(), lr=0.01), epochs=2)
    model = model_of(network)
    model.save(tmp_path / "own")
    again = prpn.load(tmp_path / "own")
    line = "word1 word6 word11 word16"
    assert again.parse(line) == model.parse(line)
    assert again.perplexity(line) == pytest.approx(model.perplexity(line), rel=1e-5)


def test_a_batch_parser_takes_a_model() -> None:
    model, lines = model_of(network_of(CONFIG)), ["word1 word6 word11", "word2"]
    assert prpn.BatchParser(model).lines(lines) == list(model.pipe(lines, form="brackets"))


def test_a_parser_alone_does_not_go_on_learning(tmp_path: Path) -> None:
    model = model_of(network_of(CONFIG))
    silent = prpn.Model(model.recipe, model.vocabulary, distilled=model.parser)
    with pytest.raises(prpn.InputError, match="is a parser without a language model"):
        silent.train(tmp_path / "text.txt", out=tmp_path / "out")


def test_a_network_that_is_not_the_recipes_is_refused() -> None:
    with pytest.raises(prpn.ConfigError, match="the network's configuration is not the recipe's"):
        model_of(network_of(CONFIG), hidden=32)
    assert model_of(network_of(CONFIG), dropout_between=0.5, builder="unbiased").network.config == CONFIG
    with pytest.raises(prpn.ConfigError, match="a network of 9 tokens with a vocabulary of 23"):
        model_of(PRPN(CONFIG, 9))


def test_a_subclass_speaks_but_cannot_be_saved(tmp_path: Path) -> None:
    network = network_of(CONFIG, Own)
    model = model_of(network)
    assert model.perplexity("word1 word6") > 1
    with pytest.raises(prpn.InputError, match=r"weights that prpn\.PRPN does not have \(head\.bias\)"):
        model.save(tmp_path / "own")
    assert not (tmp_path / "own").exists()
    with pytest.raises(prpn.InputError, match="loads the others with strict=False"):
        model.parse("word1 word6")
    plain = PRPN(CONFIG, VOCABULARY)
    assert plain.load_state_dict(network.state_dict(), strict=False).missing_keys == []
    assert len(model_of(plain).parse("word1 word6")) == 2
