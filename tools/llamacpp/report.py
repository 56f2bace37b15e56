"""The report of tools/bench_llamacpp as text."""

import speed

NAMES = {"canopy": "Canopy", "llamacpp": "llama.cpp Vulkan", "llamacpp_cpu": "llama.cpp CPU"}


def speed_table(report):
    """One line per measurement, one column per program, then how many times as fast Canopy is."""
    programs = [name for name in NAMES if name in report]
    ratio_keys = [key for key in ("ratios", "ratios_to_cpu_backend") if key in report]
    heads = [NAMES[name] for name in programs] + ["ratio" if key == "ratios" else "ratio to CPU" for key in ratio_keys]
    lines = [f"{'':16}" + "".join(f"{head:>18}" for head in heads)]

    def line(title, ratio, values):
        cells = [f"{value:18.2f}" for value in values] + [f"{report[key][ratio]:17.2f}x" for key in ratio_keys]
        lines.append(f"{title:16}" + "".join(cells))

    for what in ("decode", "prefill"):
        line(f"{what}, tok/s", what, [report[name][f"{what}_tokens_per_second"] for name in programs])
    for width in speed.WIDTHS:
        line(f"width {width}, ms", f"width{width}", [report[name]["pass_ms"][str(width)] for name in programs])
    return "\n".join(lines)


def spread(report):
    """The smallest and largest ratio of a single round, which the medians do not show."""
    parts = []
    for what in ("decode", "prefill", "width16"):
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
    return "\n".join(lines)
