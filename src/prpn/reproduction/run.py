"""Run an experiment: the ordinary trainer, the ordinary scorers, one figure after the other.

systems × seeds ── trained ──> scores of texts, parsers ──> figures by seed
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from prpn.api.model import load
from prpn.baselines.ngram import NGram
from prpn.baselines.unigram_cache import tune_cache
from prpn.config import Builder, load_recipe
from prpn.distillation.run import StudentConfig, distill
from prpn.language.cached_score import save_cache, score_with_cache, tune_on
from prpn.models.files import CONFIG
from prpn.parsing.parser import Parser
from prpn.report.progress import counting
from prpn.reproduction.experiments import NO_SEED, Experiment, Figure, Role, TrainedSystem
from prpn.reproduction.files import FoundFile
from prpn.reproduction.reading import lines_of, name_of, names_of, texts_of, treebank_of
from prpn.text.cache import default_cache
from prpn.text.corpus import Corpus, encode
from prpn.text.files import FIRST_LINES
from prpn.text.tokenizer import Tokenizer
from prpn.training.data import prepare
from prpn.training.evaluate import LanguageScore
from prpn.training.record import finished_run, score_json
from prpn.training.run import train, usable_device
from prpn.training.signals import StopRequest
from prpn.trees.evaluation import evaluate_parsers
from prpn.trees.judgement import Judgement, judge
from prpn.trees.protocols import protocols_named


@dataclass(frozen=True)
class Options:
    """How to run: where to, with which seeds, on what device."""

    out: Path
    seeds: Sequence[int]
    resume: bool = False
    device: str = "cpu"
    quiet: bool = False
    stop: StopRequest | None = None


@dataclass
class Outcome:
    """All figures by label and seed, and what each run took."""

    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)


Scores = dict[tuple[Role, bool], dict[str, Any]]
"""Scores of texts by role, without and with a continuous cache."""


@dataclass(frozen=True)
class _Trained:
    """A system that was trained with a seed: its scores of texts, and its parser if trees are wanted."""

    seed: str
    scores: Scores
    parser: Parser | None
    steps: int | None
    seconds: float
    taught_by: Sequence[str] = ()
    """The models it learned from, if it is a student."""


def run_experiment(experiment: Experiment, files: Mapping[Role, FoundFile], options: Options) -> Outcome:
    """Train every system, then measure every figure."""
    outcome = Outcome()
    trained: dict[str, list[_Trained]] = {}
    judged: dict[str, Builder] = {}
    through_best = {figure.system for figure in experiment.figures if figure.builder == "judged"}
    for name, system in experiment.systems.items():
        if system.taught_by:
            made = [_taught(experiment, name, system, trained, files, options)]
        else:
            made = list(_train_all(experiment, name, system, files, options))
        for each in made:
            trained.setdefault(name, []).append(each)
            seed = int(each.seed) if each.seed.isdigit() else None
            run: dict[str, Any] = {"system": name, "seed": seed, "steps": each.steps, "seconds": each.seconds}
            if each.taught_by:
                run["taught_by"] = list(each.taught_by)
            if name in through_best and each.parser is not None:
                run["judged"] = judged[_label(name, each)] = _best_builder(each.parser, files, experiment.tokenized)
            outcome.runs.append(run)
    for figure in experiment.figures:
        if not figure.is_of_trees:
            outcome.figures[figure.label] = {
                each.seed: each.scores[figure.on, figure.cache][figure.measure] for each in trained[figure.system]
            }
    began = time.monotonic()
    if of_trees := _tree_figures(experiment, files, trained, judged, options.quiet):
        outcome.figures |= of_trees
        seconds = round(time.monotonic() - began, 1)
        outcome.runs.append({"system": "scoring trees", "seed": None, "steps": None, "seconds": seconds})
    outcome.figures = {figure.label: outcome.figures[figure.label] for figure in experiment.figures}
    return outcome


def _train_all(
    experiment: Experiment,
    name: str,
    system: TrainedSystem,
    files: Mapping[Role, FoundFile],
    options: Options,
) -> Iterable[_Trained]:
    own = [figure for figure in experiment.figures if figure.system == name]
    wanted = {(figure.on, figure.cache) for figure in own if not figure.is_of_trees}
    taught = {teacher for each in experiment.systems.values() for teacher in each.taught_by}
    parses = name in taught or any(figure.is_of_trees for figure in own)
    if not system.is_model:
        yield _counted(experiment, system, files, options.quiet)
        return
    tokenized = experiment.tokenized
    training, validation = (
        texts_of(system, tokenized, files, role, options.out, options.quiet) for role in ("training", "validation")
    )
    held_out = next(iter(validation), None)
    for seed in options.seeds:
        folder = _home(experiment, name, seed, options)
        recipe = system.with_seed(seed)
        result = (finished_run(folder, recipe, training, held_out) if options.resume else None) or train(
            recipe,
            folder,
            texts=training,
            validation=held_out,
            tokenized=tokenized or training != names_of(files, "training"),  # what was written anew is split
            resume=options.resume,
            device=options.device,
            quiet=options.quiet,
            stop=options.stop,
        )
        scores: Scores = {("validation", False): result["validation"]}
        if wanted & {("test", False), ("test", True), ("validation", True)}:
            cached = any(with_cache for _, with_cache in wanted)
            scores |= _scores_of(folder, files, cached, experiment.tokenized, options)
        parser = Parser.load(folder) if parses else None
        yield _Trained(str(seed), scores, parser, result["steps"], result["seconds"])


def _taught(
    experiment: Experiment,
    name: str,
    system: TrainedSystem,
    trained: Mapping[str, Sequence[_Trained]],
    files: Mapping[Role, FoundFile],
    options: Options,
) -> _Trained:
    """A student of models of some systems; the one with the best held-out loss gives words and language model."""
    models = {_folder(teacher, each.seed): each for teacher in system.taught_by for each in trained[teacher]}
    chosen = _best_judged(models, files, system.best, experiment.tokenized)
    best_first = sorted(chosen, key=lambda teacher: models[teacher].scores["validation", False]["loss"])
    parsers = [parser for teacher in best_first if (parser := models[teacher].parser) is not None]
    if system.judged:
        parsers[0] = parsers[0].through(_best_builder(parsers[0], files, experiment.tokenized))
    seeds = "+".join(dict.fromkeys(each.seed for each in models.values()))
    folder = _home(experiment, name, seeds, options)
    how = StudentConfig(**system.student)
    if not (options.resume and _is_taught(folder, best_first, parsers[0].builder, how)):
        texts = texts_of(
            experiment.systems[system.taught_by[0]], experiment.tokenized, files, "training", options.out, options.quiet
        )
        distill(
            parsers,
            texts,
            folder,
            how,
            tokenized=experiment.tokenized or texts != names_of(files, "training"),
            language_model=options.out / experiment.name / best_first[0],
            quiet=options.quiet,
        )
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    return _Trained(seeds, Scores(), Parser.load(folder), None, record["seconds"], best_first)


def _best_judged(
    models: Mapping[str, _Trained], files: Mapping[Role, FoundFile], number: int, tokenized: bool
) -> list[str]:  # fmt: skip
    """As many of the models as said whose trees keep most stretches together; 0: all, unjudged.

    Through `unbiased`, which gives nothing away: of what a model tells by itself that follows F1 best
    (docs/evaluation.md).
    """
    if not number:
        return list(models)

    def share(name: str) -> float:
        parser = models[name].parser
        assert parser is not None
        return _judged(parser, ["unbiased"], files, tokenized).model["unbiased"]

    best = sorted(models, key=share, reverse=True)[:number]
    return [name for name in models if name in best]


def _best_builder(parser: Parser, files: Mapping[Role, FoundFile], tokenized: bool) -> Builder:
    """The builder whose trees keep most stretches together."""
    return _judged(parser, get_args(Builder), files, tokenized).best_builder


def _judged(
    parser: Parser, builders: Sequence[Builder], files: Mapping[Role, FoundFile], tokenized: bool
) -> Judgement:  # fmt: skip
    """Judge by the validation text, if there is one, else by the training text."""
    role = "validation" if "validation" in files else "training"
    sentences = islice(lines_of(files, role), FIRST_LINES)
    return judge(parser, sentences, builders, tokenized or files[role].needed.words, ", ".join(names_of(files, role)))


def _is_taught(folder: Path, teachers: Sequence[str], builder: Builder, how: StudentConfig) -> bool:
    """Whether the folder holds a student of these teachers that was made in this way."""
    if not (folder / CONFIG).is_file():
        return False
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    made_so = (record["teachers"], record.get("taught_through"), record["student"])
    return made_so == (list(teachers), builder, asdict(how))


def _home(experiment: Experiment, system: str, seed: int | str, options: Options) -> Path:
    """Where the model of a system and a seed is."""
    return options.out / experiment.name / _folder(system, seed)


def _folder(system: str, seed: int | str) -> str:
    return f"{system.replace(' ', '-')}-{seed}"


def _scores_of(
    folder: Path, files: Mapping[Role, FoundFile], cached: bool, tokenized: bool, options: Options
) -> Scores:
    """Scores of texts that a model did not see; also with a cache if one is wanted, then saved with the model."""
    model, scores = load(folder), Scores()
    model.network.to(usable_device(options.device))
    texts = {
        role: model.encode_file(str(name_of(files, role)), tokenized)
        for role in ("validation", "test")
        if role in files
    }
    rest = (model.vocabulary, model.recipe.training)
    with counting(f"scoring with {folder.name}", None, options.quiet) as progress:
        if "test" in texts:
            scores["test", False] = score_json(model.score_corpus(texts["test"], progress))
        if cached:
            tuned = tune_on(model.network, texts["validation"], *rest, progress)
            save_cache(folder, tuned, texts["validation"])
            scores["validation", True] = score_json(tuned.together)
        if cached and "test" in texts:
            _, together = score_with_cache(model.network, texts["test"], *rest, tuned.cache, progress)
            scores["test", True] = score_json(together)
    return scores


def _counted(
    experiment: Experiment, system: TrainedSystem, files: Mapping[Role, FoundFile], quiet: bool
) -> _Trained:  # fmt: skip
    """An n-gram model, and its scores of the texts."""
    began, recipe = time.monotonic(), load_recipe(system.recipe).override(system.set)
    with counting("reading text", None, quiet) as progress:
        data = prepare(
            recipe,
            names_of(files, "training"),
            name_of(files, "validation"),
            tokenized=experiment.tokenized,
            progress=progress,
        )
    texts: dict[Role, Corpus] = {"validation": data.validation}
    if "test" in files:
        tokenizer = Tokenizer(recipe.text, experiment.tokenized)
        texts["test"] = encode(names_of(files, "test"), tokenizer, data.vocabulary, default_cache())
    boundary = data.vocabulary.end if system.sentences else None
    model = NGram.train(data.training.ids, len(data.vocabulary), system.order, boundary)
    logs = {role: model.log_probabilities(text.ids) for role, text in texts.items()}
    if system.cache:
        cache = tune_cache(logs["validation"], data.validation.ids)
        logs = {role: cache.mixed(logs[role], text.ids) for role, text in texts.items()}
    scores = {
        (role, False): score_json(_language_score(float(-logs[role].sum()), text)) for role, text in texts.items()
    }
    return _Trained(NO_SEED, scores, None, None, round(time.monotonic() - began, 1))


def _language_score(nats: float, text: Corpus) -> LanguageScore:
    return LanguageScore(nats, len(text.ids), text.unknown, text.characters)


def _tree_figures(
    experiment: Experiment,
    files: Mapping[Role, FoundFile],
    trained: Mapping[str, Sequence[_Trained]],
    judged: Mapping[str, Builder],
    quiet: bool,
) -> dict[str, dict[str, float]]:
    """Score trees once for each builder and length; several protocols come out at once."""
    found: dict[str, dict[str, float]] = {}
    groups: dict[tuple[Role, Any, int | None], list[Figure]] = {}
    for figure in experiment.figures:
        if figure.is_of_trees:
            groups.setdefault((figure.on, figure.builder, figure.maximum_words), []).append(figure)
    for (role, builder, maximum), figures in groups.items():
        treebank = treebank_of(files[role], maximum)
        parsers = {
            _label(name, each): each.parser
            for name in dict.fromkeys(figure.system for figure in figures)
            for each in trained.get(name, ())
            if each.parser is not None
        }
        if builder == "judged":
            parsers = {name: each.through(judged[name]) for name, each in parsers.items()}
        protocols = protocols_named(list(dict.fromkeys(figure.protocol for figure in figures)))
        with counting("scoring trees", None, quiet) as progress:
            fixed = None if builder in ("judged", "own") else builder
            result = evaluate_parsers(treebank, parsers, protocols, fixed, progress=progress)
        for figure in figures:
            seeds = {each.seed: _label(figure.system, each) for each in trained.get(figure.system, ())}
            names = seeds or {NO_SEED: figure.system}
            found[figure.label] = {seed: result.systems[name][figure.protocol].f1 for seed, name in names.items()}
    return found


def _label(system: str, trained: _Trained) -> str:
    return f"{system} {trained.seed}"
