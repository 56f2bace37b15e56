#include <csignal>
#include <exception>
#include <iostream>
#include <vector>

#include "app/run.h"
#include "app/state/built_commit.h"
#include "app/state/process.h"
#include "app/state/settings.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/format/model_paths.h"
#include "engine/serve/model_service.h"
#include "engine/session/engine_thread.h"

namespace {

int run(int argc, char** argv, std::ostream& err) {
  using namespace canopy;
  int exit_code = 0;
  auto options = app::parse_options(argc, argv, std::cout, err, exit_code);
  if (!options) return exit_code;
  std::vector<NamedFile> inputs = {{"the recording", options->replay}};
  if (!options->model.empty())
    for (const auto& file : model_files(options->model)) inputs.push_back({"the model", file});
  const std::vector<NamedFile> outputs = {{"--shot", options->shot}};
  require_other_files(outputs, inputs);
  app::log_to_stderr("canopy", [log = app::MessageLog::of_process()](LogLevel level, std::string_view message) {
    log->add(level, message);
  });
  // A recording needs no engine when it is only printed, drawn into a picture, or when there is no display.
  const bool picture = options->offscreen || !options->shot.empty() || !app::display_present();
  if (!options->replay.empty() && (options->dump_json || picture)) return app::run_replay(*options, std::cout, err);
  const std::unique_ptr<EngineClient> engine = make_engine(built_commit(), options->settings, make_model_service);
  if (!options->offscreen && !app::display_present()) {
    err << "No display (neither DISPLAY nor WAYLAND_DISPLAY is set): answering off-screen.\n";
    options->offscreen = true;
  }
  if (!options->offscreen) options->settings_file = app::user_settings_path(options->settings_problem);
  options->keeps_chats = !options->offscreen;
  if (options->offscreen) return app::run_offscreen(*engine, *options, std::cout, err);
#ifdef SIGPIPE
  std::signal(SIGPIPE, SIG_IGN);  // a pipe that nobody reads any more is no reason to end
#endif
  return app::run_window(*engine, *options, err);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace canopy;
  app::prepare_process();
  app::StandardOutput output;
  app::ErrorOutput errors;
  int exit_code = 1;
  try {
    exit_code = run(argc, argv, errors.stream());
    output.finish();
  } catch (...) {
    exit_code = 1;
    if (!output.reader_is_gone()) errors.stream() << as_error(std::current_exception()).what() << "\n";
  }
  errors.finish(exit_code);
  return exit_code;
}
