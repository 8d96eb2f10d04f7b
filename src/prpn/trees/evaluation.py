"""Systems against a treebank: every protocol, every baseline, with intervals and a look at what went wrong.

treebank ── cleaned words ──> systems: baselines, models, their average ──> trees
         └─ gold brackets ──> counts by protocol ──> figures, by length, by label, differences, diagnostics
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prpn.baselines.trees import RANDOM_BASELINES, baselines
from prpn.config import Builder
from prpn.errors import ConfigError, InputError
from prpn.parsing.parser import Parser
from prpn.trees.average import average
from prpn.trees.by_label import inner_constituents, recall_by_label
from prpn.trees.cleaning import Treebank
from prpn.trees.diagnosis import Diagnosis, diagnose
from prpn.trees.protocols import PROTOCOLS, Protocol
from prpn.trees.scores import Bootstrap, Difference, Figures, GoldBrackets, difference, f1_of_pairs, figures
from prpn.trees.tree import Tree

DRAWS = 5
"""Random baselines are the mean of this many draws."""
LENGTHS = ((1, 10), (11, 20), (21, 30), (31, 40), (41, None))
AVERAGE = "average"
Progress = Callable[[int], object]


@dataclass(frozen=True)
class System:
    """The trees of a system; several lists of them for a random one."""

    name: str
    draws: Sequence[Sequence[Tree]]


@dataclass(frozen=True)
class Seeds:
    """Several models of one kind: mean, standard deviation and best of their F1."""

    mean: float
    spread: float
    best: float


@dataclass(repr=False)
class Evaluation:
    """All figures of one evaluation."""

    treebank: Treebank
    builder: Builder
    systems: dict[str, dict[str, Figures]] = field(default_factory=dict)
    by_length: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    """F1 by system, protocol and number of words."""
    lengths: dict[str, int] = field(default_factory=dict)
    """Sentences by number of words."""
    by_label: dict[str, dict[str, float]] = field(default_factory=dict)
    """Recall by system and gold label, the whole sentence left out; `DT+NN`: phrases of just these two."""
    labels: dict[str, int] = field(default_factory=dict)
    """Gold constituents by label, the most frequent first."""
    differences: dict[str, dict[str, dict[str, Difference]]] = field(default_factory=dict)
    """By system, system it is compared with, and protocol."""
    seeds: dict[str, Seeds] = field(default_factory=dict)
    self_f1: float | None = None
    """How far all models agree, the mean over pairs."""
    agreement: dict[str, float] = field(default_factory=dict)
    """How far each model agrees with the others."""
    diagnoses: dict[str, Diagnosis] = field(default_factory=dict)

    def __repr__(self) -> str:
        """F1 of each system by each protocol, a line a system."""
        counted = len(self.treebank.counted())
        protocols = [*next(iter(self.systems.values()), {})]
        width = max([len("F1"), *map(len, self.systems)])
        lines = [f"<Evaluation of {self.treebank.name}: {counted:,} sentences, builder {self.builder}"]
        lines.append("  ".join([f"{'F1':{width}}", *protocols]))
        for name, found in self.systems.items():
            cells = [f"{found[protocol].f1:{len(protocol)}.1f}" for protocol in protocols]
            lines.append("  ".join([f"{name:{width}}", *cells]))
        return "\n  ".join(lines) + ">"

    def to_json(self) -> dict[str, Any]:
        """The evaluation as JSON-ready values, by the names that scripts read."""
        counted = self.treebank.counted()
        return {
            "treebank": self.treebank.name,
            "sentences": len(counted),
            "words": sum(len(sentence.tree) for sentence in counted),
            "broken": len(self.treebank.broken),
            "cleaning": asdict(self.treebank.cleaning),
            "builder": self.builder,
            "systems": {name: {p: asdict(f) for p, f in found.items()} for name, found in self.systems.items()},
            "lengths": self.lengths,
            "by_length": self.by_length,
            "labels": self.labels,
            "by_label": self.by_label,
            "differences": {
                name: {other: {p: asdict(d) for p, d in found.items()} for other, found in others.items()}
                for name, others in self.differences.items()
            },
            "seeds": {name: asdict(seeds) for name, seeds in self.seeds.items()},
            "self_f1": self.self_f1,
            "agreement": self.agreement,
            "diagnostics": {
                name: asdict(d) | {"collapsed": d.collapsed, "foreign": d.foreign} for name, d in self.diagnoses.items()
            },
        }


def evaluate(
    treebank: Treebank,
    systems: Sequence[System],
    protocols: Sequence[Protocol],
    builder: Builder,
    progress: Progress | None = None,
) -> Evaluation:
    """Score systems beside all baselines; the trees of each are in the order of the sentences that count."""
    golds = gold_trees(treebank, protocols)
    names = [system.name for system in systems]
    repeated = [name for name, times in Counter([*baselines(builder), *names]).items() if times > 1]
    if repeated:
        raise ConfigError(f"two systems are called '{repeated[0]}': rename one; baselines have their names already")
    brackets, bootstrap = GoldBrackets(golds, protocols), Bootstrap(len(golds))
    sizes = {_range(*r): within for r in LENGTHS if (within := _within(brackets.lengths, *r)).any()}
    result = Evaluation(treebank, builder)
    result.lengths = {size: int(within.sum()) for size, within in sizes.items()}
    phrases = [inner_constituents(sentence) for sentence in treebank.counted()]
    result.labels = dict(Counter(label for inner in phrases for _, label in inner).most_common())
    samples: dict[tuple[str, str], NDArray[np.float64]] = {}
    for system in [*baseline_systems(golds, builder, progress), *systems]:
        drawn = [brackets.counts(trees, protocols) for trees in system.draws]
        found: dict[str, Figures] = result.systems.setdefault(system.name, {})
        by_length: dict[str, dict[str, float]] = result.by_length.setdefault(system.name, {})
        for protocol in protocols:
            counts = np.stack([draw[protocol.name] for draw in drawn])  # (D, S, 3)
            included = protocol.included(brackets.lengths)
            values = samples[system.name, protocol.name] = bootstrap.samples(counts, protocol, included)
            found[protocol.name] = figures(counts, protocol, included, values)
            parts = {size: included & within for size, within in sizes.items()}
            by_length[protocol.name] = {
                size: figures(counts, protocol, part).f1 for size, part in parts.items() if part.any()
            }
        result.by_label[system.name] = recall_by_label(phrases, system.draws)
        if progress is not None:
            progress(len(golds))
    for one, other in _compared(names):
        result.differences.setdefault(one, {})[other] = {
            name: difference(figure, samples[one, name], result.systems[other][name], samples[other, name])
            for name, figure in result.systems[one].items()
        }
    _compare_seeds(result, [system for system in systems if system.name != AVERAGE])
    return result


def evaluate_parsers(
    treebank: Treebank,
    parsers: dict[str, Parser],
    protocols: Sequence[Protocol],
    builder: Builder | None = None,
    *,
    with_average: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Parse the words of a treebank with each model, then `evaluate`."""
    if with_average and not parsers:
        raise ConfigError("no model to average: give one or more")
    sentences = [gold.words for gold in gold_trees(treebank, protocols)]
    for parser in parsers.values():
        parser.require_words()
    used = {name: builder or parser.builder for name, parser in parsers.items()}
    systems, diagnoses = [], {}
    for name, parser in parsers.items():
        parsed = list(parser.parse_many(sentences, used[name]))
        trees = [found.tree for found in parsed]
        systems.append(System(name, [trees]))
        diagnoses[name] = diagnose(trees, [found.scores for found in parsed], parser, used[name])
        if progress is not None:
            progress(len(sentences))
    if with_average:
        systems.append(
            System(AVERAGE, [[average(trees) for trees in zip(*(s.draws[0] for s in systems), strict=True)]])
        )
    builders: list[Builder] = [*used.values(), "paper"]
    result = evaluate(treebank, systems, protocols, builder or builders[0], progress)
    result.diagnoses = diagnoses
    return result


def common_builder(parsers: Mapping[str, Parser]) -> Builder | None:
    """The builder of all these models, so that one control fits all of them; None without models."""
    builders = {name: parser.builder for name, parser in parsers.items()}
    if len(set(builders.values())) > 1:
        own = ", ".join(f"{name}: {builder}" for name, builder in builders.items())
        raise ConfigError(
            f"the models build trees in ways of their own ({own}): give --builder, or one model at a time"
        )
    return next(iter(builders.values()), None)


def gold_trees(treebank: Treebank, protocols: Sequence[Protocol]) -> list[Tree]:
    """Give the gold trees that are scored, at least one by each protocol."""
    golds = [sentence.tree for sentence in treebank.counted()]
    if not golds:
        raise InputError(treebank.name, "no sentence is left to score", "raise --max-words, or choose another --keep")
    longest = max(map(len, golds))
    for protocol in protocols:
        if longest < protocol.fewest_words:
            cause = f"no sentence of {protocol.fewest_words} or more words is left to score by {protocol.name}"
            raise InputError(treebank.name, cause, "raise --max-words, or choose another --protocol")
    return golds


def baseline_systems(golds: Sequence[Tree], builder: Builder, progress: Progress | None = None) -> list[System]:
    """Draw the trees of all baselines, always the same ones."""
    found = []
    for name, baseline in baselines(builder).items():
        random = np.random.default_rng(0)
        draws = DRAWS if name in RANDOM_BASELINES else 1
        found.append(System(name, [[baseline(gold, random) for gold in golds] for _ in range(draws)]))
        if progress is not None:
            progress(len(golds))
    return found


def _compared(names: Sequence[str]) -> list[tuple[str, str]]:
    """Pair each system with the two controls, then with those named before it."""
    controls = [(name, control) for name in names for control in ("right", "random-distances")]
    return [*controls, *((later, earlier) for earlier, later in combinations(names, 2))]


def _compare_seeds(result: Evaluation, seeds: Sequence[System]) -> None:
    """Add mean, spread, best and agreement of several models."""
    if len(seeds) < 2:
        return
    for protocol in result.systems[seeds[0].name]:
        f1 = [result.systems[seed.name][protocol].f1 for seed in seeds]
        result.seeds[protocol] = Seeds(float(np.mean(f1)), float(np.std(f1, ddof=1)), max(f1))
    pairs = f1_of_pairs({seed.name: seed.draws[0] for seed in seeds}, PROTOCOLS["kim"])
    result.self_f1 = float(np.mean(list(pairs.values())))
    for seed in seeds:
        result.agreement[seed.name] = float(np.mean([f1 for pair, f1 in pairs.items() if seed.name in pair]))


def _within(lengths: NDArray[np.int64], least: int, most: int | None) -> NDArray[np.bool_]:
    return (lengths >= least) & (lengths <= (most or np.inf))


def _range(least: int, most: int | None) -> str:
    return f"{least}-{most}" if most else f"{least}+"
