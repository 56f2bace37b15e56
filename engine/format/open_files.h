#pragma once
// Opens the files of a model or of a drafter by the same rules.

#include "engine/format/model_config.h"
#include "engine/format/model_paths.h"
#include "engine/format/tensor_file.h"

namespace canopy {

/// Opens what `given` stands for as the State's own kind of model: `state` has the members path and file (TensorFile)
/// and reads its configuration in open_gguf() or open_folder(folder). `config` is its transformer, which learns here
/// what the tensors say of it.
template <class State>
void open_files(const std::filesystem::path& given, State& state, ModelConfig& config) {
  state.path = resolve_model_path(given);
  if (const auto folder = hugging_face_folder(state.path)) {
    state.open_folder(*folder);
  } else {
    state.open_gguf();
  }
  config.quantization = state.file.main_type();
  config.parameters = state.file.elements();
  if (config.name.empty()) config.name = name_from_path(given);
}

}  // namespace canopy
