#include "app/cli/trace_what_if.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>

#include "app/base/number_options.h"
#include "app/cli/interrupt.h"
#include "app/cli/terminal.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/elsewhere/recording_elsewhere.h"
#include "engine/predict/model_shapes.h"
#include "engine/whatif/what_if_summary.h"

namespace canopy::cli {
namespace {

using nlohmann::ordered_json;

struct WhatIfOptions {
  std::string file, costs, device, model, mode, policy, output;
  uint32_t budget = 0, widest = 0, depth = 0;
  bool as_json = false;
};

WhatIfWish wish_of(const WhatIfOptions& options) {
  WhatIfWish wish;
  if (!options.mode.empty()) wish.mode = decode_mode_of(options.mode);
  if (!options.policy.empty()) wish.policy = cost_policy_of(options.policy);
  if (options.budget > 0) wish.budget = options.budget;
  if (options.widest > 0) wish.widest = options.widest;
  if (options.depth > 0) wish.deepest = options.depth;
  return wish;
}

/// What is wrong with a file of costs names that file alone.
CostsElsewhere costs_of(const WhatIfOptions& options, const std::string& context, const TraceHeader& header,
                        std::span<const RecordedReply> replies) {
  if (!options.costs.empty() && options.costs != "self") return costs_of_file(options.costs, header, replies);
  return with_context(context, [&] {
    if (options.device.empty()) return costs_as_recorded(header);
    return costs_of_device(predict::device_profile(options.device), header, replies, options.model);
  });
}

ordered_json to_json(const WhatIfRound& round) {
  const RoundRecord& record = round.record;
  return {{"reply", round.reply},
          {"context", record.context},
          {"shape", to_string(record.shape)},
          {"width", record.width},
          {"emitted", record.emitted.size()},
          {"ms", record.ms.total()},
          {"ar_ms", round.ar_ms},
          {"same_as_recorded", round.as_recorded}};
}

ordered_json to_json(const WhatIf& run, const CostsElsewhere& there) {
  const WhatIfSummary summary = summarize(run);
  uint64_t decisions_same = 0;
  ordered_json passes = ordered_json::array(), widths = ordered_json::array();
  for (const WhatIfRound& round : run.rounds) {
    decisions_same += round.chosen && round.as_recorded ? 1 : 0;
    passes.push_back(to_json(round));
  }
  for (const auto& [width, count] : summary.widths) widths.push_back({{"width", width}, {"rounds", count}});
  return {{"source", to_string(there.source)},
          {"device", there.name},
          {"from", there.from},
          {"exact", run.exact},
          {"why_not", run.why_not},
          {"rounds", run.rounds.size()},
          {"decisions", run.chosen},
          {"decisions_same_as_recorded", decisions_same},
          {"rounds_same_as_recorded", run.as_recorded},
          {"left_out", run.left_out},
          {"tokens", run.tokens},
          {"ms", run.ms},
          {"tokens_per_second", run.tokens_per_second()},
          {"ar_tokens_per_second", run.ar_tokens_per_second()},
          {"ratio", summary.ratio},
          {"tokens_a_round", run.tokens_a_round()},
          {"verdict", summary.verdict},
          {"widths", std::move(widths)},
          {"passes", std::move(passes)}};
}

constexpr size_t kMostOfASentence = 4096;

constexpr const char* kDensify = " canopy-cli trace densify gives the recording what is missing.";

/// Whether drafts can be added to a recording, so that more of it is exact.
bool lacks_drafts(const TraceReader& trace) {
  return std::ranges::any_of(trace.replies(), [](const TraceReply& reply) { return !reply.dense; });
}

void print(const WhatIf& run, const CostsElsewhere& there, bool can_densify) {
  const WhatIfSummary summary = summarize(run);
  std::cout << printable(there.name) << " (" << to_string(there.source) << "): " << fixed(run.tokens_per_second(), 1)
            << " tokens/s, plain decoding " << fixed(run.ar_tokens_per_second(), 1) << "; " << run.tokens
            << " tokens in " << run.rounds.size() << " passes, " << fixed(run.tokens_a_round(), 2) << " a pass\n"
            << summary.verdict << "\n";
  if (run.chosen > 0) {
    uint64_t same = 0;
    for (const WhatIfRound& round : run.rounds) same += round.chosen && round.as_recorded ? 1 : 0;
    std::cout << "chosen as recorded: " << same << " of " << run.chosen << "\n";
  }
  std::cout << printable(there.from, kMostOfASentence) << "\n";
  if (run.exact) {
    std::cout << "Exact but for the times: each pass begins where the one before it ended.\n";
  } else {
    std::cout << printable(run.why_not, kMostOfASentence) << (can_densify ? kDensify : "") << "\n";
    if (run.left_out > 0) std::cout << "Left out, since nothing of them is known: " << run.left_out << " rounds.\n";
  }
}

int run_what_if(const WhatIfOptions& options) {
  if (!options.device.empty() && !options.costs.empty()) {
    throw UsageError("Give one of --costs and --device: both say what passes cost.");
  }
  const std::vector<NamedFile> outputs = {{"--output", options.output}};
  require_outputs_apart(outputs, {{"the trace", options.file}, {"the calibration", options.costs}});
  const auto trace = std::make_shared<const TraceReader>(TraceReader::open(options.file));
  if (!trace->notice().empty()) note("warning: " + shown(options.file) + ": " + trace->notice());
  catch_interrupts();
  const std::string context = "The recording " + shown(options.file);
  const std::vector<RecordedReply> replies = with_context(context, [&] { return recorded_replies(trace); });
  const CostsElsewhere there = costs_of(options, context, trace->header(), replies);
  return with_context(context, [&] {
    WhatIfWish wish = wish_of(options);
    wish.costs = there.costs;
    if (wish.costs && !wish.mode) wish.mode = mode_elsewhere(replies);
    const WhatIf run = what_if(replies, wish, {{}, interruption()});
    if (!options.output.empty() && !run.exact && lacks_drafts(*trace))
      throw bad_input("What it would be cannot be written as a recording. " + run.why_not + kDensify);
    if (!options.output.empty()) write_recording_elsewhere(options.output, *trace, replies, run, wish, there);
    if (options.as_json) {
      std::cout << to_json(run, there).dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
    } else {
      print(run, there, lacks_drafts(*trace));
    }
    return 0;
  });
}

}  // namespace

void add_what_if(CLI::App& trace, Action& action) {
  CLI::App* part = trace.add_subcommand(
      "what-if",
      "What another device, width, policy or depth would have made of the same text, re-run in virtual time");
  const auto options = std::make_shared<WhatIfOptions>();
  part->add_option("file", options->file, "A .canopytrace file")->required();
  part->add_option("--costs", options->costs,
                   "self (the default: as recorded), or a calibration that was measured elsewhere (canopy-cli "
                   "calibrate --output)");
  std::string names;
  for (const predict::DeviceProfile& each : predict::device_profiles()) {
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  part->add_option("-d,--device", options->device, "Predict what passes cost on a device: " + names);
  part->add_option("-m,--model", options->model,
                   "With --device, for recordings that do not say how large their model is, its shape: " +
                       predict::allowed_shapes());
  part->add_option("--mode", options->mode, "As in generate (default: as recorded; with other costs adaptive)")
      ->check(CLI::IsMember({"ar", "chain", "tree", "adaptive"}));
  part->add_option("--policy", options->policy, "As in generate (default: as recorded)")
      ->check(CLI::IsMember({"measured", "static", "ema", "ema+calib", "paper"}));
  part->add_option("--budget", options->budget, "Drafted nodes of each tree, in mode tree")
      ->transform(app::numbers(1u, 1024u));
  part->add_option("--widest", options->widest, "Most rows of a pass")->transform(app::numbers(1u, 4096u));
  part->add_option("--depth", options->depth, "Most tokens of a draft")->transform(app::numbers(1u, 1024u));
  part->add_option("-o,--output", options->output,
                   "Write what it would have been as a recording, whose header says where its times come from");
  part->add_flag("--json", options->as_json, "Print one JSON object");
  part->callback([&action, options] { action = [options] { return run_what_if(*options); }; });
}

}  // namespace canopy::cli
