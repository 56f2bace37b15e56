#include "app/cli/logits_command.h"

#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/state/number_options.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/model/recurrent_memory.h"
#include "engine/session/reply_writer.h"

namespace canopy::cli {

// canopy-cli logits: prints the likeliest tokens after every position of a text, to compare with other programs. Not in
// the main help, as it is made for tools/bench_llamacpp.

namespace {

using nlohmann::ordered_json;

constexpr size_t kMaxTextBytes = size_t{16} << 20;

struct LogitsOptions {
  ModelChoice model;
  std::string text_file;
  uint32_t positions = 2000;
  uint32_t window = 500;  // positions that are computed in one context
  uint32_t top = 20;
  std::string rows_file;
};

/// Runs one window of text from an empty cache, appends the likeliest tokens of each position to `tops` and gives `put`
/// the whole rows.
void run_window(Model& model, std::span<const uint32_t> ids, uint32_t chunk, uint32_t k, ordered_json& tops,
                const PutBytes& put) {
  const uint32_t vocab = model.config().vocab;
  const uint32_t length = static_cast<uint32_t>(ids.size());
  StateLine states(model.states());
  for (uint32_t first = 0; first < length;) {
    const uint32_t end = std::min(length, first + chunk);
    RowBatch batch;
    for (; first < end; ++first) batch.add_text(ids[first], first);
    std::vector<uint32_t> rows(batch.width());
    std::iota(rows.begin(), rows.end(), 0u);
    ForwardInput input{batch, HeadOutput::logits, rows};
    input.states = states.next();
    ForwardOutput output = model.forward(input, interruption());
    if (!output.completed()) throw cancelled("The pass was cancelled.");
    states.take(batch.width());
    const std::vector<float> logits = output.logits(rows);
    put(std::as_bytes(std::span(logits)));
    for (const uint32_t row : rows) {
      tops.push_back(likeliest(std::span(logits).subspan(size_t{row} * vocab, vocab), k));
    }
  }
}

std::vector<uint32_t> first_ids(const LogitsOptions& options, const Engine& model, const std::string& text) {
  std::vector<uint32_t> ids = model.text.encode_raw(text);
  if (ids.size() < options.positions) {
    throw bad_input(options.text_file + " has " + std::to_string(ids.size()) + " tokens; " +
                    std::to_string(options.positions) + " positions were asked for. Choose a longer text.");
  }
  ids.resize(options.positions);
  return ids;
}

int run(const LogitsOptions& options) {
  catch_interrupts();
  const std::vector<NamedFile> outputs = {{"--rows", options.rows_file}};
  require_outputs_apart(outputs, {{"the text", options.text_file}}, &options.model);
  const std::string text = read_text_input(options.text_file, kMaxTextBytes);
  const OpenedModel opened = open_model(options.model);
  Model& model = *opened.model->model;
  const std::vector<uint32_t> ids = first_ids(options, *opened.model, text);
  const ModelLimits& limits = model.limits();
  if (options.window > limits.context) {
    throw bad_input("A window of " + std::to_string(options.window) +
                    " positions was asked for; the model's context is " + std::to_string(limits.context) + ".");
  }
  ordered_json tops = ordered_json::array();
  const uint32_t chunk = std::min(limits.head_rows, prefill_chunk(model));
  const auto run_windows = [&](const PutBytes& put) {
    for (size_t first = 0; first < ids.size(); first += options.window) {
      const size_t count = std::min<size_t>(options.window, ids.size() - first);
      run_window(model, std::span(ids).subspan(first, count), chunk, options.top, tops, put);
    }
  };
  if (options.rows_file.empty()) {
    run_windows([](std::span<const std::byte>) {});
  } else {
    stream_file_atomically(options.rows_file, run_windows);
  }
  const DeviceInfo& device = model.device().info();
  const ordered_json json = {{"device", device.name},
                             {"driver", device.driver},
                             {"backend", device.backend},
                             {"model", opened.model->file_name},
                             {"kv", options.model.kv},
                             {"window", options.window},
                             {"ids", ids},
                             {"top", tops}};
  std::cout << json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << "\n";
  return 0;
}

}  // namespace

void add_logits(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("logits", "Print the likeliest tokens after every position of a text as JSON");
  command->group("");  // hidden
  const auto options = std::make_shared<LogitsOptions>();
  options->model.self_test = false;
  add_model_options(*command, options->model);
  command->add_option("-f,--text-file", options->text_file, "The text, taken as it is")->required();
  command->add_option("--positions", options->positions, "Tokens of the text that are looked at")
      ->transform(app::counts())
      ->capture_default_str();
  command->add_option("--window", options->window, "Positions that share a context; the next one starts anew")
      ->transform(app::counts())
      ->capture_default_str();
  command->add_option("--top", options->top, "Tokens printed for each position")
      ->transform(app::numbers(1, 1000))
      ->capture_default_str();
  command->add_option("--rows", options->rows_file,
                      "A file for the whole rows of logits: f32, one position after the other");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace canopy::cli
