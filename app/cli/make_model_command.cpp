// canopy-cli make-model: writes a model of random weights in the shape of a published one, and a drafter for it.

#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "engine/base/atomic_file.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/mapped_file.h"
#include "engine/predict/random_model_gguf.h"

namespace canopy::cli {
namespace {

namespace fs = std::filesystem;

struct MakeModelOptions {
  std::string shape;
  std::string out;
  std::string drafter;
  bool overwrite = false;
};

using Write = std::function<void(const PutBytes& put)>;

/// The bytes that `write` writes.
uint64_t size_of(const Write& write) {
  uint64_t size = 0;
  write([&size](std::span<const std::byte> bytes) { size += bytes.size(); });
  return size;
}

void check_place(const std::string& path, uint64_t size, bool overwrite) {
  if (is_written_into(path)) return;
  std::error_code error;
  if (!overwrite && fs::exists(fs::symlink_status(path, error))) {
    throw bad_input("The file " + shown(path) + " exists already; --overwrite replaces it.");
  }
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available >= size) return;
  throw bad_input("The file " + shown(path) + " would have " + byte_figures(size) + ", and " +
                  byte_figures(space.available) + " are free there.");
}

void write_file(const std::string& path, bool overwrite, const Write& write) {
  const uint64_t size = size_of(write);
  check_place(path, size, overwrite);
  stream_file_atomically(path, write);
  const std::string done = "Wrote " + shown(path) + ": " + byte_figures(size) + ".";
  if (is_written_into(path)) return note(done);  // which may be standard output
  std::cout << done << "\n";
}

int run(const MakeModelOptions& options) {
  const predict::NamedShape shape = predict::model_shape(options.shape);
  const std::vector<NamedFile> outputs = {{"The model", options.out}, {"--drafter", options.drafter}};
  require_other_files(outputs);
  write_file(options.out, options.overwrite, [&](const PutBytes& put) { predict::write_random_model(shape, put); });
  if (options.drafter.empty()) return 0;
  write_file(options.drafter, options.overwrite,
             [&](const PutBytes& put) { predict::write_random_drafter(shape, put); });
  return 0;
}

}  // namespace

void add_make_model(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "make-model", "Write a model of random weights in the shape of a published one, for measurements");
  const auto options = std::make_shared<MakeModelOptions>();
  command->add_option("shape", options->shape, predict::allowed_shapes())->required();
  command->add_option("out", options->out, "The GGUF file to write")->required();
  command->add_option("--drafter", options->drafter, "Write a DFlash drafter of random weights for it here");
  command->add_flag("--overwrite", options->overwrite, "Replace files that exist");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace canopy::cli
