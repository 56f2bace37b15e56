"""One training run: steps, held-out measurements, checkpoints. A resumed run does what an unbroken one would have
done: all that is drawn depends on the seed and the step."""

import json
import os
import time

import torch

import checkpoint
from batches import epoch_batches, labels_of, make_batch
from losses import Vocabulary, block_loss, position_weights
from optimizer import Optimizer
from progress import Progress, say
from runtime import autocast, seeded


class Trainer:
    def __init__(self, options, target, drafter, text, training, held, features, dtype, identity):
        self.options, self.target, self.drafter, self.text = options, target, drafter, text
        self.training, self.held, self.features, self.dtype = training, held, features, dtype
        self.device, self.block = target.head_weight.device, drafter.config.block_size
        self.optimizer = Optimizer(drafter, options.optimizer, options.rate, options.weight_decay)
        counts = torch.bincount(torch.from_numpy(text.tokens), minlength=target.config.vocab)
        self.vocabulary = Vocabulary(counts, options.vocabulary)
        self.whole = Vocabulary(counts, 0)
        self.weights = position_weights(self.block, options.decay, self.device)
        self.step, self.epoch, self.batches = 0, -1, []
        self.identity = identity

    def restore(self, state):
        """Goes on from a checkpoint of the same run."""
        self.drafter.load_state_dict(state["drafter"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]

    def save(self):
        checkpoint.save(self.options.out, {
            "identity": self.identity, "step": self.step, "drafter": self.drafter.state_dict(),
            "optimizer": self.optimizer.state_dict()})

    def run(self):
        """To the last step, or until --minutes are over."""
        options, saved, begun = self.options, time.monotonic(), time.monotonic()
        progress = Progress("train", options.steps, self.step)
        loss, blocks = 0.0, 0
        while self.step < options.steps:
            value, count = self.train_step(self.step)
            self.step += 1
            blocks += count
            loss = value if self.step == progress.first + 1 else 0.98 * loss + 0.02 * value
            progress.update(self.step, f"step {self.step}, loss {loss:.3f}, {blocks / progress.seconds():.0f} blocks/s")
            late = options.minutes and time.monotonic() - begun > options.minutes * 60
            if self.step % options.measure_every == 0 or self.step == options.steps:
                self.log(loss, blocks / progress.seconds())
            if late or self.step == options.steps or time.monotonic() - saved > options.checkpoint_seconds:
                self.save()
                saved = time.monotonic()
            if late:
                say(f"Stopped at step {self.step} of {options.steps} after {options.minutes} minutes; the same command "
                    "goes on from there.")
                break

    def batch_at(self, step):
        """The texts of a step, and random numbers of its own."""
        per_epoch = -(-len(self.training) // self.options.rows)
        epoch, index = divmod(step, per_epoch)
        if epoch != self.epoch:
            self.batches = epoch_batches(self.text, self.training, self.options.rows, self.options.seed, epoch)
            self.epoch = epoch
        certainty = self.features.certainty if self.identity["roots"] == "rounds" else None
        return self.make(self.batches[index], seeded(self.options.seed, "step", step), certainty)

    def make(self, indices, draw, certainty=None):
        batch = make_batch(self.text, indices, self.options.anchors, draw, self.options.max_length, self.device,
                           certainty)
        return batch, torch.Generator().manual_seed(draw.getrandbits(48))

    def forward(self, batch, generator, vocabulary):
        """(loss, hits [n], Labels) of a batch"""
        labels = labels_of(batch, self.block)
        features, teacher = self.features(batch, labels)
        roots = batch.tokens.gather(1, batch.anchors)
        with autocast(self.device, self.dtype):
            blocks = self.target.embed_tokens(self.drafter.block_tokens(roots)).float()  # so is what the layers add up
            hidden = self.drafter(blocks, self.drafter.context(features), batch.anchors)
            rows = hidden[:, :, 1:][labels.picked]
            loss, hits = block_loss(rows, self.target.head_weight, labels, teacher, vocabulary, generator,
                                    self.options.kl, self.weights)
        return loss, hits, labels

    def train_step(self, step):
        """(loss, blocks) after one update"""
        batch, generator = self.batch_at(step)
        loss, _, _ = self.forward(batch, generator, self.vocabulary)
        loss.backward()
        self.optimizer.step(step / self.options.steps, self.options.warmup, self.options.final_rate)
        return float(loss.detach()), int(batch.anchor_used.sum())

    @torch.no_grad()
    def measure(self):
        """(tau of a chain at roots drawn evenly, share of hits by depth) on held-out texts."""
        hits = torch.zeros(self.block - 1)
        seen, emitted, blocks = torch.zeros(self.block - 1), 0.0, 0
        for start in range(0, min(len(self.held), self.options.measure_texts), self.options.rows):
            indices = self.held[start:start + self.options.rows]
            batch, generator = self.make(indices, seeded(self.options.seed, "measure", start))
            _, found, labels = self.forward(batch, generator, self.whole)
            right = torch.zeros(labels.picked.shape, dtype=torch.bool, device=self.device)
            right[labels.picked] = found
            hits += right.sum((0, 1)).cpu()
            seen += labels.picked.sum((0, 1)).cpu()
            emitted += float(right.long().cumprod(-1).sum())
            blocks += int(batch.anchor_used.sum())
        return 1 + emitted / max(blocks, 1), (hits / seen.clamp(min=1)).tolist()

    def log(self, loss, rate):
        tau, shares = self.measure() if self.held else (None, [])
        entry = {"step": self.step, "loss": round(loss, 4), "blocks_per_second": round(rate, 1),
                 "held_out_tau": tau and round(tau, 4), "held_out_hits": [round(share, 4) for share in shares]}
        with open(os.path.join(self.options.out, "log.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        if tau:
            say(f"step {self.step}: loss {loss:.3f}, held-out tau of a chain {tau:.3f}, hits by depth "
                + " ".join(f"{share:.3f}" for share in shares))
