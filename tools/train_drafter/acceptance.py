"""What drafts behind known texts would have had accepted. Verification keeps the target's own text, so a greedy text
decides every round: one pass drafts behind all of its positions, and all budgets are read off it."""

import bisect
import dataclasses

import torch

import tree
from draft_tokens import likeliest

ROWS_AT_ONCE = 4096  # block rows of one pass


@dataclasses.dataclass
class Drafts:
    """The candidates drafted after every root of one reply, by depth."""

    tokens: list  # [roots][B - 1][k]
    log_probs: list  # [roots][B - 1][k]


@torch.no_grad()
def drafts_of(target, drafter, prompt, reply, candidates):
    """Drafts after all tokens of the reply except the last. The reply's first token came out of the prefill."""
    return drafts_of_parts(target, drafter, prompt, reply, candidates, [drafter.config.draft_tokens])[0]


@torch.no_grad()
def drafts_of_parts(target, drafter, prompt, reply, candidates, parts):
    """The same by heads over several parts of the vocabulary: tuples of tokens, () for all of it."""
    device = target.head_weight.device
    ids = torch.tensor([[*prompt, *reply]], device=device)
    _, features = target(ids, None, drafter.config.taps)
    context = drafter.context(features.to(drafter.fc.weight.dtype))
    drafts = [Drafts([], []) for _ in parts]
    at_once = max(1, ROWS_AT_ONCE // drafter.config.block_size)
    for start in range(len(prompt), len(prompt) + len(reply) - 1, at_once):
        end = min(start + at_once, len(prompt) + len(reply) - 1)
        anchors = torch.arange(start, end, device=device)[None]
        blocks = target.embed_tokens(drafter.block_tokens(ids[0, anchors])).to(context.dtype)
        hidden = drafter(blocks, context, anchors)[0, :, 1:]
        for some in hidden.split(max(1, 512 // drafter.config.block_size)):  # logits of a vocabulary are large
            logits = target.logits(some.to(target.head_weight.dtype))
            for part, of_part in zip(parts, drafts):
                tokens, log_probs = likeliest(logits.flatten(0, 1), part, candidates)
                depths = logits.shape[1]
                of_part.tokens += in_rows(tokens, depths)
                of_part.log_probs += in_rows(log_probs, depths)
    return drafts


def in_rows(items, length):
    return [items[start:start + length] for start in range(0, len(items), length)]


def accepted_by_budget(drafts, root, reply, budgets):
    """{way: nodes accepted} of the round whose root is reply[root]; ways are "chain" and "treeN"."""
    following = reply[root + 1:]
    candidates = drafts.tokens[root]
    nodes = tree.best_first(drafts.log_probs[root], max(budgets))
    path = tree.walk(nodes, candidates, following)  # ascending: the tree of budget n is the first n nodes
    accepted = {f"tree{budget}": bisect.bisect_left(path, budget) for budget in budgets}
    accepted["chain"] = len(tree.walk(tree.chain(drafts.log_probs[root]), candidates, following))
    return accepted


def round_lengths(drafts, reply, budgets):
    """{way: tokens emitted by every round} of a reply, the bonus included, nothing past its end."""
    cache, lengths = {}, {}
    for way in ["chain", *(f"tree{budget}" for budget in budgets)]:
        root, emitted = 0, []
        while root < len(reply) - 1:
            if root not in cache:
                cache[root] = accepted_by_budget(drafts, root, reply, budgets)
            emitted.append(min(cache[root][way] + 1, len(reply) - 1 - root))
            root += emitted[-1]
        lengths[way] = emitted
    return lengths
