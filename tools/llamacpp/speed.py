"""Canopy and llama.cpp in turn on one device, and how many times as fast Canopy is.

A machine's speed drifts from minute to minute, so the programs alternate: a round measures each of them once, the first of
a round is another each time, and medians over the rounds are compared.
"""

import contextlib
import dataclasses
import json
import os
import statistics
import subprocess

WIDTHS = (1, 2, 4, 8, 16)
AT = 128  # committed positions before a pass and before decoding
OUR_DECODE_TOKENS = 32


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a round measures of each program. Prompts are measured as users see them: logits of the last row only."""

    prompts: tuple  # their lengths
    our_repeats: int
    peer_repeats: int
    peer_decode_tokens: int


# On a software device llama.cpp's Vulkan takes 0.4 s for each token.
VULKAN_PLAN = Plan(prompts=(128,), our_repeats=3, peer_repeats=1, peer_decode_tokens=8)
CPU_PLAN = Plan(prompts=(128, 512), our_repeats=5, peer_repeats=5, peer_decode_tokens=OUR_DECODE_TOKENS)


class RunError(Exception):
    """A program ended in an error or did not answer; its own message is on standard error."""


class Canopy:
    """canopy-cli bench, started again for each round; the figures do not include its start."""

    name = "canopy"

    def __init__(self, program, model, device, plan):
        self._command = [program, "bench", "--json", "--model", model, "--device", str(device), "--at", str(AT)]
        self._plan = plan
        self.about = {}

    def round(self):
        first, *others = self._plan.prompts
        raw = self._run(first, WIDTHS, OUR_DECODE_TOKENS)
        self.about = {key: raw[key] for key in ("device", "driver", "model")}
        result = {key: raw[key] for key in ("decode_tokens_per_second", "pass_ms", "peak")}
        result["prefill"] = {str(first): raw["prefill_tokens_per_second"]}
        for length in others:
            result["prefill"][str(length)] = self._run(length, WIDTHS[:1], 1)["prefill_tokens_per_second"]
        return result

    def _run(self, prompt, widths, decode_tokens):
        command = [*self._command, "--prefill-tokens", str(prompt), "--widths", _list(widths), "--repeats",
                   str(self._plan.our_repeats), "--decode-tokens", str(decode_tokens)]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            raise RunError(f"canopy-cli bench ended with status {result.returncode} (its message is above).")
        return json.loads(result.stdout)

    def close(self):
        pass


class Peer:
    """llamacpp_probe bench, kept running: warming it up takes as long as a round."""

    def __init__(self, name, program, model, backend, device, plan, threads=None):
        self.name = name
        command = [program, "bench", "--model", model, "--backend", backend, "--widths", _list(WIDTHS), "--at", str(AT),
                   "--decode-tokens", str(plan.peer_decode_tokens), "--prefill-tokens", _list(plan.prompts),
                   "--repeats", str(plan.peer_repeats), *thread_arguments(threads)]
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


def thread_arguments(threads):
    """None: the probe's default."""
    return [] if threads is None else ["--threads", str(threads)]


def _list(values):
    return ",".join(str(value) for value in values)


def peer_figures(raw):
    """One answer of the probe in the fields that canopy-cli bench has."""
    return {"decode_tokens_per_second": 1000 / statistics.median(raw["decode_ms"]),
            "prefill": {length: 1000 * int(length) / ms for length, ms in raw["prefill_ms"].items()},
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
    """The median of each figure over all rounds. `prefill_tokens_per_second` is that of the shortest prompt."""
    prefill = {length: statistics.median(r["prefill"][length] for r in rounds) for length in rounds[0]["prefill"]}
    return {"decode_tokens_per_second": statistics.median(r["decode_tokens_per_second"] for r in rounds),
            "prefill_tokens_per_second": prefill[min(prefill, key=int)], "prefill": prefill,
            "pass_ms": {str(w): statistics.median(r["pass_ms"][str(w)] for r in rounds) for w in WIDTHS}}


def ratios(ours, theirs):
    """Speed of Canopy / speed of llama.cpp. prefill<n> compares prompts of n tokens and prefill is the lowest of these;
    width<n> compares the times of a pass of n rows."""
    prefill = {f"prefill{length}": ours["prefill"][length] / rate for length, rate in theirs["prefill"].items()}
    result = {"decode": ours["decode_tokens_per_second"] / theirs["decode_tokens_per_second"],
              "prefill": min(prefill.values()), **prefill}
    for width in WIDTHS:
        result[f"width{width}"] = theirs["pass_ms"][str(width)] / ours["pass_ms"][str(width)]
    return result


def lowest(several):
    """The ratios to whichever build is the fastest in each column."""
    return {column: min(each[column] for each in several) for column in several[0]}


def compare(results, against):
    """The part of the report that is about speed, from what measure() gave. `ratios` are to the fastest of the builds of
    llama.cpp named in `against`, `ratios_by_build` to every one alone."""
    report = {name: {**medians(rounds), "rounds": rounds} for name, rounds in results.items()}
    by_build = {name: ratios(report["canopy"], report[name]) for name in results if name != "canopy"}
    by_round = {name: [ratios(a, b) for a, b in zip(results["canopy"], results[name])] for name in by_build}
    report["ratios"] = lowest([by_build[name] for name in against])
    report["ratios_by_build"] = by_build
    report["ratios_by_round"] = [lowest(each) for each in zip(*(by_round[name] for name in against))]
    if "llamacpp_cpu" in by_build:
        report["ratios_to_cpu_backend"] = by_build["llamacpp_cpu"]
        report["ratios_to_cpu_backend_by_round"] = by_round["llamacpp_cpu"]
    return report
