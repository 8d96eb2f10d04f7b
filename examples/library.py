"""Everything that `import prpn` gives, once: run it with `python examples/library.py`; it takes some seconds.

It uses the English model and the texts that come with the package, and a folder that it removes again.
docs/library.md explains each step.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

import prpn

SENTENCES = ["the old man sat on the bench", "we saw it", "the dog that barked slept"]
TINY = prpn.ModelConfig(embedding=16, hidden=16, layers=1, lookback=2, memory_slots=4)


def parse() -> None:
    """Trees as objects, as text, and as arrays."""
    model: prpn.Model = prpn.load()
    for tree in model.pipe(SENTENCES):
        print(tree.brackets())
    print(next(model.pipe(SENTENCES, form="labelled")))

    parser = prpn.BatchParser("english", threads=1)
    found: prpn.Spans = parser.spans(SENTENCES)
    print(f"{len(found)} sentences, {found.word_ends[-1]} words, {len(found.starts)} constituents")

    alone = prpn.Parser.load("english")  # what both have within
    words = alone.words(SENTENCES[0])
    by_hand = prpn.build(words, alone.in_units(alone.scores(SENTENCES)[0], alone.builder), alone.builder)
    assert by_hand == model.parse(SENTENCES[0])
    print(consensus([by_hand, model.parse(words, "unbiased"), model.parse(words, "left-leaning")]).pretty())


def consensus(trees: list[prpn.Tree]) -> prpn.Tree:
    """The binary tree that most of them vote for, the first counting double."""
    return prpn.average(trees, weights=[2.0, *[1.0] * (len(trees) - 1)])


def read_files(folder: Path) -> None:
    """From file to file, and what happens to a line that is not text."""
    (folder / "in.txt").write_bytes(b"the old man sat\nnot \xff text\nwe saw it\n")
    counts: prpn.FileCounts = prpn.load().parse_file(folder / "in.txt", folder / "out.trees")
    problem: prpn.InputError = counts.errors[0]
    print(f"{counts.lines} lines, {counts.bad} of them not text ({problem.cause})")


def refuse() -> None:
    """Errors say what to do."""
    try:
        prpn.Recipe("mine", training=prpn.TrainingConfig(steps=0))
    except prpn.ConfigError as error:
        print(error)
    try:
        prpn.load("no-such-model")
    except prpn.PrpnError as error:
        print(type(error).__name__)


def train(folder: Path) -> prpn.Model:
    """A model of the embedded text: far too small, and trained for a blink."""
    assert "demo" in prpn.recipe_names()
    recipe = prpn.load_recipe("demo").with_settings({"training.steps": 4, "training.batch_size": 8})
    smaller = {f"model.{name}": getattr(TINY, name) for name in ("embedding", "hidden", "layers")}
    model = prpn.train(recipe, out=folder / "demo", settings=smaller, seed=1)
    print(f"{model}, perplexity {'finite' if model.perplexity(SENTENCES[0]) < 1e9 else 'huge'}")
    return model


def evaluate(model: prpn.Model, folder: Path) -> None:
    """F1 beside every baseline."""
    (folder / "trees.mrg").write_text("(S (NP (DT the) (NN man)) (VP (VBD sat) (ADVP (RB down))))\n" * 3)
    result: prpn.Evaluation = prpn.evaluate([model, prpn.load()], folder / "trees.mrg", builder="unbiased")
    print(", ".join(result.systems))


class Regularised(prpn.PRPN):
    """A network whose states shall not grow."""

    def total_loss(self, output: prpn.Output, targets: torch.Tensor) -> torch.Tensor:
        """Next-token loss and a penalty."""
        penalty = 0.01 * output.hidden.square().mean()
        return self.loss(output, targets) + penalty


def own_loop(folder: Path) -> None:
    """A network of one's own, trained in a loop of one's own, becomes a model."""
    torch.manual_seed(1)
    lines = [[*sentence.split(), "</s>"] for sentence in SENTENCES]
    known = sorted({word for line in lines for word in line} - {"</s>"})
    vocabulary = prpn.Vocabulary(("<unk>", "</s>", *known))
    ids = torch.tensor(vocabulary.encode(word for line in lines * 8 for word in line))
    network = Regularised(TINY, len(vocabulary))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    losses: list[float] = []
    for _ in range(6):
        state: prpn.State | None = None
        for start in range(0, len(ids) - 1, 30):
            chunk = ids[start : start + 31, None]  # (T + 1, 1): one stream
            output = network(chunk[:-1], state)
            loss = network.total_loss(output, chunk[1:])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            state = output.state.detach()
            losses.append(loss.item())
    print("the loss falls" if losses[-1] < losses[0] else "the loss does not fall")

    text = prpn.TextConfig(tokenizer="none")
    model = prpn.Model(prpn.Recipe("own", text=text, model=TINY), vocabulary, network)
    model.save(folder / "own")
    assert prpn.load(folder / "own").parse(SENTENCES[0]) == model.parse(SENTENCES[0])


def main() -> None:
    """All of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parse()
        read_files(folder)
        refuse()
        evaluate(train(folder), folder)
        own_loop(folder)


if __name__ == "__main__":
    main()
