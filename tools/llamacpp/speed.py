"""Canopy and llama.cpp in turn on one device, and how many times as fast Canopy is.

A machine's speed drifts from minute to minute, so the programs alternate: a round measures each of them once, the first of
a round is another each time, and medians over the rounds are compared.
"""

import contextlib
import json
import os
import statistics
import subprocess

WIDTHS = (1, 2, 4, 8, 16)
PREFILL_TOKENS = 128
AT = 128  # committed positions before a pass and before decoding
OUR_DECODE_TOKENS = 32
OUR_REPEATS = 3
PEER_DECODE_TOKENS = 8  # on a software device llama.cpp takes 0.4 s for each


class RunError(Exception):
    """A program ended in an error or did not answer; its own message is on standard error."""


class Canopy:
    """canopy-cli bench, started again for each round; the figures do not include its start."""

    name = "canopy"

    def __init__(self, program, model, device):
        self._command = [program, "bench", "--json", "--model", model, "--device", str(device), "--widths", _list(WIDTHS),
                         "--at", str(AT), "--repeats", str(OUR_REPEATS), "--decode-tokens", str(OUR_DECODE_TOKENS),
                         "--prefill-tokens", str(PREFILL_TOKENS)]
        self.about = {}

    def round(self):
        result = subprocess.run(self._command, stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            raise RunError(f"canopy-cli bench ended with status {result.returncode} (its message is above).")
        raw = json.loads(result.stdout)
        self.about = {key: raw[key] for key in ("device", "driver", "model")}
        return {key: raw[key] for key in ("decode_tokens_per_second", "prefill_tokens_per_second", "pass_ms", "peak")}

    def close(self):
        pass


class Peer:
    """llamacpp_probe bench, kept running: warming it up takes as long as a round."""

    def __init__(self, program, model, backend, device):
        self.name = "llamacpp_cpu" if backend == "cpu" else "llamacpp"
        command = [program, "bench", "--model", model, "--backend", backend, "--widths", _list(WIDTHS), "--at", str(AT),
                   "--decode-tokens", str(PEER_DECODE_TOKENS), "--prefill-tokens", str(PREFILL_TOKENS)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         env=environment(backend, device))
        self.about = self._answer()

    def round(self):
        with contextlib.suppress(BrokenPipeError):  # it has ended, which is noticed when it does not answer
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        return peer_figures(self._answer())

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise RunError(f"llamacpp_probe ended with status {self._process.wait()} (its message is above).")
        return json.loads(line)


def environment(backend, device):
    """llama.cpp takes a Vulkan device of type CPU only when it is named; with none named its CPU backend is alone."""
    return dict(os.environ, GGML_VK_VISIBLE_DEVICES="" if backend == "cpu" else str(device))


def _list(values):
    return ",".join(str(value) for value in values)


def peer_figures(raw):
    """One answer of the probe in the fields that canopy-cli bench has."""
    return {"decode_tokens_per_second": 1000 / statistics.median(raw["decode_ms"]),
            "prefill_tokens_per_second": 1000 * PREFILL_TOKENS / raw["prefill_ms"],
            "pass_ms": raw["pass_ms"], "decode_ms": raw["decode_ms"]}


def measure(contestants, rounds, say):
    """{name: [figures of each round]}. The order changes from round to round, so that no program always runs first."""
    results = {contestant.name: [] for contestant in contestants}
    for number in range(rounds):
        turn = number % len(contestants)
        for contestant in contestants[turn:] + contestants[:turn]:
            say(f"round {number + 1} of {rounds}: {contestant.name}")
            results[contestant.name].append(contestant.round())
    return results


def medians(rounds):
    """The median of each figure over all rounds."""
    return {"decode_tokens_per_second": statistics.median(r["decode_tokens_per_second"] for r in rounds),
            "prefill_tokens_per_second": statistics.median(r["prefill_tokens_per_second"] for r in rounds),
            "pass_ms": {str(w): statistics.median(r["pass_ms"][str(w)] for r in rounds) for w in WIDTHS}}


def ratios(ours, theirs):
    """Speed of Canopy / speed of llama.cpp. width<n> compares the times of a pass of n rows."""
    result = {"decode": ours["decode_tokens_per_second"] / theirs["decode_tokens_per_second"],
              "prefill": ours["prefill_tokens_per_second"] / theirs["prefill_tokens_per_second"]}
    for width in WIDTHS:
        result[f"width{width}"] = theirs["pass_ms"][str(width)] / ours["pass_ms"][str(width)]
    return result


def compare(results):
    """The part of the report that is about speed, from what measure() gave."""
    ours = medians(results["canopy"])
    report = {"canopy": {**ours, "rounds": results["canopy"]}}
    for name in ("llamacpp", "llamacpp_cpu"):
        if name not in results:
            continue
        theirs = medians(results[name])
        report[name] = {**theirs, "rounds": results[name]}
        key = "ratios" if name == "llamacpp" else "ratios_to_cpu_backend"
        report[key] = ratios(ours, theirs)
        report[key + "_by_round"] = [ratios(a, b) for a, b in zip(results["canopy"], results[name])]
    return report
