"""rank: the tokens that a drafter's head should be over, the most frequent ones of text that the target wrote, and what a
head over them costs: tau with the whole head and with parts of several sizes, of one run over held-out prompts."""

import json

import dataset
import evaluate
from atomic import write_atomically
from draft_tokens import counts_of, covered, load_texts, most_frequent
from drafter_files import load_drafter
from errors import UserError, require
from export import add_convert_options, convert
from progress import say
from runtime import add_runtime_options, start
from target import load_target

HELP = "choose the tokens that a drafter's head is over, and measure what it loses"
WHOLE = "whole"


def add_options(parser):
    evaluate.add_prompt_options(parser)
    parser.add_argument("--data", required=True, nargs="+", help="texts to count, as synthesize writes them")
    parser.add_argument("--held-out", type=float, default=0.02,
                        help="share of their prompts that is not counted but only covered (default 0.02)")
    parser.add_argument("--sizes", default="4096,8192,16384", help="of the parts (default 4096,8192,16384)")
    parser.add_argument("--budgets", default="16,64", help="nodes of trees (default 16,64)")
    parser.add_argument("--json", help="write all figures here")
    parser.add_argument("--size", type=int, help="the part to write: one of --sizes")
    parser.add_argument("--ids", help="write its tokens here, for canopy-cli convert --draft-tokens")
    parser.add_argument("--gguf", help="write the drafter with it here")
    add_convert_options(parser)
    add_runtime_options(parser)


def run(options):
    budgets, sizes = evaluate.budgets_of(options.budgets), sizes_of(options)
    evaluate.check_prompt_options(options)
    device, dtype = start(options)
    target = load_target(options.target, device, dtype)
    drafter = load_drafter(options.drafter, target.config).to(device).eval().requires_grad_(False)
    parts, coverage = parts_of(options, target.config, sizes)
    entries = evaluate.replies_of(options, target)
    tables = measure(target, drafter, entries, budgets, parts)
    print(markdown(tables, coverage, budgets), flush=True)
    if options.json:
        figures = {"target": options.target, "drafter": options.drafter, "covered": coverage, "tau": tables}
        write_atomically(options.json, (json.dumps(figures, indent=1) + "\n").encode())
    if options.size:
        write(options, parts[str(options.size)])


def sizes_of(options):
    try:
        sizes = sorted({int(part) for part in options.sizes.split(",")})
    except ValueError:
        raise UserError(f"--sizes {options.sizes}: numbers with commas between them are expected.") from None
    require(options.size is None or options.size in sizes,
            f"--size {options.size}: one of --sizes is expected, {', '.join(map(str, sizes))}.")
    require(0 <= options.held_out < 1, f"--held-out {options.held_out}: from 0 to less than 1 is allowed.")
    require((options.size is None) == (options.ids is None and options.gguf is None),
            "--size says which part --ids and --gguf write; they go together.")
    return sizes


def parts_of(options, config, sizes):
    """({size: tokens}, {size: share of the held-out answers' tokens that the part has})"""
    texts = load_texts(options.data, config.vocab)
    counted, held_out = dataset.split(texts, options.held_out)
    counts = counts_of(texts, counted, config.vocab)
    held = counts_of(texts, held_out, config.vocab) if held_out else counts
    say(f"{int(counts.sum())} tokens of answers have {int((counts > 0).sum())} of {config.vocab} tokens")
    parts = {str(size): most_frequent(counts, config.stop_tokens, size) for size in sizes}
    return parts, {size: covered(held, tokens) for size, tokens in parts.items()}


def measure(target, drafter, entries, budgets, parts):
    """{part: the table that evaluate makes}; drafts of all parts are read off the same passes."""
    every = {WHOLE: (), **parts}
    lengths = evaluate.measure_parts(target, drafter, entries, budgets, every)
    return {name: evaluate.summary([{**entry, **own} for entry, own in zip(entries, lengths[name])], budgets)
            for name in every}


def markdown(tables, coverage, budgets):
    """A line for each part: what it covers, and tau over all prompts with its ratio to that of the whole head."""
    ways = ["chain", *(f"tree{budget}" for budget in budgets)]
    lines = ["| head over | text covered | " + " | ".join(["chain", *(f"{budget} nodes" for budget in budgets)]) + " |",
             "|---|---|" + "---|" * len(ways)]
    category = list(tables[WHOLE])[-1]  # that of all prompts, or the only one
    for name, table in tables.items():
        share = "100%" if name == WHOLE else f"{coverage[name]:.2%}"
        cells = []
        for way in ways:
            tau, whole = (part[category].get(way, {}).get("tau") for part in (table, tables[WHOLE]))
            cells.append("-" if tau is None else f"{tau:.3f} ({tau / whole:.3f})")
        lines.append(f"| {name} | {share} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write(options, tokens):
    if options.ids:
        write_atomically(options.ids, (json.dumps(list(tokens)) + "\n").encode())
        say(f"{options.ids}: {len(tokens)} tokens")
    if options.gguf:
        convert(options, options.drafter, tokens)
        say(f"{options.gguf}: its head is over {len(tokens)} tokens")
