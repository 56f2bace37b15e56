"""The loss of a block's rows: cross-entropy with the text and divergence from the target's likeliest tokens, early rows
weighing more, over the whole vocabulary or a sample of it."""

import math

import torch

LOGITS_AT_ONCE = {"cpu": 2**20, "cuda": 2**28}  # 4 MiB stay in a core's cache; 1 GiB is enough for any GPU
ROWS_AT_ONCE = 128  # at least: of fewer a matrix product is slow


def position_weights(block, decay, device):
    """Weights of rows [B]: exp(-(i - 1) / decay) for row i, and 0 for row 0."""
    rows = torch.arange(block, device=device).float()
    weights = torch.exp(-(rows - 1) / decay) if decay else torch.ones_like(rows)
    weights[0] = 0
    return weights


class Vocabulary:
    """Chooses the columns of the head that a step computes: those of the labels' and the teacher's tokens, the most
    frequent tokens of the text, and a random sample of the others. The logits of the sample are raised by log(left out
    / drawn), so that the sum of the softmax has that of the whole vocabulary as its expectation."""

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
    weight = weights[labels.depths]
    weight = weight / weight.sum().clamp(min=1e-9)
    # Cast the head to the precision of autocast here, since autocast does not act inside a Function.
    if torch.is_autocast_enabled(hidden.device.type):
        hidden = hidden.to(torch.get_autocast_dtype(hidden.device.type))
    distribution = None if theirs is None or kl_weight == 0 else (theirs, teacher[1])
    return RowLosses.apply(hidden, columns, raised, wanted, distribution, kl_weight, weight)


class RowLosses(torch.autograd.Function):
    """The weighted sum of the rows' losses, and their hits. The gradient is computed together with the loss, a few rows
    at a time: the logits of all rows, with what autograd keeps of them, would be much larger than a processor's caches.
    The columns have no gradient, as they belong to the frozen target."""

    @staticmethod
    def forward(context, hidden, columns, raised, wanted, teacher, kl_weight, weight):
        total = hidden.new_zeros((), dtype=torch.float32)
        hits = torch.zeros(len(hidden), dtype=torch.bool, device=hidden.device)
        columns = columns.to(hidden.dtype)
        gradient = torch.empty_like(hidden)
        count = max(ROWS_AT_ONCE, LOGITS_AT_ONCE[hidden.device.type] // len(columns))
        for start in range(0, len(hidden), count):
            some = slice(start, start + count)
            logits = (hidden[some] @ columns.T).float()
            hits[some] = logits.argmax(-1) == wanted[some]
            if raised is not None:
                logits += raised
            distribution = None if teacher is None else (teacher[0][some], teacher[1][some])
            losses = replace_by_gradient(logits, wanted[some], distribution, kl_weight)
            total += (losses * weight[some]).sum()
            if context.needs_input_grad[0]:
                gradient[some] = (logits * weight[some, None]).to(hidden.dtype) @ columns
        context.save_for_backward(gradient)
        context.mark_non_differentiable(hits)
        return total, hits

    @staticmethod
    def backward(context, of_total, _):
        (gradient,) = context.saved_tensors
        return gradient * of_total, None, None, None, None, None, None


def replace_by_gradient(logits, wanted, teacher, kl_weight):
    """Computes the losses [n] of rows of logits [n, columns] (float32) and replaces the logits by their gradient.
    wanted [n] and the teacher's tokens [n, k] are numbers of columns."""
    picked = logits.gather(-1, wanted[:, None])
    theirs = None if teacher is None else logits.gather(-1, teacher[0])
    log_sum = logits.logsumexp(-1, keepdim=True)
    probabilities = logits.sub_(log_sum).exp_()
    if teacher is None:
        probabilities.scatter_add_(-1, wanted[:, None], torch.full_like(picked, -1))
        return (log_sum - picked)[:, 0]
    shares = teacher[1].exp()
    probabilities *= 1 - kl_weight + kl_weight * shares.sum(-1, keepdim=True)
    probabilities.scatter_add_(-1, wanted[:, None], torch.full_like(picked, kl_weight - 1))
    probabilities.scatter_add_(-1, teacher[0], -kl_weight * shares)
    divergence = (shares * (teacher[1] - theirs + log_sum)).sum(-1)
    return (1 - kl_weight) * (log_sum - picked)[:, 0] + kl_weight * divergence
