"""Drafters on disk: the Hugging Face layout of the published ones, read and written, and llama.cpp's GGUF, read."""

import json
import os

import safetensors.torch
import torch

import checkpoint
import draft_tokens
from atomic import write_atomically
from drafter import Drafter, DrafterConfig
from errors import require
from gguf_file import GgufFile
from target_config import TransformerSizes, sizes_from_hugging_face
from target_files import LAYER_NAMES, read_json, read_safetensors

GGUF_NAMES = {"fc.weight": "fc.weight", "enc.output_norm.weight": "hidden_norm.weight",
              "output_norm.weight": "norm.weight"}


def load_drafter(path, target_config=None):
    """Loads a Drafter in float32 from a folder (exported, or of a training run) or a GGUF file. If the config of a
    target is given, it checks that both fit."""
    if os.path.isdir(path):
        config, tensors = read_folder(path)
    else:
        require(os.path.isfile(path), f"{path}: there is no such file or folder.")
        config, tensors = read_gguf(GgufFile(path))
    if target_config is not None:
        check_pair(config, target_config, path)
    drafter = Drafter(config)
    expected = {name: tuple(values.shape) for name, values in drafter.state_dict().items()}
    actual = {name: tuple(values.shape) for name, values in tensors.items()}
    for name in sorted(set(expected) | set(actual)):
        require(expected.get(name) == actual.get(name),
                f"{path}: {name} is {actual.get(name, 'missing')}, expected {expected.get(name, 'none of that name')}.")
    drafter.load_state_dict(tensors)
    return drafter


def check_pair(config, target, where):
    """Raises UserError if a drafter was made for another target."""
    for what, mine, theirs in (("hidden size", config.sizes.hidden, target.sizes.hidden),
                               ("number of target layers", config.target_layers or target.sizes.layers,
                                target.sizes.layers),
                               ("vocabulary", config.vocab or target.vocab, target.vocab)):
        require(mine == theirs, f"{where}: the drafter's {what} is {mine}, the target's is {theirs}.")
    require(all(0 <= tap < target.sizes.layers for tap in config.taps),
            f"{where}: taps {list(config.taps)} are not all layers of the target (0 to {target.sizes.layers - 1}).")
    require(not config.draft_tokens or config.draft_tokens[-1] < target.vocab,
            f"{where}: it drafts token {max(config.draft_tokens, default=0)}, outside the vocabulary of {target.vocab}.")
    require(0 <= config.mask_token < target.vocab,
            f"{where}: mask token {config.mask_token} is outside the vocabulary of {target.vocab}.")


def read_folder(path):
    """(DrafterConfig, float32 tensors) of a Hugging Face folder or of a run of train."""
    where = os.path.join(path, "config.json")
    stated = read_json(where)
    inner = stated.get("dflash_config") or {}

    def field(name):
        value = inner.get(name, stated.get(name))
        require(value is not None, f"{where}: {name} is missing, at the top level and in dflash_config.")
        return value

    sliding = stated.get("layer_types") or []
    window = stated.get("sliding_window") or 0
    config = DrafterConfig(
        sizes=sizes_from_hugging_face(stated, where), block_size=int(field("block_size")),
        mask_token=int(field("mask_token_id")), taps=tuple(field("target_layer_ids")),
        target_layers=int(stated.get("num_target_layers") or 0), vocab=int(stated.get("vocab_size") or 0),
        draft_tokens=tuple(inner.get("draft_token_ids") or ()),
        windows=tuple(window if kind == "sliding_attention" else 0 for kind in sliding))
    draft_tokens.check(config.draft_tokens, config.vocab, where)
    state = checkpoint.load(path)
    return config, state["drafter"] if state else read_safetensors(path)


def read_gguf(file):
    """(DrafterConfig, float32 tensors) of a file in llama.cpp's dialect, where taps are stored plus one."""
    where = os.path.basename(file.path)
    architecture = file.require("general.architecture")
    require(architecture == "dflash", f"{where}: general.architecture is {architecture!r}, expected 'dflash'.")
    require(not file.get("dflash.attention.sliding_window"), f"{where}: sliding windows are read from folders only.")
    heads, hidden = file.require("dflash.attention.head_count"), file.require("dflash.embedding_length")
    sizes = TransformerSizes(
        hidden=hidden, layers=file.require("dflash.block_count"), heads=heads,
        kv_heads=file.get("dflash.attention.head_count_kv", heads),
        head_dim=file.get("dflash.attention.key_length", hidden // heads),
        ffn=file.require("dflash.feed_forward_length"), eps=file.require("dflash.attention.layer_norm_rms_epsilon"),
        rope_theta=file.get("dflash.rope.freq_base", 10000.0), rope_scaling=None)
    config = DrafterConfig(
        sizes=sizes, block_size=file.require("dflash.block_size"),
        mask_token=file.require("tokenizer.ggml.mask_token_id"),
        taps=tuple(layer - 1 for layer in file.require("dflash.target_layers")), target_layers=0, vocab=0,
        draft_tokens=tuple(int(token) for token in file.get("dflash.draft_token_ids", ())))
    draft_tokens.check(config.draft_tokens, file.get("dflash.vocab_size", 0), where)
    tensors = {}
    for name in file.tensors:
        parts = name.split(".")
        if parts[0] == "blk" and len(parts) == 4 and parts[2] in LAYER_NAMES:
            tensors[f"layers.{parts[1]}.{LAYER_NAMES[parts[2]]}.weight"] = file.tensor(name)
        else:
            require(name in GGUF_NAMES, f"{where}: the tensor {name} is not one of a drafter.")
            tensors[GGUF_NAMES[name]] = file.tensor(name)
    return config, tensors


def config_json(config, target):
    """config.json of a drafter as the published ones have it."""
    sizes = config.sizes
    return {
        "architectures": ["DFlashDraftModel"], "model_type": "qwen3", "attention_bias": False,
        "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": sizes.hidden,
        "intermediate_size": sizes.ffn, "num_hidden_layers": sizes.layers, "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads, "head_dim": sizes.head_dim,
        "max_position_embeddings": target.context, "rms_norm_eps": sizes.eps, "rope_theta": sizes.rope_theta,
        "rope_scaling": sizes.rope_scaling, "vocab_size": config.vocab, "tie_word_embeddings": target.tied,
        "layer_types": ["sliding_attention" if config.window(i) else "full_attention" for i in range(sizes.layers)],
        "sliding_window": max(config.windows, default=0) or None, "use_sliding_window": any(config.windows),
        "initializer_range": 0.02, "block_size": config.block_size, "num_target_layers": config.target_layers,
        "bos_token_id": target.bos, "eos_token_id": target.stop_tokens[0] if target.stop_tokens else None,
        "dtype": "bfloat16",
        "dflash_config": {"mask_token_id": config.mask_token, "target_layer_ids": list(config.taps),
                          **({"draft_token_ids": list(config.draft_tokens)} if config.draft_tokens else {})},
    }


def write_folder(path, drafter, target_config):
    """config.json and model.safetensors (bf16); each file replaces what was there at once."""
    os.makedirs(path, exist_ok=True)
    text = json.dumps(config_json(drafter.config, target_config), indent=1) + "\n"
    write_atomically(os.path.join(path, "config.json"), text.encode())
    tensors = {name: values.detach().to("cpu", torch.bfloat16).contiguous()
               for name, values in drafter.state_dict().items()}
    write_atomically(os.path.join(path, "model.safetensors"),
                     safetensors.torch.save(tensors, metadata={"format": "pt"}))
