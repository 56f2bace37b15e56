"""Muon for matrices and AdamW for the rest, or AdamW for all, with one cosine schedule of the learning rate."""

import math

import torch

from runtime import multiplies_bf16_fast


class Muon(torch.optim.Optimizer):
    """Momentum whose matrices are made orthogonal by Newton-Schulz iteration (Jordan et al. 2024), scaled to the size
    of AdamW's updates (Liu et al. 2025), so that one learning rate serves both. PyTorch's own version always iterates
    in bf16, which takes seven times as long as float32 on a CPU without instructions for it. Here matrices of the same
    shape are processed together."""

    COEFFICIENTS = (3.4445, -4.7750, 2.0315)

    def __init__(self, matrices, rate, weight_decay, momentum=0.95, iterations=5):
        super().__init__(matrices, {"lr": rate, "weight_decay": weight_decay, "momentum": momentum,
                                    "iterations": iterations})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            shapes = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    shapes.setdefault(parameter.shape, []).append(parameter)
            for shape, parameters in shapes.items():
                updates = torch.stack([self.momentum(parameter, group["momentum"]) for parameter in parameters])
                updates = orthogonal(updates, group["iterations"])
                scale = group["lr"] * 0.2 * math.sqrt(max(shape))
                for parameter, update in zip(parameters, updates):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=scale)

    def momentum(self, parameter, share):
        """Nesterov's: a step further along the running mean of gradients."""
        state = self.state[parameter]
        if not state:
            state["mean"] = torch.zeros_like(parameter)
        state["mean"].lerp_(parameter.grad, 1 - share)
        return parameter.grad.lerp(state["mean"], share)


def orthogonal(matrices, iterations):
    """[n, rows, columns] -> the nearest orthogonal matrices, roughly: singular values between 0.7 and 1.2."""
    a, b, c = Muon.COEFFICIENTS
    x = matrices.bfloat16() if multiplies_bf16_fast(matrices.device) else matrices.float()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(iterations):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if tall else x).to(matrices.dtype)


class Optimizer:
    """Both optimizers as one, with the schedule of the learning rate."""

    def __init__(self, drafter, kind, rate, weight_decay):
        matrices = [p for p in drafter.parameters() if p.ndim == 2]
        vectors = [p for p in drafter.parameters() if p.ndim != 2]
        self.parts = []
        if kind == "muon":
            self.parts.append(Muon(matrices, rate, weight_decay))
            matrices = []
        groups = [{"params": vectors, "weight_decay": 0.0}]
        if matrices:
            groups.append({"params": matrices, "weight_decay": weight_decay})
        self.parts.append(torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98)))
        self.parameters = list(drafter.parameters())
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
    """Factor of the learning rate: rises linearly over `warmup`, then falls as a cosine to `final`."""
    if share < warmup:
        return (share + 1e-3) / (warmup + 1e-3)
    return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * (share - warmup) / max(1 - warmup, 1e-9)))
