// canopy-cli serve: a model as a server for clients of OpenAI's interface.

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

constexpr uint64_t kMostKeyBytes = 4096;

struct ServeCommand {
  ModelChoice model;
  ServeOptions serve;
  std::string key, key_file;
  bool key_given = false;
  std::string mode = "adaptive";
};

/// The key of the option, of the file or of the environment, in this order.
std::string serve_key(const ServeCommand& command) {
  if (command.key_given && !command.key_file.empty())
    throw UsageError("Give the key with --api-key or with --api-key-file, not with both.");
  // An empty one, as of a variable that is not set, would otherwise leave the server open.
  if (command.key_given && command.key.empty()) throw UsageError("The key of --api-key is empty.");
  if (command.key_given) return command.key;
  if (command.key_file.empty()) {
    const char* const set = std::getenv("CANOPY_API_KEY");
    return set != nullptr ? set : "";
  }
  std::string key = read_text_input(command.key_file, kMostKeyBytes);
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  if (key.empty()) throw bad_input(input_name(command.key_file) + " has no key.");
  return key;
}

int run_serve(ServeCommand& command) {
  command.serve.key = serve_key(command);
  try {
    validate(command.serve);  // before the model is loaded, which takes longer
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  for (std::string& host : command.serve.hosts) {
    const std::string name = host_of(host);
    if (name.empty()) throw UsageError("--allow-host: " + quoted_name(host) + " is no name of a host.");
    host = name;
  }
  command.serve.api.mode = decode_mode_of(command.mode).value_or(DecodeMode::adaptive);
  command.serve.api.most_budget = command.model.max_width - 1;

  catch_interrupts();
  // A request may choose its mode, so that the costs are needed whatever the mode is here.
  command.model.calibration_s = kFirstCalibration;
  command.model.keeps_learnt = true;
  const OpenedModel opened = open_model(command.model);
  ModelServer server(*opened.model, command.serve);
  note("Serving " + server.model() + " at " + server.url() +
       (command.serve.key.empty() ? ", to this machine alone." : ", to those who have the key.") + " Ctrl-C ends it.");
  server.run(interruption());
  opened.model->keep_what_was_learnt();
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("serve", "Serve a model to clients of OpenAI's interface");
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
  const CLI::Option* key =
      command->add_option("--api-key", options->key,
                          "Key that clients must name. Others on this machine may see it among the running programs: "
                          "--api-key-file or the variable CANOPY_API_KEY hide it");
  command->add_option("--api-key-file", options->key_file, "The same from a file; - is standard input");
  command->add_option("--cors", serve.origins,
                      "Origins of pages that may ask, as https://chat.example (default: none)");
  command->add_option("--allow-host", serve.hosts,
                      "Names by which clients call this machine, beside localhost and its addresses (default: none)");
  command->add_option("--model-name", serve.model, "Name of the model for clients (default: that of its file)");
  command->add_option("--queue", serve.most_waiting, "Replies that may wait for their turn")
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
  command->callback([&action, options, key] {
    options->key_given = key->count() > 0;
    action = [options] { return run_serve(*options); };
  });
}

}  // namespace canopy::cli
