#include "app/settings/saved_settings.h"

#include <cmath>
#include <filesystem>
#include <system_error>

#include "app/settings/options.h"
#include "engine/base/atomic_file.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/paths.h"
#include "engine/format/json_text.h"
#include "engine/predict/device_profile.h"

namespace canopy::app {
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

/// The name of a profile; earlier versions wrote "RTX 4090" for rtx4090.
std::string as_if_on_in(const JsonFields& fields) {
  const std::string written = fields.text_or("as_if_on", "");
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
  s.as_if_on = as_if_on_in(fields);
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
         tree_budget == other.tree_budget && as_if_on == other.as_if_on && recent == other.recent &&
         reduced_motion == other.reduced_motion && tour_seen == other.tour_seen && tour_step == other.tour_step &&
         thinking == other.thinking && device_tests == other.device_tests && idle_minutes == other.idle_minutes &&
         threads == other.threads && a.temperature == b.temperature && a.top_p == b.top_p && a.min_p == b.min_p &&
         a.repetition_penalty == b.repetition_penalty;
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
  if (!settings.as_if_on.empty()) json["as_if_on"] = settings.as_if_on;
  if (!settings.recent.empty()) json["recent"] = settings.recent;
  if (settings.reduced_motion) json["reduced_motion"] = true;
  if (settings.tour_seen) json["tour_seen"] = true;
  if (settings.tour_step > 0) json["tour_step"] = settings.tour_step;
  if (settings.thinking) json["thinking"] = *settings.thinking;
  if (settings.threads > 0) json["threads"] = settings.threads;
  if (settings.idle_minutes > 0) json["idle_minutes"] = settings.idle_minutes;
  for (const DeviceTest& test : settings.device_tests)
    json["device_tests"].push_back(
        {{"device", test.device}, {"driver", test.driver}, {"passed", test.passed}, {"note", test.note}});
  write_file_atomically(path, json.dump(2) + "\n");
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
