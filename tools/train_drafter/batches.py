"""Chooses the texts that a step trains on, the roots of its blocks, and the labels of their rows."""

import dataclasses

import torch

from runtime import seeded

SUREST = 0.2  # weight of a root with probability 1 by the target; with probability 0 it is 1 more
WINDOW = 16  # batches whose texts are sorted by length among each other, so that little is padded


@dataclasses.dataclass
class Batch:
    indices: list[int]  # of the texts
    tokens: torch.Tensor  # int64 [rows, T], padded with 0
    answer: torch.Tensor  # bool [rows, T]
    lengths: torch.Tensor  # int64 [rows]
    anchors: torch.Tensor  # int64 [rows, A]: positions of roots
    anchor_used: torch.Tensor  # bool [rows, A]: false where a text had fewer positions than A


@dataclasses.dataclass
class Labels:
    """Of the rows 1 ... B-1 of every block, as far as the text is an answer without a break: n of them."""

    picked: torch.Tensor  # bool [rows, A, B - 1]
    rows: torch.Tensor  # int64 [n], the text
    positions: torch.Tensor  # int64 [n], of the label in its text
    tokens: torch.Tensor  # int64 [n]
    depths: torch.Tensor  # int64 [n], 1 ... B - 1


def epoch_batches(text, indices, size, seed, epoch):
    """All texts once, in batches of `size` texts of similar length; the order depends only on seed and epoch."""
    draw, order = seeded(seed, "epoch", epoch), list(indices)
    draw.shuffle(order)
    batches = []
    for start in range(0, len(order), size * WINDOW):
        window = sorted(order[start:start + size * WINDOW], key=text.length)
        batches += [window[i:i + size] for i in range(0, len(window), size)]
    draw.shuffle(batches)
    return batches


def make_batch(text, indices, anchors, draw, max_length, device, certainty=None):
    """Adds roots to a batch. They are drawn among the tokens of answers that another token of the answer follows. The
    last token of a prompt is not one: the token after it comes out of the prompt's own pass and is the first root.
    certainty, a function of the Batch without roots, returns [rows, T]: the probability that the target gave to each
    token of an answer. Without it all roots are equally likely. With it, tokens that the target was certain of are
    drawn less often, as in decoding, where drafts run over such tokens and end before uncertain ones."""
    rows = [text.row(index) for index in indices]
    lengths = [min(len(tokens), max_length) for tokens, _ in rows]
    tokens = torch.zeros(len(rows), max(lengths), dtype=torch.int64)
    answer = torch.zeros(len(rows), max(lengths), dtype=torch.bool)
    for row, ((ids, mask), count) in enumerate(zip(rows, lengths)):
        tokens[row, :count] = torch.from_numpy(ids[:count])
        answer[row, :count] = torch.from_numpy(mask[:count])
    places = torch.ones(len(rows), anchors, dtype=torch.int64)
    used = torch.zeros(len(rows), anchors, dtype=torch.bool)
    batch = Batch(list(indices), tokens.to(device), answer.to(device), torch.tensor(lengths, device=device),
                  places.to(device), used.to(device))
    weights = None if certainty is None else (SUREST + 1 - certainty(batch)).tolist()
    for row in range(len(rows)):
        possible = (answer[row, :-1] & answer[row, 1:]).nonzero()[:, 0].tolist()
        drawn = sorted(drawn_roots(possible, anchors, draw, weights and weights[row]))
        batch.anchors[row, :len(drawn)] = torch.tensor(drawn, dtype=torch.int64)
        batch.anchor_used[row, :len(drawn)] = True
    return batch


def drawn_roots(possible, count, draw, weights=None):
    """Up to `count` of the positions, each at most once, drawn one after the other with probabilities in proportion to
    their weights (Efraimidis and Spirakis 2006)."""
    if weights is None:
        return draw.sample(possible, min(count, len(possible)))
    return sorted(possible, key=lambda place: draw.random() ** (1 / weights[place]), reverse=True)[:count]


def labels_of(batch, block):
    """The labels of a batch's blocks of `block` rows. After a row that is no answer none is labelled: a draft never
    reaches past the end of its answer into the next one."""
    depths = torch.arange(1, block, device=batch.tokens.device)
    places = batch.anchors[:, :, None] + depths  # [rows, A, B - 1]
    row = torch.arange(len(places), device=places.device)[:, None, None].expand_as(places)
    inside = (places < batch.lengths[:, None, None]) & batch.anchor_used[:, :, None]
    picked = (inside & batch.answer[row, places.clamp(max=batch.tokens.shape[1] - 1)]).cumprod(-1).bool()
    rows, positions = row[picked], places[picked]
    return Labels(picked, rows, positions, batch.tokens[rows, positions], depths.expand_as(places)[picked])
