"""A new drafter for a target: its configuration, and weights to start from."""

import dataclasses

import torch

from drafter import Drafter, DrafterConfig
from errors import UserError, require


def default_taps(layers, count):
    """Evenly from layer 1 to the third from the end, as the published drafters have them."""
    count = min(count, max(1, layers - 3))
    if count == 1:
        return (max(0, layers - 3),)
    return tuple(round(1 + i * (layers - 4) / (count - 1)) for i in range(count))


def taps_of(options):
    """The layers that --taps names, or None."""
    try:
        return tuple(int(tap) for tap in options.taps.split(",")) if options.taps else None
    except ValueError:
        raise UserError(f"--taps {options.taps}: numbers with commas between them are expected.") from None


def check_taps(taps, target_config):
    """Raises UserError where a tap is no layer of the target, or they are not in order."""
    last = target_config.sizes.layers - 1
    require(all(0 <= tap <= last for tap in taps) and list(taps) == sorted(set(taps)),
            f"--taps {','.join(map(str, taps))}: ascending layers from 0 to {last} are allowed.")


def mask_token_id(text, vocab, named):
    """The id of a token that does not occur in text, given by its spelling or its number; if none is given, that of
    <mask>. Digits always mean a number, even where they spell a token, since such tokens occur in text."""
    if named is None:
        for spelling in ("<|mask|>", "<mask>", "[MASK]", "<|MASK|>"):
            if text.token_id(spelling) is not None:
                return text.token_id(spelling)
        require(False, "The target's tokenizer has no mask token: name one that does not occur in text by "
                       "--mask-token, such as a reserved special token.")
    found = int(named) if named.isdecimal() else text.token_id(named)
    require(found is not None and found < vocab,
            f"--mask-token {named}: neither a token's spelling nor an id below {vocab}.")
    return found


def new_config(target_config, layers, block_size, taps, mask_token):
    require(1 <= layers <= 64, f"--layers {layers}: 1 to 64 are allowed.")
    sizes = dataclasses.replace(target_config.sizes, layers=layers)
    check_taps(taps, target_config)
    check_block_size(block_size)
    return DrafterConfig(sizes=sizes, block_size=block_size, mask_token=mask_token, taps=tuple(taps),
                         target_layers=target_config.sizes.layers, vocab=target_config.vocab)


def check_block_size(size):
    require(2 <= size <= 64, f"--block-size {size}: 2 to 64 are allowed.")


def new_drafter(config, target, warm, seed):
    """A Drafter in float32 on the target's device. Warm: its layers are copies of the target's from the last tap on,
    and fc averages the taps; else all matrices are random."""
    torch.manual_seed(seed)
    drafter = Drafter(config)
    with torch.no_grad():
        for name, values in drafter.named_parameters():
            if values.ndim == 2:
                values.normal_(std=0.02)
        if warm:
            copy_layers(drafter, target)
            average_taps(drafter)
    return drafter.to(target.head_weight.device)


def copy_layers(drafter, target):
    """The target's layers from the last tap on, as many as there are, or the last ones."""
    count, total = drafter.config.sizes.layers, target.config.sizes.layers
    require(count <= total, f"--layers {count}: the target has {total} to start from; use --init random.")
    first = min(drafter.config.taps[-1], total - count)
    for index, layer in enumerate(drafter.layers):
        source = target.layers[first + index].state_dict()
        layer.load_state_dict({name: values.float() for name, values in source.items()}, strict=False)


def average_taps(drafter):
    """Sets fc to identity matrices side by side, with the largest weight for the last tap, whose features are nearest
    to what the copied layers expect."""
    hidden, count = drafter.config.sizes.hidden, len(drafter.config.taps)
    identity = torch.eye(hidden)
    shares = [0.5 / max(count - 1, 1)] * (count - 1) + [1.0]
    drafter.fc.weight.add_(torch.cat([share * identity for share in shares], dim=1))
