#include "app/cli/commands.h"

#include <utility>

#include "app/cli/terminal.h"
#include "app/state/number_options.h"
#include "app/state/settings.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/format/drafter_config.h"
#include "engine/format/model_paths.h"
#include "engine/hub/model_stores.h"
#include "engine/session/devices.h"

namespace canopy::cli {
namespace {

std::filesystem::path default_model_path() {
  if (const std::string path = app::default_model_path(); !path.empty()) return path;
  return cache_dir();  // throws what is wrong with that folder
}

std::string default_model() {
  const auto path = default_model_path();
  if (std::filesystem::exists(path)) return path.string();
  throw bad_input(
      "There is no model at " + shown(path) +
      ", the default: install the package canopy-model-smollm2, or name a model with --model (canopy-cli get "
      "fetches one, canopy-cli models lists what is here).");
}

}  // namespace

void add_device_settings(CLI::App& command, DeviceSettings& settings) {
  command.add_option("--kernels", settings.kernels, kKernelsHelp)
      ->check(CLI::IsMember(kernel_names()))
      ->capture_default_str();
  command.add_option("--threads", settings.threads, kThreadsHelp)->transform(app::numbers<uint32_t>(1, most_threads()));
}

void add_model_options(CLI::App& command, ModelChoice& choice) {
  command.add_option("-m,--model", choice.model,
                     "GGUF file, Hugging Face folder, OWNER/REPO[:QUANT] as canopy-cli get fetched it, or a name that "
                     "canopy-cli models lists (default: the SmolLM2 that is installed or in the cache)");
  command.add_option(
      "--drafter", choice.drafter,
      "GGUF file, Hugging Face folder or name, as of --model, of a DFlash drafter, of an EAGLE-3 head, of an assistant "
      "(Gemma 4), of a head that predicts further tokens (MTP) or of a smaller model with the same vocabulary; mtp for "
      "the head in the model's "
      "own file; or none "
      "(default: that head, where there is one, or the drafter that comes with Canopy, for the default model)");
  command.add_option("-d,--device", choice.device, device_help());
  command
      .add_option("--kv", choice.kv,
                  "Type of the K/V cache; q8_0 takes little more than half the memory of f16. Each writes its own "
                  "text")
      ->check(CLI::IsMember({"f16", "f32", "q8_0"}))
      ->capture_default_str();
  command
      .add_option("--context", choice.context, "Positions of the K/V cache (default: from the model and from memory)")
      ->transform(app::counts());
  command
      .add_option("--quantize", choice.quantize,
                  "Weights stored as F32, F16 or BF16 while loading: none keeps them, q8_0 and q4_k quantize them (8.5 "
                  "and 4.5 bits each), auto does so only where the model would not fit")
      ->check(CLI::IsMember({"none", "auto", "q8_0", "q4_k"}))
      ->capture_default_str();
  add_device_settings(command, choice.settings);
}

std::string sources_problem(const std::string& list) {
  try {
    parse_sources(list);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

CLI::Option* add_source_sets(CLI::App& command, std::vector<DraftSources>& sets) {
  return command
      .add_option_function<std::vector<std::string>>(
          "--sources",
          [&sets](const std::vector<std::string>& lists) {
            sets.clear();
            for (const std::string& list : lists) sets.push_back(parse_sources(list));
          },
          "Where drafts come from: dflash, draft, mtp, eagle3 or assistant (the drafter, whichever it is), suffix (the "
          "text "
          "itself) and "
          "recycling (what the "
          "model said "
          "lately), with commas in between, or none; given several times, each is measured (default: dflash,suffix)")
      ->allow_extra_args(false)
      ->check(sources_problem);
}

CLI::Option* add_sources_from(CLI::App& command, std::string& folder) {
  return command.add_option(
      "--sources-from", folder,
      "Draft from the earlier replies in this folder, too, as generate --suffix-store keeps them; they are read alone. "
      "Adds earlier to --sources where no set has it (default: every run begins with nothing known)");
}

std::vector<DraftSources> with_earlier_replies(std::vector<DraftSources> sets, const std::string& folder) {
  const auto asks_earlier = [](DraftSources sources) { return (sources & kFromEarlier) != 0; };
  if (folder.empty() || std::ranges::any_of(sets, asks_earlier)) return sets;
  if (sets.empty()) sets = {kUsualSources};
  for (DraftSources& sources : sets) sources |= kFromEarlier;
  return sets;
}

std::vector<NamedFile> earlier_reply_files(const std::string& folder) {
  std::vector<NamedFile> files;
  if (folder.empty()) return files;
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    throw UsageError("--sources-from names " + shown(folder) +
                     "; a folder that generate --suffix-store or the window kept replies in is needed.");
  }
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder, error))
    files.push_back({"the earlier replies", entry.path()});
  return files;
}

void require_earlier_replies(const Engine& model, const std::string& folder) {
  if (folder.empty() || model.replies->replies() > 0) return;
  throw bad_input("--sources-from names " + shown(folder) + ", which has no earlier replies of " + model.file_name +
                  ": they would be in " + shown(model.replies->path().filename()) +
                  ", which generate --suffix-store and the window write.");
}

CLI::Option* add_accept_rates(CLI::App& command, std::vector<double>& rates) {
  const auto problem = [](const std::string& list) -> std::string {
    try {
      parse_accept_rates(list);
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  };
  return command
      .add_option_function<std::string>(
          "--accept", [&rates](const std::string& list) { rates = parse_accept_rates(list); },
          "Pretend a drafter of this quality: the likeliest drafted token of each depth is accepted with these "
          "probabilities, the last one for all deeper depths, as in 0.8,0.7,0.6. Drafts, passes and times are real, "
          "the text is not the model's")
      ->type_name("RATES")
      ->check(problem);
}

std::string accept_rates_words(const std::vector<double>& rates) {
  return "acceptance by given rates (" + list_of(rates) + "): the text is not the model's";
}

std::vector<DraftSources> sources_of(DecodeMode mode, const std::vector<DraftSources>& sets) {
  return mode == DecodeMode::ar || sets.empty() ? std::vector<DraftSources>{kUsualSources} : sets;
}

std::string drafter_path(const ModelChoice& choice) {
  const bool is_word = choice.drafter == "mtp";  // and no name of a model
  return is_word ? choice.drafter : path_of_model(choice.drafter);
}

std::string model_path(const ModelChoice& choice) {
  const std::string path = choice.model.empty() ? default_model() : path_of_model(choice.model);
  const std::filesystem::file_status status = std::filesystem::status(path);
  if (!exists(status)) throw bad_input("There is no model at " + shown(path) + ".");
  // A pipe is refused before the device is opened, too.
  if (!is_directory(status) && !is_regular_file(status)) static_cast<void>(MappedFile::open(path));
  return path;
}

std::vector<NamedFile> named_files(const std::string& name, const std::vector<std::filesystem::path>& paths) {
  std::vector<NamedFile> files;
  for (const std::filesystem::path& path : paths) files.push_back({name, path});
  return files;
}

void require_outputs_apart(std::span<const NamedFile> outputs, std::vector<NamedFile> inputs,
                           const ModelChoice* model) {
  const auto add = [&](const char* name, const std::filesystem::path& path) {
    for (NamedFile& file : named_files(name, model_files(path))) inputs.push_back(std::move(file));
  };
  if (model != nullptr) {
    OpenRequest request;
    if (model->drafter != "none") choose_drafter(drafter_path(*model), request);
    add("the model", model->model.empty() ? default_model_path() : std::filesystem::path(path_of_model(model->model)));
    if (!request.drafter.empty()) {
      add("the drafter", request.drafter);
      inputs.push_back({"the list of tokens to draft", draft_tokens_path(request.drafter)});
    }
  }
  require_other_files(outputs, inputs);
}

OpenedModel open_model(const ModelChoice& choice) {
  OpenRequest request;
  request.path = model_path(choice);  // a wrong one is told before the device is opened, which takes longer
  request.cache_type = checked_cache_type(choice.kv);
  request.context = choice.context;
  request.self_test = choice.self_test;
  request.quantize = quantize_on_load_from(choice.quantize).value_or(QuantizeOnLoad::none);

  request.max_width = choice.max_width;
  request.texts = choice.texts;
  request.most_texts = choice.most_texts;
  request.calibration_s = choice.calibration_s;
  request.keeps_learnt = choice.keeps_learnt;
  request.replies = choice.replies;
  request.replies_read_only = choice.replies_read_only;
  if (choice.drafter != "none") choose_drafter(drafter_path(choice), request);

  ProgressLine line;
  line.show({"Opening the device"});
  OpenedModel opened;
  opened.device = open_device(choice.device, choice.settings);
  OpenCallbacks callbacks;
  callbacks.progress = [&](const LoadProgress& progress) { line.show(progress); };
  callbacks.stop = interruption();
  opened.model = Engine::open(*opened.device, request, callbacks);
  line.clear();
  const std::string& quantization = opened.model->model->quantization();
  if (!quantization.empty()) note(quantization);
  const std::string rounding = rounding_note(opened.device->info());
  if (!rounding.empty()) note(rounding);
  for (const std::string& warning : opened.model->describe().warnings) note("warning: " + warning);
  return opened;
}

}  // namespace canopy::cli
