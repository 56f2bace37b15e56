"""Speculative decoding for real: drafts, trees, one verifying pass of the target a round. Slow, and the check on what
acceptance.py computes from known texts."""

import torch

import tree
from draft_tokens import likeliest
from target import KvCache


@torch.inference_mode()
def decode_rounds(target, drafter, prompt, limit, budget):
    """Decodes with trees of `budget` nodes, or with chains where budget is None. Returns (reply, tokens emitted by each
    round). The reply must be the target's plain greedy one; its first token comes out of the prefill."""
    device = target.head_weight.device
    cache = KvCache(target.config.sizes, 1, len(prompt) + limit + (budget or drafter.config.block_size) + 2,
                    target.head_weight)
    hidden, features = target(torch.tensor([prompt], device=device), cache, drafter.config.taps)
    reply, lengths = [int(target.logits(hidden[0, -1]).argmax())], []
    stops = set(target.config.stop_tokens)
    while reply[-1] not in stops and len(reply) < limit:
        nodes, candidates = draft(target, drafter, features, reply[-1], budget)
        path, bonus, taps = verify(target, cache, drafter.config.taps, reply[-1], nodes, candidates)
        features = torch.cat((features, taps), dim=1)
        emitted = [*(candidates[nodes[i].depth - 1][nodes[i].rank] for i in path), bonus][:limit - len(reply)]
        stopped = next((i for i, token in enumerate(emitted) if token in stops), len(emitted))
        emitted = emitted[:stopped + 1]
        reply += emitted
        lengths.append(len(emitted))
    return reply, lengths


def draft(target, drafter, features, root, budget):
    """(nodes, candidates' tokens by depth) behind a root at position features.shape[1]"""
    context = drafter.context(features.to(drafter.fc.weight.dtype))
    block = target.embed_tokens(drafter.block_tokens(torch.tensor([[root]], device=features.device)))
    hidden = drafter(block.to(context.dtype), context, torch.tensor([[features.shape[1]]], device=features.device))
    logits = target.logits(hidden[0, 0, 1:].to(target.head_weight.dtype))
    candidates, log_probs = likeliest(logits, drafter.config.draft_tokens, budget or 1)
    nodes = tree.chain(log_probs) if budget is None else tree.best_first(log_probs, budget)
    return nodes, candidates


def verify(target, cache, taps, root, nodes, candidates):
    """(accepted nodes, the target's token after them, features of root and accepted nodes); the cache keeps those."""
    device, start, count = target.head_weight.device, cache.length, len(nodes) + 1
    tokens = [root, *(candidates[node.depth - 1][node.rank] for node in nodes)]
    positions = [start, *(start + node.depth for node in nodes)]
    mask = torch.zeros(count, start + count, dtype=torch.bool)
    mask[:, :start + 1] = True
    for index, node in enumerate(nodes, start=1):
        mask[index] |= mask[node.parent + 1]
        mask[index, start + index] = True
    hidden, features = target(torch.tensor([tokens], device=device), cache, taps,
                              torch.tensor(positions, device=device), mask[None, None].to(device))
    chosen = target.logits(hidden[0]).argmax(-1).tolist()
    row, path = 0, []
    children = {(node.parent + 1, tokens[i]): i for i, node in enumerate(nodes, start=1)}
    while (row, chosen[row]) in children:
        row = children[row, chosen[row]]
        path.append(row - 1)
    kept = torch.tensor([0, *(i + 1 for i in path)], device=device)
    cache.keep_positions(start, start + kept)
    return path, chosen[row], features[:, kept]
