"""evaluate: how many tokens a round emits (tau), by category, for chains and for trees of several budgets."""

import json
import os
import statistics
import time

import torch

import templates
from acceptance import drafts_of_parts, round_lengths
from atomic import write_atomically
from decode import greedy_replies
from drafter_files import load_drafter
from errors import UserError, require
from progress import Progress, say
from prompts import Prompt, default_files, read_prompts
from rounds import decode_rounds
from runtime import add_runtime_options, seeded, start
from target import load_target
from text import load_text

HELP = "measure how many drafted tokens the target accepts"
ALL = "all"
DIFFERENCES_SHOWN = 8


def add_prompt_options(parser):
    """The pair and what it is measured with."""
    parser.add_argument("--target", required=True, help="Hugging Face folder or GGUF file")
    parser.add_argument("--drafter", required=True, help="folder of a run or of an export, or GGUF file")
    parser.add_argument("--prompts", nargs="+", help="JSON lines (default: assets/prompts and held_out.jsonl)")
    parser.add_argument("--limit", type=int, help="prompts of each category (default: all)")
    parser.add_argument("--templates", type=int, default=0, help="add so many of each held-out family of templates")
    parser.add_argument("--forced", help="replies from a file as --replies writes instead of prompts: no decoding")
    parser.add_argument("--max-tokens", type=int, default=128, help="of a reply (default 128)")
    parser.add_argument("--seed", type=int, default=1, help="of the prompts that --templates draws (default 1)")


def add_options(parser):
    add_prompt_options(parser)
    parser.add_argument("--budgets", default="4,8,16,32,64,128,256", help="nodes of trees (default 4 ... 256)")
    parser.add_argument("--check", type=int, default=1,
                        help="prompts of each category decoded round by round, as a check on the rest (default 1)")
    parser.add_argument("--check-budget", type=int, default=16, help="of those trees (default 16)")
    parser.add_argument("--replies", help="write ids and round lengths here, for canopy-cli bench --forced")
    parser.add_argument("--json", help="write all figures here")
    add_runtime_options(parser)


def run(options):
    budgets = budgets_of(options.budgets)
    check_options(options)
    device, dtype = start(options)
    target = load_target(options.target, device, dtype)
    drafter = load_drafter(options.drafter, target.config).to(device).eval().requires_grad_(False)
    entries = replies_of(options, target)
    measure(target, drafter, entries, budgets)
    table = summary(entries, budgets)
    print(markdown(table, budgets), flush=True)
    if options.replies:
        write_replies(options.replies, entries)
    figures = {"target": options.target, "drafter": options.drafter, "max_tokens": options.max_tokens, "checked": 0,
               "different": [], "tau": table}
    write_figures(options.json, figures)
    if options.check and not options.forced:  # last, so that the figures are there whatever it finds
        figures["checked"], figures["different"] = check(options, target, drafter, entries)
        write_figures(options.json, figures)
        report(figures["checked"], figures["different"], options.check_budget, dtype)


def check_prompt_options(options):
    for name, least in (("limit", 1), ("templates", 0), ("max_tokens", 1)):
        value = getattr(options, name)
        require(value is None or value >= least, f"--{name.replace('_', '-')} {value}: {least} or more is needed.")


def check_options(options):
    """Raises UserError naming an option whose value is not allowed."""
    check_prompt_options(options)
    for name, least in (("check", 0), ("check_budget", 1)):
        value = getattr(options, name)
        require(value >= least, f"--{name.replace('_', '-')} {value}: {least} or more is needed.")
    for name in ("replies", "json"):
        path = getattr(options, name)
        require(path is None or os.path.isdir(os.path.dirname(path) or "."),
                f"--{name} {path}: there is no such folder to write it in.")


def write_replies(path, entries):
    """Writes the file for canopy-cli bench --forced, which refuses replies of a single token, as they have no round."""
    some = [entry for entry in entries if entry["chain"]["acceptance_lengths"]]
    if len(some) < len(entries):
        say(f"{path}: {len(entries) - len(some)} replies without a round are left out.")
    write_atomically(path, (json.dumps(some) + "\n").encode())


def write_figures(path, figures):
    if path:
        write_atomically(path, (json.dumps(figures, indent=1) + "\n").encode())


def budgets_of(text):
    try:
        budgets = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise UserError(f"--budgets {text}: numbers with commas between them are expected.") from None
    require(budgets and 1 <= budgets[0] and budgets[-1] <= 1024, f"--budgets {text}: 1 to 1024 are allowed.")
    return budgets


def replies_of(options, target):
    """Entries with the replies of --forced, or with plain ones to the prompts."""
    return forced(options.forced) if options.forced else plain(options, target)


def plain(options, target):
    """Entries with the plain greedy reply to every prompt."""
    text = load_text(options.target)
    if not text.template:
        say("The target has no chat template: it goes on from the bare prompts.")
    prompts = read_prompts(options.prompts or default_files(), options.limit)
    if options.templates:
        prompts += [Prompt(f"held out: {family}", words)
                    for family, words in templates.held_out(options.templates, seeded(options.seed, "held out"))]
    ids = [text.prompt(prompt.text) for prompt in prompts]
    begun = time.monotonic()
    replies = greedy_replies(target, ids, options.max_tokens)
    seconds = time.monotonic() - begun
    say(f"{len(prompts)} replies by plain decoding: {sum(map(len, replies))} tokens in {seconds:.0f} s")
    return [{"category": prompt.category, "prompt": prompt.text, "prompt_ids": prompt_ids, "output_ids": reply}
            for prompt, prompt_ids, reply in zip(prompts, ids, replies)]


def forced(path):
    """Entries of a file with replies; what other implementations accepted in them is dropped."""
    try:
        with open(path, encoding="utf-8") as file:
            return [{key: entry[key] for key in ("category", "prompt_ids", "output_ids")} for entry in json.load(file)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a list of replies ({error}).") from None


def measure(target, drafter, entries, budgets):
    """Adds the round lengths of every way to every entry."""
    own = measure_parts(target, drafter, entries, budgets, {"own": drafter.config.draft_tokens})["own"]
    for entry, lengths in zip(entries, own):
        entry.update(lengths)


def measure_parts(target, drafter, entries, budgets, parts):
    """{part: for every entry {way: {"acceptance_lengths"}}} with heads over parts of the vocabulary (name: tokens)."""
    progress = Progress("evaluate", len(entries))
    found = {name: [] for name in parts}
    candidates = min(max(budgets), target.config.vocab)
    for number, entry in enumerate(entries, start=1):
        drafts = drafts_of_parts(target, drafter, entry["prompt_ids"], entry["output_ids"], candidates,
                                 list(parts.values()))
        for name, of_part in zip(parts, drafts):
            lengths = round_lengths(of_part, entry["output_ids"], budgets)
            found[name].append({way: {"acceptance_lengths": own} for way, own in lengths.items()})
        progress.update(number, f"reply {number}")
    return found


def check(options, target, drafter, entries):
    """Decodes some prompts for real. Returns (how many, a sentence for each reply or its rounds that differ)."""
    counts, done, different = {}, 0, []
    for entry in entries:
        counts[entry["category"]] = counts.get(entry["category"], 0) + 1
        if counts[entry["category"]] > options.check:
            continue
        for budget in (None, options.check_budget):
            reply, lengths = decode_rounds(target, drafter, entry["prompt_ids"], options.max_tokens, budget)
            way = "chain" if budget is None else f"a tree of {budget}"
            known = entry.get("chain" if budget is None else f"tree{budget}")
            if reply != entry["output_ids"]:
                different.append(f"Decoding {entry['prompt']!r} by {way} gave another reply than plain decoding, from "
                                 f"token {first_difference(reply, entry['output_ids'])} on.")
            elif known and off_by(known["acceptance_lengths"], lengths) > 1:
                different.append(f"Decoding {entry['prompt']!r} by {way} took {len(lengths)} rounds, "
                                 f"{len(known['acceptance_lengths'])} were computed from its reply.")
        done += 1
    return done, different


def report(checked, different, budget, dtype):
    """Reports the result of the check. Raises UserError where something differs in f32. In bf16 two tokens may be
    equally likely in one pass and not in the other, because of rounding; then a difference is only a warning."""
    ways = f"{checked} replies decoded round by round, by chains and by trees of {budget}"
    if not different:
        print(f"\n{ways}: each the plain greedy reply.")
        return
    for sentence in different[:DIFFERENCES_SHOWN]:
        say(sentence)
    counted = f"{ways}: {len(different)} of {2 * checked} differ"
    require(dtype is torch.bfloat16, f"{counted}; in f32 that is a defect: do not trust the figures above.")
    say(f"Warning: {counted}; in bf16 near-ties may do that, --precision f32 tells.")


def first_difference(one, other):
    return next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


def off_by(one, other):
    """By how many the numbers of rounds differ: near-ties between candidates may change single rounds."""
    return abs(len(one) - len(other))


def summary(entries, budgets):
    """{category: {"prompts", way: {"tau", "mean", "deviation", "low", "high"}}}: tau is computed over all rounds, the
    other figures over the taus of single replies."""
    categories = list(dict.fromkeys(entry["category"] for entry in entries))
    table = {}
    for category in [*categories, *([ALL] if len(categories) > 1 else [])]:
        some = [entry for entry in entries if category in (ALL, entry["category"])]
        table[category] = {"prompts": len(some)}
        for way in ["chain", *(f"tree{budget}" for budget in budgets)]:
            rounds = [entry[way]["acceptance_lengths"] for entry in some if entry[way]["acceptance_lengths"]]
            taus = [sum(lengths) / len(lengths) for lengths in rounds]
            if taus:
                table[category][way] = {
                    "tau": sum(map(sum, rounds)) / sum(map(len, rounds)), "mean": statistics.fmean(taus),
                    "deviation": statistics.stdev(taus) if len(taus) > 1 else 0.0, "low": min(taus), "high": max(taus)}
    return table


def markdown(table, budgets):
    """tau over all rounds, ± the standard deviation of the replies' own."""
    ways = ["chain", *(f"tree{budget}" for budget in budgets)]
    lines = ["| category | prompts | " + " | ".join(["chain", *(f"{budget} nodes" for budget in budgets)]) + " |",
             "|---|---|" + "---|" * len(ways)]
    for category, row in table.items():
        cells = [f"{row[way]['tau']:.2f} ± {row[way]['deviation']:.2f}" if way in row else "-" for way in ways]
        lines.append(f"| {category} | {row['prompts']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
