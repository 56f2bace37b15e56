// llamacpp_probe, a program for tools/bench_llamacpp and tools/second_opinion: times llama.cpp, prints its likeliest
// tokens and its drafts, or lets it write a model as F32.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>

#include "probe.h"

namespace {

using canopy::peer::Backend;
using canopy::peer::DrafterKind;

void add_peer_options(CLI::App& command, canopy::peer::PeerOptions& options) {
  command.add_option("--model", options.model, "GGUF file")->required();
  static const std::map<std::string, Backend> backends = {{"cpu", Backend::cpu}, {"vulkan", Backend::vulkan}};
  command.add_option("--backend", options.backend, "cpu or vulkan")
      ->required()
      ->transform(CLI::CheckedTransformer(backends));
  command.add_option("--threads", options.threads, "Default: one for each hardware thread")->check(CLI::PositiveNumber);
}

void bench(canopy::peer::BenchOptions& options) {
  const uint32_t widest = *std::ranges::max_element(options.widths);
  const uint32_t longest = *std::ranges::max_element(options.prefill_tokens);
  options.peer.context = std::max(longest, options.at + std::max(widest, options.decode_tokens));
  run_bench(options);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures llama.cpp.", "llamacpp_probe");
  app.require_subcommand(1);

  canopy::peer::BenchOptions bench_options;
  CLI::App* bench_command = app.add_subcommand("bench", "Time prefill, passes and decoding once per line of input");
  add_peer_options(*bench_command, bench_options.peer);
  bench_command->add_option("--widths", bench_options.widths)->delimiter(',')->check(CLI::PositiveNumber);
  bench_command->add_option("--at", bench_options.at)->check(CLI::PositiveNumber);
  bench_command->add_option("--decode-tokens", bench_options.decode_tokens)->check(CLI::PositiveNumber);
  bench_command->add_option("--prefill-tokens", bench_options.prefill_tokens)
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  bench_command->add_option("--repeats", bench_options.repeats)->check(CLI::PositiveNumber);

  canopy::peer::LogitsOptions logits_options;
  CLI::App* logits_command = app.add_subcommand("logits", "Print the likeliest tokens after every position");
  add_peer_options(*logits_command, logits_options.peer);
  logits_command->add_option("--ids", logits_options.ids_file)->required();
  logits_command->add_option("--top", logits_options.top)->check(CLI::PositiveNumber);
  logits_command->add_option("--rows", logits_options.rows_file);
  logits_command->add_flag("--f32-cache", logits_options.peer.f32_cache);

  canopy::peer::DraftsOptions drafts_options;
  CLI::App* drafts_command = app.add_subcommand("drafts", "Print what a drafter drafts behind texts");
  add_peer_options(*drafts_command, drafts_options.peer);
  drafts_command->add_option("--drafter", drafts_options.drafter, "GGUF file")->required();
  static const std::map<std::string, DrafterKind> kinds = {{"block", DrafterKind::block},
                                                           {"eagle3", DrafterKind::eagle3},
                                                           {"head", DrafterKind::head},
                                                           {"assistant", DrafterKind::assistant}};
  drafts_command->add_option("--kind", drafts_options.kind)->required()->transform(CLI::CheckedTransformer(kinds));
  drafts_command->add_option("--depth", drafts_options.depth)->check(CLI::PositiveNumber);
  drafts_command->add_option("--first-slot", drafts_options.first_slot);
  drafts_command->add_option("--ids", drafts_options.ids_file)->required();

  std::string source, target;
  CLI::App* widen_command = app.add_subcommand("widen", "Write a model with its weights as F32");
  widen_command->add_option("source", source, "GGUF file")->required();
  widen_command->add_option("target", target, "The file to write")->required();

  CLI11_PARSE(app, argc, argv);
  try {
    if (bench_command->parsed()) {
      bench(bench_options);
    } else if (logits_command->parsed()) {
      run_logits(logits_options);
    } else if (drafts_command->parsed()) {
      run_drafts(drafts_options);
    } else if (widen_command->parsed()) {
      canopy::peer::run_widen(source, target);
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "llamacpp_probe: " << error.what() << "\n";
    return 1;
  }
}
