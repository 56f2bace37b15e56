"""The part of the vocabulary that a drafter's head is over: which tokens it is, and what is likeliest among them."""

import numpy
import torch

import dataset
from errors import require


def counts_of(texts, rows, vocab):
    """How often each token occurs in the answers of some rows (indices) of a dataset.Rows, int64 [vocab]."""
    counts = numpy.zeros(vocab, numpy.int64)
    for index in rows:
        tokens, answer = texts.row(index)
        counts += numpy.bincount(tokens[answer], minlength=vocab)
    return counts


def most_frequent(counts, always, size):
    """`size` tokens, ascending: those of `always`, then the most frequent ones; of equally frequent ones the lower."""
    vocab = len(counts)
    always = sorted(set(always))
    require(len(always) < size <= vocab, f"A head over {size} tokens was asked for; {len(always) + 1} to {vocab} are "
                                         "allowed: more than the special ones.")
    ranked = numpy.lexsort((numpy.arange(vocab), -counts))
    chosen = numpy.zeros(vocab, bool)
    chosen[always] = True
    others = ranked[~chosen[ranked]]
    chosen[others[:size - len(always)]] = True
    return tuple(int(token) for token in chosen.nonzero()[0])


def covered(counts, tokens):
    """The share of what was counted that these tokens are."""
    return float(counts[list(tokens)].sum() / max(1, counts.sum()))


def check(tokens, vocab, where):
    """Raises UserError where these are no ids of a vocabulary that ascend."""
    whole = isinstance(tokens, (list, tuple)) and all(type(token) is int for token in tokens)
    require(whole and (not vocab or all(token < vocab for token in tokens)) and all(token >= 0 for token in tokens),
            f"{where}: draft_token_ids must be a list of ids" + (f" below {vocab}." if vocab else "."))
    require(all(a < b for a, b in zip(tokens, tokens[1:])), f"{where}: draft_token_ids must ascend.")


def likeliest(logits, tokens, count):
    """(tokens, log probabilities) [rows][count] of the likeliest of `tokens`, or of all where it is empty; of fewer where
    there are fewer. logits [rows, vocab]; probabilities are those among the tokens."""
    part = torch.tensor(tokens, device=logits.device) if tokens else None
    logits = logits if part is None else logits[:, part]
    top = logits.log_softmax(-1).topk(min(count, logits.shape[-1]))
    found = top.indices if part is None else part[top.indices]
    return found.tolist(), top.values.double().tolist()


def load_texts(paths, vocab):
    """The rows of all texts as one."""
    return dataset.merged([dataset.load(path) for path in paths], vocab)
