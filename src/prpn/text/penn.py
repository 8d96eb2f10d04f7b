"""English words as the Penn Treebank writes them.

    don't → do n't         it's → it 's         cannot → can not       gonna → gon na
    "word" → `` word ''    (word) → -LRB- word -RRB-                   $5 → $ 5         50% → 50 %
    word. → word .         word... → word ...   word—word → word -- word

A comma splits unless between digits (1,000); hyphens, slashes and ampersands stay inside words (AT&T, and/or). A
period stays with initials (J., U.S.) and with the Treebank's abbreviations (Mr., Corp.) and splits elsewhere. At the
end of a line it always splits, since it ends the sentence, and an abbreviation keeps a second one, as in the Treebank:
`in the U.S.` → `in the U.S. .`

Each chunk (what stands between two spaces) is split on its own: only whether it is the last of its line matters.
Text that is in Treebank form already stays as it is.
"""

from __future__ import annotations

import re

from prpn.text.pieces import Piece

BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
_QUOTES = {"“": "``", "”": "''", "„": "``", "«": "``", "»": "''", "‘": "`"}
_STRAIGHT_QUOTES = {'"': ("``", "''"), "'": ("`", "'")}
_DASHES = {"–": "--", "—": "--", "…": "..."}
_REWRITTEN = BRACKETS | _QUOTES | _DASHES

# Everything but ASCII punctuation, general punctuation and the quotation marks of Latin-1.
_LETTER = r"[^\s!-/:-@\[-`{-~‐-⁞«»]"
_WORD = rf"{_LETTER}+(?:(?:[-'’.&@_*+=~#‐‑]|\\?/|[%.]-|(?<=\d)[,:](?=\d)){_LETTER}+)*"
_ELIDED = r"(?:s|m|d|re|ve|ll|t|em|til|tis|twas|cause|bout|n'|n|\d\d'?s|\d\d)"
_TOKEN = re.compile(
    rf"""
      (?P<bracket> -[LR][RSC]B- )
    | (?P<mark> `` | '' | \.\.+ | --+ | (?:US|HK|NZ|[ACS])?\$ )
    | (?P<elision> ['’](?i:{_ELIDED})(?!{_LETTER}) )
    | (?P<word> [+-](?=\.?\d){_WORD} | \.\d+ | {_WORD} )
    | (?P<single> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_WHOLE = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
"""Most chunks, and words as they stand: looking no closer saves most of the time."""
_CONTRACTION = re.compile(r"(?i)(?<=[^\W_])(?:n't|'(?:s|m|d|re|ve|ll))\Z")
_LONGEST_CONTRACTION = 3
_FUSED = {
    "cannot": 3, "gonna": 3, "gotta": 3, "wanna": 3, "gimme": 3, "lemme": 3, "d'ye": 2, "more'n": 4, "'tis": 2,
    "'twas": 2,
}  # fmt: skip
FUSED_LETTERS = frozenset(word for word in _FUSED if word.isalpha())
"""Words of letters alone that are two tokens, in lower case."""
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]|(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,2}")
_ABBREVIATIONS = frozenset(
    word
    for line in (
        "adm ala apr ariz ark assn assoc aug ave blvd bros calif capt cf co col colo comdr conn corp cos cpl ct dec",
        "del dept dr etc feb fla ft ga gen gov hon ill inc ind jan jr kan ky la lt ltd maj mass md messrs mich minn",
        "miss mo mont mr mrs ms mt neb nev no nos nov oct okla ont ore pa ph prof pty pvt rd rep reps rev sen sens",
        "sept sgt sr st tenn tex v va vs vt wash wis wyo",
    )
    for word in line.split()
)


def split_chunk(chunk: str, is_last: bool) -> list[Piece]:
    """Split a chunk without white space; `is_last` when it ends the line."""
    if _WHOLE.fullmatch(chunk) and chunk.lower() not in _FUSED:
        return [Piece(chunk, 0, len(chunk))]
    tokens: list[Piece] = []
    position = 0
    last_word_ends = next((end for end in range(len(chunk), 0, -1) if chunk[end - 1].isalnum()), 0)
    while match := _TOKEN.match(chunk, position):
        text, position = match.group(), match.end()
        ends_line = is_last and position >= last_word_ends
        if match.lastgroup in ("word", "elision"):
            tokens += _split_word(text, match.start())
            if chunk.startswith(".", position) and not chunk.startswith("..", position) and _keeps_period(text):
                if not ends_line:
                    tokens[-1] = _with_period(tokens[-1])
                    position += 1
                elif len(text) > 1:  # both have the period
                    tokens[-1] = _with_period(tokens[-1])
        elif text == '"' or (text == "'" and match.lastgroup == "single"):
            opening, closing = _STRAIGHT_QUOTES[text]
            mark = opening if _opens(chunk, match.start(), is_last) else closing
            tokens.append(Piece(mark, *match.span()))
        else:
            tokens.append(Piece(_REWRITTEN.get(text, "'" if text == "’" else text), *match.span()))
    return tokens


def _with_period(piece: Piece) -> Piece:
    return Piece(f"{piece.text}.", piece.begin, piece.end + 1)


def _split_word(word: str, begin: int) -> list[Piece]:
    word = word.replace("’", "'")
    end, contractions = len(word), list[str]()
    while match := _CONTRACTION.search(word, max(0, end - _LONGEST_CONTRACTION), end):
        end = match.start()
        contractions.append(match.group())
    stem = word[:end]
    head = _FUSED.get(stem.lower(), end)
    pieces: list[Piece] = []
    for part in filter(None, (stem[:head], stem[head:], *reversed(contractions))):
        pieces.append(Piece(part, begin, begin + len(part)))
        begin += len(part)
    return pieces


def _keeps_period(word: str) -> bool:
    # The part after the last hyphen decides: mid-Sept., non-U.S.
    stem = word.rpartition("-")[2]
    return stem.lower() in _ABBREVIATIONS or _INITIALS.fullmatch(stem) is not None


def _opens(chunk: str, position: int, is_last: bool) -> bool:
    """Whether a straight quotation mark opens: nothing but opening marks and dashes stand before it."""
    if chunk == "'":
        return False  # alone it is the possessive of a word that was split already
    closes_line = is_last and position + 1 == len(chunk)
    return (position == 0 or chunk[position - 1] in "([{<-–—`“‘\"'/=") and not closes_line
