"""Do both programs predict the same? The likeliest tokens after every position of a text, side by side."""

import json
import os
import subprocess

import speed

TOP = 20  # tokens compared at each position
WINDOW = 500  # positions that share a context


def our_logits(program, model, device, text, positions, target):
    """Writes the output of canopy-cli logits to `target` and returns it."""
    command = [program, "logits", "--model", model, "--device", str(device), "--text-file", text, "--positions",
               str(positions), "--window", str(WINDOW), "--top", str(TOP)]
    with open(target, "w", encoding="utf-8") as file:
        result = subprocess.run(command, stdout=file, check=False)
    if result.returncode != 0:
        raise speed.RunError(f"canopy-cli logits ended with status {result.returncode} (its message is above).")
    with open(target, encoding="utf-8") as file:
        return json.load(file)


def widened(program, model, folder):
    """The path of a copy in `folder` with all matrices as F32: the same values, which llama.cpp multiplies in f32."""
    target = os.path.join(folder, "f32.gguf")
    result = subprocess.run([program, "widen", model, target], check=False)
    if result.returncode != 0:
        raise speed.RunError(f"llamacpp_probe widen ended with status {result.returncode} (its message is above).")
    return target


def peer_logits(program, model, backend, device, ids_file):
    command = [program, "logits", "--model", model, "--backend", backend, "--ids", ids_file, "--top", str(TOP)]
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
