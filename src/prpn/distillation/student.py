"""A parsing network by itself, which may also look ahead, and the loss that teaches it where to split.

    h_t = ReLU(BN(W_c [e_{t−L}; …; e_{t+R}] + b_c)),    s_t = w · h_t + b

    loss(g) = mean over all pairs (i, j) such that the split of a constituent is i and j another gap in it
              of ln(1 + exp(g_j − g_i))

    taught  = ½ loss(s) + ½ loss(g(s))

g(s) are the scores that the builder gives to gaps (`prpn.trees.from_distances`): s itself for `unbiased`; what leans
adds a part that grows with the place in the sentence, which a window cannot see. If all these pairs are in order the
tree is the crowd's; no other pair matters. One half is taught without the lean, so that the scores by themselves say as
much as they can. A sentence is read as by `prpn.parsing.folded`: after zero vectors and the token that precedes
sentences, and before zero vectors. Weights have the names of a model's, so that what folds a model's parsing network
folds this one.

    # B sentences, T words of the longest, V vocabulary, E embedding, C channels, L look-back, R look-ahead
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prpn.config import Builder
from prpn.model.layers import BatchNorm
from prpn.trees.from_distances import LEAN


class Student(nn.Module):
    """Scores of words from a window around them.

    It begins with the embedding (V, E) of a language model, in units of its standard deviation: few sentences teach it
    what that has learned of rare words from many.
    """

    def __init__(self, embedding: Tensor, channels: int, lookback: int, lookahead: int, dropout: float) -> None:
        super().__init__()
        self.lookback, self.lookahead, self.dropout = lookback, lookahead, dropout
        self.embedding = nn.Embedding.from_pretrained(embedding / embedding.std(), freeze=False)
        self.parsing = nn.ModuleDict(
            {
                "convolution": nn.Conv1d(embedding.shape[1], channels, lookback + 1 + lookahead),
                "norm": BatchNorm(channels),
                "heads": nn.Conv1d(channels, 1, 1),
            }
        )

    def forward(self, ids: Tensor, start: int, mask: Tensor) -> Tensor:
        """Scores (B, T) of words (B, T); mask (B, T) is false at padding, on the right."""
        before = torch.full_like(ids[:, :1], start)
        seen = self.embedding(torch.cat([before, ids], 1)) * F.pad(mask, (1, 0), value=True)[..., None]  # (B, 1 + T, E)
        seen = F.pad(self._drop(seen), (0, 0, self.lookback, self.lookahead))  # (B, L + 1 + T + R, E)
        hidden = self.parsing["convolution"](seen.mT)[..., 1:]  # (B, C, T)
        rows = self.parsing["norm"](hidden.mT[mask]).relu()  # (real words, C)
        scores = self.parsing["heads"](self._drop(rows)[..., None]).flatten()
        return scores.new_zeros(ids.shape).masked_scatter(mask, scores)

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


def gap_scores(scores: Tensor, mask: Tensor, builder: Builder) -> Tensor:
    """What a builder that leans makes of scores (B, T), with gradients; the first column means nothing."""
    places, sizes = torch.arange(scores.shape[1]), mask.sum(1, keepdim=True)
    previous = torch.where(places > 1, scores.roll(1, 1), scores)
    if builder == "right-leaning":
        return (scores + torch.maximum(scores, previous)) / 2 - LEAN * places
    following = torch.where(places < sizes - 1, scores, previous)
    return (previous + torch.maximum(previous, following)) / 2 + LEAN * places


def splitting_loss(scores: Tensor, heights: Tensor, mask: Tensor) -> Tensor:
    """The loss of gap scores (B, T); nothing can be split off before the first word, so it takes no part."""
    counted = mask.clone()
    counted[:, 0] = False
    highest = _highest_between(heights.where(counted, -torch.inf))  # (B, T, T)
    within = (highest == heights[:, :, None]) & (heights[:, :, None] > heights[:, None, :])  # j in the constituent of i
    pairs = within & counted[:, :, None] & counted[:, None, :]
    differences = (scores[:, None, :] - scores[:, :, None])[pairs]  # g_j − g_i
    return F.softplus(differences).sum() / max(1, len(differences))


def mark_loss(scores: Tensor, marks: Tensor, mask: Tensor) -> Tensor:
    """The mean cross-entropy of log odds (B, T) that a mark stands before a word, the first one left out."""
    counted = mask.clone()
    counted[:, 0] = False
    return F.binary_cross_entropy_with_logits(scores[counted], marks[counted])


def _highest_between(heights: Tensor) -> Tensor:
    """The largest of heights (B, T) from i to j, both included, for every i and j."""
    size = heights.shape[1]
    onwards = torch.ones(size, size, dtype=torch.bool).triu()  # j ≥ i
    highest = heights[:, None, :].where(onwards, -torch.inf).cummax(2).values  # (B, i, j)
    return torch.maximum(highest, highest.mT)
