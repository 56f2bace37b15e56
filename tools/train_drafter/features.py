"""What training needs of the target: its taps at all positions of a batch, and its likeliest next tokens at those that
are learnt. Computed anew for every batch, or kept in files: on a CPU the target costs several times the drafter."""

import os

import numpy
import torch

from identity import claim


class LiveFeatures:
    """Runs the target for every batch: the choice where it is fast or the text is seen once."""

    def __init__(self, target, taps, teacher_top):
        self.target, self.taps, self.top = target, taps, teacher_top

    @torch.no_grad()
    def __call__(self, batch, labels):
        """(features [rows, T, taps * H], teacher or None): teacher = (tokens [n, k], log probabilities [n, k] among the
        k) of the position in front of each label."""
        hidden, features = self.target(batch.tokens, None, self.taps)
        if not self.top:
            return features, None
        # The head is the largest matrix: positions that several blocks share are computed once.
        flat, back = (labels.rows * hidden.shape[1] + labels.positions - 1).unique(return_inverse=True)
        values, tokens = self.target.logits(hidden.flatten(0, 1)[flat]).topk(self.top)
        return features, (tokens[back], values.log_softmax(-1)[back])


class StoredFeatures:
    """The same from files in a folder, which the first batch with a text fills: bf16 features and the teacher's tokens
    at every position of an answer. 2 * taps * H bytes a token, 6 * k more with a teacher."""

    def __init__(self, target, taps, teacher_top, text, folder, identity):
        self.live = LiveFeatures(target, taps, teacher_top)
        self.target, self.text, self.top = target, text, teacher_top
        width, total = len(taps) * target.config.sizes.hidden, len(text.tokens)
        claim(folder, {**identity, "taps": list(taps), "teacher_top": teacher_top}, "features",
              used=os.path.exists(os.path.join(folder, "features.bin")))

        def mapped(name, kind, *shape):
            path = os.path.join(folder, name)
            mode = "r+" if os.path.exists(path) else "w+"
            return torch.from_numpy(numpy.memmap(path, dtype=kind, mode=mode, shape=shape))

        self.features = mapped("features.bin", numpy.int16, total, width).view(torch.bfloat16)
        self.filled = mapped("filled.bin", numpy.uint8, max(len(text), 1))
        if teacher_top:
            self.tokens = mapped("teacher_tokens.bin", numpy.int32, total, teacher_top)
            self.log_probs = mapped("teacher_log_probs.bin", numpy.float16, total, teacher_top)

    def __call__(self, batch, labels):
        if not all(self.filled[index] for index in batch.indices):
            self.fill(batch)
        device, starts = batch.tokens.device, [int(self.text.offsets[index]) for index in batch.indices]
        features = torch.zeros(*batch.tokens.shape, self.features.shape[1], dtype=torch.bfloat16)
        for row, (start, count) in enumerate(zip(starts, batch.lengths.tolist())):
            features[row, :count] = self.features[start:start + count]
        features = features.to(device, self.target.head_weight.dtype)
        if not self.top:
            return features, None
        places = torch.tensor(starts)[labels.rows.cpu()] + labels.positions.cpu() - 1
        return features, (self.tokens[places].long().to(device), self.log_probs[places].float().to(device))

    @torch.no_grad()
    def fill(self, batch):
        """Runs the target over a batch and stores what comes of it."""
        hidden, features = self.target(batch.tokens, None, self.live.taps)
        for row, (index, count) in enumerate(zip(batch.indices, batch.lengths.tolist())):
            start = int(self.text.offsets[index])
            self.features[start:start + count] = features[row, :count].to("cpu", torch.bfloat16)
            if self.top:  # in front of every token of an answer
                places = batch.answer[row, 1:count].nonzero()[:, 0]
                values, tokens = self.target.logits(hidden[row, places]).topk(self.top)
                self.tokens[start + places.cpu()] = tokens.int().cpu()
                self.log_probs[start + places.cpu()] = values.log_softmax(-1).half().cpu()
            self.filled[index] = 1
