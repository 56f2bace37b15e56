"""The target: a frozen Llama or Qwen3 whose layer outputs (taps) are handed out beside its result."""

import torch
from torch import nn

from errors import UserError
from layers import Layer, RmsNorm, Rotation, attention
from target_files import read_target


class KvCache:
    """Keys and values of all layers at fixed positions. All rows are of one length at any time."""

    def __init__(self, sizes, rows, capacity, like):
        shape = (sizes.layers, rows, sizes.kv_heads, capacity, sizes.head_dim)
        self.keys, self.values = (torch.zeros(shape, dtype=like.dtype, device=like.device) for _ in range(2))
        self.length = 0

    def store(self, layer, keys, values):
        """Stores new keys and values after the first `length` positions. Returns those of all positions."""
        end = self.length + keys.shape[2]
        self.keys[layer, :, :, self.length:end] = keys
        self.values[layer, :, :, self.length:end] = values
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]

    def keep_rows(self, rows):
        """Drops all rows but these, of which there must be one or more, in ascending order."""
        for layer in range(len(self.keys)):  # in place: new memory for a whole cache takes longer than a pass
            for values in (self.keys, self.values):
                values[layer, :len(rows), :, :self.length] = values[layer, :, :, :self.length][rows]
        self.keys, self.values = self.keys[:, :len(rows)], self.values[:, :len(rows)]

    def keep_positions(self, length, picked):
        """Positions 0 ... length-1 stay, those of `picked` move behind them, the rest is dropped."""
        end = length + len(picked)
        self.keys[:, :, :, length:end] = self.keys[:, :, :, picked]
        self.values[:, :, :, length:end] = self.values[:, :, :, picked]
        self.length = end


class Target(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        sizes = config.sizes
        self.embed_tokens = nn.Embedding(config.vocab, sizes.hidden)
        self.layers = nn.ModuleList(Layer(sizes, config.qk_norm) for _ in range(sizes.layers))
        self.norm = RmsNorm(sizes.hidden, sizes.eps)
        self.rotation = Rotation(sizes)
        self.lm_head = None if config.tied else nn.Linear(sizes.hidden, config.vocab, bias=False)

    @property
    def head_weight(self):
        """[vocab, H]"""
        return self.embed_tokens.weight if self.lm_head is None else self.lm_head.weight

    def logits(self, hidden):
        """Output of forward() [..., H] -> float32 [..., vocab]"""
        return (hidden @ self.head_weight.T).float()

    def forward(self, tokens, cache=None, taps=(), positions=None, mask=None):
        """Runs tokens [rows, n] that follow what the cache holds. Returns (hidden [rows, n, H] after the last norm,
        features [rows, n, len(taps) * H] or None: the outputs of the layers `taps`, concatenated). positions [n] and
        mask [1, 1, n, length + n] are for draft trees; without them the rows are plain text."""
        start = cache.length if cache else 0
        count = tokens.shape[1]
        if positions is None:
            positions = torch.arange(start, start + count, device=tokens.device)
            if mask is None and start > 0 and count > 1:
                mask = torch.arange(start + count, device=tokens.device) <= positions[:, None]
                mask = mask[None, None]
        rotation = self.rotation(positions)
        causal = mask is None and count > 1
        x, tapped = self.embed_tokens(tokens), {}
        for index, layer in enumerate(self.layers):
            def attend(queries, keys, values, index=index):
                if cache:
                    keys, values = cache.store(index, keys, values)
                return attention(queries, keys, values, mask, causal)

            x = layer(x, rotation, attend)
            if index in taps:
                tapped[index] = x
        if cache:
            cache.length += count
        features = torch.cat([tapped[tap] for tap in taps], dim=-1) if taps else None
        return self.norm(x), features


def load_target(path, device="cpu", dtype=torch.float32):
    """A frozen Target from a Hugging Face folder or a GGUF file. Raises UserError."""
    config, tensors = read_target(path)
    with torch.device("meta"):
        target = Target(config)
    expected = dict(target.named_parameters())
    if config.tied:
        tensors.pop("lm_head.weight", None)
    tensors = {name: values for name, values in tensors.items() if not name.endswith("rotary_emb.inv_freq")}
    for name in sorted(set(expected) | set(tensors)):
        if name not in tensors or name not in expected:
            raise UserError(f"{path}: the tensor {name} is {'missing' if name in expected else 'unknown'}.")
        if tensors[name].shape != expected[name].shape:
            raise UserError(f"{path}: {name} is {list(tensors[name].shape)}, expected {list(expected[name].shape)}.")
    target.load_state_dict({name: values.to(dtype) for name, values in tensors.items()}, assign=True)
    target.rotation = Rotation(config.sizes)  # computed, not stored: the one on `meta` is empty
    return target.requires_grad_(False).eval().to(device)
