#pragma once
// Made-up sweeps.

#include <string>
#include <vector>

#include "engine/bench/sweep.h"

namespace canopy::test {

inline MeasuredRun some_run(RunKey key, double tokens_per_second, uint32_t tokens = 101, uint32_t rounds = 50) {
  MeasuredRun run;
  run.key = key;
  run.prompt_tokens = 24;
  run.reused_tokens = 23;
  run.tokens = tokens;
  run.rounds = rounds;
  run.rows = uint64_t{rounds} * 3;
  run.widest = 9;
  run.prefill_ms = 12.5;
  run.decode_ms = 1000.0 * (tokens - 1) / tokens_per_second;
  run.ms.verify = run.decode_ms * 0.75;
  run.ms.draft = run.decode_ms * 0.25;
  run.text_hash = "00000000000000aa";
  return run;
}

/// Plain decoding, a chain and a tree of 16 on one device, so many repeats of two prompts of two categories, without
/// runs.
inline Sweep some_sweep(uint32_t repeats = 2) {
  Sweep sweep;
  sweep.version = "0.1";
  sweep.commit = "1a2b3c";
  sweep.created = "2026-11-24T10:00:00Z";
  sweep.cores = 2;
  SweepSubject subject;
  subject.model = "SmolLM2-135M-Instruct.Q4_1.gguf";
  subject.quantization = "Q4_1";
  subject.parameters = 134'515'008;
  subject.drafter = "smollm2-135m-dflash.gguf";
  subject.block = 16;
  subject.kv = "f16";
  subject.context = 8192;
  subject.device = "A very good GPU";
  subject.device_type = "discrete";
  subject.driver = "driver 1";
  subject.kernels = "7 matrix; 576x576 (rows 4)";
  sweep.subjects.push_back(subject);
  sweep.contestants = {{{DecodeMode::ar, 0}, 0}, {{DecodeMode::chain, 0}, 0}, {{DecodeMode::tree, 16}, 0}};
  sweep.prompts = {{"gsm_01", "gsm", "0123456789abcdef"}, {"he_01", "he", "fedcba9876543210"}};
  sweep.settings.repeats = repeats;
  sweep.settings.max_tokens = 100;
  return sweep;
}

/// With all runs: the chain 2 times, the tree 3 times as fast as plain decoding, whose speed varies by the repeat.
inline Sweep measured_sweep(uint32_t repeats = 2) {
  Sweep sweep = some_sweep(repeats);
  for (const RunKey& key : run_order(sweep.counts(), 1)) {
    const double plain = 100.0 + 2.0 * key.repeat;
    MeasuredRun run = some_run(key, plain * (key.contestant + 1), 101, key.contestant == 0 ? 100 : 40);
    run.place = static_cast<uint32_t>(sweep.runs.size());
    sweep.runs.push_back(run);
  }
  return sweep;
}

}  // namespace canopy::test
