"""Does llama.cpp draft what the golden files of drafters have? Both begin with the same texts, and at each depth take the
likeliest token behind those before it."""

import dataclasses
import json
import os
import subprocess

import agreement
import speed

ROUNDS = 8  # of each prompt
TOLERANCE = 1e-3  # of log probabilities; tests/golden says 3e-4 of a logit


@dataclasses.dataclass(frozen=True)
class Case:
    """A golden file of tests/golden by the kind of its drafter, as llamacpp_probe calls it."""

    golden: str
    kind: str
    target: str  # GGUF


# DFlash itself has no chains in generate.json, and EAGLE 3.1 no GGUF.
CASES = (
    Case("jetspec", "block", "tiny-qwen3-f16.gguf"),
    Case("dspark", "block", "tiny-qwen3-f16.gguf"),
    Case("dflash2", "block", "tiny-qwen3-f16.gguf"),
    Case("eagle3", "eagle3", "tiny-qwen3-f16.gguf"),
    Case("mtp", "head", "tiny-qwen3_5-mtp-f16.gguf"),
    Case("mtp_moe", "head", "tiny-qwen3_5moe-mtp-f16.gguf"),
    Case("assistant", "assistant", "tiny-gemma4-f16.gguf"),
)


def chains(golden):
    """(ids, whose last one is the root; drafted tokens; log probability of the path to each, or None) of a golden file.
    Texts of a root alone, of which a head has read nothing, are left out."""
    found = []
    for prompt in golden.get("prompts", ()):
        text = prompt["prompt_ids"] + prompt["output_ids"]
        found += [(text[:each["start"] + 1], each["node_token_ids"], each["path_logprob"])
                  for each in prompt["chain"]["rounds"][:ROUNDS]]
    for case in golden.get("cases", ()):
        ids = case["ids"] if len(case["ids"]) > case["start"] else [*case["ids"], case["root"]]
        found.append((ids, case["chain"], None))
    return [chain for chain in found if len(chain[0]) > 1]


def compare(expected, drafts):
    """Figures over chains() and the probe's drafts of them. Behind a token that differs nothing is compared. The largest
    difference is one of log probabilities of paths; None where the file has none."""
    if len(expected) != len(drafts) or not expected:
        raise speed.RunError(f"{len(drafts)} drafts of llama.cpp cannot be compared with {len(expected)} chains.")
    result = {"texts": len(expected), "tokens": 0, "same": 0, "largest_difference": None}
    for (_, tokens, paths), draft in zip(expected, drafts):
        path = 0.0
        result["tokens"] += len(tokens)
        for depth, (token, other, log_p) in enumerate(zip(tokens, draft["tokens"], draft["log_p"])):
            if token != other:
                break
            result["same"] += 1
            path += log_p
            if paths is not None:
                result["largest_difference"] = max(result["largest_difference"] or 0.0, abs(path - paths[depth]))
    return result


def agree(result):
    return result["same"] == result["tokens"] and (result["largest_difference"] or 0.0) <= TOLERANCE


def ask(probe, case, goldens, folder):
    """compare() of one Case. Both files are read with their matrices as F32, so that llama.cpp rounds no activations."""
    with open(os.path.join(goldens, case.golden + ".json"), encoding="utf-8") as file:
        golden = json.load(file)
    expected = chains(golden)
    wide = {}
    for name in {case.target, golden["gguf"]}:  # of a head one file
        place = os.path.join(folder, case.golden, name)
        os.makedirs(place)
        wide[name] = agreement.widened(probe, os.path.join(goldens, name), place)
    ids = os.path.join(folder, case.golden, "ids.json")
    with open(ids, "w", encoding="ascii") as file:
        json.dump({"texts": [chain[0] for chain in expected]}, file)
    command = [probe, "drafts", "--backend", "cpu", "--model", wide[case.target], "--drafter", wide[golden["gguf"]], "--kind", case.kind,
               "--depth", str(len(expected[0][1])), "--first-slot", str(golden.get("first_slot", 1)), "--ids", ids]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise speed.RunError(f"llamacpp_probe drafts ended with status {done.returncode} (its message is above).")
    return {"golden": case.golden, **compare(expected, json.loads(done.stdout)["drafts"])}
