"""The configuration of a target, read from a Hugging Face config.json or from GGUF metadata."""

import dataclasses

from errors import UserError, require

FAMILIES = {"llama": False, "qwen3": True}  # architecture: whether queries and keys are normalised per head


@dataclasses.dataclass(frozen=True)
class TransformerSizes:
    """Sizes that a target and its drafter both have, under the same names."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    eps: float
    rope_theta: float
    rope_scaling: dict | None  # as in config.json, rope_type llama3 only; None where frequencies are plain


@dataclasses.dataclass(frozen=True)
class TargetConfig:
    sizes: TransformerSizes
    family: str  # a key of FAMILIES
    vocab: int
    context: int  # positions it was trained for
    tied: bool  # the head is the embedding
    stop_tokens: tuple[int, ...] = ()
    bos: int | None = None

    @property
    def qk_norm(self):
        return FAMILIES[self.family]


def rope_from_hugging_face(config):
    """(theta, scaling) from either generation of config.json: rope_theta beside rope_scaling, or rope_parameters."""
    parameters = config.get("rope_parameters") or {}
    theta = parameters.get("rope_theta", config.get("rope_theta", 10000.0))
    scaling = config.get("rope_scaling") or parameters
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return float(theta), None
    require(kind == "llama3", f"config.json: rope scaling {kind!r} is not supported; default and llama3 are.")
    return float(theta), dict(scaling)


def sizes_from_hugging_face(config, where):
    """TransformerSizes of a config.json that was parsed; also of a drafter's."""
    try:
        heads = int(config["num_attention_heads"])
        theta, scaling = rope_from_hugging_face(config)
        sizes = TransformerSizes(
            hidden=int(config["hidden_size"]), layers=int(config["num_hidden_layers"]), heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or config["hidden_size"] // heads),
            ffn=int(config["intermediate_size"]), eps=float(config["rms_norm_eps"]), rope_theta=theta,
            rope_scaling=scaling)
    except KeyError as missing:
        raise UserError(f"{where}: {missing.args[0]} is missing.") from None
    require(sizes.heads % sizes.kv_heads == 0,
            f"{where}: {sizes.heads} query heads cannot share {sizes.kv_heads} key/value heads evenly.")
    require(not config.get("attention_bias"), f"{where}: attention_bias is set; biases are not supported.")
    activation = config.get("hidden_act", "silu")
    require(activation == "silu", f"{where}: hidden_act is {activation!r}; only silu is supported.")
    return sizes


def config_from_hugging_face(config, generation, where):
    """TargetConfig from config.json and generation_config.json (either may state the stop tokens)."""
    family = config.get("model_type")
    require(family in FAMILIES,
            f"{where}: model_type is {family!r}; supported targets are {', '.join(sorted(FAMILIES))}.")
    stops = []
    for source in (config, generation):
        value = source.get("eos_token_id")
        stops += value if isinstance(value, list) else [] if value is None else [value]
    return TargetConfig(
        sizes=sizes_from_hugging_face(config, where), family=family, vocab=int(config["vocab_size"]),
        context=int(config.get("max_position_embeddings", 2048)), tied=bool(config.get("tie_word_embeddings")),
        stop_tokens=tuple(dict.fromkeys(stops)), bos=config.get("bos_token_id"))
