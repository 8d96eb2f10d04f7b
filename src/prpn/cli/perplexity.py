"""The verb perplexity: how well a model predicts a text, token by token, with a cache, or line against line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prpn.cli.options import (
    EMBEDDED,
    WORKS,
    Device,
    Json,
    Language,
    Sentences,
    SomeModel,
    Tokenized,
    app,
    print_json,
    reader_of,
)
from prpn.errors import ConfigError

if TYPE_CHECKING:
    from prpn.api.model import Model
    from prpn.language.cache_pointer import CachePointer
    from prpn.language.surprisal import ScoredToken
    from prpn.training.evaluate import LanguageScore


@app.command(no_args_is_help=True)
def perplexity(
    file: Annotated[str, typer.Argument(help=f"Text to score, one sentence a line; {WORKS}")],
    model: SomeModel = EMBEDDED,
    tokenized: Tokenized = False,
    sentences: Sentences = False,
    language: Language = None,
    cache: Annotated[
        bool, typer.Option("--cache", help="Mix the model with the cache saved in its folder: words recur.")
    ] = False,
    tune: Annotated[
        bool, typer.Option("--tune", help="With --cache: find the best cache for FILE, a validation text, and save it.")
    ] = False,
    per_token: Annotated[
        bool, typer.Option("--per-token", help="Print the surprisal of every token instead of the summary.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Compare each line with the same line of this file: minimal pairs."),
    ] = None,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Measure how well a model predicts a text.

    The text is read as one stream with the state carried from its first token to its last; a model that was trained
    sentence by sentence reads it so. Every token and every line end is counted once. Words the model does not know are
    scored as `<unk>`, or as their class of unknown words such as `<unk::ing>` if it has classes, and counted. Bits per
    character count the tokenised text, spaces and line ends included.

    **A cache** makes words likely again that followed similar contexts among the last few hundred tokens. Tune it once
    on validation text, never on the text to be reported; it is saved as `cache.json` in the model folder:

    - `prpn perplexity valid.txt --model runs/mine --cache --tune`
    - `prpn perplexity test.txt --model runs/mine --cache`

    **Surprisal**, with --per-token: a line a token, tab-separated: line number, token, bits, and the token again or,
    where the model does not know it, `<unk>` or its class. The last token of a line is `</s>`, the line's end.

    **Minimal pairs**, with --against: every line is read by itself, after a sentence end. A row a pair: line number,
    bits of the first and of the second line, and which is lower; then the share of pairs in which the first is. Lines
    of a pair should have equally many tokens, since every token costs bits.

    - `prpn perplexity grammatical.txt --against ungrammatical.txt --model runs/mine`
    """
    from prpn.api.model import load
    from prpn.language.cached_score import load_cache, require_running_text
    from prpn.models.folder import is_embedded, model_folder
    from prpn.text import fitness
    from prpn.text.tokenizer import Tokenizer
    from prpn.training.run import usable_device

    _refuse_what_does_not_go_together(cache, tune, per_token, against)
    if sentences and against is not None:
        raise ConfigError("--against compares lines: leave out --sentences")
    file = reader_of(sentences, language)(file)
    folder = model_folder(model)
    if tune and is_embedded(folder):
        raise ConfigError(f"{folder.name} comes with the package, which stays as it is: tune a copy of {folder}")
    trained = load(folder)
    trained.network.to(usable_device(device))
    fitness.warn(file, Tokenizer(trained.recipe.text, tokenized), trained.vocabulary)
    if against is not None:
        _compare(trained, file, against, tokenized, as_json)
        return
    if cache:
        require_running_text(trained.recipe.training)
    if tune:
        _tune(trained, folder, file, tokenized, as_json)
        return
    chosen = load_cache(folder) if cache else None
    if per_token:
        _print_tokens(trained, file, tokenized, chosen, as_json)
    else:
        _print_score(trained, file, tokenized, chosen, as_json)


def _refuse_what_does_not_go_together(cache: bool, tune: bool, per_token: bool, against: str | None) -> None:
    if tune and not cache:
        raise ConfigError("--tune is for the cache: say --cache --tune")
    if tune and per_token:
        raise ConfigError("--tune prints a summary: tune first, then ask for --cache --per-token")
    if against is not None and (cache or per_token):
        raise ConfigError("--against compares whole lines, each read by itself: leave out --cache and --per-token")


def _print_score(trained: Model, file: str, tokenized: bool, cache: CachePointer | None, as_json: bool) -> None:
    from prpn.language.cached_score import score_with_cache
    from prpn.report.progress import counting
    from prpn.text.files import place_of

    corpus = trained.encode_file(file, tokenized)
    with counting(f"scoring {place_of(file)}", len(corpus.ids), as_json) as progress:
        if cache is None:
            alone = together = trained.score_corpus(corpus, progress)
        else:
            alone, together = score_with_cache(
                trained.network, corpus, trained.vocabulary, trained.recipe.training, cache, progress
            )
    _print_summary(trained, alone, together, cache, as_json)


def _tune(trained: Model, folder: Path, file: str, tokenized: bool, as_json: bool) -> None:
    from prpn.language.cached_score import save_cache, tune_on
    from prpn.report.progress import counting
    from prpn.text.files import place_of

    corpus = trained.encode_file(file, tokenized)
    with counting(f"tuning a cache on {place_of(file)}", len(corpus.ids), as_json) as progress:
        tuned = tune_on(trained.network, corpus, trained.vocabulary, trained.recipe.training, progress)
    save_cache(folder, tuned, corpus)
    _print_summary(trained, tuned.alone, tuned.together, tuned.cache, as_json)


def _print_tokens(trained: Model, file: str, tokenized: bool, cache: CachePointer | None, as_json: bool) -> None:
    from prpn.language.surprisal import summary
    from prpn.report.progress import counting
    from prpn.text.files import place_of

    scored: list[ScoredToken] = []
    quiet = as_json or sys.stdout.isatty()
    with counting(f"scoring {place_of(file)}", None, quiet) as progress:
        for each in trained.score_tokens(file, tokenized, cache):
            if as_json:
                scored.append(each)
            else:
                print(each.line, each.token, f"{each.bits:.4f}", each.scored_as, sep="\t")
            progress(1)
    if as_json:
        alone, together = summary(scored, trained.recipe.text.tokenizer == "characters")
        surprisal = [
            {"line": each.line, "token": each.token, "bits": each.bits, "scored_as": each.scored_as} for each in scored
        ]
        _print_summary(trained, alone, together, cache, as_json, surprisal=surprisal)


def _print_summary(
    trained: Model,
    alone: LanguageScore,
    together: LanguageScore,
    cache: CachePointer | None,
    as_json: bool,
    **more: Any,
) -> None:
    from prpn.language.cached_score import cache_json
    from prpn.training.record import protocol, score_json

    how = protocol(trained.recipe)
    if as_json:
        values = score_json(together) | {"characters": together.characters, "protocol": how}
        if cache is not None:
            without = {name: score_json(alone)[name] for name in ("perplexity", "bits_per_character", "loss")}
            values |= {"cache": cache_json(cache), "without_cache": without}
        print_json(values | more)
        return
    print(f"perplexity          {together.perplexity:.2f}")
    print(f"bits per character  {together.bits_per_character:.4f}")
    print(f"tokens              {together.tokens:,} ({how})")
    share = together.unknown / together.tokens
    print(f"unknown             {together.unknown:,} ({share:.2%}, scored as <unk> or a class of it)")
    if cache is not None:
        print(f"without the cache   {alone.perplexity:.2f}, {alone.bits_per_character:.4f} bits per character")
        print(f"cache               {cache.size:,} tokens, theta {cache.theta:.4g}, lambda {cache.weight:.4g}")


def _compare(trained: Model, file: str, against: str, tokenized: bool, as_json: bool) -> None:
    from prpn.language.minimal_pairs import compare, comparison_of, read_sides
    from prpn.report.progress import counting
    from prpn.text.tokenizer import Tokenizer

    sides = read_sides([file, against], Tokenizer(trained.recipe.text, tokenized))
    pairs = []
    with counting("comparing lines", len(sides[0]), as_json or sys.stdout.isatty()) as progress:
        for pair in compare(trained.network, trained.vocabulary, sides):
            pairs.append(pair)
            if not as_json:
                print(pair.line, f"{pair.first:.4f}", f"{pair.second:.4f}", pair.lower, sep="\t")
            progress(1)
    result = comparison_of(pairs)
    if as_json:
        print_json(result.to_json() | {"lines": [pair.to_json() for pair in pairs]})
        return
    print(
        f"\nfirst more probable   {result.first:,} of {result.pairs:,} pairs ({result.share:.2%}), ties {result.ties:,}"
    )
    print(f"mean difference       {result.mean_difference:.4f} bits (second less first)")
    print(f"with unknown words    {result.with_unknown:,} pairs (scored as <unk> or a class of it)")
