// canopy-cli: the engine on the command line.

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <string>

#include "app/base/process.h"
#include "app/base/stderr_log.h"
#include "app/cli/commands.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

int fail(const std::string& message, int code) {
  std::cerr << "canopy-cli: " << canopy::printable(message, 4096, canopy::LineBreaks::keep) << "\n";
  return code;
}

int run(int argc, char** argv) {
  canopy::app::log_to_stderr("canopy-cli");
  CLI::App app("Canopy: text from a language model on GPUs, by Vulkan or CUDA.", "canopy-cli");
  app.set_version_flag("--version", "canopy-cli " CANOPY_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Devices are chosen by index, backend (cuda, vulkan, cuda:0), a part of their name, or a type (discrete, "
      "integrated, "
      "virtual, cpu).");
  canopy::cli::Action action;
  canopy::cli::add_devices(app, action);
  canopy::cli::add_inspect(app, action);
  canopy::cli::add_generate(app, action);
  canopy::cli::add_bench(app, action);
  canopy::cli::add_calibrate(app, action);
  canopy::cli::add_convert(app, action);
  canopy::cli::add_make_model(app, action);
  canopy::cli::add_predict(app, action);
  canopy::cli::add_report(app, action);
  canopy::cli::add_results(app, action);
  canopy::cli::add_sweep(app, action);
  canopy::cli::add_trace(app, action);
  canopy::cli::add_verify(app, action);
  canopy::cli::add_logits(app, action);
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::ParseError& e) {
    return app.exit(e, std::cout, std::cerr) == 0 ? 0 : kUsage;
  }
}

}  // namespace

int main(int argc, char** argv) {
  canopy::app::prepare_process();
  canopy::app::StandardOutput output;
  std::string problem;
  int code = kFailure;
  try {
    code = run(argc, argv);
    output.finish();
    return code;
  } catch (const canopy::cli::UsageError& e) {
    problem = e.what();
    code = kUsage;
  } catch (...) {
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
