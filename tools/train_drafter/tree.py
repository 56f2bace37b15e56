"""Best-first draft trees (DDTree): the `budget` most probable prefixes under per-depth marginals, in the order in which
the engine's TreeBuilder takes them."""

import heapq
import typing


class Node(typing.NamedTuple):
    parent: int  # index into the list of nodes; -1: the root, which is not listed
    depth: int  # 1 ...
    rank: int  # among the candidates of its depth
    score: float  # log probability of the path


def best_first(log_probs, budget):
    """log_probs: by depth, the candidates' log probabilities, largest first. Returns at most `budget` Nodes, parents
    before children; the first n of them are the tree of budget n. Equal scores: the lower tuple of ranks first."""
    nodes = []
    if budget <= 0 or not log_probs:
        return nodes
    heap = [(-log_probs[0][0], (0,), -1)]
    while heap and len(nodes) < budget:
        cost, ranks, parent = heapq.heappop(heap)
        depth, rank = len(ranks), ranks[-1]
        index = len(nodes)
        nodes.append(Node(parent, depth, rank, -cost))
        own = log_probs[depth - 1]
        if rank + 1 < min(budget, len(own)):
            before = 0.0 if parent < 0 else nodes[parent].score
            heapq.heappush(heap, (-(before + own[rank + 1]), (*ranks[:-1], rank + 1), parent))
        if depth < len(log_probs):
            heapq.heappush(heap, (cost - log_probs[depth][0], (*ranks, 0), index))
    return nodes


def chain(log_probs):
    """One node a depth: plain DFlash."""
    nodes, score = [], 0.0
    for depth, candidates in enumerate(log_probs, start=1):
        score += candidates[0]
        nodes.append(Node(depth - 2, depth, 0, score))
    return nodes


def walk(nodes, candidates, following):
    """Indices of the nodes on the path with the tokens `following` (those after the root), as far as the tree has them.
    candidates: by depth, the tokens of the candidates."""
    path, parent = [], -1
    children = {(node.parent, candidates[node.depth - 1][node.rank]): i for i, node in enumerate(nodes)}
    for token in following:
        found = children.get((parent, token))
        if found is None:
            break
        path.append(found)
        parent = found
    return path
