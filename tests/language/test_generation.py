"""Drawn text: repeatable, by the model's own probabilities, and as if the whole prefix were read each time."""

from __future__ import annotations

import math
from itertools import islice

import pytest
import torch

from prpn.api.model import Model
from prpn.language.generation import Sampling, draw, generate, prompt_tokens, written
from prpn.text.tokenizer import Tokenizer
from tests.language.models import KINDS, SENTENCE, log_probabilities, model_of
from tests.refusals import raises_config_error
from tests.training.tiny import recipe


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest) -> Model:
    return model_of(*KINDS[request.param])


def sequel(model: Model, count: int, sampling: Sampling, prompt: str = SENTENCE) -> list[str]:
    return list(model.continuation(prompt, count, sampling))


def read_again(model: Model, prompt: list[str], count: int, sampling: Sampling) -> list[str]:
    """What is drawn when nothing is carried: the whole prefix is read before each token."""
    drawn: list[str] = []
    random = torch.Generator().manual_seed(sampling.seed)
    for _ in range(count):
        prefix = [*prompt, *drawn]
        if model.recipe.training.batching == "sentences" and "</s>" in prefix:
            prefix = prefix[len(prefix) - prefix[::-1].index("</s>") :]
        logs = log_probabilities(model, model.vocabulary.encode(prefix))[-1]
        for token in ("<unk>", "<s>"):
            if token in model.vocabulary:
                logs[model.vocabulary.encode([token])] = -torch.inf
        scores, tokens = logs.sort(descending=True)
        place = 0
        if sampling.temperature:
            weights = (scores / sampling.temperature).softmax(0)
            place = int(torch.multinomial(weights, 1, generator=random))
        drawn.append(model.vocabulary.tokens[int(tokens[place])])
    return drawn


@pytest.mark.parametrize("temperature", [0.0, 0.7, 2.0])
def test_the_state_carries_all_that_was_read(temperature: float, model: Model) -> None:
    sampling = Sampling(5, temperature)
    prompt = prompt_tokens(f"{SENTENCE}\nthe", Tokenizer(model.recipe.text))
    assert sequel(model, 40, sampling, f"{SENTENCE}\nthe") == read_again(model, prompt, 40, sampling)


def test_greedy_repeats_whatever_the_seed(model: Model) -> None:
    assert sequel(model, 30, Sampling(1, 0.0)) == sequel(model, 30, Sampling(2, 0.0))


def test_the_most_probable_one_is_greedy(model: Model) -> None:
    assert sequel(model, 30, Sampling(1, 1.0, top_k=1)) == sequel(model, 30, Sampling(1, 0.0))
    assert sequel(model, 30, Sampling(1, 1e-300)) == sequel(model, 30, Sampling(1, 0.0))


def test_a_seed_repeats(model: Model) -> None:
    texts = [model.generate(SENTENCE, 30, seed=seed) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def assert_frequencies(drawn: list[int], expected: torch.Tensor) -> None:
    found = torch.bincount(torch.tensor(drawn), minlength=len(expected)) / len(drawn)
    spread = (expected * (1 - expected) / len(drawn)).sqrt()
    assert ((found - expected).abs() <= 4 * spread).all()


@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, None), (0.5, None), (2.0, 4), (1.0, 100)])
def test_tokens_follow_the_softmax(temperature: float, top_k: int | None) -> None:
    logits, random = torch.randn(12, generator=torch.Generator().manual_seed(0)), torch.Generator().manual_seed(1)
    drawn = [draw(logits, Sampling(0, temperature, top_k), random) for _ in range(5000)]
    least = logits.sort(descending=True).values[: top_k or 12][-1]
    assert_frequencies(drawn, (logits / temperature).masked_fill(logits < least, -torch.inf).softmax(0))


def test_the_first_tokens_of_many_seeds_follow_the_softmax() -> None:
    model = model_of()
    drawn = [sequel(model, 1, Sampling(seed, unknown=True))[0] for seed in range(400)]
    logs = log_probabilities(model, model.vocabulary.encode(SENTENCE.split()))[-1]
    assert_frequencies(model.vocabulary.encode(drawn), logs.softmax(0))


def test_special_tokens_are_not_drawn() -> None:
    model = model_of("training.batching=sentences")
    with torch.no_grad():
        model.network.decoder.bias[model.vocabulary.encode(["<unk>", "<s>"])] = 50.0
    assert not {"<unk>", "<s>"} & set(sequel(model, 50, Sampling(1)))
    assert set(sequel(model, 5, Sampling(1, unknown=True))) == {"<unk>"}


def test_a_sentence_model_starts_afresh() -> None:
    """After `</s>` nothing of what came before matters."""
    model = model_of("training.batching=sentences")
    tokens = ["the", "dog", "ran", "in", "</s>", "the", "old"]
    found = [
        list(islice(generate(model.network, model.vocabulary, prompt, Sampling(3), by_sentence=True), 30))
        for prompt in (tokens, tokens[-2:])
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("settings", "text", "tokens"),
    [
        ((), "", []),
        ((), "the man", ["the", "man"]),
        ((), "the man ", ["the", "man"]),
        ((), "the man\n", ["the", "man", "</s>"]),
        ((), "the man\n ", ["the", "man", "</s>"]),
        ((), "the man </s>", ["the", "man", "</s>"]),
        ((), "the\n\nman", ["the", "</s>", "man"]),
        (("text.blank_lines=true",), "", []),
        (("text.blank_lines=true",), "the\n\nman", ["the", "</s>", "</s>", "man"]),
        (("text.line_ends=false",), "the\nman\n", ["the", "man"]),
        (("text.tokenizer=characters",), "a b", ["a", "_", "b"]),
        (("text.tokenizer=characters",), "a ", ["a", "_"]),
        (("text.tokenizer=characters",), "a\n", ["a", "</s>"]),
        (("text.tokenizer=characters",), " ", []),
        (("text.tokenizer=characters", "text.line_ends=false"), "a\nb\n", ["a", "_", "b", "_"]),
        (("text.tokenizer=penn", "text.lowercase=true"), "He can't", ["he", "ca", "n't"]),
    ],
)
def test_prompts(settings: tuple[str, ...], text: str, tokens: list[str]) -> None:
    assert prompt_tokens(text, Tokenizer(recipe(*settings).text)) == tokens


@pytest.mark.parametrize(
    ("settings", "tokens", "before", "text"),
    [
        ((), ["old", "man", "</s>", "the", "dog"], "", "old man\nthe dog"),
        ((), ["old", "man", "</s>"], "the", " old man\n"),
        ((), ["old"], "the\n", "old"),
        ((), ["old"], "the ", "old"),
        ((), ["</s>", "old"], "the", "\nold"),
        (("text.tokenizer=characters",), ["a", "_", "b", "</s>", "c"], "the", "a b\nc"),
    ],
)
def test_tokens_as_text(settings: tuple[str, ...], tokens: list[str], before: str, text: str) -> None:
    assert "".join(written(tokens, Tokenizer(recipe(*settings).text), before)) == text


@pytest.mark.parametrize(
    ("values", "fragment"),
    [
        ({"temperature": -0.1}, "a temperature of -0.1"),
        ({"temperature": math.nan}, "a temperature of nan"),
        ({"temperature": math.inf}, "a temperature of inf"),
        ({"top_k": 0}, "the 0 most probable tokens"),
        ({"seed": -1}, "a seed of -1"),
        ({"seed": 2**64}, "a seed of"),
        ({"tokens": 0}, "0 tokens to generate"),
    ],
)
def test_refusals(values: dict[str, float], fragment: str) -> None:
    with raises_config_error(fragment, "give"):
        model_of().generate(**values)  # type: ignore[arg-type]


def test_any_number_of_tokens_may_be_asked_for() -> None:
    assert next(model_of().continuation("the", 10**20, Sampling(1)))
