"""Many texts decoded in lockstep: row r's next token is forced, sampled or the likeliest, as its plan says; every pass
computes position p of all rows. Rows that are done leave the batch, so that the others run faster."""

import collections
import dataclasses

import torch

from target import KvCache

NUCLEUS = 512  # candidates that top-p chooses among: sorting a whole vocabulary costs more than the pass
LOOP_PERIOD, LOOP_SPAN = 16, 64  # greedy text that repeats with a period up to the first over the second is a loop


@dataclasses.dataclass(frozen=True)
class Forced:
    ids: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Sampled:
    limit: int  # tokens at most, the stop token included


@dataclasses.dataclass(frozen=True)
class Greedy:
    limit: int
    cut_loops: bool = True


class Row:
    """One text: its tokens so far, which of them are answers, and the stages that follow."""

    def __init__(self, plan):
        self.tokens, self.answer = list(plan[0].ids), [False] * len(plan[0].ids)
        self.plan = collections.deque(plan[1:])
        self.stage_start = len(self.tokens)
        self._advance()

    def _advance(self, stopped=None):
        """Writes the tokens of forced stages. If the text ends with a stop token and the next stage begins with the
        same one, it is written only once."""
        while self.plan and isinstance(self.plan[0], Forced):
            ids = list(self.plan.popleft().ids)
            if stopped is not None and ids and ids[0] == stopped:
                ids = ids[1:]
            stopped = None
            self.tokens += ids
            self.answer += [False] * len(ids)
        self.stage_start = len(self.tokens)

    @property
    def stage(self):
        return self.plan[0] if self.plan else None

    def append(self, token, stop_tokens):
        stage = self.plan[0]
        self.tokens.append(token)
        self.answer.append(isinstance(stage, Greedy))
        written = len(self.tokens) - self.stage_start
        stopped = token in stop_tokens
        if isinstance(stage, Greedy) and stage.cut_loops and written >= LOOP_SPAN and written % 8 == 0:
            if loops(self.tokens[-LOOP_SPAN:]):
                self.plan.clear()
                return
        if stopped or written >= stage.limit:
            self.plan.popleft()
            self._advance(token if stopped else None)


def loops(tokens):
    """Whether the tokens repeat with some period of at most LOOP_PERIOD."""
    return any(tokens[period:] == tokens[:-period] for period in range(1, LOOP_PERIOD + 1))


def nucleus_sample(logits, top_p, generator):
    """One id for each row of logits [n, vocab], sampled at temperature 1 from the likeliest tokens that together have
    probability top_p (at most NUCLEUS tokens)."""
    values, ids = logits.softmax(-1).topk(min(NUCLEUS, logits.shape[-1]))
    kept = values.cumsum(-1) - values < top_p  # the first always is
    picked = torch.multinomial((values * kept).cpu(), 1, generator=generator).to(ids.device)
    return ids.gather(-1, picked)[:, 0]


@torch.inference_mode()
def decode(target, plans, max_length, top_p=0.95, seed=0, on_position=None, recording=None):
    """plans: for each row a list of stages, the first of which is Forced and not empty. Returns the Rows, each at most
    max_length long; a row whose beginning is already that long is cut there. on_position(position, rows, how many of
    them go on) is called after every pass. A Recording for that many rows stores what the passes compute."""
    device = target.head_weight.device
    stop_tokens = set(target.config.stop_tokens)
    generator = torch.Generator().manual_seed(seed)
    rows = [Row(plan) for plan in plans]
    places = [i for i, row in enumerate(rows) if is_going_on(row, len(row.tokens), max_length)]
    active = [rows[i] for i in places]
    if not active:
        return cut(rows, max_length)
    cache = KvCache(target.config.sizes, len(active), max_length, target.head_weight)

    def run(tokens):
        """Runs some tokens for each row and returns the output of the last one of each."""
        start = cache.length
        hidden, features = target(torch.tensor(tokens, device=device), cache, recording.taps if recording else ())
        if recording:
            recording.note_taps(places, start, features)
        return hidden[:, -1]

    done = min(len(row.tokens) for row in active)
    hidden = run([row.tokens[:done] for row in active])
    while True:
        answered, logits = choose(target, active, hidden, done, top_p, generator, stop_tokens)
        if recording:
            recording.note_likeliest([places[i] for i in answered], done - 1, logits)
        done += 1
        if on_position:
            on_position(done, rows, len(active))
        kept = [i for i, row in enumerate(active) if is_going_on(row, done, max_length)]
        if not kept:
            break
        if len(kept) <= len(active) * 7 // 8:
            active, places = [active[i] for i in kept], [places[i] for i in kept]
            cache.keep_rows(torch.tensor(kept, device=device))
        # Rows that are done but not yet dropped repeat their last token; the result is not used.
        hidden = run([[row.tokens[min(done, len(row.tokens)) - 1]] for row in active])
    return cut(rows, max_length)


def cut(rows, max_length):
    for row in rows:
        del row.tokens[max_length:], row.answer[max_length:]
    return rows


def is_going_on(row, done, max_length):
    return row.stage is not None and done < max_length


def choose(target, active, hidden, done, top_p, generator, stop_tokens):
    """Appends the next token of every row whose text ends at `done` and has a stage to go on with. Returns (which rows
    got a token of an answer, their logits [n, vocab])."""
    chosen = [i for i, row in enumerate(active) if row.stage is not None and len(row.tokens) == done]
    if not chosen:
        return [], None
    logits = target.logits(hidden if len(chosen) == len(active) else hidden[torch.tensor(chosen, device=hidden.device)])
    tokens = logits.argmax(-1).tolist()
    sampled = [j for j, i in enumerate(chosen) if isinstance(active[i].stage, Sampled)]
    if sampled:
        drawn = nucleus_sample(logits[torch.tensor(sampled, device=logits.device)], top_p, generator).tolist()
        for j, token in zip(sampled, drawn):
            tokens[j] = token
    answers = [j for j, i in enumerate(chosen) if isinstance(active[i].stage, Greedy)]
    for i, token in zip(chosen, tokens):
        active[i].append(token, stop_tokens)
    return [chosen[j] for j in answers], logits if len(answers) == len(chosen) else logits[answers]


def greedy_replies(target, prompts, limit, batch=32):
    """The target's plain greedy reply to each prompt (ids), stop token included, at most `limit` tokens."""
    replies = [None] * len(prompts)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))  # neighbours share the prefill's length
    for start in range(0, len(order), batch):
        some = order[start:start + batch]
        plans = [[Forced(tuple(prompts[i])), Greedy(limit, cut_loops=False)] for i in some]
        longest = max(len(prompts[i]) for i in some)
        for i, row in zip(some, decode(target, plans, longest + limit)):
            replies[i] = row.tokens[len(prompts[i]):]
    return replies
