// canopy-cli verify: checks on this machine that the text of a recording is the one that plain decoding writes.

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/base/figures.h"
#include "app/base/local_time.h"
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/model_options.h"
#include "app/cli/terminal.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/comparison/way_to_decode.h"
#include "engine/session/verification_words.h"

namespace canopy::cli {
namespace {

using nlohmann::ordered_json;

constexpr int kSame = 0, kDiffers = 1, kCannotBeChecked = 2;

struct VerifyOptions {
  ModelChoice model;
  std::string file, mode;
  bool with_mode = false, any_model = false, as_json = false;
  bool kv_chosen = false, quantize_chosen = false;
};

/// The modes to check in: plain decoding, and one more where it was asked for. none: the mode of each reply.
std::optional<std::optional<DecodeMode>> second_mode(const VerifyOptions& options) {
  if (!options.with_mode) return std::nullopt;
  // Without a word behind it the option's value is "true".
  if (options.mode.empty() || options.mode == "true" || options.mode == "recorded") return std::optional<DecodeMode>();
  if (const auto mode = decode_mode_of(options.mode)) return mode;
  throw UsageError("--mode is " + quoted_name(options.mode) + "; allowed: recorded, ar, chain, tree and adaptive.");
}

/// Loads the model as the recording's was, where nothing else was said.
void follow_recording(const TraceReader& trace, VerifyOptions& options) {
  const TraceHeader& header = trace.header();
  if (!options.kv_chosen && (header.kv_type == "f16" || header.kv_type == "f32" || header.kv_type == "q8_0"))
    options.model.kv = header.kv_type;
  if (!options.quantize_chosen && header.target.quantized_to == "Q8_0") options.model.quantize = "q8_0";
  if (!options.quantize_chosen && header.target.quantized_to == "Q4_K") options.model.quantize = "q4_k";
  for (const TraceReply& reply : trace.replies()) {
    options.model.max_width = std::max(options.model.max_width, std::min(reply.begin.budget, kMostBudget) + 1);
    // A reply that filled its context ends where that ended.
    if (options.model.context == 0 && reply.end && reply.end->reason == FinishReason::context_full)
      options.model.context = header.context;
  }
  if (!options.with_mode) options.model.drafter = "none";
}

std::string machine_words(const std::string& device, const std::string& driver, const std::string& kernels) {
  std::string words = printable(device) + " (" + printable(driver) + ")";
  // The family and its version; all choices of timing are in the JSON.
  return kernels.empty() ? words : words + ", " + printable(kernels.substr(0, kernels.find(';')));
}

void print_identity(const TraceReader& trace, const Engine& engine, const RecordedIdentity& identity) {
  const TraceHeader& h = trace.header();
  const ModelReady here = engine.describe();
  const std::optional<int64_t> moment = app::moment_in(h.created);
  std::cout << "recorded  " << printable(moment ? app::local_time_and_zone(*moment) : h.created) << " by Canopy "
            << printable(h.canopy_version) << " on " << machine_words(h.device, h.driver, h.variants) << "\n"
            << "here      " << machine_words(here.device, here.driver, engine.model->device().info().kernels) << "\n";
  const std::string model = printable(h.target.file_name.empty() ? h.target.name : h.target.file_name);
  const bool same = identity.differences.empty() && identity.notes.empty();
  std::cout << "model     " << model << (same ? ", the same here" : "") << "\n";
  for (const auto* list : {&identity.differences, &identity.notes})
    for (const std::string& sentence : *list) note("warning: " + sentence);
}

ordered_json token_json(std::optional<uint32_t> token, std::optional<float> logit, const TraceReader& trace,
                        const Engine& engine) {
  if (!token) return nullptr;
  const trace::Piece* piece = trace.piece(*token);
  const std::optional<trace::Piece> here = engine.texts->find(*token);
  return {{"token", *token},
          {"text", piece  ? ordered_json(std::string(piece->bytes))
                   : here ? ordered_json(std::string(here->bytes))
                          : ordered_json()},
          {"logit", logit ? ordered_json(*logit) : ordered_json()}};
}

ordered_json verdict_json(const ReplyVerdict& verdict, const TraceReader& trace, const Engine& engine) {
  static constexpr const char* kinds[] = {"same", "different", "not_checked"};
  ordered_json json = {{"reply", verdict.reply},
                       {"mode", to_string(verdict.mode)},
                       {"verdict", kinds[static_cast<size_t>(verdict.kind)]},
                       {"tokens", verdict.tokens}};
  if (!verdict.reason.empty()) json["reason"] = verdict.reason;
  if (const auto& d = verdict.difference)
    json["difference"] = {{"token", d->token},
                          {"position", d->position},
                          {"recorded", token_json(d->recorded, d->recorded_logit, trace, engine)},
                          {"here", token_json(d->here, d->here_logit, trace, engine)},
                          {"lead_nats", d->lead ? ordered_json(*d->lead) : ordered_json()},
                          {"near_tie", d->is_near_tie()}};
  return json;
}

void print_json(const TraceReader& trace, const Engine& engine, const RecordedIdentity& identity,
                const std::vector<ReplyVerdict>& verdicts, int code) {
  const ModelReady here = engine.describe();
  ordered_json replies = ordered_json::array();
  for (const ReplyVerdict& verdict : verdicts) replies.push_back(verdict_json(verdict, trace, engine));
  const ordered_json json = {{"same", code == kSame},
                             {"recorded", to_json(trace.header())},
                             {"here",
                              {{"device", here.device},
                               {"driver", here.driver},
                               {"kernels", engine.model->device().info().kernels},
                               {"model", here.file_name},
                               {"drafter", here.drafter},
                               {"kv_type", here.kv_type}}},
                             {"differences", identity.differences},
                             {"notes", identity.notes},
                             {"replies", std::move(replies)}};
  std::cout << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

std::vector<ReplyVerdict> verify_all(const TraceReader& trace, const Engine& engine, const VerifyOptions& options) {
  std::vector<ReplyVerdict> verdicts;
  const auto second = second_mode(options);
  ProgressLine line;
  for (size_t i = 0; i < trace.replies().size(); ++i) {
    std::vector<DecodeMode> modes = {DecodeMode::ar};
    if (second) modes.push_back(second->value_or(trace.replies()[i].begin.mode));
    if (modes.size() == 2 && modes[1] == DecodeMode::ar) modes.pop_back();
    for (const DecodeMode mode : modes) {
      VerifyCallbacks callbacks;
      callbacks.stop = interruption();
      callbacks.progress = [&](size_t done, size_t total) {
        line.show({"Reply " + std::to_string(i) + ", mode " + std::string(to_string(mode)), done, total});
      };
      verdicts.push_back(verify_reply(engine, trace, i, mode, callbacks));
      line.clear();
      if (!options.as_json)
        std::cout << "reply " << i << "   mode " << to_string(mode) << ": "
                  << printable(verdict_words(engine, trace, verdicts.back()), 4096) << "\n"
                  << std::flush;
    }
  }
  return verdicts;
}

int code_of(const std::vector<ReplyVerdict>& verdicts) {
  bool any = false;
  for (const ReplyVerdict& verdict : verdicts) {
    if (verdict.kind == ReplyVerdict::Kind::different) return kDiffers;
    any = any || verdict.kind == ReplyVerdict::Kind::same;
  }
  return any ? kSame : kCannotBeChecked;
}

void print_end(const std::vector<ReplyVerdict>& verdicts, int code) {
  size_t tokens = 0, replies = 0, skipped = 0;
  for (const ReplyVerdict& verdict : verdicts) {
    skipped += verdict.kind == ReplyVerdict::Kind::not_checked;
    if (verdict.kind != ReplyVerdict::Kind::same || verdict.mode != DecodeMode::ar) continue;
    tokens += verdict.tokens, ++replies;
  }
  const std::string left = skipped > 0 ? " " + std::to_string(skipped) + " not checked." : "";
  if (code == kSame)
    std::cout << "The text is the one that plain decoding writes here: " << app::counted(replies, "reply", "replies")
              << ", " << app::counted(tokens, "token", "tokens") << "." << left << "\n";
  else if (code == kDiffers)
    std::cout << "The text is not the one that plain decoding writes here." << left << "\n";
  else
    std::cout << "Nothing in the recording can be checked." << left << "\n";
}

int verify(VerifyOptions& options) {
  const TraceReader trace = TraceReader::open(options.file);
  if (!trace.notice().empty()) note("warning: " + shown(options.file) + ": " + trace.notice());
  if (trace.header().redacted)
    throw bad_input("The recording " + shown(options.file) +
                    " was made without texts and tokens, so nothing in it can be compared.");
  if (trace.replies().empty()) throw bad_input("The recording " + shown(options.file) + " has no reply.");
  second_mode(options);  // a wrong one is told before the model is loaded
  follow_recording(trace, options);
  catch_interrupts();
  const std::string recorded = printable(trace.header().target.file_name);
  const OpenedModel opened =
      with_context(recorded.empty() ? "The recording"
                                    : "The recording was made with " + quoted_name(trace.header().target.file_name),
                   [&] { return open_model(options.model); });
  const Engine& engine = *opened.model;
  const RecordedIdentity identity = compare_identity(engine, trace, options.with_mode);
  if (!identity.differences.empty() && !options.any_model)
    throw bad_input("The recording " + shown(options.file) + " is of another model than " + shown(engine.file_name) +
                    ", and another model writes another text. " + identity.differences.front() +
                    " --any-model compares all the same.");
  if (!options.as_json) print_identity(trace, engine, identity);
  const std::vector<ReplyVerdict> verdicts = verify_all(trace, engine, options);
  const int code = code_of(verdicts);
  if (options.as_json)
    print_json(trace, engine, identity, verdicts, code);
  else
    print_end(verdicts, code);
  return code;
}

/// What keeps a recording from being checked is told apart from a text that differs.
int run_verify(VerifyOptions& options) {
  try {
    return verify(options);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::cancelled && interrupted()) return kInterrupted;
    if (std::cout.bad()) throw;  // standard output is lost, which says nothing of the recording
    std::cerr << "canopy-cli: " << printable(e.what(), 4096, LineBreaks::keep) << "\n";
    return kCannotBeChecked;
  }
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "verify", "Check that a recording, made here or elsewhere, has the text that plain decoding writes here");
  command->footer("Exit status: 0 the same text, 1 it differs, 2 it cannot be checked.");
  const auto options = std::make_shared<VerifyOptions>();
  command->add_option("file", options->file, "A .canopytrace file")->required();
  add_model_options(*command, options->model);
  command
      ->add_option(
          "--mode", options->mode,
          "Check in this mode too: recorded (also without a word: that of each reply), chain, tree or adaptive")
      ->expected(0, 1);
  command->add_flag("--any-model", options->any_model, "Compare although the recording is of another model");
  command->add_flag("--json", options->as_json, "Print one JSON object");
  command->callback([&action, options, command] {
    options->with_mode = command->count("--mode") > 0;
    options->kv_chosen = command->count("--kv") > 0;
    options->quantize_chosen = command->count("--quantize") > 0;
    action = [options] { return run_verify(*options); };
  });
}

}  // namespace canopy::cli
