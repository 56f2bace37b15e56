// canopy-cli inspect: shows what a model file contains, whether or not it can be run.

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "engine/format/describe.h"

namespace canopy::cli {

void add_inspect(CLI::App& app, Action& action) {
  struct Options {
    std::string path;
    bool as_json = false;
  };
  CLI::App* command = app.add_subcommand("inspect", "Show what a model file or folder holds");
  const auto options = std::make_shared<Options>();
  command->add_option("path", options->path, "GGUF file, safetensors file or Hugging Face folder")->required();
  command->add_flag("--json", options->as_json, "Print a JSON object");
  command->callback([&action, options] {
    action = [options] {
      const nlohmann::json description = describe_json(options->path);
      std::cout << (options->as_json ? description.dump(2) : describe_text(description)) << "\n";
      return 0;
    };
  });
}

}  // namespace canopy::cli
