"""Where the arithmetic runs, in which precision, and from which seed."""

import functools
import os
import random

import torch

from errors import UserError, require


def add_runtime_options(parser):
    """--device, --precision, --threads: the same for all commands."""
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, auto (default): CUDA where there is one")
    parser.add_argument("--precision", default="auto", choices=("auto", "bf16", "f32"),
                        help="auto (default): bf16 where the device multiplies it fast (CUDA, AMX, AVX-512 BF16)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: all cores)")


def choose_device(name):
    """torch.device from what the user asked for."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"--device {name}: there is no such device; cpu, cuda and cuda:N are known.") from None
    require(device.type in ("cpu", "cuda"), f"--device {name}: cpu and cuda are supported.")
    require(device.type == "cpu" or torch.cuda.is_available(), f"--device {name}: PyTorch finds no CUDA device here.")
    return device


@functools.cache
def multiplies_bf16_fast(device):
    """CUDA from compute capability 8 on; CPUs with AMX or AVX-512 BF16."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device)[0] >= 8
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
    except OSError:
        return False
    return "amx_bf16" in flags or "avx512_bf16" in flags


def start(options):
    """(device, dtype of the frozen target and of autocast) after setting threads."""
    torch.set_num_threads(options.threads or os.cpu_count() or 1)
    torch.set_float32_matmul_precision("high")
    device = choose_device(options.device)
    fast = options.precision == "bf16" or (options.precision == "auto" and multiplies_bf16_fast(device))
    return device, torch.bfloat16 if fast else torch.float32


def seeded(*parts):
    """random.Random of a seed and a place, so that every step draws the same whether or not the run was resumed."""
    return random.Random(":".join(str(part) for part in parts))


def autocast(device, dtype):
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=dtype is torch.bfloat16)
