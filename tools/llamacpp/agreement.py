"""Do both programs predict the same? The likeliest tokens after every position of a text, side by side, and how far whole
rows of each program are from those of arithmetic in f32."""

import array
import json
import math
import os
import subprocess

import speed

TOP = 20  # tokens compared at each position
WINDOW = 500  # positions that share a context
ROWS = 400  # positions whose whole rows are compared


def our_logits(program, model, device, text, positions, target, rows=None):
    """Writes the output of canopy-cli logits to `target` and returns it; `rows`: a file for the whole rows."""
    command = [program, "logits", "--model", model, "--device", str(device), "--text-file", text, "--positions",
               str(positions), "--window", str(WINDOW), "--top", str(TOP), *_rows_arguments(rows)]
    with open(target, "w", encoding="utf-8") as file:
        result = subprocess.run(command, stdout=file, check=False)
    if result.returncode != 0:
        raise speed.RunError(f"canopy-cli logits ended with status {result.returncode} (its message is above).")
    with open(target, encoding="utf-8") as file:
        return json.load(file)


def _rows_arguments(rows):
    return [] if rows is None else ["--rows", rows]


def widened(program, model, folder):
    """The path of a copy in `folder` with all matrices as F32: the same values, which llama.cpp multiplies in f32."""
    target = os.path.join(folder, "f32.gguf")
    result = subprocess.run([program, "widen", model, target], check=False)
    if result.returncode != 0:
        raise speed.RunError(f"llamacpp_probe widen ended with status {result.returncode} (its message is above).")
    return target


def peer_logits(program, model, backend, device, ids_file, threads=None, rows=None, f32_cache=False):
    command = [program, "logits", "--model", model, "--backend", backend, "--ids", ids_file, "--top", str(TOP),
               *speed.thread_arguments(threads), *_rows_arguments(rows), *(["--f32-cache"] if f32_cache else [])]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=speed.environment(backend, device))
    if result.returncode != 0:
        raise speed.RunError(f"llamacpp_probe logits ended with status {result.returncode} (its message is above).")
    return json.loads(result.stdout)


def compare(ours, theirs):
    """Compares two lists of [[id, logit], ...] by position, likeliest first, and returns the report's figures.
    Differences are of logits of tokens that both have among their likeliest. `differing` has the positions whose
    likeliest token differs, with the distance to the second token on each side."""
    if len(ours) != len(theirs) or not ours:
        raise speed.RunError(f"{len(ours)} positions of ours cannot be compared with {len(theirs)} of llama.cpp's.")
    differing, total, count, largest = [], 0.0, 0, 0.0
    for position, (mine, other) in enumerate(zip(ours, theirs)):
        if mine[0][0] != other[0][0]:
            differing.append({"position": position, "ours": mine[0][0], "theirs": other[0][0],
                              "our_gap": mine[0][1] - mine[1][1], "their_gap": other[0][1] - other[1][1]})
        there = dict(map(tuple, other))
        for difference in (abs(logit - there[token]) for token, logit in mine if token in there):
            total, count, largest = total + difference, count + 1, max(largest, difference)
    return {"positions": len(ours), "same_top1": len(ours) - len(differing),
            "share": (len(ours) - len(differing)) / len(ours), "mean_difference": total / count if count else None,
            "largest_difference": largest if count else None, "compared_logits": count, "differing": differing}


def distance(reference, file, positions):
    """How far the rows of `file` are from those of `reference`: the mean and the worst divergence (Kullback-Leibler, in
    nats) of the distributions, and at how many positions the likeliest token is the same."""
    divergences, same = [], 0
    with open(reference, "rb") as right, open(file, "rb") as other:
        vocab = os.path.getsize(reference) // (4 * positions)
        for name in (reference, file):
            if os.path.getsize(name) != 4 * positions * vocab:
                raise speed.RunError(f"{name} has {os.path.getsize(name)} bytes; {positions} rows of {vocab} logits have "
                                     f"{4 * positions * vocab}.")
        for _ in range(positions):
            p, q = array.array("f"), array.array("f")
            p.fromfile(right, vocab)
            q.fromfile(other, vocab)
            divergences.append(divergence(p, q))
            same += p.index(max(p)) == q.index(max(q))
    return {"positions": positions, "mean_kl": math.fsum(divergences) / positions, "worst_kl": max(divergences),
            "same_top1": same, "share": same / positions}


def divergence(p, q):
    """KL(P || Q) of the distributions that two rows of logits stand for."""
    most, other_most = max(p), max(q)
    weights = [math.exp(x - most) for x in p]
    total = math.fsum(weights)
    other_total = math.fsum(math.exp(x - other_most) for x in q)
    # Each term with both logits relative to the largest: near to each other, so that their difference is exact.
    mean = math.fsum(w * ((x - most) - (y - other_most)) for w, x, y in zip(weights, p, q)) / total
    return max(0.0, mean + math.log(other_total) - math.log(total))
