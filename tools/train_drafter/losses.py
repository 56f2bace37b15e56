"""The loss of a block's rows: cross-entropy with the text and divergence from the target's likeliest tokens, early rows
weighing more, over the whole vocabulary or a sample of it."""

import math

import torch
from torch.utils.checkpoint import checkpoint

LOGITS_AT_ONCE = 2**28  # beyond that many (1 GiB) the loss goes in pieces, whose logits are computed again backwards


def position_weights(block, decay, device):
    """[B]: exp(-(i - 1) / decay) for row i; row 0 weighs nothing."""
    rows = torch.arange(block, device=device).float()
    weights = torch.exp(-(rows - 1) / decay) if decay else torch.ones_like(rows)
    weights[0] = 0
    return weights


class Vocabulary:
    """Which columns of the head a step computes. The labels' and the teacher's tokens always are among them; the rest
    is the text's most frequent tokens and a random sample, whose logits are raised by log(left out / drawn), so that
    the softmax's sum is that of the whole vocabulary in expectation."""

    def __init__(self, counts, size):
        """counts [vocab] of the training text; size: columns, 0 for all."""
        self.vocab = len(counts)
        self.size = size if 0 < size < self.vocab else 0
        self.frequent = counts.argsort(descending=True, stable=True)[:self.size * 3 // 4]

    def choose(self, labels, teacher, generator):
        """(ids [m] sorted or None for all, corrections [m] or None). teacher: tokens [n, k] or None."""
        if not self.size:
            return None, None
        device = labels.tokens.device
        needed = torch.zeros(self.vocab, dtype=torch.bool, device=device)
        needed[self.frequent.to(device)] = True
        needed[labels.tokens] = True
        if teacher is not None:
            needed[teacher.flatten()] = True
        others = (~needed).nonzero()[:, 0]
        drawn = min(max(self.size - int(needed.sum()), self.size // 16), len(others))
        order = torch.randperm(len(others), generator=generator)[:drawn].to(device)
        needed_and_drawn = needed.clone()
        needed_and_drawn[others[order]] = True
        ids = needed_and_drawn.nonzero()[:, 0]
        raised = math.log(len(others) / drawn) if drawn else 0.0
        return ids, torch.where(needed[ids], 0.0, raised)


def block_loss(hidden, head, labels, teacher, vocabulary, generator, kl_weight, weights):
    """hidden [n, H]: drafter outputs of the labelled rows; head [vocab, H]; teacher: (tokens [n, k], log probabilities
    [n, k]) or None. Returns (loss, hits): the weighted mean, and bool [n], whether the likeliest column is the
    label."""
    theirs = None if teacher is None else teacher[0]
    ids, raised = vocabulary.choose(labels, theirs, generator)
    columns = head if ids is None else head[ids]
    wanted = labels.tokens
    if ids is not None:
        wanted = torch.searchsorted(ids, wanted)
        theirs = None if theirs is None else torch.searchsorted(ids, theirs)
    if kl_weight == 0:
        theirs = None
    weight = weights[labels.depths]
    total, hits = hidden.new_zeros((), dtype=torch.float32), []
    for some in torch.arange(len(hidden), device=hidden.device).split(max(1, LOGITS_AT_ONCE // len(columns))):
        distribution = None if theirs is None else (theirs[some], teacher[1][some])
        arguments = (hidden[some], columns, raised, wanted[some], distribution, kl_weight)
        losses, hit = (row_losses(*arguments) if len(some) == len(hidden)
                       else checkpoint(row_losses, *arguments, use_reentrant=False))
        total = total + (losses * weight[some]).sum()
        hits.append(hit)
    hits = torch.cat(hits) if hits else torch.zeros(0, dtype=torch.bool, device=hidden.device)
    return total / weight.sum().clamp(min=1e-9), hits


def row_losses(hidden, columns, raised, wanted, teacher, kl_weight):
    """(loss [n], hits [n]); wanted [n] and the teacher's tokens [n, k] count columns."""
    logits = (hidden @ columns.T.to(hidden.dtype)).float()
    hits = logits.detach().argmax(-1) == wanted
    if raised is not None:
        logits = logits + raised
    log_sum = logits.logsumexp(-1, keepdim=True)
    loss = -(logits.gather(-1, wanted[:, None]) - log_sum)[:, 0]
    if teacher is not None:
        tokens, log_probs = teacher
        divergence = log_probs.exp() * (log_probs - logits.gather(-1, tokens) + log_sum)
        loss = (1 - kl_weight) * loss + kl_weight * divergence.sum(-1)
    return loss, hits
