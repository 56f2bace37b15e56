#include "app/state/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>

#include "app/state/number_options.h"
#include "app/state/option_texts.h"
#include "app/state/round_log.h"
#include "app/state/what_if.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/hub/hub_files.h"
#include "engine/hub/model_stores.h"
#include "engine/session/devices.h"
#include "engine/whatif/device_profile.h"

namespace canopy::app {
namespace {

uint32_t parse_side(const std::string& text, const std::string& whole) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < kMinSide || value > kMaxSide)
    throw bad_input("The size is \"" + whole + "\"; it must be WIDTHxHEIGHT, each " + std::to_string(kMinSide) +
                    " to " + std::to_string(kMaxSide) + " pixels.");
  return value;
}

/// Adds the options of SamplingSettings. Returns those whose values are saved from one start to the next.
std::vector<const CLI::Option*> add_sampling(CLI::App& cli, SamplingSettings& sampling, bool& drawn) {
  cli.add_option("--seed", sampling.seed, "Of the first reply; each reply after it takes the next one; -1 draws it")
      ->transform(seeds(kMaxSeed, drawn))
      ->capture_default_str();
  return {cli.add_option("--temperature", sampling.temperature, "0 takes the likeliest token")
              ->transform(numbers(0.0f, kMaxTemperature))
              ->capture_default_str(),
          cli.add_option("--top-p", sampling.top_p, "Draw from the likeliest tokens of this total probability")
              ->transform(numbers(kMinTopP, 1.0f))
              ->capture_default_str(),
          cli.add_option("--min-p", sampling.min_p, "Leave out tokens below this share of the likeliest one")
              ->transform(numbers(0.0f, kMaxMinP))
              ->capture_default_str(),
          cli.add_option("--repetition-penalty", sampling.repetition_penalty,
                         "Makes what was written less likely; 1 is off")
              ->transform(numbers(kMinPenalty, kMaxPenalty))
              ->capture_default_str()};
}

}  // namespace

void parse_size(const std::string& text, uint32_t& width, uint32_t& height) {
  const size_t cross = text.find('x');
  const bool split = cross != std::string::npos;
  width = parse_side(split ? text.substr(0, cross) : "", text);
  height = parse_side(split ? text.substr(cross + 1) : "", text);
}

std::string default_model_path() {
  const std::string name = "models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (const auto installed = find_asset(name)) return installed->string();
  try {
    return (cache_dir() / name).string();
  } catch (const Error&) {
    return "";  // no cache folder can be made: the window then offers to open a model
  }
}

namespace {

constexpr uint64_t kLongestKey = 4096;  // bytes

/// The key of a file, without the line's end.
std::string key_in(const std::filesystem::path& file) {
  std::string key = read_text_input(file, kLongestKey);
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  return key;
}

}  // namespace

std::string engine_key(const std::string& file) {
  if (file.empty()) {
    const char* const set = std::getenv("CANOPY_ENGINE_KEY");
    return set != nullptr ? set : "";
  }
  std::string key = key_in(file);
  if (key.empty()) throw bad_input(input_name(file) + " has no key.");
  return key;
}

std::optional<AppOptions> parse_options(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
                                        int& exit_code) {
  AppOptions options;
  std::string file, size = "1280x800", theme = "dark", layout = "watch", quantize = "none", kv = "f16";
  bool seed_drawn = false;
  CLI::App cli("Canopy: chat with a language model on your own GPU.", "canopy");
  cli.set_version_flag("--version", "canopy " CANOPY_VERSION);
  CLI::Option* file_option = cli.add_option("file", file, "A model, as of --model, or a recording, as of --replay");
  CLI::Option* model = cli.add_option(
      "--model", options.model,
      "A GGUF file, a Hugging Face folder, OWNER/REPO[:QUANT] as canopy-cli get fetched it, or a name that canopy-cli "
      "models lists; default: the SmolLM2 that is installed or in the cache");
  std::string engine;
  cli.add_option(
         "--engine", engine,
         "The address of an engine elsewhere that writes instead: a Canopy that serves, http://gpu-box:8737, or "
         "another OpenAI-compatible server")
      ->excludes(model)
      ->excludes(file_option);
  cli.add_option("--engine-key-file", options.engine_key_file,
                 "A file with the key that it asks for (or the variable CANOPY_ENGINE_KEY); default: as it was set");
  cli.add_option("--device", options.device, device_help());
  cli.add_option("--quantize", quantize,
                 "Weights stored as F32, F16 or BF16 while loading: none keeps them, q8_0 and q4_k quantize them (8.5 "
                 "and 4.5 bits each), auto does so only where the model would not fit")
      ->check(CLI::IsMember({"none", "auto", "q8_0", "q4_k"}))
      ->capture_default_str();
  cli.add_option("--kv", kv,
                 "Type of the K/V cache; q8_0 takes little more than half the memory of f16. Each writes its own text")
      ->check(CLI::IsMember({"f16", "f32", "q8_0"}))
      ->capture_default_str();
  cli.add_option("--kernels", options.settings.kernels, kKernelsHelp)
      ->check(CLI::IsMember(kernel_names()))
      ->capture_default_str();
  cli.add_option("--threads", options.settings.threads, kThreadsHelp)->transform(numbers<uint32_t>(1, most_threads()));
  cli.add_option("--prompt", options.prompt, "A first message to send");
  CLI::Option* replay = cli.add_option("--replay", options.replay, "Show a recorded trace; needs no GPU and no model");
  file_option->excludes(model)->excludes(replay);
  cli.add_option("--round", options.round, "With --replay: the pass to show, counted from 0")
      ->transform(numbers<uint64_t>(0, UINT64_MAX))
      ->needs(replay);
  cli.add_flag("--dump-json", options.dump_json,
               "With --replay: write the trace and its statistics as JSON, draw nothing")
      ->needs(replay);
  cli.add_flag("--offscreen", options.offscreen, "No window: answer a prompt, print the text, write a picture, exit");
  cli.add_option("--shot", options.shot,
                 "Write a PNG of the window after the reply (off-screen default: out/canopy.png)");
  const CLI::Option* size_option =
      cli.add_option("--size", size, "Window size in pixels, WIDTHxHEIGHT; default: as it was left")
          ->capture_default_str();
  const CLI::Option* scale_option = cli.add_option("--scale", options.scale, "Interface scale; default: as it was left")
                                        ->transform(numbers(kMinScale, kMaxScale))
                                        ->capture_default_str();
  const CLI::Option* theme_option = cli.add_option("--theme", theme, "Colours; default: as they were left")
                                        ->check(CLI::IsMember({"dark", "light", "projector"}))
                                        ->capture_default_str();
  const CLI::Option* layout_option = cli.add_option("--layout", layout, "The window's layout; default: as it was left")
                                         ->check(CLI::IsMember({"watch", "what-if", "lab"}))
                                         ->capture_default_str();
  const CLI::Option* limit_option =
      cli.add_option("--max-tokens", options.max_tokens, "Longest reply; default: as it was set")
          ->transform(numbers(1u, kMostMaxTokens))
          ->capture_default_str();
  const std::vector<const CLI::Option*> sampling = add_sampling(cli, options.sampling, seed_drawn);
  cli.add_flag("--exit-after-reply", options.exit_after_reply, "Close the window when the reply to --prompt is done");
  cli.add_flag("!--no-system-fonts", options.system_fonts,
               "Only the built-in fonts: the same picture on every machine");
  cli.add_flag("--validate", options.validate, "Check the window's drawing with the Vulkan validation layer");
  add_option_texts(cli);
  try {
    cli.parse(argc, argv);
    if (!file.empty()) (looks_like_trace(file) ? options.replay : options.model) = file;
    parse_size(size, options.width, options.height);
    options.prompt = text_from_bytes(std::move(options.prompt), "The text of --prompt");
    if (!engine.empty()) options.model = engine_address(engine);
    if (!engine.empty() && !is_server_address(options.model))
      throw bad_input("--engine is \"" + printable(engine) +
                      "\"; the address of a server is expected, like http://gpu-box:8737.");
  } catch (const CLI::ParseError& e) {
    exit_code = cli.exit(e, out, err) == 0 ? 0 : 2;
    return std::nullopt;
  } catch (const Error& e) {
    err << e.what() << "\n";
    exit_code = 2;
    return std::nullopt;
  }
  if (seed_drawn) err << "The seed was drawn: --seed " << options.sampling.seed << " repeats it.\n";
  options.quantize = quantize_on_load_from(quantize).value_or(QuantizeOnLoad::none);
  options.kv = checked_cache_type(kv);
  for (const ThemeKind kind : {ThemeKind::light, ThemeKind::projector})
    if (theme == to_string(kind)) options.theme = kind;
  for (const WindowLayout each : {WindowLayout::what_if, WindowLayout::lab})
    if (layout == to_string(each)) options.layout = each;
  options.layout_given = layout_option->count() > 0;
  options.size_given = size_option->count() > 0;
  options.scale_given = scale_option->count() > 0;
  options.theme_given = theme_option->count() > 0;
  options.sampling_given = std::any_of(sampling.begin(), sampling.end(), [](auto* o) { return o->count() > 0; });
  options.max_tokens_given = limit_option->count() > 0;
  options.model_given = !options.model.empty();
  try {
    options.model = options.model_given ? path_of_model(options.model) : default_model_path();
  } catch (const Error& e) {  // a name of the hub that was never fetched
    err << "canopy: " << e.what() << "\n";
    exit_code = 1;
    return std::nullopt;
  }
  return options;
}

namespace {

constexpr size_t kMaxFileBytes = 64 * 1024;  // ours has a few hundred
constexpr uint32_t kVersion = 1;

void check_range(const JsonFields& fields, const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return;
  auto plain = [](double v) {
    std::string text = std::to_string(v);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
  };
  throw bad_input(fields.what() + ": \"" + field + "\" is " + plain(value) + "; it must be " + plain(low) + " to " +
                  plain(high) + ".");
}

float number_in(const JsonFields& fields, const char* field, float fallback, float low, float high) {
  const double value = fields.number_or(field, static_cast<double>(fallback));
  check_range(fields, field, value, static_cast<double>(low), static_cast<double>(high));
  return static_cast<float>(value);
}

uint32_t side_in(const JsonFields& fields, const char* field, uint32_t fallback) {
  const uint32_t value = fields.u32_or(field, fallback);
  check_range(fields, field, value, kMinSide, kMaxSide);
  return value;
}

ThemeKind theme_in(const JsonFields& fields) {
  const std::string name = fields.text_or("theme", "dark");
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light, ThemeKind::projector})
    if (name == to_string(kind)) return kind;
  throw bad_input(fields.what() + ": \"theme\" is \"" + name + "\"; it must be \"dark\", \"light\" or \"projector\".");
}

WindowLayout layout_in(const JsonFields& fields) {
  const std::string name = fields.text_or("layout", "watch");
  for (const WindowLayout layout : {WindowLayout::watch, WindowLayout::what_if, WindowLayout::lab})
    if (name == to_string(layout)) return layout;
  throw bad_input(fields.what() + ": \"layout\" is \"" + name + "\"; it must be \"watch\", \"what-if\" or \"lab\".");
}

std::optional<DecodeMode> drafting_in(const JsonFields& fields) {
  const std::string name = fields.text_or("drafting", "");
  if (name.empty()) return std::nullopt;
  if (const auto mode = decode_mode_of(name)) return mode;
  throw bad_input(fields.what() + ": \"drafting\" is \"" + name +
                  "\"; it must be \"ar\", \"chain\", \"tree\" or \"adaptive\".");
}

DraftSources sources_in(const JsonFields& fields) {
  const std::string list = fields.text_or("draft_sources", list_of(kUsualSources));
  try {
    return parse_sources(list);
  } catch (const Error& e) {
    throw bad_input(fields.what() + ": \"draft_sources\" is \"" + list + "\". " + e.what());
  }
}

std::vector<predict::OwnDevice> own_devices_in(const JsonFields& fields) {
  std::vector<predict::OwnDevice> devices;
  if (!fields.has("own_devices")) return devices;
  for (const nlohmann::json& each : fields.list("own_devices")) {
    const JsonFields device(each, fields.what() + ": \"own_devices\"");
    if (devices.size() == kMostOwnDevices) break;
    devices.push_back(
        {device.text("name"), device.number("gb_s"), device.number("tflops"), device.number("dispatch_us")});
    if (const std::string problem = problem_of(devices.back()); !problem.empty())
      throw bad_input(device.what() + ": " + problem);
  }
  return devices;
}

/// The name of a profile, or of a device of the user's own; earlier versions wrote "RTX 4090" for rtx4090.
std::string as_if_on_in(const JsonFields& fields, const std::vector<predict::OwnDevice>& own) {
  const std::string written = fields.text_or("as_if_on", "");
  for (const predict::OwnDevice& each : own)
    if (written == own_choice(each.name)) return written;
  std::string name;
  for (const char c : written)
    if (c != ' ') name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::string allowed;
  for (const predict::DeviceProfile& each : predict::device_profiles()) {
    if (each.name == name) return name;
    allowed += (allowed.empty() ? "\"" : ", \"") + std::string(each.name) + "\"";
  }
  if (written.empty()) return written;
  throw bad_input(fields.what() + ": \"as_if_on\" is \"" + written + "\"; it must be one of " + allowed + ".");
}

std::vector<std::string> texts_in(const JsonFields& fields, const char* field, const char* of_what) {
  std::vector<std::string> texts;
  if (!fields.has(field)) return texts;
  for (const nlohmann::json& each : fields.list(field)) {
    if (!each.is_string()) throw bad_input(fields.what() + ": \"" + field + "\" must hold " + of_what + ".");
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

ServeSettings serve_in(const JsonFields& fields) {
  ServeSettings serve;
  serve.on = fields.boolean_or("serve", serve.on);
  serve.host = fields.text_or("serve_host", serve.host);
  serve.port = fields.u32_or("serve_port", serve.port);
  check_range(fields, "serve_port", serve.port, 0, kMostPort);
  serve.hosts = texts_in(fields, "serve_allow_hosts", "names of hosts");
  serve.origins = texts_in(fields, "serve_cors", "origins of pages");
  return serve;
}

std::vector<std::string> recent_in(const JsonFields& fields) {
  std::vector<std::string> paths;
  if (!fields.has("recent")) return paths;
  for (const nlohmann::json& path : fields.list("recent")) {
    if (!path.is_string()) throw bad_input(fields.what() + ": \"recent\" must hold paths of models.");
    if (paths.size() < kRecentModels) paths.push_back(path.get<std::string>());
  }
  return paths;
}

std::vector<DeviceTest> device_tests_in(const JsonFields& fields) {
  std::vector<DeviceTest> tests;
  if (!fields.has("device_tests")) return tests;
  for (const nlohmann::json& each : fields.list("device_tests")) {
    const JsonFields test(each, fields.what() + ": \"device_tests\"");
    if (tests.size() == kKeptDeviceTests) break;
    tests.push_back(
        {test.text("device"), test.text("driver"), test.boolean_or("passed", false), test.text_or("note", "")});
  }
  return tests;
}

std::vector<UnfinishedDownload> downloads_in(const JsonFields& fields) {
  std::vector<UnfinishedDownload> downloads;
  if (!fields.has("downloads")) return downloads;
  for (const nlohmann::json& each : fields.list("downloads")) {
    const JsonFields download(each, fields.what() + ": \"downloads\"");
    if (downloads.size() == kKeptDownloads) break;
    downloads.push_back({download.text("name"), download.text_or("drafter", "")});
    for (const std::string& name : {downloads.back().name, downloads.back().drafter})
      if (!name.empty() && !parse_hub_name(name))
        throw bad_input(download.what() + " names \"" + printable(name) + "\"; OWNER/REPO:QUANT is allowed.");
  }
  return downloads;
}

KeptDevice device_in(const JsonFields& fields) {
  const nlohmann::json* kept = fields.object("device");
  if (!kept) return {};
  const JsonFields device(*kept, fields.what() + ": \"device\"");
  return {device.text("selector"), device.text("backend"), device.text("name")};
}

SavedSettings parse_settings(std::string_view text) {
  const nlohmann::json json = parse_json(text, "settings.json");
  const JsonFields fields(json, "settings.json");
  SavedSettings s;
  s.theme = theme_in(fields);
  s.layout = layout_in(fields);
  s.scale = number_in(fields, "scale", s.scale, kMinScale, kMaxScale);
  s.width = side_in(fields, "width", s.width);
  s.height = side_in(fields, "height", s.height);
  SamplingSettings& draw = s.sampling;
  draw.temperature = number_in(fields, "temperature", draw.temperature, 0, kMaxTemperature);
  draw.top_p = number_in(fields, "top_p", draw.top_p, kMinTopP, 1);
  draw.min_p = number_in(fields, "min_p", draw.min_p, 0, kMaxMinP);
  draw.repetition_penalty = number_in(fields, "repetition_penalty", draw.repetition_penalty, kMinPenalty, kMaxPenalty);
  s.max_tokens = fields.u32_or("max_tokens", s.max_tokens);
  check_range(fields, "max_tokens", s.max_tokens, 1, kMostMaxTokens);
  s.drafting = drafting_in(fields);
  s.tree_budget = fields.u32_or("tree_budget", s.tree_budget);
  check_range(fields, "tree_budget", s.tree_budget, 1, kLargestTreeBudget);
  s.draft_sources = sources_in(fields);
  s.own_devices = own_devices_in(fields);
  s.as_if_on = as_if_on_in(fields, s.own_devices);
  s.stop_loops = fields.boolean_or("stop_loops", s.stop_loops);
  s.measures_when_idle = fields.boolean_or("measures_when_idle", s.measures_when_idle);
  s.device = device_in(fields);
  s.recent = recent_in(fields);
  s.reduced_motion = fields.boolean_or("reduced_motion", s.reduced_motion);
  s.tour_seen = fields.boolean_or("tour_seen", s.tour_seen);
  s.tour_step = fields.u32_or("tour_step", s.tour_step);
  check_range(fields, "tour_step", s.tour_step, 0, kTourSteps - 1);
  if (fields.has("thinking")) s.thinking = fields.boolean_or("thinking", false);
  s.threads = fields.u32_or("threads", s.threads);
  check_range(fields, "threads", s.threads, 0, kMostThreads);
  s.idle_minutes = fields.u32_or("idle_minutes", s.idle_minutes);
  check_range(fields, "idle_minutes", s.idle_minutes, 0, kMostIdleMinutes);
  s.device_tests = device_tests_in(fields);
  if (fields.has("chat_list")) s.chat_list = fields.boolean_or("chat_list", false);
  s.chat_width = number_in(fields, "chat_width", s.chat_width, 0, kMaxSide);
  s.last_chat = fields.text_or("last_chat", "");
  s.downloads = downloads_in(fields);
  s.serve = serve_in(fields);
  s.engine_key_file = fields.text_or("engine_key_file", "");
  return s;
}

/// Rounded to three decimals, so that the file has 0.9 and not 0.8999999761581421.
double rounded(float value) {
  return std::round(static_cast<double>(value) * 1000) / 1000;
}

}  // namespace

bool SavedSettings::operator==(const SavedSettings& other) const {
  const SamplingSettings &a = sampling, &b = other.sampling;
  return theme == other.theme && layout == other.layout && scale == other.scale && width == other.width &&
         height == other.height && max_tokens == other.max_tokens && drafting == other.drafting &&
         tree_budget == other.tree_budget && draft_sources == other.draft_sources && stop_loops == other.stop_loops &&
         measures_when_idle == other.measures_when_idle && as_if_on == other.as_if_on &&
         own_devices == other.own_devices && device == other.device && recent == other.recent &&
         reduced_motion == other.reduced_motion && tour_seen == other.tour_seen && tour_step == other.tour_step &&
         thinking == other.thinking && device_tests == other.device_tests && idle_minutes == other.idle_minutes &&
         threads == other.threads && chat_list == other.chat_list && chat_width == other.chat_width &&
         last_chat == other.last_chat && downloads == other.downloads && serve == other.serve &&
         engine_key_file == other.engine_key_file && a.temperature == b.temperature && a.top_p == b.top_p &&
         a.min_p == b.min_p && a.repetition_penalty == b.repetition_penalty;
}

SettingsRead read_settings(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return {};
  try {
    const MappedFile file = MappedFile::open(path);
    const auto bytes = file.bytes();
    if (bytes.size() > kMaxFileBytes)
      throw bad_input("It has " + std::to_string(bytes.size()) + " bytes; at most " + std::to_string(kMaxFileBytes) +
                      " are read.");
    return {parse_settings({reinterpret_cast<const char*>(bytes.data()), bytes.size()}), ""};
  } catch (const Error& e) {
    return {{},
            std::string(e.what()) + " The usual settings apply, and the next change replaces the file " + path + "."};
  }
}

void write_settings(const std::string& path, const SavedSettings& settings) {
  nlohmann::ordered_json json;
  json["version"] = kVersion;
  json["theme"] = to_string(settings.theme);
  json["layout"] = to_string(settings.layout);
  json["scale"] = rounded(settings.scale);
  json["width"] = settings.width;
  json["height"] = settings.height;
  json["temperature"] = rounded(settings.sampling.temperature);
  json["top_p"] = rounded(settings.sampling.top_p);
  json["min_p"] = rounded(settings.sampling.min_p);
  json["repetition_penalty"] = rounded(settings.sampling.repetition_penalty);
  json["max_tokens"] = settings.max_tokens;
  if (settings.drafting) json["drafting"] = to_string(*settings.drafting);
  json["tree_budget"] = settings.tree_budget;
  if (!settings.stop_loops) json["stop_loops"] = false;
  if (!settings.measures_when_idle) json["measures_when_idle"] = false;
  if (settings.draft_sources != kUsualSources) json["draft_sources"] = list_of(settings.draft_sources);
  if (!settings.as_if_on.empty()) json["as_if_on"] = settings.as_if_on;
  for (const predict::OwnDevice& own : settings.own_devices)
    json["own_devices"].push_back(
        {{"name", own.name}, {"gb_s", own.gb_s}, {"tflops", own.tflops}, {"dispatch_us", own.dispatch_us}});
  if (const KeptDevice& device = settings.device; !device.name.empty())
    json["device"] = {{"selector", device.selector}, {"backend", device.backend}, {"name", device.name}};
  if (!settings.recent.empty()) json["recent"] = settings.recent;
  if (settings.reduced_motion) json["reduced_motion"] = true;
  if (settings.tour_seen) json["tour_seen"] = true;
  if (settings.tour_step > 0) json["tour_step"] = settings.tour_step;
  if (settings.thinking) json["thinking"] = *settings.thinking;
  if (settings.threads > 0) json["threads"] = settings.threads;
  if (settings.idle_minutes > 0) json["idle_minutes"] = settings.idle_minutes;
  if (settings.chat_list) json["chat_list"] = *settings.chat_list;
  if (settings.chat_width > 0) json["chat_width"] = rounded(settings.chat_width);
  if (!settings.last_chat.empty()) json["last_chat"] = settings.last_chat;
  for (const UnfinishedDownload& download : settings.downloads)
    json["downloads"].push_back({{"name", download.name}, {"drafter", download.drafter}});
  const ServeSettings& serve = settings.serve;
  if (serve.on) json["serve"] = true;
  if (serve.host != ServeSettings().host) json["serve_host"] = serve.host;
  if (serve.port != ServeSettings().port) json["serve_port"] = serve.port;
  if (!serve.hosts.empty()) json["serve_allow_hosts"] = serve.hosts;
  if (!serve.origins.empty()) json["serve_cors"] = serve.origins;
  if (!settings.engine_key_file.empty()) json["engine_key_file"] = settings.engine_key_file;
  for (const DeviceTest& test : settings.device_tests)
    json["device_tests"].push_back(
        {{"device", test.device}, {"driver", test.driver}, {"passed", test.passed}, {"note", test.note}});
  write_file_atomically(path, json.dump(2) + "\n");
}

namespace {

std::filesystem::path serve_key_file(const std::string& settings_path) {
  return std::filesystem::path(settings_path).parent_path() / "serve.key";
}

}  // namespace

std::string read_serve_key(const std::string& settings_path) {
  const std::filesystem::path path = serve_key_file(settings_path);
  std::error_code ignored;
  if (settings_path.empty() || !std::filesystem::exists(path, ignored)) return "";
  if (const uint64_t bytes = std::filesystem::file_size(path, ignored); !ignored && bytes > kLongestKey)
    throw bad_input("The file " + path.string() + " has " + std::to_string(bytes) + " bytes; a key has at most " +
                    std::to_string(kLongestKey) + ".");
  return key_in(path);
}

void write_serve_key(const std::string& settings_path, const std::string& key) {
  const std::filesystem::path path = serve_key_file(settings_path);
  std::error_code problem;
  if (key.empty()) {
    std::filesystem::remove(path, problem);
    if (problem) throw bad_input("The file " + path.string() + " cannot be removed: " + problem.message() + ".");
    return;
  }
  write_file_atomically(path, key + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, problem);
  if (problem) throw bad_input("The file " + path.string() + " cannot be hidden: " + problem.message() + ".");
}

std::string user_settings_path(std::string& problem) {
  try {
    return (config_dir() / "settings.json").string();
  } catch (const Error& e) {
    problem = std::string(e.what()) + " The window works, and forgets its settings when it closes.";
    return "";
  }
}

std::string SettingsKeeper::keep(const SavedSettings& now) {
  if (path_.empty() || now == saved_) return "";
  saved_ = now;
  try {
    write_settings(path_, now);
  } catch (const Error& e) {
    path_.clear();
    return e.what();
  }
  return "";
}

bool SettingsKeeper::worth_saving_at_once(const SavedSettings& now) const {
  SavedSettings same_size = now;
  same_size.width = saved_.width;
  same_size.height = saved_.height;
  return !(same_size == saved_);
}

}  // namespace canopy::app
