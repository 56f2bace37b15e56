#!/usr/bin/env python3
"""Write the folders of tests/golden/packed: a matrix "x" as AutoGPTQ, AutoAWQ and PyTorch store it, and "x.expected", the
weights that their own code makes of it.

    pip download --no-deps auto-gptq==0.7.1 autoawq==0.2.7.post3   # unpack both wheels
    python make_packed.py AUTO_GPTQ_FOLDER AUTOAWQ_FOLDER          # with torch, numpy and safetensors

Only single files of the two packages are loaded, so that nothing else of them has to be installed.
"""

import importlib.util
import json
import os
import sys
import types

import torch
from safetensors.torch import save_file

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packed")


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(case, quantization, tensors):
    folder = os.path.join(HERE, case)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"quantization_config": quantization}, file, indent=2)
        file.write("\n")
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, os.path.join(folder, "model.safetensors"))


def grid(rows, cols, groups, symmetric):
    """Random codes, zeros from 1 on (AutoGPTQ cannot pack 0) and scales, by group."""
    codes = torch.randint(0, 16, (rows, cols))
    zeros = torch.full((rows, groups), 8) if symmetric else torch.randint(1, 16, (rows, groups))
    scales = (torch.rand(rows, groups) * 0.02 + 0.002).half()
    return codes, zeros, scales


def gptq(package, case, rows, cols, group_size, symmetric=False, act_order=False):
    module = load(os.path.join(package, "auto_gptq/nn_modules/qlinear/qlinear_cuda.py"), "qlinear_cuda")
    group = cols if group_size == -1 else group_size
    codes, zeros, scales = grid(rows, cols, cols // group, symmetric)
    g_idx = torch.arange(cols, dtype=torch.int32) // group
    if act_order:
        g_idx = g_idx[torch.randperm(cols)]
    linear = torch.nn.Linear(cols, rows, bias=False)
    index = g_idx.long()
    linear.weight.data = (scales.float()[:, index] * (codes - zeros[:, index]).float()).half()
    packed = module.QuantLinear(4, group_size, cols, rows, bias=False)
    packed.pack(linear, scales.float(), zeros.float(), g_idx)
    packed.autogptq_cuda_available = False
    expected = packed(torch.eye(cols).half()).t()
    quantization = {"quant_method": "gptq", "bits": 4, "group_size": group_size, "sym": symmetric, "desc_act": act_order}
    write(case, quantization, {"x.qweight": packed.qweight, "x.qzeros": packed.qzeros, "x.scales": packed.scales,
                               "x.g_idx": packed.g_idx, "x.expected": expected.half()})


def awq(package, case, rows, cols, group_size):
    utilities = load(os.path.join(package, "awq/utils/packing_utils.py"), "packing_utils")
    for name in ("awq", "awq.utils"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["awq.utils.packing_utils"] = utilities
    sys.modules["awq.utils.module"] = types.SimpleNamespace(try_import=lambda name: (None, ""))
    sys.modules["awq.utils.utils"] = types.SimpleNamespace(get_best_device=lambda: "cpu")
    module = load(os.path.join(package, "awq/modules/linear/gemm.py"), "gemm")
    codes, zeros, scales = grid(rows, cols, cols // group_size, False)
    linear = torch.nn.Linear(cols, rows, bias=False)
    index = torch.arange(cols) // group_size
    linear.weight.data = scales.float()[:, index] * (codes - zeros[:, index]).float()
    packed = module.WQLinear_GEMM.from_linear(linear, 4, group_size, scales=scales.float().t().contiguous(),
                                              zeros=zeros.t().contiguous())
    expected = utilities.dequantize_gemm(packed.qweight, packed.qzeros, packed.scales, 4, group_size).t()
    quantization = {"quant_method": "awq", "bits": 4, "group_size": group_size, "zero_point": True, "version": "gemm"}
    write(case, quantization, {"x.qweight": packed.qweight, "x.qzeros": packed.qzeros, "x.scales": packed.scales,
                               "x.expected": expected.half()})


def fp8(case, rows, cols, block, dtype):
    weight = torch.randn(rows, cols) * 0.05
    down, across = -(-rows // block[0]), -(-cols // block[1])
    expand = lambda scales: scales.float().repeat_interleave(block[0], 0)[:rows].repeat_interleave(block[1], 1)[:, :cols]
    scales = torch.zeros(down, across)
    for i in range(down):
        for j in range(across):
            part = weight[i * block[0]:(i + 1) * block[0], j * block[1]:(j + 1) * block[1]]
            scales[i, j] = part.abs().max() / torch.finfo(torch.float8_e4m3fn).max
    scales = scales.to(dtype)
    elements = (weight / expand(scales)).clamp(-448, 448).to(torch.float8_e4m3fn)
    quantization = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": list(block)}
    write(case, quantization, {"x.weight": elements, "x.weight_scale_inv": scales,
                               "x.expected": (elements.float() * expand(scales)).half()})


def fp8_scale(case, rows, cols, by_row):
    weight = torch.randn(rows, cols) * 0.05
    scale = (weight.abs().amax(1, keepdim=True) if by_row else weight.abs().max()) / 448
    elements = (weight / scale).to(torch.float8_e4m3fn)
    write(case, {"quant_method": "fp8", "activation_scheme": "static"},
          {"x.weight": elements, "x.weight_scale": scale, "x.input_scale": torch.tensor(0.01),
           "x.expected": (elements.float() * scale).half()})


def main():
    torch.manual_seed(20)
    sys.modules.setdefault("transformers", types.SimpleNamespace(pytorch_utils=types.SimpleNamespace(Conv1D=type(None))))
    auto_gptq, autoawq = sys.argv[1:]
    gptq(auto_gptq, "gptq-32", 64, 128, 32)
    gptq(auto_gptq, "gptq-128-symmetric", 64, 256, 128, symmetric=True)
    gptq(auto_gptq, "gptq-one-group", 32, 96, -1)
    gptq(auto_gptq, "gptq-64-act-order", 32, 256, 64, act_order=True)
    awq(autoawq, "awq-32", 64, 128, 32)
    awq(autoawq, "awq-128", 32, 256, 128)
    fp8("fp8-blocks-f32", 48, 80, (16, 32), torch.float32)
    fp8("fp8-blocks-bf16", 40, 64, (32, 32), torch.bfloat16)
    fp8_scale("fp8-one-scale", 24, 40, False)
    fp8_scale("fp8-row-scales", 24, 40, True)


if __name__ == "__main__":
    main()
