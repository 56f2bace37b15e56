"""synthesize: text that the target writes itself. Questions are sampled from it, or come from templates; its answers
are greedy, as a drafter will see them."""

import contextlib
import os

import dataset
import templates
from decode import Forced, Greedy, Sampled, decode
from errors import require
from feature_store import FeatureStore, row_key
from identity import claim, weights_digest
from initial import check_taps, default_taps, taps_of
from progress import Progress, say
from prompts import default_files, read_prompts
from recording import Recording
from runtime import add_runtime_options, seeded, start
from target import load_target
from text import chat_frame, load_text

HELP = "let the target write text to train on"
SHORTEST_ANSWER = 8  # tokens of answers in a text that is kept


def add_options(parser):
    parser.add_argument("--target", required=True, help="Hugging Face folder or GGUF file")
    parser.add_argument("--out", required=True, help="folder for the parts and, in the end, text.npz")
    parser.add_argument("--tokens", type=int, default=2_000_000, help="answer tokens to write (default 2000000)")
    parser.add_argument("--style", choices=("chat", "text"), default="chat",
                        help="chat (default): conversations in the target's template; text: plain continuations")
    parser.add_argument("--rows", type=int, default=128, help="texts decoded in lockstep (default 128)")
    parser.add_argument("--max-length", type=int, default=448, help="tokens of a text at most (default 448)")
    parser.add_argument("--question", type=int, default=96, help="tokens of a sampled question at most (default 96)")
    parser.add_argument("--free", type=float, default=0.45, help="share of questions sampled freely (default 0.45)")
    parser.add_argument("--opened", type=float, default=0.35,
                        help="share sampled behind an opener; the rest comes from templates (default 0.35)")
    parser.add_argument("--second-turn", type=float, default=0.25, help="share with a second turn (default 0.25)")
    parser.add_argument("--top-p", type=float, default=0.95, help="of questions, sampled at temperature 1 (0.95)")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same text (default 1)")
    parser.add_argument("--features", help="folder to keep the target's features in, for train --cache-features")
    parser.add_argument("--taps", help="with --features: target layers, e.g. 1,8,14,20,27 (default: five)")
    parser.add_argument("--teacher-top", type=int, default=8,
                        help="with --features: the target's likeliest tokens that are kept (default 8)")
    add_runtime_options(parser)


def run(options):
    check_options(options)
    device, dtype = start(options)
    target, text = load_target(options.target, device, dtype), load_text(options.target)
    require(options.max_length <= target.config.context,
            f"--max-length {options.max_length}: the target was made for {target.config.context} positions.")
    frame = chat_frame(text) if options.style == "chat" else None
    around = len(frame.opening) + len(frame.to_answer) if frame else 1
    require(options.question + around + SHORTEST_ANSWER <= options.max_length,
            f"--max-length {options.max_length}: a question of --question {options.question} tokens, {around} around "
            f"it and an answer of {SHORTEST_ANSWER} do not fit in.")
    claim(options.out, identity_of(options, target), "parts of a text", used=has_parts(options.out))
    with feature_store(options, target) if options.features else contextlib.nullcontext() as store:
        parts = all_parts(target, text, frame, options, store)
    excluded = evaluation_prompts(text) if frame else set()
    whole = dataset.merged(parts, target.config.vocab, excluded)
    out = os.path.join(options.out, "text.npz")
    dataset.save(out, shuffled(whole, options.seed))
    say(f"{out}: {len(whole)} texts, {len(whole.tokens)} tokens, {int(whole.answer.sum())} of them answers")


def all_parts(target, text, frame, options, store):
    """The parts of a folder, and as many new ones as are needed."""
    parts, answered, progress = [], 0, None
    while answered < options.tokens:
        path = os.path.join(options.out, f"part-s{options.seed}-{len(parts):05}.npz")
        if not os.path.exists(path):
            progress = progress or Progress("synthesize", options.tokens, answered)
            write_part(path, target, text, frame, options, len(parts), progress, answered, store)
        parts.append(dataset.load(path))
        answered += int(parts[-1].answer.sum())
    if progress:
        say(f"{(answered - progress.first) / progress.seconds():.0f} answer tokens a second")
    return parts


def check_options(options):
    """Raises UserError naming an option whose value is not allowed."""
    for name in ("tokens", "rows", "question", "max_length"):
        value = getattr(options, name)
        require(value > 0, f"--{name.replace('_', '-')} {value}: 1 or more is needed.")
    require(0 <= options.free and 0 <= options.opened and options.free + options.opened <= 1,
            f"--free {options.free} and --opened {options.opened}: shares from 0 to 1 in all are allowed.")
    require(0 <= options.second_turn <= 1, f"--second-turn {options.second_turn}: 0 to 1 is allowed.")
    require(0 < options.top_p <= 1, f"--top-p {options.top_p}: more than 0 and at most 1 is allowed.")


def identity_of(options, target):
    """What all parts of a folder have in common; the seed and the number of a part are in its name."""
    names = ("style", "max_length", "question", "free", "opened", "second_turn", "top_p", "rows")
    return {"target": weights_digest(target), **{name: getattr(options, name) for name in names}}


def has_parts(folder):
    return os.path.isdir(folder) and any(name.startswith("part-") and name.endswith(".npz")
                                         for name in os.listdir(folder))


def feature_store(options, target):
    """The same as train opens for the same target, taps and teacher."""
    taps = taps_of(options) or default_taps(target.config.sizes.layers, 5)
    check_taps(taps, target.config)
    require(options.teacher_top >= 0, f"--teacher-top {options.teacher_top}: 0 or more is needed.")
    return contextlib.closing(FeatureStore(options.features, target, taps,
                                           min(options.teacher_top, target.config.vocab)))


def write_part(path, target, text, frame, options, part, progress, before, store):
    draw = seeded(options.seed, part, "plans")
    plans = [chat_plan(text, frame, options, draw) if frame else text_plan(target, options, draw)
             for _ in range(options.rows)]

    def show(position, rows, active):
        if position % 8 == 0:
            done = before + sum(sum(row.answer) for row in rows)
            progress.update(min(done, options.tokens - 1), f"part {part}, position {position}, {active} texts")

    seed = seeded(options.seed, part, "tokens").getrandbits(48)
    recording = Recording(len(plans), options.max_length, target, store.taps, store.top) if store else None
    rows = decode(target, plans, options.max_length, options.top_p, seed, show, recording)
    places = [i for i, row in enumerate(rows) if sum(row.answer) >= SHORTEST_ANSWER]
    kept = [(rows[i].tokens, rows[i].answer) for i in places]
    # Otherwise a target that never answers would be asked without end.
    require(kept, f"None of the {len(rows)} texts of part {part} has an answer of {SHORTEST_ANSWER} tokens. Take more "
                  "--rows or a larger --max-length; a target that was not trained to answer needs --style text.")
    for i, (tokens, answer) in zip(places, kept) if store else ():
        store.append(row_key(tokens, answer), recording.features[i, :len(tokens)], recording.teacher(i, len(tokens)))
    dataset.save(path, dataset.from_rows(kept, target.config.vocab))
    progress.update(min(before + sum(sum(answer) for _, answer in kept), options.tokens), f"part {part} written")


def chat_plan(text, frame, options, draw):
    """Stages of one conversation: the question forced or sampled, the answer greedy, perhaps the same again."""
    answer = Greedy(options.max_length)
    kind = draw.random()
    if kind < options.free:
        plan = [Forced(tuple(frame.opening)), Sampled(options.question)]
    elif kind < options.free + options.opened:
        # Without the blank at its end, which belongs to the token that follows.
        opener = draw.choice(templates.OPENERS).rstrip(" ")
        plan = [Forced(tuple(frame.opening + text.encode(opener))), Sampled(options.question)]
    else:
        plan = [Forced(tuple(frame.opening + text.encode(templates.instruction(draw)[1])))]
    plan += [Forced(tuple(frame.to_answer)), answer]
    if draw.random() < options.second_turn:
        plan += [Forced(tuple(frame.to_user)), Sampled(options.question), Forced(tuple(frame.to_answer)), answer]
    return merged_openings(plan)


def merged_openings(plan):
    """Forced stages at the front as one: Row starts from a single one."""
    first = []
    while plan and isinstance(plan[0], Forced):
        first += plan[0].ids
        plan = plan[1:]
    return [Forced(tuple(first)), *plan]


def text_plan(target, options, draw):
    """A sampled beginning of any length, then its greedy continuation."""
    config = target.config
    start_token = config.bos if config.bos is not None else (config.stop_tokens or (0,))[0]
    return [Forced((start_token,)), Sampled(draw.randint(4, options.question)), Greedy(options.max_length)]


def evaluation_prompts(text):
    """Keys of the prompts that evaluate measures with: the target may have asked one of them by itself."""
    keys = set()
    for prompt in read_prompts(default_files()):
        ids = text.prompt(prompt.text)
        keys.add(dataset.from_rows([(ids, [False] * len(ids))], None).prompt_key(0))
    return keys


def shuffled(text, seed):
    order = list(range(len(text)))
    seeded(seed, "order").shuffle(order)
    return dataset.from_rows([text.row(i) for i in order], text.vocab)
