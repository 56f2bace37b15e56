"""Reads a target from a Hugging Face folder or a GGUF file into one form: TargetConfig and float32 tensors under the
names that Hugging Face gives them, without "model." in front."""

import json
import os

import safetensors

from errors import UserError, require
from gguf_file import GgufFile
from target_config import FAMILIES, TargetConfig, TransformerSizes, config_from_hugging_face

LAYER_NAMES = {  # GGUF's name in a block: Hugging Face's in a layer
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}


def read_json(path, missing_ok=False):
    """The object in a JSON file; {} where it is missing and may be. Raises UserError."""
    if missing_ok and not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as JSON ({error}).") from None
    require(isinstance(found, dict), f"{path}: holds no JSON object.")
    return found


def read_safetensors(folder):
    """All tensors of a folder's *.safetensors as float32. Raises UserError where one cannot be read."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    require(names, f"{folder}: there is no .safetensors file in it.")
    tensors = {}
    for name in names:
        path = os.path.join(folder, name)
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                for key in file.keys():
                    tensors[key.removeprefix("model.")] = file.get_tensor(key).float()
        except (OSError, ValueError, safetensors.SafetensorError) as error:
            raise UserError(f"{path}: not a safetensors file that can be read ({error}).") from None
    return tensors


def read_target(path):
    """(TargetConfig, tensors) of a folder or a GGUF file. Raises UserError for anything that is not supported."""
    config = read_config(path)
    return config, read_safetensors(path) if os.path.isdir(path) else gguf_tensors(GgufFile(path))


def read_config(path):
    """The TargetConfig alone."""
    if os.path.isdir(path):
        where = os.path.join(path, "config.json")
        generation = read_json(os.path.join(path, "generation_config.json"), missing_ok=True)
        return config_from_hugging_face(read_json(where), generation, where)
    require(os.path.isfile(path), f"{path}: there is no such file or folder.")
    return gguf_config(GgufFile(path))


def gguf_config(file):
    """TargetConfig from GGUF metadata."""
    family = file.require("general.architecture")
    where = os.path.basename(file.path)
    require(family in FAMILIES,
            f"{where}: general.architecture is {family!r}; supported targets are {', '.join(sorted(FAMILIES))}.")
    require(file.get(f"{family}.rope.scaling.type", "none") == "none",
            f"{where}: {family}.rope.scaling.type is set; only factors in rope_freqs.weight are supported.")
    require(file.get(f"{family}.expert_count", 0) == 0, f"{where}: mixtures of experts are not supported.")
    heads, hidden = file.require(f"{family}.attention.head_count"), file.require(f"{family}.embedding_length")
    scaling = None
    if "rope_freqs.weight" in file.tensors:
        scaling = {"rope_type": "factors", "factors": file.tensor("rope_freqs.weight").tolist()}
    sizes = TransformerSizes(
        hidden=hidden, layers=file.require(f"{family}.block_count"), heads=heads,
        kv_heads=file.get(f"{family}.attention.head_count_kv", heads),
        head_dim=file.get(f"{family}.attention.key_length", hidden // heads),
        ffn=file.require(f"{family}.feed_forward_length"),
        eps=file.require(f"{family}.attention.layer_norm_rms_epsilon"),
        rope_theta=file.get(f"{family}.rope.freq_base", 10000.0), rope_scaling=scaling)
    stops = [file.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot")]
    return TargetConfig(
        sizes=sizes, family=family, vocab=len(file.require("tokenizer.ggml.tokens")),
        context=file.get(f"{family}.context_length", 2048), tied="output.weight" not in file.tensors,
        stop_tokens=tuple(dict.fromkeys(stop for stop in stops if stop is not None)),
        bos=file.get("tokenizer.ggml.bos_token_id"))


def gguf_tensors(file):
    """The tensors under Hugging Face's names. Files of architecture llama have the rows of q and k in the order for
    interleaved rotation; this order is undone, so that all models use the same rotation."""
    family = file.require("general.architecture")
    heads = file.require(f"{family}.attention.head_count")
    head_counts = {"attn_q": heads, "attn_k": file.get(f"{family}.attention.head_count_kv", heads)}
    tensors = {"embed_tokens.weight": file.tensor("token_embd.weight"),
               "norm.weight": file.tensor("output_norm.weight")}
    if "output.weight" in file.tensors:
        tensors["lm_head.weight"] = file.tensor("output.weight")
    for name in file.tensors:
        parts = name.split(".")  # blk.N.<name>.weight
        if parts[0] != "blk":
            continue
        require(len(parts) == 4 and parts[3] == "weight" and parts[2] in LAYER_NAMES,
                f"{os.path.basename(file.path)}: the tensor {name} is not one of a supported target.")
        values = file.tensor(name)
        if family == "llama" and parts[2] in head_counts:
            values = halves_together(values, head_counts[parts[2]])
        tensors[f"layers.{parts[1]}.{LAYER_NAMES[parts[2]]}.weight"] = values
    return tensors


def halves_together(weight, heads):
    """Rows (2i, 2i+1) of each head become rows (i, i + d/2): from interleaved rotation to that of halves."""
    rows, cols = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, cols).transpose(1, 2).reshape(rows, cols).contiguous()
