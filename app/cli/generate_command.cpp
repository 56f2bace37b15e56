// canopy-cli generate and chat: write one reply, or hold a conversation.

#include <algorithm>
#include <array>
#include <cctype>
#include <cfloat>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/state/number_options.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/posix.h"
#include "engine/base/text.h"
#include "engine/session/reply_trace.h"
#include "engine/text/chat_json.h"
#include "engine/text/chat_template.h"
#include "engine/text/chat_turn.h"
#include "engine/trace/trace_export.h"
#include "engine/trace/trace_records.h"

namespace canopy::cli {
namespace {

constexpr uint64_t kMostChatBytes = 64 << 20;

/// Reads a conversation as parse_chat() does, from a file.
ParsedChat read_chat_file(const std::filesystem::path& path) {
  return with_context(shown(path), [&] { return parse_chat(read_text_input(path, kMostChatBytes)); });
}

using nlohmann::ordered_json;

constexpr uint64_t kMaxPromptBytes = 16 << 20;

struct GenerateOptions {
  ModelChoice model;
  std::string prompt, prompt_file, chat;
  std::string tools;     // a file
  std::string thinking;  // "on", "off"; empty: as the chat template has it
  bool raw = false;
  bool as_json = false;
  std::string mode, policy = "measured";
  std::string trace;
  bool redact = false;
  bool dense = false;
  bool prompt_given = false, seed_drawn = false;
  ReplySettings settings;
};

ordered_json to_json(const RoundRecord& written) {
  const RoundRecord round = without_other_chats(written);  // as what is written may be given to others
  ordered_json nodes = ordered_json::array();
  for (const RoundNode& row : round.nodes) {
    if (row.node.depth == 0) continue;
    const bool hidden = row.node.token == trace::other_chats_token;
    nodes.push_back({{"token", hidden ? ordered_json() : ordered_json(row.node.token)},
                     {"parent", row.node.parent},
                     {"sources", source_names(row.node.sources)},
                     {"went_on", to_json(row.node.went_on)},
                     {"accepted", row.state == NodeState::accepted}});
  }
  return {{"width", round.width}, {"accepted", round.accepted}, {"emitted", round.emitted.size()},
          {"match", round.match}, {"ms", to_json(round.ms)},    {"nodes", std::move(nodes)}};
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
  json["plain"] = nullptr;
  if (const PlainBeside& plain = reply.plain; plain.known())
    json["plain"] = {{"tokens_per_second", plain.tokens_per_second()},
                     {"pass_ms", plain.ms},
                     {"passes", plain.passes},
                     {"own_rounds", plain.own}};
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
  note("guessing: " + fixed(reply.tau(), 2) +
       " tokens a pass; drafter: " + (model.block() > 0 ? model.drafter_name : "none, from the text alone"));
  if (model.self_test) note(model.self_test->sentence);
}

std::optional<bool> thinking_of(const GenerateOptions& options) {
  if (options.thinking.empty()) return std::nullopt;
  return options.thinking == "on";
}

/// Says so where a wish about thinking changes nothing.
void note_thinking(const Engine& model) {
  if (!model.text.chat->thinking().switchable) {
    note("The model's chat template has no switch for thinking: on and off make no difference.");
  }
}

ReplyCallbacks streaming(bool as_json) {
  ReplyCallbacks callbacks;
  callbacks.stop = interruption();
  if (!as_json) callbacks.token = [](const ReplyProgress& progress) { write_reply(progress); };
  return callbacks;
}

/// The JSON of the tools in a file, which is checked here; empty where no file is given.
std::string read_tools(const std::string& path) {
  if (path.empty()) return {};
  const std::string json = read_text_input(path, kMaxPromptBytes);
  with_context(shown(path), [&] { tools_from_json(json); });
  return json;
}

Reply reply_to(const OpenedModel& opened, ReplyTrace* trace, std::span<const uint32_t> prompt,
               const ReplySettings& settings, const ReplyCallbacks& callbacks) {
  if (trace == nullptr) return opened.model->reply(prompt, settings, callbacks);
  return trace->record(prompt, settings, callbacks);  // a full disk has been reported in the log
}

/// A conversation on the terminal, or of the lines of a pipe: each is answered with those before it as context.
class Talk {
 public:
  Talk(const OpenedModel& opened, ReplyTrace* trace, const GenerateOptions& options, std::string tools)
      : opened_(opened),
        trace_(trace),
        settings_(options.settings),
        tools_(std::move(tools)),
        thinking_(thinking_of(options)) {}

  /// Until the end of the input or /quit. Returns the exit code.
  int hold() {
    note(
        "Write a line and press Enter. /new begins anew, /help says what else there is; Ctrl-C stops a reply, Ctrl-D "
        "ends.");
    std::string line;
    while (read_line(line)) {
      if (line.empty()) continue;
      if (is_command(line)) {
        if (!obey(line)) break;
      } else {
        answer(std::move(line));
      }
    }
    opened_.model->keep_what_was_learnt();
    return interrupted() && !on_terminal_ ? kInterrupted : 0;
  }

 private:
  bool read_line(std::string& line) {
    for (;;) {
      forget_interrupt();
      std::cerr << "> " << std::flush;
      if (std::getline(std::cin, line)) break;
      if (!interrupted() || !on_terminal_) return false;
      // Ctrl-C broke off the reading, not the talk.
      std::cin.clear();
      std::clearerr(stdin);
      note("\nCtrl-D or /quit ends the conversation.");
    }
    if (line.ends_with('\r')) line.pop_back();
    try {
      line = text_from_bytes(std::move(line), "The line");
    } catch (const Error& e) {
      note(e.what());
      line.clear();
    }
    return true;
  }

  /// "/word ...", but not a path.
  static bool is_command(const std::string& line) {
    const std::string word = line.substr(0, line.find_first_of(" \t"));
    return word.starts_with('/') &&
           std::all_of(word.begin() + 1, word.end(), [](unsigned char c) { return std::isalpha(c) != 0 || c == '?'; });
  }

  /// Returns whether the conversation goes on.
  bool obey(const std::string& line) {
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    const std::string word = line.substr(0, end);
    const std::string rest = line.substr(std::min(line.find_first_not_of(" \t", end), line.size()));
    if (word == "/quit" || word == "/exit" || word == "/bye") return false;
    if (word == "/new") {
      turns_.clear();
      left_out_ = settings_.turn = 0;
      note("A new conversation: what was said before is forgotten.");
    } else if (word == "/help" || word == "/?") {
      note(
          "/new               begin a new conversation\n"
          "/thinking on|off   let the model think before it answers, where its chat template has a switch\n"
          "/quit              end, as Ctrl-D does\n"
          "Ctrl-C stops the reply that is being written. Any other line is put to the model.");
    } else if (word == "/thinking" && (rest == "on" || rest == "off")) {
      thinking_ = rest == "on";
      note("Thinking is " + rest + " from here on.");
      note_thinking(*opened_.model);
    } else if (word == "/thinking") {
      note("/thinking on or /thinking off; now it is " + std::string(!thinking_   ? "as the chat template has it."
                                                                     : *thinking_ ? "on."
                                                                                  : "off."));
    } else {
      note("There is no " + word + "; /help lists what there is.");
    }
    return true;
  }

  void answer(std::string question) {
    turns_.push_back({"user", std::move(question)});
    const size_t left_out_before = left_out_;
    Reply reply;
    try {
      const std::vector<uint32_t> prompt = fitting_prompt();
      reply = reply_to(opened_, trace_, prompt, settings_, streaming(false));
      if (trace_ == nullptr) opened_.model->remember("chat", reply.ids);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::bad_input) throw;
      turns_.pop_back();
      left_out_ = left_out_before;
      note(std::string(e.what()) + " The conversation goes on without this line.");
      return;
    }
    std::cout << "\n" << std::flush;
    print_statistics(reply, *opened_.model);
    if (reply.reason == FinishReason::context_full) {
      note("The context is full: the next line is answered without the oldest ones. /new begins anew.");
    }
    turns_.push_back({"assistant", reply.answer(),
                      tokens_of_reply(*opened_.model->text.tokenizer, reply.ids, reply.text, reply.thought.told_apart),
                      reply.thinking()});
    ++settings_.turn;
  }

  std::vector<uint32_t> prompt_from(size_t first) const {
    return opened_.model->prompt_ids({turns_.begin() + static_cast<std::ptrdiff_t>(first), turns_.end()}, "", thinking_,
                                     tools_);
  }

  /// The prompt, where needed without the oldest turns: without more than must be, as the window does, so that the next
  /// ones fit as well.
  std::vector<uint32_t> fitting_prompt() {
    const uint32_t context = opened_.model->model->limits().context;
    std::vector<uint32_t> prompt = prompt_from(left_out_);
    if (prompt.size() < context) return prompt;
    while (left_out_ + 2 < turns_.size() && prompt.size() > context / 2) {
      left_out_ += 2;  // a line and its reply
      prompt = prompt_from(left_out_);
    }
    if (prompt.size() >= context) {
      throw bad_input("The line has " + std::to_string(prompt.size()) +
                      " tokens by itself, but the context holds only " + std::to_string(context) +
                      advice_on_room(context, opened_.model->model->config().max_context));
    }
    note("The context is full: the oldest " + std::to_string(left_out_ / 2) +
         " lines and their replies are left out from here on. /new begins anew.");
    return prompt;
  }

  const OpenedModel& opened_;
  ReplyTrace* trace_;
  ReplySettings settings_;
  std::string tools_;
  std::optional<bool> thinking_;
  std::vector<ChatTurn> turns_;
  size_t left_out_ = 0;  // turns at the beginning that prompts go without
  bool on_terminal_ = ::isatty(STDIN_FILENO) == 1;
};

/// What --dense asks for, once the recording is whole.
void make_dense(const OpenedModel& opened, std::optional<ReplyTrace>& trace, const GenerateOptions& options) {
  if (!trace || !options.dense) return;
  trace->finish();
  if (!trace->problem().empty()) return;
  const DenseReport report = densify(*opened.model, options.trace, {{}, interruption()});
  note("dense: " + std::to_string(report.added) + " drafts added to the recording");
}

/// One at the end, as echo and editors write it: it is none of the prompt.
void drop_last_line_break(std::string& prompt) {
  if (prompt.ends_with('\n')) prompt.pop_back();
  if (prompt.ends_with('\r')) prompt.pop_back();
}

uint64_t replies_in(const std::vector<ChatTurn>& turns) {
  uint64_t count = 0;
  for (const ChatTurn& turn : turns) count += turn.role == "assistant" ? 1 : 0;
  return count;
}

/// What the options contradict each other in.
void check_options(const GenerateOptions& options) {
  const bool interactive = options.chat == "-";
  if (interactive && options.as_json) throw UsageError("--chat - is a conversation on the terminal; it has no --json.");
  if (!options.settings.accept_rates.empty()) {
    if (interactive) throw UsageError("--accept writes what is not the model's text; a conversation cannot go on it.");
    if (!options.trace.empty())
      throw UsageError(
          "--accept writes what is not the model's text; a recording of it would pass for one. Leave "
          "--trace or --accept out.");
  }
  if (options.dense && options.trace.empty()) throw UsageError("--dense belongs to a recording: give --trace, too.");
  if (options.dense && options.redact) throw UsageError("--dense needs the text, which --redact leaves out.");
  if (options.dense && options.mode == "ar" && options.model.drafter.empty()) {
    throw UsageError("--dense drafts behind every token: name a drafter with --drafter, mode ar loads none by itself.");
  }
  if (options.raw && !options.chat.empty()) throw UsageError("--raw leaves the chat template out; it has no --chat.");
  if (options.raw && !options.tools.empty()) throw UsageError("--raw leaves the chat template out; it has no --tools.");
  if (options.raw && !options.thinking.empty()) {
    throw UsageError("--raw leaves the chat template out; it has no --thinking.");
  }
  if (options.tools == "-" && (interactive || options.prompt_file == "-")) {
    throw UsageError("Standard input can be read only once: name a file for --tools or for the prompt.");
  }
  validate(options.settings.sampling);
  const std::vector<NamedFile> outputs = {{"--trace", options.trace}};
  require_outputs_apart(
      outputs, {{"the prompt", options.prompt_file}, {"the conversation", options.chat}, {"the tools", options.tools}},
      &options.model);
}

/// Where no prompt is named, it comes through a pipe.
void choose_source(GenerateOptions& options) {
  const int sources =
      (options.prompt_given ? 1 : 0) + (options.prompt_file.empty() ? 0 : 1) + (options.chat.empty() ? 0 : 1);
  constexpr const char* one = "Give exactly one of --prompt, --prompt-file and --chat, or the prompt through a pipe.";
  if (sources > 1 || (sources == 0 && ::isatty(STDIN_FILENO) == 1)) throw UsageError(one);
  if (options.prompt_given && options.prompt.empty())
    throw UsageError("The text of --prompt is empty. " + std::string(one));
  if (sources == 1) return;
  options.prompt = read_text_input("-", kMaxPromptBytes);
  if (options.prompt.empty()) throw UsageError("Standard input has no prompt. " + std::string(one));
  drop_last_line_break(options.prompt);
}

/// Checks what a chat template does with what other programs write into turns.
void check_fields(const Engine& model, const std::vector<ChatTurn>& turns, const PromptOptions& wishes) {
  const auto first_with = [&](const char* field) {
    return std::ranges::find_if(turns, [&](const ChatTurn& turn) {
      return !turn.fields.empty() && nlohmann::json::parse(turn.fields).contains(field);
    });
  };
  const auto number = [&](auto turn) { return std::to_string(turn - turns.begin()); };
  constexpr std::array<std::string_view, 1> calls = {"tool_calls"};
  if (const auto turn = first_with("tool_calls");
      turn != turns.end() && !model.text.chat->uses_fields(turns, calls, wishes)) {
    throw bad_input("The model's chat template has no place for the field \"tool_calls\" of turn " + number(turn) +
                    ".");
  }
  constexpr std::array<std::string_view, 3> thought = {"reasoning_content", "reasoning", "thinking"};
  if (const auto turn = first_with("reasoning_content");
      turn != turns.end() && !model.text.chat->uses_fields(turns, thought, wishes)) {
    note("The model's chat template leaves out what was thought in earlier turns: \"reasoning_content\" of turn " +
         number(turn) + ".");
  }
}

int run_generate(GenerateOptions& options) {
  choose_source(options);
  check_options(options);
  const bool interactive = options.chat == "-";

  // Check the whole prompt before the model is loaded.
  std::vector<ChatTurn> turns;
  std::string prompt = text_from_bytes(options.prompt, "The text of --prompt");
  for (std::string& stop : options.settings.stop_strings) {
    stop = text_from_bytes(std::move(stop), "The text of --stop");
  }
  if (options.prompt_file == "-" && ::isatty(STDIN_FILENO) == 1) note("Write the prompt; Ctrl-D ends it.");
  if (!options.prompt_file.empty()) {
    prompt = read_text_input(options.prompt_file, kMaxPromptBytes);
    drop_last_line_break(prompt);
  }
  std::string tools = read_tools(options.tools);
  if (!options.chat.empty() && !interactive) {
    ParsedChat chat = read_chat_file(options.chat);
    turns = std::move(chat.turns);
    if (!chat.tools.empty() && !tools.empty()) {
      note("The tools of " + shown(options.chat) + " are not used: those of --tools are.");
    } else if (!chat.tools.empty()) {
      with_context(shown(options.chat), [&] { tools_from_json(chat.tools); });
      tools = std::move(chat.tools);
    }
    std::string ignored;
    for (const std::string& field : chat.ignored) ignored += (ignored.empty() ? "" : ", ") + field;
    if (!ignored.empty()) note("Not used of the request in " + shown(options.chat) + ": " + ignored + ".");
  }
  if (options.chat.empty() && !options.raw) turns = {{"user", prompt}};
  options.settings.turn = replies_in(turns);
  if (options.seed_drawn) note_seed("--seed", options.settings.sampling.seed);

  catch_interrupts();
  if (!options.model.replies.empty()) options.settings.sources |= kFromEarlier;
  options.model.max_width = std::max(options.model.max_width, options.settings.budget + 1);
  if (options.mode == "ar" && options.model.drafter.empty()) options.model.drafter = "none";
  // Only mode adaptive needs costs, but a recording of another mode with drafts should say what other widths would have
  // promised.
  const bool asks_costs =
      options.mode.empty() || options.mode == "adaptive" || (options.mode != "ar" && !options.trace.empty());
  if (asks_costs) options.model.calibration_s = kFirstCalibration;
  options.model.keeps_learnt = true;
  options.settings.policy = *cost_policy_of(options.policy);
  const OpenedModel opened = open_model(options.model);
  std::optional<ReplyTrace> trace;
  if (!options.trace.empty()) trace.emplace(options.trace, *opened.model, options.redact);
  options.settings.mode = decode_mode_of(options.mode).value_or(DecodeMode::adaptive);
  ReplyTrace* const recorder = trace ? &*trace : nullptr;
  if (!options.thinking.empty()) note_thinking(*opened.model);
  if (interactive) {
    const int code = Talk(opened, recorder, options, tools).hold();
    make_dense(opened, trace, options);
    return code;
  }

  const std::optional<bool> thinking = thinking_of(options);
  if (!options.chat.empty()) {
    with_context(shown(options.chat), [&] { check_fields(*opened.model, turns, {true, thinking, tools}); });
  }
  options.settings.times_plain = options.as_json;
  const std::vector<uint32_t> ids = opened.model->prompt_ids(turns, prompt, thinking, tools);
  const std::vector<double>& rates = options.settings.accept_rates;
  if (!rates.empty() && !options.as_json) std::cout << "[" << accept_rates_words(rates) << "]\n" << std::flush;
  const Reply reply = reply_to(opened, recorder, ids, options.settings, streaming(options.as_json));
  if (options.as_json) {
    ordered_json json = to_json(ids, reply, options.settings.mode, *opened.device);
    if (options.seed_drawn) json["seed"] = options.settings.sampling.seed;
    if (!rates.empty()) {
      json["accept_rates"] = rates;
      json["note"] = accept_rates_words(rates);
    }
    std::cout << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
  } else {
    std::cout << "\n" << std::flush;
    print_statistics(reply, *opened.model);
    if (!rates.empty()) note(accept_rates_words(rates));
  }
  if (!trace && rates.empty()) opened.model->remember("generate", reply.ids);
  opened.model->keep_what_was_learnt();
  if (reply.reason != FinishReason::cancelled) make_dense(opened, trace, options);
  return reply.reason == FinishReason::cancelled ? kInterrupted : 0;
}

/// What generate and chat have in common.
void add_reply_options(CLI::App& command, GenerateOptions& options) {
  SamplingSettings& sampling = options.settings.sampling;
  add_model_options(command, options.model);
  command.add_option(
      "--tools", options.tools,
      "A JSON array of tools that the model may call, for models whose chat template has a place for them");
  command
      .add_option("--thinking", options.thinking,
                  "Let the model think before it answers, or not, where its chat template has a switch (default: as "
                  "the template has it)")
      ->check(CLI::IsMember({"on", "off"}));
  command.add_option("-n,--max-tokens", options.settings.max_tokens, "Longest reply, in tokens")
      ->transform(app::counts())
      ->capture_default_str();
  command
      .add_option(
          "--mode", options.mode,
          "ar decodes plainly; chain and tree guess in every pass; adaptive chooses for each pass what is fastest. "
          "The text is the same in all (default: adaptive)")
      ->check(CLI::IsMember({"ar", "chain", "tree", "adaptive"}));
  command
      .add_option_function<std::string>(
          "--sources", [&options](const std::string& list) { options.settings.sources = parse_sources(list); },
          "Where drafts come from: dflash or draft (the drafter), suffix (the text itself: what stood behind the same "
          "words "
          "before) and recycling (what the model found likeliest behind the same word lately), with commas in between, "
          "or none (default: dflash,suffix, where they are there)")
      ->check(sources_problem);
  command
      .add_option_function<std::string>(
          "--suffix-store",
          [&options](const std::string& folder) { options.model.replies = folder == "off" ? "" : folder; },
          "A folder of earlier replies: drafts come from these, too, and this one is kept there. While a trace is "
          "recorded it is not used")
      ->default_str("off");
  command.add_option("--budget", options.settings.budget, "Drafted nodes of each tree")
      ->transform(app::numbers(1u, 1024u))
      ->capture_default_str();
  command
      .add_option("--policy", options.policy,
                  "How the mode adaptive predicts what passes cost: measured (a table, corrected by every pass), or "
                  "for comparison those of the BASTION paper")
      ->check(CLI::IsMember({"measured", "static", "ema", "ema+calib", "paper"}))
      ->capture_default_str();
  command.add_option("--trace", options.trace, "Record every pass into this file (canopy-cli trace shows it)");
  command.add_flag("--redact", options.redact, "Leave texts and token ids out of the trace");
  command.add_flag("--dense", options.dense,
                   "Add a draft behind every token to the trace, so that trace what-if is exact");
  command.add_option("-t,--temperature", sampling.temperature, "0 takes the likeliest token")
      ->transform(app::numbers(0.0f, FLT_MAX))
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "Draw from the k likeliest tokens; 0 is off")
      ->transform(app::numbers<uint32_t>(0, UINT32_MAX))
      ->capture_default_str();
  command.add_option("--top-p", sampling.top_p, "Draw from the likeliest tokens of this total probability")
      ->transform(app::numbers(0.0f, 1.0f, app::RangeEnds::not_least))
      ->capture_default_str();
  command.add_option("--min-p", sampling.min_p, "Leave out tokens below this share of the likeliest one")
      ->transform(app::numbers(0.0f, 1.0f, app::RangeEnds::not_most))
      ->capture_default_str();
  command
      .add_option("--seed", sampling.seed,
                  "Of the random numbers: the same seed gives the same text; -1 draws one, which is told")
      ->transform(app::seeds(UINT64_MAX, options.seed_drawn))
      ->capture_default_str();
  command.add_option("--stop", options.settings.stop_strings, "Text that ends the reply; may be given several times");
  command.add_flag("!--no-self-test", options.model.self_test, "Do not check exactness on this device first");
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("generate", "Write a reply to a prompt or a conversation");
  const auto options = std::make_shared<GenerateOptions>();
  const CLI::Option* prompt =
      command->add_option("-p,--prompt", options->prompt, "The prompt, put through the model's chat template");
  command->add_option(
      "-f,--prompt-file", options->prompt_file,
      "The same from a file or a pipe, without the line break at its end; - is standard input, which is "
      "read where no prompt is named, too");
  command->add_option(
      "--chat", options->chat,
      "A JSON array of {\"role\", \"content\"} turns to go on from, or a request with such messages; - is "
      "a conversation on the terminal, as canopy-cli chat");
  command->add_flag("--raw", options->raw, "Use the prompt as it is, without the chat template");
  add_reply_options(*command, *options);
  add_accept_rates(*command, options->settings.accept_rates);
  command->add_flag("--json", options->as_json, "Print one JSON object at the end instead of streaming the text");
  command->callback([&action, options, prompt] {
    options->prompt_given = prompt->count() > 0;
    action = [options] { return run_generate(*options); };
  });
}

void add_chat(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("chat", "Talk with a model on the terminal");
  command->footer("In the conversation /new begins anew, /help lists what else there is, and Ctrl-D ends it.");
  const auto options = std::make_shared<GenerateOptions>();
  options->chat = "-";
  add_reply_options(*command, *options);
  command->callback([&action, options] { action = [options] { return run_generate(*options); }; });
}

}  // namespace canopy::cli
