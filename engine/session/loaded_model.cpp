#include "engine/session/loaded_model.h"

#include <filesystem>

#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace canopy {
namespace {

void announce(const OpenCallbacks& callbacks, const char* stage, uint64_t done = 0, uint64_t total = 0) {
  if (callbacks.keep_going && !callbacks.keep_going()) throw cancelled("Loading was cancelled.");
  if (callbacks.progress) callbacks.progress({stage, done, total});
}

std::string last_component(const std::filesystem::path& path) {
  const std::filesystem::path clean = path.has_filename() ? path : path.parent_path();
  return printable(clean.filename().string());
}

}  // namespace

std::unique_ptr<LoadedModel> LoadedModel::open(Device& device, const OpenRequest& request,
                                               const OpenCallbacks& callbacks) {
  auto loaded = std::make_unique<LoadedModel>();
  announce(callbacks, "Opening the file");
  const ModelFile file = ModelFile::open(request.path);
  loaded->file_name = last_component(request.path);

  with_context(loaded->file_name, [&] {
    announce(callbacks, "Building the tokenizer");
    loaded->text = make_text_model(file);
    ModelOptions options;
    options.cache_type = request.cache_type;
    options.context = request.context;
    options.max_width = request.max_width;
    options.keep_going = callbacks.keep_going;
    options.progress = [&](uint64_t done, uint64_t total) { announce(callbacks, "Reading weights", done, total); };
    announce(callbacks, "Reading weights");
    loaded->model = Model::load(device, file, options);
    if (request.self_test) {
      announce(callbacks, "Checking exactness");
      loaded->self_test = run_self_test(*loaded->model);
    }
    announce(callbacks, "Ready");
  });
  loaded->session = std::make_unique<TextSession>(*loaded->model, loaded->text);
  return loaded;
}

ModelReady LoadedModel::describe() const {
  const ModelConfig& config = model->config();
  const DeviceInfo& device = model->device().info();
  ModelReady ready;
  ready.name = config.name.empty() ? file_name : config.name;
  ready.file_name = file_name;
  ready.architecture = config.architecture;
  ready.quantization = config.quantization;
  ready.parameters = config.parameters;
  ready.weight_bytes = model->memory().weights;
  ready.context = model->limits().context;
  ready.model_context = config.max_context;
  ready.device = device.name;
  ready.device_type = device.type;
  ready.driver = device.driver;
  ready.kv_type = to_string(model->limits().cache_type);
  ready.warnings = text.warnings;
  ready.warnings.insert(ready.warnings.end(), model->warnings().begin(), model->warnings().end());
  if (self_test && !self_test->passed) ready.warnings.push_back(self_test->sentence);
  return ready;
}

std::vector<uint32_t> LoadedModel::prompt_ids(const std::vector<ChatTurn>& turns, const std::string& raw_prompt) const {
  return turns.empty() ? text.encode_raw(raw_prompt) : text.chat->render_to_ids(turns, *text.tokenizer);
}

}  // namespace canopy
