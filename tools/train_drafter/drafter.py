"""The DFlash drafter: a small transformer over a block of rows, the root and masks, that also attends to projected
features of the target's layers. Many blocks behind one text run as one pass under one attention mask."""

import dataclasses
import functools

import torch
from torch import nn

from layers import Layer, RmsNorm, Rotation, attention
from target_config import TransformerSizes

BLOCKS_AT_ONCE = 8  # in attention: of 4 to 24 the fastest on a CPU


@dataclasses.dataclass(frozen=True)
class DrafterConfig:
    sizes: TransformerSizes  # of the drafter's own layers
    block_size: int  # B: the root and B - 1 masks
    mask_token: int  # id in the target's vocabulary
    taps: tuple[int, ...]  # 0-based target layers whose output is a feature
    target_layers: int
    vocab: int
    draft_tokens: tuple[int, ...] = ()  # that the head is over, ascending; empty: the whole vocabulary
    windows: tuple[int, ...] = ()  # by layer; 0: all keys, both directions in the block; else sliding and causal

    def window(self, layer):
        return self.windows[layer] if self.windows else 0


class Drafter(nn.Module):
    """Borrows the target's embedding and head, which callers apply."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        sizes = config.sizes
        self.fc = nn.Linear(len(config.taps) * sizes.hidden, sizes.hidden, bias=False)
        self.hidden_norm = RmsNorm(sizes.hidden, sizes.eps)
        self.layers = nn.ModuleList(Layer(sizes, qk_norm=True) for _ in range(sizes.layers))
        self.norm = RmsNorm(sizes.hidden, sizes.eps)
        self.rotation = Rotation(sizes)

    def context(self, features):
        """features [rows, T, taps * H] -> g [rows, T, H], which every layer projects to keys and values."""
        return self.hidden_norm(self.fc(features))

    def block_tokens(self, roots):
        """roots [...] -> [..., B]: each followed by masks"""
        masks = roots.new_full((*roots.shape, self.config.block_size - 1), self.config.mask_token)
        return torch.cat((roots[..., None], masks), dim=-1)

    def forward(self, embeddings, context, anchors):
        """embeddings [rows, A, B, H] of the blocks whose roots are at positions `anchors` [rows, A]; context [rows, T,
        H] of positions 0 ... T-1, of which a block sees those before its root. Returns [rows, A, B, H] after the last
        norm: row i of a block, times the target's head, predicts the token at anchor + i. Row 0 predicts nothing."""
        rows, count, block, hidden = embeddings.shape
        offsets = torch.arange(block, device=anchors.device)
        positions = (anchors[:, :, None] + offsets).flatten(1)  # [rows, A * B]
        context_positions = torch.arange(context.shape[1], device=anchors.device)
        rotation, context_rotation = self.rotation(positions), self.rotation(context_positions)
        groups = {}
        x = embeddings.flatten(1, 2)
        for index, layer in enumerate(self.layers):
            window = self.config.window(index)
            if window not in groups:
                groups[window] = block_groups(anchors, positions, context_positions, window)
            past = layer.self_attn.keys_values(context, context_rotation)
            x = layer(x, rotation, functools.partial(attend_in_groups, groups[window], past))
        return self.norm(x).view(rows, count, block, hidden)


def block_groups(anchors, positions, context_positions, window):
    """Splits the attention of blocks into groups. Blocks do not see each other, so attending to some of them at a time
    leaves out most pairs that the mask would hide; and as roots are sorted, the early groups need only little of the
    context. Returns [(slice of the rows of some blocks, number of positions of the context that they see, mask [rows,
    1, n, positions + n])]."""
    groups, block = [], positions.shape[1] // anchors.shape[1]
    for start in range(0, anchors.shape[1], BLOCKS_AT_ONCE):
        roots = anchors[:, start:start + BLOCKS_AT_ONCE]
        some = slice(start * block, (start + BLOCKS_AT_ONCE) * block)
        seen = min(int(roots.max()), len(context_positions))
        groups.append((some, seen, block_mask(roots, positions[:, some], context_positions[:seen], block, window)))
    return groups


def attend_in_groups(groups, past, queries, keys, values):
    """attention() of the blocks' rows to what they see of the past and of themselves."""
    mixed = []
    for some, seen, mask in groups:
        all_keys, all_values = (torch.cat((before[:, :, :seen], own[:, :, some]), dim=2)
                                for before, own in zip(past, (keys, values)))
        mixed.append(attention(queries[:, :, some], all_keys, all_values, mask))
    return torch.cat(mixed, dim=1)


def block_mask(anchors, positions, context_positions, block, window):
    """[rows, 1, A * B, T + A * B], true where a key is seen: the context before the block's root, and the block."""
    own_anchor = anchors.repeat_interleave(block, dim=1)[:, :, None]  # [rows, A * B, 1]
    sees_context = context_positions < own_anchor
    block_index = torch.arange(positions.shape[1], device=anchors.device) // block
    sees_block = (block_index[:, None] == block_index)[None].expand(len(anchors), -1, -1)
    if window:
        sees_context = sees_context & (positions[:, :, None] - context_positions < window)
        distance = positions[:, :, None] - positions[:, None, :]
        sees_block = sees_block & (distance >= 0) & (distance < window)
    return torch.cat((sees_context, sees_block), dim=-1)[:, None]
