"""The layer that Llama, Qwen3 and their DFlash drafters share: grouped-query attention with rotary positions and
SwiGLU, both behind RMS norms. Module names follow Hugging Face, so that state dicts are checkpoints."""

import math

import torch
from torch import nn
from torch.nn import functional


class RmsNorm(nn.Module):
    """x / rms(x) * weight over the last dimension, in float32."""

    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return functional.rms_norm(x.float(), self.weight.shape, self.weight.float(), self.eps).to(x.dtype)


class Rotation(nn.Module):
    """Cosines and sines of rotary positions, float32, made on demand for any positions."""

    def __init__(self, sizes):
        super().__init__()
        frequencies = sizes.rope_theta ** -(torch.arange(0, sizes.head_dim, 2).float() / sizes.head_dim)
        self.register_buffer("frequencies", scaled(frequencies, sizes.rope_scaling), persistent=False)

    def forward(self, positions):
        """positions [..., n] -> (cos, sin), each [..., 1, n, head_dim]: the 1 stands for the heads."""
        angles = positions[..., None].float() * self.frequencies
        angles = torch.cat((angles, angles), dim=-1).unsqueeze(-3)
        return angles.cos(), angles.sin()


def scaled(frequencies, scaling):
    """Frequencies after llama3's scaling (config.json) or divided by GGUF's stored factors."""
    if scaling is None:
        return frequencies
    if scaling["rope_type"] == "factors":
        return frequencies / torch.tensor(scaling["factors"])
    original = scaling["original_max_position_embeddings"]
    low, high, factor = scaling["low_freq_factor"], scaling["high_freq_factor"], scaling["factor"]
    wavelengths = 2 * math.pi / frequencies
    blend = ((original / wavelengths - low) / (high - low)).clamp(0, 1)  # 0: long waves, slowed down; 1: as they are
    return frequencies * (blend + (1 - blend) / factor)


def rotate(x, rotation):
    """x [..., heads, n, head_dim], pairs (i, i + head_dim/2)."""
    cos, sin = rotation
    first, second = x.float().chunk(2, dim=-1)
    return (x.float() * cos + torch.cat((-second, first), dim=-1) * sin).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, sizes, qk_norm):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = sizes.heads, sizes.kv_heads, sizes.head_dim
        self.q_proj = nn.Linear(sizes.hidden, sizes.heads * sizes.head_dim, bias=False)
        self.k_proj = nn.Linear(sizes.hidden, sizes.kv_heads * sizes.head_dim, bias=False)
        self.v_proj = nn.Linear(sizes.hidden, sizes.kv_heads * sizes.head_dim, bias=False)
        self.o_proj = nn.Linear(sizes.heads * sizes.head_dim, sizes.hidden, bias=False)
        self.q_norm = RmsNorm(sizes.head_dim, sizes.eps) if qk_norm else nn.Identity()
        self.k_norm = RmsNorm(sizes.head_dim, sizes.eps) if qk_norm else nn.Identity()

    def split(self, x, heads):
        """[rows, n, heads * d] -> [rows, heads, n, d]"""
        return x.unflatten(-1, (heads, self.head_dim)).transpose(1, 2)

    def queries(self, x, rotation):
        return rotate(self.q_norm(self.split(self.q_proj(x), self.heads)), rotation)

    def keys_values(self, x, rotation):
        """x [rows, n, H] -> K, V [rows, kv_heads, n, head_dim]"""
        keys = rotate(self.k_norm(self.split(self.k_proj(x), self.kv_heads)), rotation)
        return keys, self.split(self.v_proj(x), self.kv_heads)


def attention(queries, keys, values, mask=None, causal=False):
    """softmax(q k / sqrt d) v: queries [rows, heads, n, d], keys and values [rows, kv_heads, m, d],
    mask [rows or 1, 1, n, m], true where a key is seen -> [rows, n, heads * d]"""
    rows, heads, count, size = queries.shape
    groups = heads // keys.shape[1]
    if causal:
        if groups > 1:
            keys, values = (t.repeat_interleave(groups, dim=1) for t in (keys, values))
        out = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    else:  # the heads of a group as so many queries: keys are read once
        queries = queries.reshape(rows, -1, groups * count, size)
        mask = None if mask is None else mask.repeat(1, 1, groups, 1)
        out = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        out = out.reshape(rows, heads, count, size)
    return out.transpose(1, 2).flatten(2)


class Mlp(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.gate_proj = nn.Linear(sizes.hidden, sizes.ffn, bias=False)
        self.up_proj = nn.Linear(sizes.hidden, sizes.ffn, bias=False)
        self.down_proj = nn.Linear(sizes.ffn, sizes.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, sizes, qk_norm):
        super().__init__()
        self.input_layernorm = RmsNorm(sizes.hidden, sizes.eps)
        self.self_attn = Attention(sizes, qk_norm)
        self.post_attention_layernorm = RmsNorm(sizes.hidden, sizes.eps)
        self.mlp = Mlp(sizes)

    def forward(self, x, rotation, attend):
        """x [rows, n, H]. attend(queries, keys, values of x) -> [rows, n, heads * head_dim]: to all that x sees."""
        normed = self.input_layernorm(x)
        keys, values = self.self_attn.keys_values(normed, rotation)
        x = x + self.self_attn.o_proj(attend(self.self_attn.queries(normed, rotation), keys, values))
        return x + self.mlp(self.post_attention_layernorm(x))
