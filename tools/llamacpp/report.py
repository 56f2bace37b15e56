"""The report of tools/bench_llamacpp as text."""

import speed

NAMES = {"canopy": "Canopy", "llamacpp": "llama.cpp Vulkan", "llamacpp_cpu": "llama.cpp CPU"}
BUILD = "llamacpp_"


def title(name):
    """llamacpp_native is the build of that name."""
    return NAMES.get(name) or "llama.cpp " + name.removeprefix(BUILD)


def programs_of(report):
    return ["canopy", *report["ratios_by_build"]]


def speed_table(report):
    """One line per measurement, one column per program, then how many times as fast Canopy is: as the fastest build where
    there are several of the processor."""
    programs = programs_of(report)
    ratio_keys = [key for key in ("ratios", "ratios_to_cpu_backend") if key in report]
    heads = [title(name) for name in programs] + ["ratio" if key == "ratios" else "ratio to CPU" for key in ratio_keys]
    lines = [f"{'':20}" + "".join(f"{head:>18}" for head in heads)]

    def line(what, ratio, values):
        cells = [f"{value:18.2f}" for value in values] + [f"{report[key][ratio]:17.2f}x" for key in ratio_keys]
        lines.append(f"{what:20}" + "".join(cells))

    line("decode, tok/s", "decode", [report[name]["decode_tokens_per_second"] for name in programs])
    for length in report["canopy"]["prefill"]:
        line(f"prompt {length}, tok/s", f"prefill{length}", [report[name]["prefill"][length] for name in programs])
    for width in speed.WIDTHS:
        line(f"width {width}, ms", f"width{width}", [report[name]["pass_ms"][str(width)] for name in programs])
    return "\n".join(lines)


def spread(report):
    """The smallest and largest ratio of a single round, which the medians do not show."""
    parts = []
    for what in ("decode", "prefill", "width4", "width8", "width16"):
        values = [entry[what] for entry in report["ratios_by_round"]]
        parts.append(f"{what} {min(values):.2f} to {max(values):.2f}")
    return "ratios of single rounds: " + ", ".join(parts)


def agreement_lines(agreement):
    lines = []
    weights = " with the weights as F32" if agreement["as_f32"] else ""
    for backend, result in agreement["backends"].items():
        lines.append(f"llama.cpp {backend}{weights}: likeliest token the same at {result['same_top1']} of {result['positions']} "
                     f"positions ({100 * result['share']:.2f}%); logits differ by {result['mean_difference']:.4f} on average, "
                     f"{result['largest_difference']:.3f} at most")
        gaps = sorted(entry["our_gap"] for entry in result["differing"])
        if gaps:
            lines.append(f"  where it differs, our first is ahead of our second by {gaps[len(gaps) // 2]:.3f} (median), "
                         f"{gaps[-1]:.3f} at most")
    for name, result in agreement["against_f32"].items():
        program = "Canopy" if name == "canopy" else f"llama.cpp {name}{weights}"
        lines.append(f"{program} against f32: KL {result['mean_kl']:.1e} on average, {result['worst_kl']:.1e} at most; likeliest "
                     f"token the same at {result['same_top1']} of {result['positions']} positions ({100 * result['share']:.2f}%)")
    return "\n".join(lines)
