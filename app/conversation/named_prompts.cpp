#include "app/conversation/named_prompts.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "engine/base/atomic_file.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/format/json_text.h"
#include "engine/text/case_folding.h"

namespace canopy::app {
namespace {

using Prompts = std::vector<NamedPrompt>;

constexpr uint32_t kPromptsVersion = 1;

std::string trimmed_name(std::string_view name) {
  const size_t first = name.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(name.substr(first, name.find_last_not_of(" \t\r\n") - first + 1));
}

Prompts::iterator find_prompt(Prompts& prompts, std::string_view name) {
  return std::find_if(prompts.begin(), prompts.end(), [&](const NamedPrompt& p) { return p.name == name; });
}

std::string checked_name(std::string_view given) {
  std::string name = trimmed_name(given);
  if (name.empty()) throw bad_input("A system prompt needs a name.");
  if (name.size() > kLongestPromptName)
    throw bad_input("The name of a system prompt has " + std::to_string(name.size()) + " bytes; at most " +
                    std::to_string(kLongestPromptName) + " are allowed.");
  return name;
}

void insert_sorted(Prompts& prompts, NamedPrompt prompt) {
  const auto place = [](const NamedPrompt& p) { return std::pair(fold_case(p.name), p.name); };
  prompts.insert(std::ranges::upper_bound(prompts, place(prompt), {}, place), std::move(prompt));
}

}  // namespace

void save_prompt(Prompts& prompts, std::string_view given, std::string_view text) {
  std::string name = checked_name(given);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw bad_input("The system prompt \"" + name + "\" has no text.");
  if (text.size() > kLongestPrompt)
    throw bad_input("The system prompt \"" + name + "\" has " + std::to_string(text.size()) + " bytes; at most " +
                    std::to_string(kLongestPrompt) + " are kept.");
  const auto same = find_prompt(prompts, name);
  if (same != prompts.end()) {
    same->text = text;
    return;
  }
  if (prompts.size() >= kMostPrompts)
    throw bad_input("There are " + std::to_string(kMostPrompts) +
                    " system prompts, the most that are kept: delete one.");
  insert_sorted(prompts, {std::move(name), std::string(text)});
}

void rename_prompt(Prompts& prompts, std::string_view from, std::string_view to) {
  const std::string name = checked_name(to);
  const auto old = find_prompt(prompts, from);
  if (old == prompts.end()) throw bad_input("There is no system prompt \"" + std::string(from) + "\".");
  if (name == from) return;
  if (find_prompt(prompts, name) != prompts.end())
    throw bad_input("There is a system prompt \"" + name + "\" already: choose another name.");
  NamedPrompt moved{name, std::move(old->text)};
  prompts.erase(old);
  insert_sorted(prompts, std::move(moved));
}

void delete_prompt(Prompts& prompts, std::string_view name) {
  std::erase_if(prompts, [&](const NamedPrompt& p) { return p.name == name; });
}

std::string name_of_prompt(const Prompts& prompts, std::string_view text) {
  for (const NamedPrompt& prompt : prompts)
    if (prompt.text == text) return prompt.name;
  return "";
}

Prompts read_prompts(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return {};
  const MappedFile file = MappedFile::open(path);
  const auto bytes = file.bytes();
  if (bytes.size() > kMaxPromptFile)
    throw bad_input("prompts.json has " + std::to_string(bytes.size()) + " bytes; at most " +
                    std::to_string(kMaxPromptFile) + " are read.");
  const nlohmann::json json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "prompts.json");
  const JsonFields fields(json, "prompts.json");
  if (const uint32_t version = fields.u32_or("version", kPromptsVersion); version > kPromptsVersion)
    throw bad_input("prompts.json: \"version\" is " + std::to_string(version) +
                    ", from a newer Canopy; this one reads " + std::to_string(kPromptsVersion) + ".");
  Prompts prompts;
  if (!fields.has("prompts")) return prompts;
  for (const nlohmann::json& each : fields.list("prompts")) {
    const JsonFields prompt(each, "prompts.json: \"prompts\"");
    try {
      save_prompt(prompts, prompt.text("name"), prompt.text("text"));
    } catch (const Error& e) {
      throw bad_input("prompts.json: " + std::string(e.what()));
    }
  }
  return prompts;
}

void write_prompts(const std::string& path, const Prompts& prompts) {
  nlohmann::ordered_json json = {{"version", kPromptsVersion}, {"prompts", nlohmann::ordered_json::array()}};
  for (const NamedPrompt& prompt : prompts) json["prompts"].push_back({{"name", prompt.name}, {"text", prompt.text}});
  write_file_atomically(path, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace canopy::app
