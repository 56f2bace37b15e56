// canopy-cli: the engine on the command line.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/commands.h"
#include "app/state/option_texts.h"
#include "app/state/process.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

int fail(const std::string& message, int code) {
  std::cerr << "canopy-cli: " << canopy::printable(message, 4096, canopy::LineBreaks::keep) << "\n";
  return code;
}

/// How many letters must be put in, taken out or replaced to make one word of the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

/// "; did you mean X?" where a word is nearly one that is known, else ".".
std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string* nearest = nullptr;
  size_t least = (word.size() + 2) / 3 + 1;
  for (const std::string& each : known) {
    const size_t away = each.starts_with(word) && word.size() > 2 ? 1 : distance(word, each);
    if (away < least) least = away, nearest = &each;
  }
  return nearest == nullptr ? "." : "; did you mean " + *nearest + "?";
}

/// Says what a wrong command line should have been, where that can be told; empty: the parser's own words will do.
std::string misspelt(const CLI::App& app, int argc, char** argv) {
  const CLI::App* command = &app;
  std::string name = "canopy-cli";
  int words = 1;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
    ++words;
  }
  std::vector<std::string> known;
  for (const CLI::App* each : command->get_subcommands([](const CLI::App*) { return true; }))
    if (!each->get_group().empty()) known.push_back(each->get_name());
  if (!known.empty()) {
    if (words >= argc || argv[words][0] == '-') return {};
    return name + " has no command " + canopy::quoted_name(argv[words]) + suggestion(argv[words], known) + "\n" + name +
           " --help lists them.";
  }
  for (const std::string& extra : command->remaining()) {
    const std::string option = extra.substr(0, extra.find('='));
    if (!option.starts_with("--")) continue;
    for (const CLI::Option* each : command->get_options())
      for (const std::string& known_name : each->get_lnames()) known.push_back("--" + known_name);
    return name + " has no option " + canopy::quoted_name(option) + suggestion(option, known) + "\n" + name +
           " --help lists them.";
  }
  return {};
}

int run(int argc, char** argv) {
  canopy::app::log_to_stderr("canopy-cli");
  CLI::App app("Canopy: text from a language model on GPUs, by Vulkan or CUDA, and on the processor.", "canopy-cli");
  app.set_version_flag("--version", "canopy-cli " CANOPY_VERSION);
  app.allow_windows_style_options(false);  // "/file" is a path there, too
  app.require_subcommand(1);
  app.footer(
      "Devices are chosen by index, backend (cuda, vulkan, cpu, cuda:0), a part of their name, or a type (discrete, "
      "integrated, virtual, cpu, software).");
  canopy::cli::Action action;
  canopy::cli::add_devices(app, action);
  canopy::cli::add_inspect(app, action);
  canopy::cli::add_generate(app, action);
  canopy::cli::add_chat(app, action);
  canopy::cli::add_bench(app, action);
  canopy::cli::add_calibrate(app, action);
  canopy::cli::add_convert(app, action);
  canopy::cli::add_get(app, action);
  canopy::cli::add_make_model(app, action);
  canopy::cli::add_models(app, action);
  canopy::cli::add_predict(app, action);
  canopy::cli::add_report(app, action);
  canopy::cli::add_results(app, action);
  canopy::cli::add_serve(app, action);
  canopy::cli::add_sweep(app, action);
  canopy::cli::add_trace(app, action);
  canopy::cli::add_verify(app, action);
  canopy::cli::add_logits(app, action);
  canopy::app::add_option_texts(app);
  if (argc < 2) {
    std::cerr << app.help();
    return fail("name one of the commands above.", kUsage);
  }
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0) {
      if (const std::string words = misspelt(app, argc, argv); !words.empty()) {
        std::cerr << words << "\n";
        return kUsage;
      }
    }
    return app.exit(e, std::cout, std::cerr) == 0 ? 0 : kUsage;
  }
}

}  // namespace

int main(int argc, char** argv) {
  canopy::app::prepare_process();
  canopy::app::StandardOutput output;
  std::string problem;
  int code = 0;
  try {
    code = run(argc, argv);
    output.finish();
    return code;
  } catch (const canopy::cli::UsageError& e) {
    problem = e.what();
    code = kUsage;
  } catch (...) {
    code = kFailure;
    problem = canopy::as_error(std::current_exception()).what();
  }
  if (output.reader_is_gone()) return kFailure;
  try {
    output.finish();  // what was written before belongs before the message
  } catch (const canopy::Error&) {
    // The first problem is the one to tell.
  }
  return fail(problem, code);
}
