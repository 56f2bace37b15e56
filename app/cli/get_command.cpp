// canopy-cli get and models: models from a hub into the cache that its tools share, and what is on this computer.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/state/model_finder.h"
#include "app/state/number_options.h"
#include "app/state/settings.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/text.h"
#include "engine/hub/hub_cache.h"
#include "engine/hub/hub_client.h"
#include "engine/hub/hub_files.h"
#include "engine/hub/pairs.h"
#include "engine/model/load_plan.h"
#include "engine/session/devices.h"

namespace canopy::cli {
namespace {

struct GetOptions {
  std::string name;
  std::string search;
  bool pairs = false, list = false, as_json = false;
  std::string revision = "main";
  std::string device;
  HubLimits limits;
};

/// The device that a model is to fit on.
struct DeviceToFit {
  std::unique_ptr<Device> device;
  HubFit fit;
};

/// What the sizes of `variant` need on the device here; nothing, with a note that says why, where that cannot be told.
std::optional<DeviceToFit> device_to_fit(HubClient& client, const HubListing& listing, const HubVariant& variant,
                                         const std::string& selector) {
  try {
    DeviceToFit here;
    here.device = open_device(selector);
    const ModelConfig config = client.config_of(listing, variant);
    here.fit.available = here.device->memory().available;
    here.fit.device = here.device->info().name;
    const Device* device = here.device.get();
    const uint32_t rows = OpenRequest().max_width;
    here.fit.needed = [config, device, rows](uint64_t bytes) {
      return plan_roomy(config, bytes, rows, *device).total();
    };
    return here;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::cancelled) throw;
    note("What fits this device cannot be told: " + std::string(e.what()));
    return std::nullopt;
  }
}

/// Progress on standard error: a line that changes on a terminal, else a line now and then.
class DownloadLine {
 public:
  void show(const DownloadProgress& progress) {
    constexpr std::chrono::seconds between(15);
    std::string stage = progress.waiting.empty() ? progress.file : progress.waiting;
    if (progress.waiting.empty() && progress.bytes_per_second > 0)
      stage += " at " + byte_figures(static_cast<uint64_t>(progress.bytes_per_second)) + "/s,";
    const LoadProgress step{stage, progress.done, progress.total, true, progress.seconds_left.value_or(-1)};
    if (is_terminal()) return line_.show(step);
    const auto now = std::chrono::steady_clock::now();
    if (now - noted_ < between) return;
    noted_ = now;
    note(stage + " " + progress_figures(step.done, step.total, true, step.seconds_left));
  }
  void clear() { line_.clear(); }

 private:
  ProgressLine line_;
  std::chrono::steady_clock::time_point noted_ = std::chrono::steady_clock::now();
};

int show_pairs(const GetOptions& options) {
  const std::vector<KnownPair> pairs = known_pairs();
  if (options.as_json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    const auto half = [](const PairHalf& h) {
      nlohmann::ordered_json out = {{"name", h.name}};
      if (!h.repo.empty()) out["repo"] = h.repo;
      if (!h.gguf.empty()) out["gguf"] = h.gguf;
      if (!h.licence.empty()) out["licence"] = h.licence;
      if (h.bytes > 0) out["bytes"] = h.bytes;
      return out;
    };
    for (const KnownPair& pair : pairs) {
      nlohmann::ordered_json out = {{"target", half(pair.target)},
                                    {"drafter", half(pair.drafter)},
                                    {"kind", pair.kind},
                                    {"source", pair.source},
                                    {"tried", !pair.tried.empty()}};
      if (!pair.note.empty()) out["note"] = pair.note;
      if (pair.memory > 0) out["memory"] = pair.memory;
      list.push_back(std::move(out));
    }
    std::cout << list.dump(2) << "\n";
    return 0;
  }
  TextTable table{{"model", "drafter", "kind", "tried here", "note"}, {}};
  for (const KnownPair& pair : pairs) {
    table.rows.push_back({pair.target.name, pair.drafter.repo.empty() ? pair.drafter.name : pair.drafter.repo,
                          pair.kind, pair.tried.empty() ? "not tried" : pair.tried, pair.note});
  }
  std::cout << as_text(table) << "\n";
  return 0;
}

int show_found(HubClient& client, const GetOptions& options) {
  const std::vector<HubFound> found = client.search(options.search);
  if (options.as_json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const HubFound& each : found) {
      list.push_back({{"repo", each.repo},
                      {"downloads", each.downloads},
                      {"likes", each.likes},
                      {"licence", each.licence},
                      {"gguf", each.gguf},
                      {"gated", each.gated}});
    }
    std::cout << list.dump(2) << "\n";
    return 0;
  }
  if (found.empty()) throw bad_input("The hub finds nothing for " + quoted_name(options.search) + ".");
  TextTable table{{"repository", "files", "downloads", "licence"}, {}};
  for (const HubFound& each : found) {
    table.rows.push_back({each.repo, std::string(each.gguf ? "GGUF" : "") + (each.gated ? " gated" : ""),
                          std::to_string(each.downloads), each.licence});
  }
  std::cout << as_text(table) << "\n";
  return 0;
}

/// The parts of files that go with a model and are not fetched with it, and drafters that are known for it.
void note_company(const HubListing& listing, const HubVariants& variants, const HubVariant& chosen) {
  for (const HubFile& head : variants.heads) {
    if (head.path != chosen.first)
      note("There is a head for guesses, too: canopy-cli get " + listing.repo + ":" + head.path + " (" +
           byte_figures(head.bytes) + ").");
  }
  for (const KnownPair& pair : pairs_for(known_pairs(), listing.repo)) {
    if (pair.drafter.repo.empty()) continue;
    note("A drafter for it" + (pair.note.empty() ? "" : " (" + pair.note + ")") +
         (pair.tried.empty() ? ", not tried here" : "") + ": canopy-cli get " + pair.drafter.repo +
         ", then --drafter " + pair.drafter.repo + ".");
  }
}

/// How --model names what was fetched.
std::string shown_name(const HubListing& listing, const HubVariants& variants, const HubVariant& chosen) {
  const bool is_alone = variants.models.size() == 1 && chosen.first == variants.models[0].first;
  if (is_alone || (chosen.is_folder() && variants.models.size() == 1)) return listing.repo;
  const bool twice = std::ranges::count(variants.models, chosen.label, &HubVariant::label) > 1;
  return listing.repo + ":" + (twice ? chosen.first : chosen.label);
}

int fetch(HubClient& client, const GetOptions& options, const HubName& name) {
  const HubListing listing = client.list(name.repo, options.revision);
  const HubVariants variants = hub_variants(listing.files);
  std::optional<DeviceToFit> here;
  if ((options.list || name.choice.empty()) && !variants.models.empty() && (options.list || variants.models.size() > 1))
    here = device_to_fit(client, listing, variants.models.front(), options.device);
  const HubFit* fit = here ? &here->fit : nullptr;
  if (options.list) {
    std::cout << variant_list(variants, fit);
    for (const HubFile& head : variants.heads)
      std::cout << "  " << printable(head.path) << "  " << byte_figures(head.bytes) << ", a head for guesses\n";
    return 0;
  }
  const HubChoice choice = choose_variant(name, variants, fit);
  here.reset();  // the device is free while the download takes its time
  const HubVariant& chosen = choice.variant;
  if (!choice.reason.empty()) note(choice.reason);
  const HubCache cache(client.settings().cache, listing.repo);
  uint64_t there = 0;
  for (const HubFile& file : chosen.files) there += cache.bytes_there(file);
  const std::string model = shown_name(listing, variants, chosen);
  note("Fetching " + model + ": " + byte_figures(chosen.bytes()) +
       (chosen.files.size() > 1 ? " in " + std::to_string(chosen.files.size()) + " files" : "") +
       (there > 0 ? ", " + byte_figures(there) + " of it are there" : "") +
       (listing.licence.empty() ? "" : "; licence " + listing.licence) + ".");
  DownloadLine line;
  std::filesystem::path snapshot;
  try {
    snapshot = client.download(listing, chosen.files, [&](const DownloadProgress& progress) { line.show(progress); });
  } catch (...) {
    line.clear();
    throw;
  }
  line.clear();
  const std::filesystem::path path = chosen.is_folder() ? snapshot : snapshot / chosen.first;
  note_company(listing, variants, chosen);
  if (options.as_json) {
    nlohmann::ordered_json out = {
        {"model", model},          {"repo", listing.repo},  {"commit", listing.commit},  {"choice", chosen.label},
        {"bytes", chosen.bytes()}, {"path", path.string()}, {"licence", listing.licence}};
    for (const HubFile& file : chosen.files) out["files"].push_back(file.path);
    std::cout << out.dump(2) << "\n";
  } else {
    std::cout << "It is there: canopy-cli chat --model " << model << "\n";
  }
  return 0;
}

int run_get(const GetOptions& options) {
  const int asked = (options.name.empty() ? 0 : 1) + (options.search.empty() ? 0 : 1) + (options.pairs ? 1 : 0);
  if (asked != 1) throw UsageError("Give exactly one of a name as OWNER/REPO:QUANT, --search and --pairs.");
  if (options.list && options.name.empty()) throw UsageError("--list needs the name of a repository.");
  if (options.pairs) return show_pairs(options);
  std::optional<HubName> name;
  if (!options.name.empty()) {
    name = parse_hub_name(options.name);
    if (!name)
      throw UsageError(quoted_name(options.name) +
                       " is no name of a model on the hub; give OWNER/REPO, OWNER/REPO:QUANT or OWNER/REPO:FILE.");
  }
  catch_interrupts();
  HubClient client(hub_settings(), options.limits, interruption());
  if (!name) return show_found(client, options);
  if (client.settings().offline && !options.list) {
    const std::filesystem::path path = find_in_hub_cache(client.settings().cache, *name);
    note("HF_HUB_OFFLINE is set: nothing is fetched, and whether there is a newer one is not asked.");
    if (options.as_json) {
      const nlohmann::ordered_json out = {{"model", name->text()}, {"repo", name->repo}, {"path", path.string()}};
      std::cout << out.dump(2) << "\n";
    } else {
      std::cout << "It is there: canopy-cli chat --model " << name->text() << "\n";
    }
    return 0;
  }
  return fetch(client, options, *name);
}

int list_models(bool as_json) {
  catch_interrupts();
  app::ModelSearchRequest request;
  std::error_code ignored;
  if (const std::string own = app::default_model_path(); !own.empty() && std::filesystem::exists(own, ignored))
    request.recent.push_back(own);
  const app::ModelSearchResult result = app::search_models(request, interruption());
  if (as_json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const app::FoundModel& model : result.found) {
      nlohmann::ordered_json out = {{"name", model.name}, {"source", model.source},   {"bytes", model.bytes},
                                    {"path", model.path}, {"drafter", model.drafter}, {"notes", model.notes}};
      if (!model.problem.empty()) out["problem"] = model.problem;
      list.push_back(std::move(out));
    }
    std::cout << list.dump(2) << "\n";
    return 0;
  }
  TextTable table{{"model", "size", "kept by", "what"}, {}};
  std::string problems;
  for (const app::FoundModel& model : result.found) {
    const std::string source = model.source.empty() ? "Canopy" : model.source;
    if (!model.problem.empty()) {
      problems += "  " + model.name + " (" + source + "): " + model.problem + "\n";
      continue;
    }
    std::string what = model.drafter ? "drafter" : "";
    for (const std::string& each : model.notes) what += (what.empty() ? "" : "; ") + each;
    table.rows.push_back({model.name, byte_figures(model.bytes), source, what});
  }
  if (table.rows.empty()) {
    std::cout << "There is no model on this computer; canopy-cli get --search WORDS looks for one.\n";
  } else {
    std::cout << as_text(table) << "\n";
  }
  if (!problems.empty()) note("Left out:\n" + problems.substr(0, problems.size() - 1));
  return 0;
}

}  // namespace

void add_get(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("get", "Fetch a model or drafter from Hugging Face, or look for one");
  command->footer(
      "HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE and HF_HUB_OFFLINE hold as for Hugging Face's own tools, which "
      "find what was fetched; http_proxy, https_proxy and no_proxy hold, too. A download that was stopped or killed "
      "goes on with the same command.");
  const auto options = std::make_shared<GetOptions>();
  command->add_option("name", options->name,
                      "OWNER/REPO, OWNER/REPO:QUANT as in :Q4_K_M, or OWNER/REPO:FILE. Without QUANT the best that "
                      "fits the device");
  command->add_option("--search", options->search, "List repositories with these words in their names");
  command->add_flag("--pairs", options->pairs, "List models and the drafters that are known to fit them");
  command->add_flag("--list", options->list, "List what the repository has and what of it fits the device");
  command->add_option("--revision", options->revision, "Branch, tag or commit")->capture_default_str();
  command->add_option("-d,--device", options->device, device_help());
  command->add_option("--connections", options->limits.connections, "Connections at a time")
      ->transform(app::numbers(1u, 16u))
      ->capture_default_str();
  command
      ->add_option("--tries", options->limits.tries, "Times that a part is asked for before the download is given up")
      ->transform(app::numbers(1u, 100u))
      ->capture_default_str();
  command
      ->add_option("--patience", options->limits.transfer.silence_s,
                   "Seconds that next to nothing may come before a part is asked for again")
      ->transform(app::numbers(1.0, 3600.0))
      ->capture_default_str();
  command->add_flag("--json", options->as_json, "Print a JSON object, or a list with --search and --pairs");
  command->callback([&action, options] { action = [options] { return run_get(*options); }; });
}

void add_models(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "models", "List the models on this computer, those of Ollama, LM Studio, Jan, llama.cpp and GPT4All among them");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print a JSON list, with paths");
  command->callback([&action, as_json] { action = [as_json] { return list_models(*as_json); }; });
}

}  // namespace canopy::cli
