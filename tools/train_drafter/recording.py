"""What a target's passes tell beside the tokens that they choose: its taps, and its likeliest tokens. Decoding computes
all of it anyway, and computing it again takes as long as decoding did."""

import torch


class Recording:
    """Results of the passes over `rows` texts of at most `length` tokens: features [rows, length, len(taps) * H] in
    bf16; tokens and log_probs [rows, length, top] at the positions before answers. Positions that no pass computed,
    such as the last of a text, are zero."""

    def __init__(self, rows, length, target, taps, top):
        self.taps, self.top = tuple(taps), top
        width = len(self.taps) * target.config.sizes.hidden
        self.features = torch.zeros(rows, length, width, dtype=torch.bfloat16)
        self.tokens = torch.zeros(rows, length, top, dtype=torch.int32)
        self.log_probs = torch.zeros(rows, length, top, dtype=torch.float16)

    def note_taps(self, rows, start, features):
        """features [len(rows), n, width] of positions start ... start + n - 1"""
        self.features[rows, start:start + features.shape[1]] = features.to("cpu", torch.bfloat16)

    def note_likeliest(self, rows, position, logits):
        """logits [len(rows), vocab] at one position"""
        if self.top and rows:
            values, tokens = logits.topk(self.top)
            self.tokens[rows, position] = tokens.int().cpu()
            self.log_probs[rows, position] = values.log_softmax(-1).half().cpu()

    def teacher(self, row, count):
        return (self.tokens[row, :count], self.log_probs[row, :count]) if self.top else None
