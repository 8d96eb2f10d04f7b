"""The verbs of trees: parse, words, evaluate, score, average."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prpn.baselines.trees import baselines
from prpn.config import read_saved_recipe, save_recipe
from prpn.trees import Tree
from prpn.trees.protocols import PROTOCOLS
from tests.cli.command import Command, assert_refused

GOLD = """\
( (S (NP-SBJ (DT the) (JJ old) (NN man))
     (VP (VBD sat) (PP (IN on) (NP (DT a) (NN bench))))
     (. .)) )
( (S (NP-SBJ (PRP we)) (VP (VBD saw) (NP (DT the) (NN sea)) (, ,) (ADVP (RB too))) (. .)) )
( (X (. ...)) )
( (S (NP-SBJ (-NONE- *)) (VP (VB go) (ADVP (RB there))) (. !)) )
"""
SENTENCES = ["the old man sat on a bench", "we saw the sea too", "go there"]


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.mrg"
    path.write_text(GOLD)
    return path


def test_one_tree_a_line_and_every_line_keeps_its_place(prpn: Command, work: Path) -> None:
    text = b"the old man\n\n  \nbad \xff byte\nword\n(x) don't\n"
    result = prpn("parse", "--model", work / "model", stdin=text)
    assert result.status == 1
    lines = result.out.split("\n")
    assert len(lines) == 7
    assert [bool(line) for line in lines] == [True, False, False, False, True, True, False]
    assert Tree.from_brackets(lines[0]).words == ("the", "old", "man")
    assert lines[4] == "(word)"
    assert Tree.from_brackets(lines[5]).words == ("(x)", "don't")
    assert result.err == (
        "prpn: standard input:4: not UTF-8 (byte 0xff); convert it, e.g. iconv -f latin1 -t utf-8\n"
        "prpn: 1 of 6 lines is not text; its tree is empty\n"
    )


def test_many_lines_that_are_not_text_are_counted(prpn: Command, work: Path) -> None:
    text = b"".join(b"man\n" if number % 6 == 0 else b"\xff\n" for number in range(1200))
    result = prpn("parse", "--model", work / "model", stdin=text)
    assert (result.status, result.out.count("\n"), result.out.count("(man)")) == (1, 1200, 200)
    messages = result.err.splitlines()
    assert [message.partition(" not UTF-8")[0] for message in messages[:-1]] == [
        f"prpn: standard input:{number}:" for number in (2, 3, 4, 5, 6, 8, 9, 10, 11, 12)
    ]
    assert messages[-1] == "prpn: 1,000 of 1,200 lines are not text; their trees are empty"


def test_strict_stops_at_the_first_line_that_is_not_text(prpn: Command, work: Path, tmp_path: Path) -> None:
    words = ("parse", "--strict", "--model", work / "model")
    result = prpn(*words, stdin=b"man\n\0\nman\n\xff\n")
    assert (result.status, result.out) == (1, "(man)\n")
    assert result.err == "prpn: standard input:2: not text (it holds a NUL byte); give plain text, compressed or not\n"
    assert prpn(*words, stdin=b"man\n") == (0, "(man)\n", "")
    (tmp_path / "out").write_text("before")
    assert prpn(*words, "--out", tmp_path / "out", stdin=b"man\n\0\n").status == 1
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"out": "before"}


def test_out_is_written_when_all_is_done(prpn: Command, work: Path, tmp_path: Path) -> None:
    words = ("parse", "--model", work / "model", "--out")
    (tmp_path / "link").symlink_to(tmp_path / "out")
    for name in ("out", "link", "a name\nof two lines"):
        assert prpn(*words, tmp_path / name, stdin=b"man\n\nold man\n") == (0, "", "")
        assert (tmp_path / name).read_bytes() == b"(man)\n\n(old man)\n"
    assert (tmp_path / "link").is_symlink()
    assert prpn(*words, tmp_path / "out", stdin=b"\xff\nman\n").status == 1
    assert (tmp_path / "out").read_text() == "\n(man)\n", "the lines that are text are all there"
    assert prpn("parse", tmp_path / "out", *words[1:], tmp_path / "out", "--tokenized").status == 0, "in place"
    assert prpn(*words, "-", stdin=b"man\n").out == "(man)\n"


def test_out_that_cannot_be_written(prpn: Command, work: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, cause in {
        "": "Is a directory", "none/out": "No such file", "file/out": "Not a directory", "x" * 300: "too long"
    }.items():  # fmt: skip
        result = prpn("parse", "-m", work / "model", "--out", tmp_path / name, stdin=b"man\n")
        assert_refused(result, 1, "cannot be written", cause, "give --out another name")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_out_to_a_device_or_a_pipe_leaves_it_one(work: Path, tmp_path: Path) -> None:
    command = f"echo man | '{sys.executable}' -m prpn parse -m '{work / 'model'}' --out"
    pipe, plain = tmp_path / "pipe", {**os.environ, "PRPN_KERNELS": "off"}  # no word about a core that was not built
    os.mkfifo(pipe)
    for rest in ("/dev/stdout", "/dev/stdout >> log; cat log", ">(cat); sleep 1", "pipe & cat pipe; wait $!"):
        words = ["bash", "-c", f"echo before > log; {command} {rest}"]
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=True, env=plain)
        assert (done.stdout.removeprefix("before\n"), done.stderr) == ("(man)\n", ""), rest
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "pipe"]
    if Path("/dev/full").exists():
        full = ["bash", "-c", f"{command} /dev/full"]
        done = subprocess.run(full, capture_output=True, text=True, check=False, env=plain)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("prpn: /dev/full: cannot be written (No space left on device)")
        assert Path("/dev/full").is_char_device()


def test_a_sentence_is_no_file(prpn: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for sentence in ("the old man sat on the bench", "the old man\nsat", "the old man " * 100):
        remedy = 'no such file; to parse a sentence: echo "…" | prpn parse'
        assert_refused(prpn("parse", sentence), 1, "the old man", remedy)
    assert_refused(prpn("parse", "man"), 1, "man: no such file; check the name")
    monkeypatch.chdir(tmp_path)
    Path("my text").write_text("man\n")
    assert prpn("parse", "my text").out == "(man)\n"


def test_ids_come_back_with_their_trees(prpn: Command, work: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b'\xef\xbb\xbf1\tthe old man\n2\t\n"3\tsat \xff\n4\ta\tb\n')

    def lines(form: str) -> list[str]:
        words = ("parse", tmp_path / "text.txt", "-m", work / "model", "--ids", "--format", form)
        return prpn(*words).out.split("\n")[:-1]

    trees = [line.split("\t") for line in lines("brackets")]
    assert [own for own, _ in trees] == ["1", "2", '"3', "4"]
    assert [tree.replace("(", "").replace(")", "") for _, tree in trees] == ["the old man", "", "", "a b"]
    objects = [json.loads(line) for line in lines("jsonl")]
    assert [each["id"] for each in objects] == ["1", "2", '"3', "4"]
    assert [each["words"] for each in objects] == [["the", "old", "man"], [], [], ["a", "b"]]
    (tmp_path / "text.txt").write_text("1\ta\nb\n")
    assert_refused(prpn("parse", tmp_path / "text.txt", "-m", work / "model", "--ids"), 1, "the line 'b' has no tab")


def test_threads_change_nothing(prpn: Command, work: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the old man sat\nman\n" * 3000)
    words = ("parse", tmp_path / "text.txt", "-m", work / "model", "--threads")
    assert prpn(*words, 1).out == prpn(*words, 3).out
    assert prpn(*words, 0).status == 2


def test_formats_say_the_same(prpn: Command, work: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"the old man sat\n\n\xff\n")

    def lines(form: str) -> list[str]:
        return prpn("parse", tmp_path / "text.txt", "-m", work / "model", "--format", form).out.split("\n")[:-1]

    tree = Tree.from_brackets(lines("brackets")[0])
    objects = [json.loads(line) for line in lines("jsonl")]
    assert objects[0]["words"] == list(tree.words)
    assert objects[0]["tree"] == tree.brackets()
    assert objects[0]["spans"] == [list(span) for span in tree.spans()]
    assert len(objects[0]["distances"]) == 4
    assert objects[1] == {"words": [], "tree": "", "spans": [], "distances": [], "offsets": []}
    assert "not UTF-8" in objects[2]["error"]
    assert objects[0]["offsets"] == [[0, 3], [4, 7], [8, 11], [12, 15]]
    assert lines("labelled") == [tree.labelled(), "", ""]
    assert lines("spans") == [" ".join(f"{a}-{b}" for a, b in tree.spans()), "", ""]


def test_tokenized_and_builder(prpn: Command, work: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(work / "model", tmp_path / "model"))
    recipe = read_saved_recipe(model / "config.json").override(["text.tokenizer=unicode"])
    save_recipe(recipe, model / "config.json")

    def parse(*options: str) -> Tree:
        return Tree.from_brackets(prpn("parse", "-m", model, *options, stdin=b"a, b c. d\n").out)

    assert parse("--tokenized").words == ("a,", "b", "c.", "d")
    assert parse().words == ("a", ",", "b", "c", ".", "d")
    builders = ("paper", "left-leaning", "right-leaning")
    assert parse("--builder", "left-leaning").words == parse().words
    assert len({parse("--builder", builder) for builder in builders}) > 1
    assert prpn("parse", "-m", work / "model", "--builder", "papr").status == 2


def test_no_text_is_no_tree_and_a_model_must_be_one(prpn: Command, work: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for words in (("parse", "-m", work / "model", tmp_path / "empty"), ("average", tmp_path / "empty")):
        assert prpn(*words) == (0, "", f"prpn: {tmp_path}/empty: the input is empty, and so is the output\n")
    assert prpn("parse", "-m", tmp_path).status == 1
    assert prpn("parse", tmp_path / "none.txt", "-m", work / "model").status == 1


@pytest.mark.parametrize("kernels", ["", "off"])
def test_a_pipe_is_answered_line_by_line(kernels: str, work: Path) -> None:
    command = [sys.executable, "-c", "from prpn.cli import main; main()", "parse", "-m", str(work / "model")]
    environment = {**os.environ, "PRPN_KERNELS": kernels}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line, answer in ((b"man\n\nol", b"(man)\n"), (b"d\nlast", b"\n"), (b"", b"(old)\n")):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == answer
        process.stdin.close()
        assert process.stdout.read() == b"(last)\n"


def test_memory_does_not_grow_with_the_text(work: Path, tmp_path: Path) -> None:
    program = (
        "import resource, sys; from prpn.cli import main; sys.argv[0] = 'prpn'\n"
        "try: main()\n"
        "except SystemExit: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    peaks = []
    for lines in (20_000, 120_000):
        (tmp_path / "text.txt").write_text("the old man\n" * lines)
        command = [sys.executable, "-c", program, "parse", str(tmp_path / "text.txt"), "-m", str(work / "model")]
        with (tmp_path / "out.trees").open("wb") as out:
            done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=True)
        assert (tmp_path / "out.trees").read_bytes().count(b"\n") == lines
        peaks.append(int(done.stderr.splitlines()[-1]))
    assert peaks[1] < 1.05 * peaks[0]


def test_words(prpn: Command, gold: Path) -> None:
    assert prpn("words", gold).out.splitlines() == SENTENCES
    assert prpn("words", gold, "--max-words", 5).out.splitlines() == SENTENCES[1:]
    assert prpn("words", gold, "--keep", "all").out.splitlines()[1] == "we saw the sea , too ."
    assert prpn("words", gold, "--keep", "unicode").out.splitlines() == SENTENCES
    assert prpn("words", gold, gold).out.splitlines() == 2 * SENTENCES
    assert prpn("words", gold, "--max-words", 0).status == 2


def test_words_in_lower_case_with_numbers(prpn: Command, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("(S (NP (NNP May) (CD 1,000)) (VP (VBD Rose)))")
    assert prpn("words", tmp_path / "t", "--lowercase", "--digits", "number").out == "may N rose\n"


def test_white_space_inside_a_word_does_not_make_it_two(prpn: Command, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("(S (NP (X 10\u00a0000) (Y ár)) (Z a))", encoding="utf-8")
    assert prpn("words", tmp_path / "t").out == "10▁000 ár a\n"


def test_broken_trees(prpn: Command, gold: Path) -> None:
    gold.write_text(GOLD + "( (S (NP (NN x))\n" + "( (S (NP (NN y)) (VP (VBZ goes))) )\n")
    assert_refused(prpn("words", gold), 1, f"{gold}:7: the bracket opened here is never closed")
    skipped = prpn("words", gold, "--skip-broken")
    assert (skipped.status, skipped.out.splitlines()) == (0, [*SENTENCES, "y goes"])
    assert f"skipped: {gold}:7:" in skipped.err


def test_evaluate_prints_every_baseline_and_protocol(prpn: Command, work: Path, gold: Path) -> None:
    result = prpn("evaluate", gold, "--model", work / "model")
    assert result.status == 0
    for name in (*PROTOCOLS, *baselines("paper"), "model", "NP", "mean depth", "3 sentences, 14 words"):
        assert name in result.out
    assert "english" not in result.out
    assert "english" in prpn("evaluate", gold, "--protocol", "kim").out


def test_evaluate_as_json(prpn: Command, work: Path, gold: Path) -> None:
    twice = ["--model", work / "model", "--model", work / ".." / work.name / "model"]
    result = prpn("evaluate", gold, *twice, "--average", "--protocol", "klein", "--protocol", "kim", "--json")
    found = json.loads(result.out)
    assert (found["treebank"], found["sentences"], found["builder"]) == (str(gold), 3, "paper")
    assert len(found["systems"]) == len(baselines("paper")) + 3
    for figures in found["systems"].values():
        assert list(figures) == ["klein", "kim"]
        for each in figures.values():
            assert set(each) == {"f1", "precision", "recall", "low", "high"}
            assert 0 <= each["low"] <= each["f1"] <= each["high"] <= 100
    assert found["systems"]["upper"]["klein"]["recall"] == 100
    first, second = (str(path) for path in twice[1::2])
    assert found["systems"][first] == found["systems"][second] == found["systems"]["average"]
    assert found["self_f1"] == 100
    assert found["seeds"]["kim"]["spread"] == 0


def test_one_control_must_fit_all_models(prpn: Command, work: Path, gold: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(work / "model", tmp_path / "other"))
    save_recipe(read_saved_recipe(other / "config.json").override(["model.builder=unbiased"]), other / "config.json")
    words = ("evaluate", gold, "--json", "-m", work / "model", "-m", other)
    assert_refused(prpn(*words), 2, "model: paper, other: unbiased", "--builder")
    found = json.loads(prpn(*words, "--builder", "unbiased").out)
    assert found["builder"] == "unbiased"
    assert found["systems"]["model"] == found["systems"]["other"]
    assert json.loads(prpn("evaluate", gold, "--json", "-m", other).out)["builder"] == "unbiased"


def test_a_model_of_characters_has_no_trees_of_words(prpn: Command, work: Path, gold: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(work / "model", tmp_path / "model"))
    recipe = read_saved_recipe(model / "config.json").override(["text.tokenizer=characters"])
    save_recipe(recipe, model / "config.json")
    assert_refused(prpn("evaluate", gold, "-m", model), 2, "is a model of characters")
    words = ("distill", "-m", work / "model", "-m", model, "--text", work / "text.txt", "--out", tmp_path / "out")
    assert_refused(prpn(*words), 2, "is a model of characters")
    words = ("train", "quick-char", "--text", work / "text.txt", "--treebank", gold, "--out", tmp_path / "out")
    assert_refused(prpn(*words), 2, "--treebank", "characters")


def test_a_vocabulary_of_another_model(prpn: Command, work: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(work / "model", tmp_path / "model"))
    tokens = json.loads((model / "vocabulary.json").read_text())["tokens"]
    for other in ([*tokens, "more"], tokens[:-1]):
        (model / "vocabulary.json").write_text(json.dumps({"tokens": other}))
        assert_refused(prpn("parse", "-m", model, stdin=b"the man\n"), 1, "model", "but the vocabulary holds")


def test_standard_input_is_read_once(prpn: Command, gold: Path) -> None:
    for words in (("average", "-", "-"), ("score", "-", "-"), ("words", "-", "-"), ("score", gold, "-", "./-", "-")):
        assert prpn(*words, stdin=b"(a (b c))\n").status != 0
    assert_refused(prpn("average", "-", "-"), 1, "standard input: can be read only once")
    assert_refused(prpn("words", "-", "-"), 1, "standard input: can be read only once")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("lines", [1, 5000])
def test_output_that_cannot_be_written(lines: int, work: Path) -> None:
    command = [sys.executable, "-c", "from prpn.cli import main; main()", "parse", "-m", str(work / "model")]
    text, plain = b"the old man\n" * lines, {**os.environ, "PRPN_KERNELS": "off"}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, input=text, stdout=full, stderr=subprocess.PIPE, env=plain, check=False)
    assert (done.returncode, done.stderr) == (1, b"prpn: standard output: No space left on device\n")
    narrow = {**plain, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, input="你 好\n".encode(), capture_output=True, env=narrow, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"prpn: standard output: its encoding, latin-1, has no" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_evaluate_is_words_then_parse_then_score(prpn: Command, work: Path, gold: Path, tmp_path: Path) -> None:
    words = prpn("words", gold).out.encode()
    trees = prpn("parse", "--tokenized", "-m", work / "model", stdin=words).out
    (tmp_path / "model").write_text(trees)
    scored = json.loads(prpn("score", gold, tmp_path / "model", "--json").out)
    evaluated = json.loads(prpn("evaluate", gold, "-m", work / "model", "--json").out)
    assert scored["systems"] == evaluated["systems"]
    assert scored["differences"] == evaluated["differences"]


def test_score_takes_punctuation_out_of_predictions(prpn: Command, gold: Path, tmp_path: Path) -> None:
    (tmp_path / "with").write_text(
        "((the (old man)) ((sat (on (a bench))) .))\n(we (saw ((the sea) (, (too .)))))\n(...)\n((go there) !)\n"
    )
    (tmp_path / "without").write_text(
        "((the (old man)) (sat (on (a bench))))\n(we (saw ((the sea) too)))\n(go there)\n"
    )
    both = json.loads(prpn("score", gold, tmp_path / "with", tmp_path / "without", "--json").out)["systems"]
    assert both["with"] == both["without"]
    assert both["with"]["klein"]["recall"] == 100


def test_score_refuses_what_does_not_fit(prpn: Command, gold: Path, tmp_path: Path) -> None:
    (tmp_path / "few").write_text("(a b)\n")
    assert_refused(prpn("score", gold, tmp_path / "few"), 1, "few: 1 trees, but", "has 4 trees, 3 with words")
    (tmp_path / "short").write_text("(a b)\n(a b)\n(a b)\n")
    cause = f"short:1: 2 words, but the gold tree at {gold}:1 has 7, 8 with what is not scored"
    assert_refused(prpn("score", gold, tmp_path / "short"), 1, cause)
    (tmp_path / "other").write_text("(a (b (c (d (e (f g))))))\n(a (b (c (d e))))\n(a b)\n")
    other = prpn("score", gold, tmp_path / "other")
    assert other.status == 0
    assert "3 trees have other words than the gold trees" in other.err


def test_unknown_names(prpn: Command, gold: Path, work: Path) -> None:
    cause = "no protocol is called 'klien': choose from klein, released"
    assert_refused(prpn("evaluate", gold, "--protocol", "klien"), 2, cause)
    assert prpn("evaluate", gold, "--average", "-m", work / "model").status == 2
    assert_refused(prpn("evaluate", gold, "-m", work / "model", "-m", work / "model"), 2, "is given twice")
    assert_refused(prpn("evaluate", gold, "-m", work / "model", "--max-words", 1), 1, "no sentence is left to score")


def test_average(prpn: Command, tmp_path: Path) -> None:
    for name, trees in {
        "1": "(a (b c))\n\n((a b) (c d))\n",
        "2": "(a (b c))\n\n((a b) (c d))\n",
        "3": "((a b) c)\n\n(a (b (c d)))\n",
    }.items():
        (tmp_path / name).write_text(trees)
    files = [tmp_path / name for name in "123"]
    assert prpn("average", *files).out == files[0].read_text()
    assert prpn("average", files[0]).out == files[0].read_text()
    heavy = prpn("average", *files, "--weight", 1, "--weight", 1, "--weight", 3)
    assert heavy.out == files[2].read_text()
    assert prpn("average", *files, "--weight", 1).status == 2
    assert prpn("average", *files, "--weight", 1, "--weight", -1, "--weight", 1).status == 2
    (tmp_path / "3").write_text("((a b) c)\n")
    shorter = prpn("average", *files)
    assert shorter.status == 1
    assert f"3: ends before {files[0]}:2" in shorter.err


def test_a_treebank_is_watched_and_changes_nothing(prpn: Command, work: Path, gold: Path, tmp_path: Path) -> None:
    words = ["train", work / "tiny.toml", "--text", work / "text.txt"]
    assert prpn(*words, "--out", tmp_path / "watched", "--treebank", gold).status == 0
    lines = [json.loads(line) for line in (tmp_path / "watched" / "metrics.jsonl").read_text().splitlines()]
    assert all(set(line["treebank_f1"]) == {"released", "kim"} for line in lines)
    evaluated = json.loads(prpn("evaluate", gold, "-m", tmp_path / "watched", "--json").out)["systems"]["watched"]
    best = next(line for line in reversed(lines) if line["best"])
    assert best["treebank_f1"]["kim"] == pytest.approx(evaluated["kim"]["f1"])
    weights = [(folder / "model.safetensors").read_bytes() for folder in (tmp_path / "watched", work / "model")]
    assert weights[0] == weights[1]
    plain = ["--set", "model.parsing=false", "--out", tmp_path / "plain"]
    assert_refused(prpn(*words, *plain, "--treebank", gold), 2, "no parsing network, so no trees to watch")
