"""Muon for matrices and AdamW for the rest, or AdamW for all, behind one cosine."""

import math

import torch


class Optimizer:
    def __init__(self, drafter, kind, rate, weight_decay):
        matrices = [p for p in drafter.parameters() if p.ndim == 2]
        vectors = [p for p in drafter.parameters() if p.ndim != 2]
        self.parts = []
        if kind == "muon":
            # Updates of AdamW's size, so that one rate serves both.
            self.parts.append(torch.optim.Muon(matrices, lr=rate, weight_decay=weight_decay,
                                               adjust_lr_fn="match_rms_adamw"))
            matrices = []
        groups = [{"params": vectors, "weight_decay": 0.0}]
        if matrices:
            groups.append({"params": matrices, "weight_decay": weight_decay})
        self.parts.append(torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98)))
        self.parameters = [p for p in drafter.parameters()]
        self.rate = rate

    def step(self, share, warmup, final):
        """One update at `share` (0 ... 1) of the run. Returns the norm of the gradient."""
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = self.rate * schedule(share, warmup, final)
            part.step()
            part.zero_grad(set_to_none=True)
        return float(norm)

    def state_dict(self):
        return [part.state_dict() for part in self.parts]

    def load_state_dict(self, states):
        for part, state in zip(self.parts, states, strict=True):
            part.load_state_dict(state)


def schedule(share, warmup, final):
    """Factor of the rate: linear up over `warmup`, then a cosine down to `final`."""
    if share < warmup:
        return (share + 1e-3) / (warmup + 1e-3)
    return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * (share - warmup) / max(1 - warmup, 1e-9)))
