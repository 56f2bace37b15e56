"""A made-up sweep, written after docs/comparing-gpus.md: plain decoding, a chain, trees and adaptive over two categories."""

import math

WAYS = [("ar", None), ("chain", None), ("tree", 4), ("tree", 8), ("tree", 16), ("tree", 32), ("tree", 64),
        ("adaptive", None)]


def sample_sweep(device="GeForce RTX 4090", plain=140.0, gain=1.9, best=24.0, repeats=3, **subject):
    """gain: of the best tree over plain decoding; best: rows of its passes."""
    runs = []
    for repeat in range(repeats):
        for prompt in range(4):
            for number, (mode, budget) in enumerate(WAYS):
                rows = {"ar": 1, "chain": 8, "adaptive": best}.get(mode) or budget + 1
                bend = math.log(max(rows, 2) / best) / math.log(best)
                speed = plain * (1 if mode == "ar" else 1 + (gain - 1) * (1 - 0.9 * bend * bend))
                speed *= 1 + 0.01 * math.sin(7 * repeat + 3 * prompt + number)
                rounds = 128 if mode == "ar" else round(128 / min(5.2, 1.6 + 0.9 * math.log2(rows)))
                runs.append({"contestant": number, "prompt": prompt, "repeat": repeat, "place": len(runs),
                             "prompt_tokens": 40, "reused_tokens": 39, "tokens": 129, "rounds": rounds,
                             "rows": round(rounds * rows), "widest": math.ceil(rows), "prefill_ms": 12.0,
                             "decode_ms": 128e3 / speed, "stage_ms": {"draft": 20e3 / speed, "verify": 100e3 / speed},
                             "reason": "token limit", "text_hash": f"{prompt:016x}", "differs_at": None,
                             "energy_j": 128 * 210 / speed})
    return {"format": "canopy-sweep", "version": 1, "kind": "sweep", "canopy": {"version": "0.1.0", "commit": "1a2b3c"},
            "created": "2026-11-24T10:00:00Z", "cores": 16,
            "subjects": [{"target": 0, "model": "Qwen3-8B.Q4_K_M.gguf", "quantization": "Q4_K", "parameters": 8190735360,
                          "drafter": "qwen3-8b-dflash.gguf", "block": 16, "kv": "f16", "context": 8192,
                          "device": device, "device_type": "discrete", "driver": "driver 570.1", "kernels": "matrix; 4096",
                          "self_test": "Rows have the same bits alone and in wider passes.", "energy": "NVML", **subject}],
            "contestants": [{"mode": mode, "budget": budget, "subject": 0} for mode, budget in WAYS],
            "prompts": [{"id": f"{name}_{i}", "category": name, "hash": f"{i:016x}"}
                        for name in ("gsm", "code") for i in range(2)],
            "settings": {"repeats": repeats, "max_tokens": 129, "order_seed": 1}, "baseline": 0, "runs": runs}
