// canopy-cli serve: a model as a server for clients of OpenAI's and Anthropic's interfaces.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/state/number_options.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/serve/model_server.h"

namespace canopy::cli {
namespace {

constexpr uint64_t kMostKeyBytes = 64 << 10;
constexpr uint32_t kMostParallel = 16;

struct ServeCommand {
  ModelChoice model;
  ServeOptions serve;
  std::vector<std::string> keys;
  std::string key_file;
  uint32_t parallel = 0;  // 0: as many as there is ample memory for, up to SchedulerLimits::parallel
  std::string mode = "adaptive";
};

/// The keys of the options, of the file or of the environment, in this order.
std::vector<ServeKey> serve_keys(const ServeCommand& command) {
  if (!command.keys.empty() && !command.key_file.empty())
    throw UsageError("Give the keys with --api-key or with --api-key-file, not with both.");
  std::vector<ServeKey> keys;
  for (const std::string& key : command.keys) {
    // An empty one, as of a variable that is not set, would otherwise leave the server open.
    if (key.empty()) throw UsageError("The key of --api-key is empty.");
    keys.push_back({key, {}});
  }
  if (!keys.empty()) return keys;
  if (command.key_file.empty()) {
    const char* const set = std::getenv("CANOPY_API_KEY");
    if (set != nullptr && *set != 0) keys.push_back({set, {}});
    return keys;
  }
  keys = parse_keys(read_text_input(command.key_file, kMostKeyBytes));
  if (keys.empty()) throw bad_input(input_name(command.key_file) + " has no key.");
  return keys;
}

int run_serve(ServeCommand& command) {
  command.serve.keys = serve_keys(command);
  try {
    validate(command.serve);  // before the model is loaded, which takes longer
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  command.serve.api.mode = decode_mode_of(command.mode).value_or(DecodeMode::adaptive);
  command.serve.api.most_budget = command.model.max_width - 1;

  catch_interrupts();
  // A request may choose its mode, so that the costs are needed whatever the mode is here. What is learnt of drafts is
  // each key's own, and ends with the server.
  command.model.calibration_s = kFirstCalibration;
  SchedulerLimits& scheduling = command.serve.scheduling;
  if (command.parallel > 0) {
    command.model.texts = scheduling.parallel = command.parallel;
  } else {
    command.model.most_texts = scheduling.parallel;
  }
  const OpenedModel opened = open_model(command.model);
  ModelServer server(*opened.model, command.serve);
  note("Serving " + server.model() + " at " + server.url() +
       (command.serve.keys.empty()       ? ", to this machine alone."
        : command.serve.keys.size() == 1 ? ", to those who have the key."
                                         : ", to those who have one of the keys.") +
       " Ctrl-C ends it.");
  const ModelLimits& limits = opened.model->model->limits();
  note("Up to " + std::to_string(scheduling.parallel) + " replies are written at once; the cache has room for " +
       std::to_string(limits.texts) + (limits.texts == 1 ? " text" : " texts") + " of the whole context, " +
       std::to_string(limits.context) + " tokens.");
  server.run(interruption());
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("serve", "Serve a model to clients of OpenAI's and Anthropic's interfaces");
  command->footer("docs/serving.md has settings for clients and says which fields of requests are done.");
  const auto options = std::make_shared<ServeCommand>();
  ServeOptions& serve = options->serve;
  add_model_options(*command, options->model);
  command
      ->add_option("--host", serve.address.host,
                   "Address to listen at; with another than this machine's own a key is needed")
      ->capture_default_str();
  command->add_option("--port", serve.address.port, "Port to listen at; 0 takes one that is free, which is told")
      ->transform(app::numbers<uint16_t>(0, 65535))
      ->capture_default_str();
  command
      ->add_option("--api-key", options->keys,
                   "Key that clients must name; several times for several keys, which share nothing. Others on this "
                   "machine may see it among the running programs: --api-key-file or the variable CANOPY_API_KEY hide "
                   "it")
      ->allow_extra_args(false);
  command->add_option("--api-key-file", options->key_file,
                      "The same from a file, one a line, with a name in front where wished; - is standard input");
  command->add_option("--cors", serve.origins,
                      "Origins of pages that may ask, as https://chat.example (default: none)");
  command->add_option("--allow-host", serve.hosts,
                      "Names by which clients call this machine, beside localhost and its addresses (default: none)");
  command->add_option("--model-name", serve.model, "Name of the model for clients (default: that of its file)");
  command
      ->add_option(
          "--parallel", options->parallel,
          "Replies that are written at once, a pass of each in turn. The cache then has room for as many texts "
          "of the whole context (default: up to " +
              std::to_string(serve.scheduling.parallel) + ", with room as there is memory)")
      ->transform(app::numbers(1u, kMostParallel));
  command->add_option("--queue", serve.scheduling.most_waiting, "Replies that may wait for their turn beside these")
      ->transform(app::numbers(1u, 10000u))
      ->capture_default_str();
  command
      ->add_option("--mode", options->mode,
                   "How replies are written where a request does not say; the text is the same in all")
      ->check(CLI::IsMember({"ar", "chain", "tree", "adaptive"}))
      ->capture_default_str();
  command
      ->add_option_function<std::string>(
          "--sources", [&serve](const std::string& list) { serve.api.sources = parse_sources(list); },
          "Where drafts come from where a request does not say: dflash, draft, suffix, recycling, with commas in "
          "between, "
          "or none (default: dflash,suffix)")
      ->check(sources_problem);
  command
      ->add_option("-t,--temperature", serve.api.temperature, "Of requests that name none; 0 takes the likeliest token")
      ->transform(app::numbers(0.0f, 100.0f))
      ->capture_default_str();
  command->add_flag("!--no-self-test", options->model.self_test, "Do not check exactness on this device first");
  command->callback([&action, options] { action = [options] { return run_serve(*options); }; });
}

}  // namespace canopy::cli
