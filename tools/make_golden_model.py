#!/usr/bin/env python3
"""Write a tiny checkpoint of random weights of an architecture, and what transformers computes with it, to tests/golden.

    python -m venv venv && venv/bin/pip install torch 'transformers==4.57.6'   # 5.24.0 for qwen3_5-moe, and for it alone
    venv/bin/python tools/make_golden_model.py qwen2 mistral   # names of MODELS below; all where none is given

Each is tiny-NAME/ (config.json, model.safetensors in BF16), tiny-NAME.golden.json and tiny-NAME.golden.safetensors, as
tests/golden/README.md describes them. Float32 on the CPU, eager attention: logits of texts, and of trees behind them, each
node's as the last row of a plain forward pass over the text and the path to the node.
"""

import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
VOCAB = 96

COMMON = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": None,
}

# Name: configuration, what it changes of COMMON.
MODELS = {
    "qwen2": (transformers.Qwen2Config, {"rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "tie_word_embeddings": True}),
    "phi3": (
        transformers.Phi3Config,
        {
            "rope_theta": 10000.0,
            "original_max_position_embeddings": 64,
            "rope_scaling": {
                "type": "longrope",
                "short_factor": [1.0, 1.0, 1.1, 1.2, 1.5, 1.5, 2.0, 2.0],
                "long_factor": [1.0, 1.3, 2.0, 4.0, 6.0, 8.0, 8.0, 9.0],
            },
        },
    ),
    "qwen3-yarn": (
        transformers.Qwen3Config,
        {
            "hidden_size": 32,
            "head_dim": 32,
            "rope_theta": 10000.0,
            "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64},
        },
    ),
    "smollm3": (
        transformers.SmolLM3Config,
        {"rope_theta": 5000000.0, "num_hidden_layers": 3, "no_rope_layers": [1, 0, 1], "tie_word_embeddings": True},
    ),
    "qwen3_5-moe": (
        getattr(transformers, "Qwen3_5MoeTextConfig", None),
        {
            "hidden_size": 32,
            "layer_types": ["linear_attention", "full_attention"],
            "head_dim": 32,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 48,
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "rope_parameters": {
                "rope_theta": 10000000.0,
                "rope_type": "default",
                "partial_rotary_factor": 0.25,
                "mrope_interleaved": True,
                "mrope_section": [2, 1, 1],
            },
        },
    ),
    "qwen3_next": (
        transformers.Qwen3NextConfig,
        {
            "hidden_size": 32,
            "layer_types": ["linear_attention", "full_attention"],
            "head_dim": 32,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 48,
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "rope_theta": 10000000.0,
        },
    ),
    "mistral": (
        transformers.MistralConfig,
        {"hidden_size": 32, "rope_theta": 10000.0, "head_dim": 32, "sliding_window": None},
    ),
    "qwen3-window": (
        transformers.Qwen3Config,
        {"hidden_size": 32, "head_dim": 16, "use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1},
    ),
    "gpt-oss": (
        transformers.GptOssConfig,
        {
            "hidden_size": 32,
            "intermediate_size": 32,
            "head_dim": 16,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": 9,
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 8.0,
                "original_max_position_embeddings": 64,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "truncate": False,
            },
        },
    ),
}

# Granite 3: factors of embeddings, of what layers add, of scores and of logits.
MODELS["granite"] = (
    transformers.GraniteConfig,
    {
        "rope_theta": 10000.0,
        "rms_norm_eps": 1e-6,
        "embedding_multiplier": 3.0,
        "residual_multiplier": 0.4,
        "attention_multiplier": 0.2,
        "logits_scaling": 0.5,
        "tie_word_embeddings": True,
    },
)


def make_vision_config(**text):
    """Of a model that sees pictures, which no golden text has."""
    vision = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": text["hidden_size"],
              "num_position_embeddings": 4, "deepstack_visual_indexes": []}
    return transformers.Qwen3VLMoeConfig(text_config=text, vision_config=vision, tie_word_embeddings=False)


MODELS["qwen3vlmoe"] = (
    make_vision_config,
    {
        "hidden_size": 32,
        "head_dim": 16,
        "moe_intermediate_size": 16,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "rope_theta": 5000000.0,
        "rope_scaling": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [4, 2, 2]},
    },
)

# Of Gemma 3 the older file's form of the rotation, with a layer of each kind.
GEMMA = {
    "hidden_size": 32,
    "hidden_activation": "gelu_pytorch_tanh",
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "sliding_window": 9,
    "layer_types": ["sliding_attention", "full_attention"],
    "query_pre_attn_scalar": 24,
    "pad_token_id": 0,
}
MODELS["gemma3"] = (
    transformers.Gemma3TextConfig,
    {**GEMMA, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
)
MODELS["gemma2"] = (
    transformers.Gemma2Config,
    {**GEMMA, "attn_logit_softcapping": 3.0, "final_logit_softcapping": 20.0},
)

# With the experts as published: blocks of 4-bit floats and their scales.
MODELS["gpt-oss-mxfp4"] = MODELS["gpt-oss"]
# As Phi-4-mini: three quarters of a head are turned, and the embedding is the head.
PHI3_SCALING = MODELS["phi3"][1]["rope_scaling"]
MODELS["phi3-short"] = (
    MODELS["phi3"][0],
    {
        **MODELS["phi3"][1],
        "num_hidden_layers": 1,
        "partial_rotary_factor": 0.75,
        "rope_scaling": {**PHI3_SCALING, **{key: PHI3_SCALING[key][:6] for key in ("short_factor", "long_factor")}},
        "tie_word_embeddings": True,
    },
)

# The same models as files in GGUF can say them: the kinds of their layers in the order of published ones. None: as usual.
AS_GGUF = {
    "gemma2": {"layer_types": None, "num_hidden_layers": 3, "query_pre_attn_scalar": 32},
    "gemma3": {"layer_types": None, "num_hidden_layers": 7, "query_pre_attn_scalar": 32},
    "qwen3_5-moe": {"layer_types": None, "num_hidden_layers": 4},
    "qwen3_next": {"layer_types": None, "num_hidden_layers": 4},
    "smollm3": {"no_rope_layers": None, "num_hidden_layers": 5},
}

# Made as GGUF alone: tests/golden has checkpoints of these architectures from elsewhere.
FOR_GGUF = {
    "llama3": (
        transformers.LlamaConfig,
        {
            "rope_theta": 500000.0,
            "rope_scaling": {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        },
    ),
    "qwen3-moe": (
        transformers.Qwen3MoeConfig,
        {"hidden_size": 32, "head_dim": 32, "moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": True},
    ),
    "qwen3_5": (
        getattr(transformers, "Qwen3_5TextConfig", None),
        {
            **{field: value for field, value in MODELS["qwen3_5-moe"][1].items() if "expert" not in field and "moe" not in field},
            "layer_types": ["linear_attention"] * 3 + ["full_attention"],
            "num_hidden_layers": 4,
        },
    ),
}

# Of the two texts. LongRoPE has other frequencies in a context above the original one: both are longer here, or shorter.
LENGTHS = {"phi3": (66, 70), "phi3-short": (17, 30), "qwen3-yarn": (17, 70)}
LENGTHS |= dict.fromkeys(("gpt-oss", "gpt-oss-mxfp4", "qwen3_5-moe", "qwen3_next"), (12, 30))
# Of models with experts, so many are tried: that one is taken in which each choice of experts is clearest, as a device
# that rounds to halves may otherwise choose others.
TRIALS = {"gpt-oss": 24, "gpt-oss-mxfp4": 24, "qwen3-moe": 16, "qwen3_5-moe": 16, "qwen3_next": 16, "qwen3vlmoe": 16}


def make_model(name, trial=0, as_gguf=False):
    make_config, changes = {**MODELS, **FOR_GGUF}[name]
    if make_config is None:
        sys.exit(f"This transformers, {transformers.__version__}, does not know {name}.")
    fields = {**COMMON, **changes}
    for field, value in (AS_GGUF.get(name, {}) if as_gguf else {}).items():
        if value is None:
            del fields[field]
        else:
            fields[field] = value
    config = make_config(**fields)
    config._attn_implementation = "eager"
    torch.manual_seed(sum(name.encode()) + 1 + 1000 * trial)
    sees = name == "qwen3vlmoe"
    model = (transformers.Qwen3VLMoeForConditionalGeneration(config) if sees
             else transformers.AutoModelForCausalLM.from_config(config)).eval()
    with torch.no_grad():
        for key, values in model.named_parameters():
            if name.startswith(("qwen3_5", "qwen3_next", "gemma")) and key.endswith("norm.weight") and "linear_attn" not in key:
                values.uniform_(-0.5, 0.5)  # stored less 1
            elif key.endswith("norm.weight"):
                values.uniform_(0.5, 1.5)
            elif key.endswith("bias"):
                values.normal_(0, 0.5)
            elif key.endswith("sinks"):
                values.normal_(0, 2)
            elif values.dim() == 3:  # experts, whose columns are outputs; some gates reach their limit
                values.normal_(0, (2.8 if "gate" in key else 1.0) * values.shape[-2] ** -0.5)
            else:
                values.normal_(0, 1.7 * values.shape[-1] ** -0.5)
            values.copy_(values.to(torch.bfloat16))  # the values of the file, in float32
    return model


def pack_experts(model):
    """Rounds the experts to MXFP4, and gives the tensors of the file that hold them in the place of their floats."""
    from transformers.integrations.mxfp4 import FP4_VALUES, convert_moe_packed_tensors  # not in all versions

    packed = {}
    with torch.no_grad():
        for key, values in model.named_parameters():
            if values.dim() != 3:
                continue
            rows = values.transpose(1, 2).reshape(values.shape[0], values.shape[2], -1, 32)
            scales = (torch.floor(torch.log2(rows.abs().amax(-1))) - 2).clamp(-127, 127)
            codes = (rows * 2.0 ** -scales[..., None])[..., None].sub(torch.tensor(FP4_VALUES)).abs().argmin(-1)
            blocks = (codes[..., 0::2] | codes[..., 1::2] << 4).to(torch.uint8)
            packed[key + "_blocks"] = blocks.contiguous()
            packed[key + "_scales"] = (scales + 127).to(torch.uint8).contiguous()
            values.copy_(convert_moe_packed_tensors(blocks, packed[key + "_scales"], dtype=torch.float32))
    return packed


def save_packed(model, packed, folder):
    model.config.quantization_config = {"quant_method": "mxfp4"}
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    tensors = {key: values for key, values in model.state_dict().items() if key + "_blocks" not in packed}
    save_file({**tensors, **packed}, folder / "model.safetensors", metadata={"format": "pt"})


def random_tree(generator, nodes):
    """Tokens, parents and depths; the root is node 0. Children of one node differ."""
    tokens, parents, depths = [], [], []
    taken = set()
    while len(tokens) < nodes:
        parent = -1
        if tokens:
            parent = int(torch.randint(max(0, len(tokens) - 4), len(tokens), (1,), generator=generator))
        token = int(torch.randint(VOCAB, (1,), generator=generator))
        if (parent, token) in taken:
            continue
        taken.add((parent, token))
        tokens.append(token)
        parents.append(parent)
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
    return tokens, parents, depths


def path_to(parents, node):
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]


@torch.no_grad()
def compute(model, ids):
    """Logits [T, vocab] and the hidden states after the final norm [T, hidden], which the head reads."""
    read = []
    hook = model.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    result = model(torch.tensor([ids]), use_cache=False)
    hook.remove()
    return result.logits[0], read[0][0]


def smallest_gap(logits):
    best = logits.topk(2).values
    return float((best[:, 0] - best[:, 1]).min())


def make_sequence(model, name, length, nodes, tensors):
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(VOCAB, (length,), generator=generator).tolist()
    tokens, parents, depths = random_tree(generator, nodes)
    logits, hidden = compute(model, ids)
    rows = [compute(model, ids + [tokens[i] for i in path_to(parents, node)])[0][-1] for node in range(nodes)]
    tree = torch.stack(rows)
    tensors[name + ".logits"] = logits.contiguous()
    tensors[name + ".final_hidden"] = hidden.contiguous()
    tensors[name + ".tree_logits"] = tree
    return {
        "name": name,
        "ids": ids,
        "tree_token_ids": tokens,
        "tree_parents": parents,
        "tree_depths": depths,
        "argmax": logits.argmax(-1).tolist(),
        "tree_argmax": tree.argmax(-1).tolist(),
        "min_top2_gap": round(min(smallest_gap(logits), smallest_gap(tree)), 6),
    }


def watch_choices(model, gaps):
    """Appends how much larger the last chosen expert's logit is than the first other one's, the least of each pass."""

    def watch(router, inputs, _):
        gate = getattr(router, "gate", router)  # of some models a layer of its own
        logits = torch.nn.functional.linear(inputs[0].reshape(-1, gate.weight.shape[1]), gate.weight, getattr(gate, "bias", None))
        best = logits.topk(router.top_k + 1, dim=-1).values
        gaps.append(float((best[:, -2] - best[:, -1]).min()))

    for module in model.modules():
        if hasattr(module, "top_k") and (hasattr(module, "hidden_dim") or hasattr(module, "gate")):
            module.register_forward_hook(watch)


def try_model(name, trial, as_gguf):
    """How clear the choices of experts are, the model, what its file has packed, and its golden data."""
    model, gaps, tensors = make_model(name, trial, as_gguf), [], {}
    packed = pack_experts(model) if name.endswith("mxfp4") else {}
    watch_choices(model, gaps)
    short, long = LENGTHS.get(name, (17, 50))
    sequences = [make_sequence(model, "seq0", short, 12, tensors), make_sequence(model, "seq1", long, 13, tensors)]
    return min(gaps, default=0), model, packed, sequences, tensors


def write(name, folder=GOLDEN, as_gguf=False):
    label = "tiny-" + name
    trials = (try_model(name, trial, as_gguf) for trial in range(TRIALS.get(name, 1)))
    _, model, packed, sequences, tensors = max(trials, key=lambda trial: trial[0])
    model.to(torch.bfloat16)
    if packed:
        save_packed(model, packed, folder / label)
    else:
        model.save_pretrained(folder / label)
    (folder / label / "generation_config.json").unlink(missing_ok=True)
    golden = {"checkpoint": label, "tensors_file": label + ".golden.safetensors", "sequences": sequences}
    (folder / (label + ".golden.json")).write_text(json.dumps(golden) + "\n", encoding="utf-8")
    save_file(tensors, folder / (label + ".golden.safetensors"))


def main():
    names = sys.argv[1:] or sorted(MODELS)
    for name in names:
        if name not in MODELS:
            sys.exit(f"There is no model {name!r}; there are: {', '.join(sorted(MODELS))}.")
    for name in names:
        write(name)


if __name__ == "__main__":
    main()
