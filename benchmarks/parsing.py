"""`prpn parse` from file to file: a process of its own, start-up, reading and writing included.

The text is drawn from the corpora that come with the package, as often as it takes, and the model has random weights:
trees mean nothing here, but take as long as others.
"""

from __future__ import annotations

import random
import re
import statistics
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.table import Table

from benchmarks.contenders import fastest_fp32
from benchmarks.processes import run_python
from benchmarks.tables import table_of, times
from benchmarks.timing import alternate, rounded
from prpn.config import load_recipe, save_recipe
from prpn.model import PRPN
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary
from prpn.training.checkpoint import weights_of, write_tensors
from prpn.training.data import embedded_corpus

SENTENCES = 200_000
LENGTHS = range(11, 51)  # words: about 22 on average
LEAF = re.compile(r"\([^\s()]+ ([^\s()]+)\)")


def corpus_sentences() -> list[str]:
    """Sentences of the embedded corpora, words between spaces."""
    lines = embedded_corpus("ewt").read_text(encoding="utf-8").splitlines()
    trees = embedded_corpus("masc", "trees").read_text(encoding="utf-8").splitlines()
    lines += (" ".join(LEAF.findall(tree)) for tree in trees)
    return [line for line in lines if len(line.split()) in LENGTHS]


def drawn_sentences(count: int, seed: int = 1) -> list[str]:
    """As many sentences as wanted, each about as often as any other, in random order."""
    sentences, numbers = corpus_sentences(), random.Random(seed)
    drawn = [sentences[index % len(sentences)] for index in range(count)]
    numbers.shuffle(drawn)
    return drawn


def unsplit(line: str) -> str:
    """Tokenised English written as usual, so that a tokenizer has something to do."""
    return re.sub(r" (?=n't\b|'[a-z]|[.,;:?!)\]%])|(?<=[(\[$]) ", "", line)


def make_model(folder: Path, vocabulary_size: int = 10_000) -> None:
    """A model folder of the released parsing size with random weights."""
    recipe = load_recipe("parsing")
    tokenizer = Tokenizer(recipe.text, tokenized=True)
    counts = Counter(token for line in corpus_sentences() for token in tokenizer.tokens(line))
    vocabulary = Vocabulary.build(counts, 1, vocabulary_size, with_start=True)
    torch.manual_seed(1)
    network = PRPN(recipe.model, len(vocabulary))
    torch.nn.init.normal_(network.embedding.weight)  # distances of a trained model's size
    folder.mkdir(parents=True, exist_ok=True)
    save_recipe(recipe, folder / "config.json")
    vocabulary.save(folder / "vocabulary.json")
    write_tensors(folder / "model.safetensors", weights_of(network))


def measure(sentences: int = SENTENCES, rounds: int = 3) -> dict[str, Any]:
    """Tokens a second, split text and raw, with the native core and without; and how many trees are the same."""
    kernels = ["off", "fp32"] if "native" in fastest_fp32() else ["off"]
    lines = drawn_sentences(sentences)
    with TemporaryDirectory() as name:
        folder = Path(name)
        make_model(folder / "model")
        texts = {"tokenized": lines, "raw": [unsplit(line) for line in lines]}
        for form, text in texts.items():
            (folder / form).write_text("\n".join(text) + "\n", encoding="utf-8")
        actions = {
            f"{form}, kernels {kernel}": partial(_parse, folder, form, kernel) for form in texts for kernel in kernels
        }
        seconds = alternate(actions, rounds, warm_up=False)
        figures: dict[str, Any] = {}
        for form in texts:
            without = _trees(folder, form, "off")
            tokens = sum(tree.count(" ") + 1 for tree in without)  # brackets add no space
            for kernel in kernels:
                trees = _trees(folder, form, kernel)
                taken = seconds[f"{form}, kernels {kernel}"]
                figures.setdefault(form, {})[kernel] = {
                    "seconds": rounded(taken, 2),
                    "tokens": tokens,
                    "tokens_per_second": round(tokens / statistics.median(taken)),
                    "sentences_per_second": round(sentences / statistics.median(taken)),
                    "same_trees": sum(a == b for a, b in zip(trees, without, strict=True)) / sentences,
                }
    return figures


def tables(figures: dict[str, Any]) -> Iterable[Table]:
    """All in one table."""
    yield table_of(
        "prpn parse, file to file, medians",
        ("text", "PRPN_KERNELS", "tokens/s", "sentences/s", "× off", "same trees as off"),
        (
            (
                form,
                kernel,
                f"{row['tokens_per_second']:,}",
                f"{row['sentences_per_second']:,}",
                times(row["tokens_per_second"] / result["off"]["tokens_per_second"]),
                f"{row['same_trees']:.2%}",
            )
            for form, result in figures.items()
            for kernel, row in result.items()
        ),
    )


def _parse(folder: Path, form: str, kernel: str) -> None:
    options = ["--tokenized"] if form == "tokenized" else []
    words = ["-m", "prpn", "parse", str(folder / form), "--model", str(folder / "model"), *options]
    with (folder / f"{form}.{kernel}.trees").open("w", encoding="utf-8") as out:
        run_python(words, out=out, environment={"PRPN_KERNELS": kernel})


def _trees(folder: Path, form: str, kernel: str) -> list[str]:
    return (folder / f"{form}.{kernel}.trees").read_text(encoding="utf-8").splitlines()
