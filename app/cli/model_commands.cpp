// canopy-cli inspect, convert and make-model: what a model file contains, a drafter as one GGUF file, and a model of
// random weights.

#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/format/describe.h"
#include "engine/format/drafter_config.h"
#include "engine/format/drafter_file.h"
#include "engine/format/model_paths.h"
#include "engine/hub/model_stores.h"
#include "engine/whatif/model_shapes.h"

namespace canopy::cli {

// canopy-cli inspect: shows what a model file contains, whether or not it can be run.

void add_inspect(CLI::App& app, Action& action) {
  struct Options {
    std::string path;
    bool as_json = false;
  };
  CLI::App* command = app.add_subcommand("inspect", "Show what a model file or folder holds");
  const auto options = std::make_shared<Options>();
  command->add_option("path", options->path, "GGUF file, safetensors file, Hugging Face folder or name, as of --model")
      ->required();
  command->add_flag("--json", options->as_json, "Print a JSON object");
  command->callback([&action, options] {
    action = [options] {
      const nlohmann::json description = describe_json(path_of_model(options->path));
      std::cout << (options->as_json ? description.dump(2) : describe_text(description)) << "\n";
      return 0;
    };
  });
}

// canopy-cli convert: writes a drafter as one GGUF file, in the form that llama.cpp reads too.

namespace {

namespace fs = std::filesystem;

struct ConvertOptions {
  std::string drafter;
  std::string out;
  std::string type = "q8_0";
  std::string target;
  std::string draft_tokens;
  bool overwrite = false;
  DrafterGgufOptions gguf;
};

TensorType tensor_type_from(const std::string& name) {
  if (name == "f16") return TensorType::f16;
  return name == "bf16" ? TensorType::bf16 : TensorType::q8_0;
}

void refuse_other_places(const ConvertOptions& options) {
  std::vector<NamedFile> inputs = named_files("the drafter", model_files(options.drafter));
  if (!options.target.empty())
    for (NamedFile& file : named_files("the target", model_files(options.target))) inputs.push_back(std::move(file));
  inputs.push_back({"the list of tokens", options.draft_tokens});
  const std::vector<NamedFile> outputs = {{"The converted drafter", options.out}};
  require_outputs_apart(outputs, std::move(inputs));
  std::error_code ignored;
  if (options.overwrite || is_written_into(options.out) || !fs::exists(fs::symlink_status(options.out, ignored)))
    return;
  throw bad_input("The file " + shown(options.out) + " exists already; --overwrite replaces it.");
}

/// Opens the target whose tokenizer is copied and checks that the drafter fits it; nullopt if no target was given.
std::optional<GgufFile> open_target(const ConvertOptions& options, const DrafterFile& drafter) {
  if (options.target.empty()) return std::nullopt;
  const ModelFile target = ModelFile::open(options.target);
  for (const std::string& warning : check_pair(target, drafter)) note("warning: " + warning);
  if (target.tokenizer().kind != TokenizerSource::Kind::gguf) {
    throw bad_input("The target " + shown(options.target) +
                    " is no GGUF file with a tokenizer; its tokenizer cannot be copied.");
  }
  return GgufFile::open(options.target);
}

/// ", 8192 tokens drafted"; empty where it is the whole vocabulary.
std::string drafted_part(const DrafterConfig& config, const DrafterGgufOptions& options) {
  const size_t named = options.draft_token_ids.empty() ? config.draft_token_ids.size() : options.draft_token_ids.size();
  return named == 0 ? "" : ", " + std::to_string(named) + " tokens drafted";
}

int run(ConvertOptions options) {
  options.drafter = path_of_model(options.drafter);
  options.target = path_of_model(options.target);
  refuse_other_places(options);
  const DrafterFile drafter = DrafterFile::open(options.drafter);
  const std::optional<GgufFile> target = open_target(options, drafter);
  DrafterGgufOptions gguf = options.gguf;
  gguf.type = tensor_type_from(options.type);
  gguf.tokenizer = target ? &*target : nullptr;
  if (!options.draft_tokens.empty()) gguf.draft_token_ids = read_draft_token_list(options.draft_tokens);
  uint64_t written = 0;
  stream_file_atomically(options.out, [&](const PutBytes& put) {
    const PutBytes counted = [&](std::span<const std::byte> bytes) {
      written += bytes.size();
      put(bytes);
    };
    with_context(options.drafter, [&] { write_drafter_gguf(drafter, gguf, counted); });
  });
  const std::string done = "Wrote " + shown(options.out) + ": " + byte_figures(written) + ", " +
                           std::to_string(drafter.config().transformer.layers) + " layers, block of " +
                           std::to_string(drafter.config().block_size) + drafted_part(drafter.config(), gguf) + ".";
  if (is_written_into(options.out)) {
    note(done);  // which may be standard output
  } else {
    std::cout << done << "\n";
  }
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("convert", "Write a DFlash drafter as one GGUF file");
  const auto options = std::make_shared<ConvertOptions>();
  command
      ->add_option("drafter", options->drafter,
                   "Hugging Face folder, GGUF file of any dialect, or name, as of --model of generate")
      ->required();
  command->add_option("out", options->out, "The file to write")->required();
  command->add_option("--type", options->type, "Type of the matrices; norms are F32")
      ->check(CLI::IsMember({"q8_0", "f16", "bf16"}))
      ->capture_default_str();
  command->add_option(
      "--target", options->target,
      "GGUF file or name of the model it drafts for: the pair is checked, and the file gets its tokenizer, "
      "without which some programs do not read it");
  command->add_option(
      "--draft-tokens", options->draft_tokens,
      "JSON file with a list of token ids, ascending: the drafter's head is to be over these rows of the "
      "model's alone, as tools/train_drafter rank chooses them");
  command->add_option("--name", options->gguf.name, "Name stated in the file (default: the drafter's)");
  command->add_option("--license", options->gguf.license,
                      "Licence stated in the file, e.g. apache-2.0 (default: the drafter's)");
  command->add_option("--source", options->gguf.source,
                      "Where the weights come from, stated in the file (default: as the drafter says)");
  command->add_flag("--overwrite", options->overwrite, "Replace the file if it exists");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

// canopy-cli make-model: writes a model of random weights in the shape of a published one, and a drafter for it.

namespace {

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
