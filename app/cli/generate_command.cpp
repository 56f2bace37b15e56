// canopy-cli generate: writes one reply, or holds a conversation.

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/model_options.h"
#include "app/cli/terminal.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/session/dense_drafts.h"
#include "engine/session/reply_trace.h"
#include "engine/text/chat_tools.h"
#include "engine/trace/round_statistics_json.h"
#include "engine/trace/trace_records.h"

namespace canopy::cli {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kMaxPromptBytes = 16 << 20;

struct GenerateOptions {
  ModelChoice model;
  std::string prompt, prompt_file, chat;
  std::string tools;  // a file
  bool raw = false;
  bool as_json = false;
  std::string mode, policy = "measured";
  std::string trace;
  bool redact = false;
  bool dense = false;
  ReplySettings settings;
};

ordered_json to_json(const RoundRecord& round) {
  return {{"width", round.width},
          {"accepted", round.accepted},
          {"emitted", round.emitted.size()},
          {"ms", to_json(round.ms)}};
}

ordered_json to_json(const std::vector<uint32_t>& prompt, const Reply& reply, DecodeMode mode, const Device& device) {
  ordered_json rounds = ordered_json::array();
  for (const RoundRecord& round : reply.rounds) rounds.push_back(to_json(round));
  ordered_json calls = ordered_json::array();
  for (const ToolCall& call : reply.calls) calls.push_back({{"name", call.name}, {"arguments", call.arguments}});
  ordered_json json = {{"prompt_ids", prompt}, {"output_ids", reply.ids}, {"text", reply.answer()}};
  if (reply.thought.told_apart) json["thinking"] = reply.thinking();
  if (!calls.empty()) json["tool_calls"] = std::move(calls);
  json.update({{"finish_reason", json_name(reply.reason)},
               {"mode", to_string(mode)},
               {"device", device.info().name},
               {"backend", device.info().backend},
               {"tau", reply.tau()},
               {"rounds", std::move(rounds)},
               {"prefill_ms", reply.prefill_ms},
               {"decode_ms", reply.decode_ms},
               {"tokens_per_second", reply.tokens_per_second()}});
  return json;
}

void print_statistics(const Reply& reply, const Engine& model) {
  const uint32_t computed = reply.prompt_tokens - reply.reused_tokens;
  std::string line = "prompt: " + std::to_string(reply.prompt_tokens) + " tokens";
  if (reply.reused_tokens > 0) line += " (" + std::to_string(reply.reused_tokens) + " reused)";
  line += ", " + fixed(reply.prefill_ms, 0) + " ms";
  if (reply.prefill_ms > 0) line += ", " + fixed(1000.0 * computed / reply.prefill_ms, 1) + " tok/s";
  note(line);
  note("reply: " + std::to_string(reply.ids.size()) + " tokens, " + fixed(reply.decode_ms, 0) + " ms, " +
       fixed(reply.tokens_per_second(), 1) + " tok/s, ended by " + to_string(reply.reason));
  const DeviceInfo& device = model.model->device().info();
  note("context: " + std::to_string(model.resident->current().length()) + " of " +
       std::to_string(model.model->limits().context) + " positions; device: " + device.name + " (" + device.driver +
       ")");
  if (model.drafter != nullptr) {
    note("drafting: " + fixed(reply.tau(), 2) + " tokens a round; drafter: " + model.drafter_name);
  }
  if (model.self_test) note(model.self_test->sentence);
}

ReplyCallbacks streaming(bool as_json) {
  ReplyCallbacks callbacks;
  callbacks.stop = interruption();
  if (!as_json) callbacks.token = [](const ReplyProgress& progress) { write_reply(progress); };
  return callbacks;
}

/// Reads [{"role": "user", "content": "..."}, ...].
std::vector<ChatTurn> read_turns(const std::string& path) {
  const std::string text = read_small_file(path, kMaxPromptBytes);
  std::vector<ChatTurn> turns;
  try {
    const auto json = nlohmann::json::parse(text);
    for (const auto& turn : json) {
      turns.push_back({turn.at("role").get<std::string>(), turn.at("content").get<std::string>()});
    }
  } catch (const nlohmann::json::exception& e) {
    throw bad_input("The conversation in " + shown(path) +
                    " is not a JSON array of {\"role\", \"content\"} objects: " + e.what());
  }
  if (turns.empty()) throw bad_input("The conversation in " + shown(path) + " has no turns.");
  return turns;
}

/// The JSON of the tools in a file, which is checked here; empty where no file is given.
std::string read_tools(const std::string& path) {
  if (path.empty()) return {};
  const std::string json = read_small_file(path, kMaxPromptBytes);
  with_context(shown(path), [&] { tools_from_json(json); });
  return json;
}

Reply reply_to(const OpenedModel& opened, ReplyTrace* trace, std::span<const uint32_t> prompt,
               const ReplySettings& settings, const ReplyCallbacks& callbacks) {
  if (trace == nullptr) return opened.model->reply(prompt, settings, callbacks);
  return trace->record(prompt, settings, callbacks);  // a full disk has been reported in the log
}

/// Answers each line of standard input until its end, with the turns before it as context. Returns the exit code.
int converse(const OpenedModel& opened, ReplyTrace* trace, ReplySettings settings, const std::string& tools) {
  std::vector<ChatTurn> turns;
  std::string line;
  note("Write a line and press Enter; Ctrl-C stops a reply, Ctrl-D ends.");
  while (std::cerr << "> " << std::flush && std::getline(std::cin, line)) {
    if (line.empty()) continue;
    forget_interrupt();
    turns.push_back({"user", line});
    const std::vector<uint32_t> prompt = opened.model->prompt_ids(turns, "", {}, tools);
    const Reply reply = reply_to(opened, trace, prompt, settings, streaming(false));
    std::cout << "\n" << std::flush;
    print_statistics(reply, *opened.model);
    turns.push_back({"assistant", reply.answer(),
                     tokens_of_reply(*opened.model->text.tokenizer, reply.ids, reply.text, reply.thought.told_apart),
                     reply.thinking()});
    ++settings.turn;
  }
  opened.model->keep_what_was_learnt();
  return 0;
}

/// What --dense asks for, once the recording is whole.
void make_dense(const OpenedModel& opened, std::optional<ReplyTrace>& trace, const GenerateOptions& options) {
  if (!trace || !options.dense) return;
  trace->finish();
  if (!trace->problem().empty()) return;
  const DenseReport report = densify(*opened.model, options.trace, {{}, interruption()});
  note("dense: " + std::to_string(report.added) + " drafts added to the recording");
}

uint64_t replies_in(const std::vector<ChatTurn>& turns) {
  uint64_t count = 0;
  for (const ChatTurn& turn : turns) count += turn.role == "assistant" ? 1 : 0;
  return count;
}

int run_generate(GenerateOptions& options) {
  const int sources =
      (options.prompt.empty() ? 0 : 1) + (options.prompt_file.empty() ? 0 : 1) + (options.chat.empty() ? 0 : 1);
  if (sources != 1) throw UsageError("Give exactly one of --prompt, --prompt-file and --chat.");
  const bool interactive = options.chat == "-";
  if (interactive && options.as_json) throw UsageError("--chat - is a conversation on the terminal; it has no --json.");
  if (options.dense && options.trace.empty()) throw UsageError("--dense belongs to a recording: give --trace, too.");
  if (options.dense && options.redact) throw UsageError("--dense needs the text, which --redact leaves out.");
  if (options.dense && options.mode == "ar" && options.model.drafter.empty()) {
    throw UsageError("--dense drafts behind every token: name a drafter with --drafter, mode ar loads none by itself.");
  }
  if (options.raw && !options.chat.empty()) throw UsageError("--raw leaves the chat template out; it has no --chat.");
  if (options.raw && !options.tools.empty()) throw UsageError("--raw leaves the chat template out; it has no --tools.");
  validate(options.settings.sampling);
  const std::vector<NamedFile> outputs = {{"--trace", options.trace}};
  require_outputs_apart(
      outputs, {{"the prompt", options.prompt_file}, {"the conversation", options.chat}, {"the tools", options.tools}},
      &options.model);

  // Check the whole prompt before the model is loaded.
  std::vector<ChatTurn> turns;
  std::string prompt = options.prompt;
  if (!options.prompt_file.empty()) prompt = read_small_file(options.prompt_file, kMaxPromptBytes);
  if (!options.chat.empty() && !interactive) turns = read_turns(options.chat);
  if (options.chat.empty() && !options.raw) turns = {{"user", prompt}};
  options.settings.turn = replies_in(turns);
  const std::string tools = read_tools(options.tools);

  catch_interrupts();
  options.model.max_width = std::max(options.model.max_width, options.settings.budget + 1);
  if (options.mode == "ar" && options.model.drafter.empty()) options.model.drafter = "none";
  // Only mode adaptive needs costs, but a recording of another mode with drafts should say what other widths would have
  // promised.
  const bool asks_costs =
      options.mode.empty() || options.mode == "adaptive" || (options.mode != "ar" && !options.trace.empty());
  if (asks_costs) options.model.calibration_s = kFirstCalibration;
  options.settings.policy = *cost_policy_of(options.policy);
  const OpenedModel opened = open_model(options.model);
  std::optional<ReplyTrace> trace;
  if (!options.trace.empty()) trace.emplace(options.trace, *opened.model, options.redact);
  options.settings.mode = decode_mode_of(options.mode).value_or(opened.model->default_mode());
  ReplyTrace* const recorder = trace ? &*trace : nullptr;
  if (interactive) {
    const int code = converse(opened, recorder, options.settings, tools);
    make_dense(opened, trace, options);
    return code;
  }

  const std::vector<uint32_t> ids = opened.model->prompt_ids(turns, prompt, {}, tools);
  const Reply reply = reply_to(opened, recorder, ids, options.settings, streaming(options.as_json));
  if (options.as_json) {
    const ordered_json json = to_json(ids, reply, options.settings.mode, *opened.device);
    std::cout << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
  } else {
    std::cout << "\n" << std::flush;
    print_statistics(reply, *opened.model);
  }
  opened.model->keep_what_was_learnt();
  if (reply.reason != FinishReason::cancelled) make_dense(opened, trace, options);
  return reply.reason == FinishReason::cancelled ? kInterrupted : 0;
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("generate", "Write a reply to a prompt or a conversation");
  const auto options = std::make_shared<GenerateOptions>();
  SamplingSettings& sampling = options->settings.sampling;
  add_model_options(*command, options->model);
  command->add_option("-p,--prompt", options->prompt, "The prompt, put through the model's chat template");
  command->add_option("-f,--prompt-file", options->prompt_file, "The same from a file");
  command->add_option(
      "--chat", options->chat,
      "A JSON array of {\"role\", \"content\"} turns to go on from, or - for a conversation on the terminal");
  command->add_option(
      "--tools", options->tools,
      "A JSON array of tools that the model may call, for models whose chat template has a place for them");
  command->add_flag("--raw", options->raw, "Use the prompt as it is, without the chat template");
  command->add_option("-n,--max-tokens", options->settings.max_tokens, "Longest reply, in tokens")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--mode", options->mode,
                   "ar decodes plainly; chain and tree draft every round; adaptive chooses each round what is fastest. "
                   "The text is the same in all (default: adaptive with a drafter, else ar)")
      ->check(CLI::IsMember({"ar", "chain", "tree", "adaptive"}));
  command->add_option("--budget", options->settings.budget, "Drafted nodes of each tree")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  command
      ->add_option("--policy", options->policy,
                   "How the mode adaptive predicts what passes cost: measured (a table, corrected by every round), or "
                   "for comparison those of the BASTION paper")
      ->check(CLI::IsMember({"measured", "static", "ema", "ema+calib", "paper"}))
      ->capture_default_str();
  command->add_option("--trace", options->trace, "Record every round into this file (canopy-cli trace shows it)");
  command->add_flag("--redact", options->redact, "Leave texts and token ids out of the trace");
  command->add_flag("--dense", options->dense,
                    "Add a draft behind every token to the trace, so that trace what-if is exact");
  command->add_option("-t,--temperature", sampling.temperature, "0 takes the likeliest token")->capture_default_str();
  command->add_option("--top-k", sampling.top_k, "Draw from the k likeliest tokens; 0 is off")->capture_default_str();
  command->add_option("--top-p", sampling.top_p, "Draw from the likeliest tokens of this total probability")
      ->capture_default_str();
  command->add_option("--min-p", sampling.min_p, "Leave out tokens below this share of the likeliest one")
      ->capture_default_str();
  command->add_option("--seed", sampling.seed, "Of the random numbers: the same seed gives the same text")
      ->capture_default_str();
  command->add_option("--stop", options->settings.stop_strings, "Text that ends the reply; may be given several times");
  command->add_flag("!--no-self-test", options->model.self_test, "Do not check exactness on this device first");
  command->add_flag("--json", options->as_json, "Print one JSON object at the end instead of streaming the text");
  command->callback([&action, options] { action = [options] { return run_generate(*options); }; });
}

}  // namespace canopy::cli
