#include "engine/bench/prompt_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMostPromptBytes = uint64_t{64} << 20;

std::string read_id(const JsonFields& fields) {
  const char* field = fields.has("question_id") && !fields.has("id") ? "question_id" : "id";
  const json& value = fields.at(field);
  if (value.is_number_integer()) return value.dump();
  const std::string id = fields.text(field);
  if (id.empty()) throw bad_input("The field '" + std::string(field) + "' is empty.");
  return id;
}

/// The content of a message, which may be a list of parts of text.
std::string read_content(const JsonFields& message) {
  const json& content = message.at("content");
  if (!content.is_array()) return message.text("content");
  std::string text;
  for (const json& part : content) {
    const JsonFields fields(part, "a part of the field 'content'");
    if (const std::string type = fields.text_or("type", "text"); type != "text") {
      throw bad_input("The field 'content' has a part of the type " + quoted_name(type) + "; only text is allowed.");
    }
    text += (text.empty() ? "" : "\n") + fields.text("text");
  }
  return text;
}

/// The content of the first message whose role is "user".
std::string first_of_user(const json& messages) {
  for (const json& message : messages) {
    const JsonFields fields(message, "a message");
    if (fields.text("role") == "user") return read_content(fields);
  }
  throw bad_input("The field 'messages' has no message of the role 'user'.");
}

std::string read_text(const JsonFields& fields) {
  if (fields.has("messages")) return first_of_user(fields.list("messages"));
  if (fields.has("prompt")) return fields.text("prompt");
  if (!fields.has("turns")) throw bad_input("The line has none of the fields 'messages', 'turns' and 'prompt'.");
  const json& turns = fields.list("turns");
  if (turns.empty() || !turns.front().is_string()) {
    throw bad_input("The field 'turns' must be a list that begins with a string.");
  }
  return turns.front().get<std::string>();
}

MeasuredPrompt read_prompt(std::string_view line, const std::string& fallback_category) {
  const json root = parse_json(line, "The line");
  const JsonFields fields(root, "the line");
  MeasuredPrompt prompt;
  prompt.id = read_id(fields);
  prompt.category = fields.text_or("category", fields.text_or("suite", fallback_category));
  prompt.text = read_text(fields);
  if (prompt.text.empty()) throw bad_input("The prompt " + quoted_name(prompt.id) + " is empty.");
  return prompt;
}

}  // namespace

std::vector<fs::path> prompt_files(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;  // a pipe of that name would wait for who writes it
    if (entry->path().extension() == ".jsonl" && entry->is_regular_file(ignored)) files.push_back(entry->path());
  }
  if (error) throw bad_input("The folder " + shown(path) + " cannot be read: " + error.message() + ".");
  if (files.empty()) throw bad_input("The folder " + shown(path) + " has no .jsonl file with prompts.");
  std::ranges::sort(files);
  return files;
}

std::vector<MeasuredPrompt> read_prompts(const fs::path& path) {
  const std::string content = read_text_input(path, kMostPromptBytes);
  std::vector<MeasuredPrompt> prompts;
  std::set<std::string> ids;
  const std::string name = path == "-" ? input_name(path) : shown(path);
  size_t number = 0;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    const std::string_view line = std::string_view(content).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    with_context(name + ", line " + std::to_string(number), [&] {
      prompts.push_back(read_prompt(line, printable(path.stem().string())));
      if (!ids.insert(prompts.back().id).second) {
        throw bad_input("The id " + quoted_name(prompts.back().id) + " is there twice.");
      }
    });
  }
  if (prompts.empty()) throw bad_input(input_name(path) + " has no prompts.");
  return prompts;
}

std::vector<MeasuredPrompt> read_all_prompts(const std::vector<fs::path>& paths) {
  std::vector<MeasuredPrompt> prompts;
  for (const fs::path& path : paths) {
    for (const fs::path& file : prompt_files(path)) {
      const std::vector<MeasuredPrompt> more = read_prompts(file);
      prompts.insert(prompts.end(), more.begin(), more.end());
    }
  }
  return prompts;
}

std::vector<MeasuredPrompt> limit_by_category(const std::vector<MeasuredPrompt>& prompts, uint32_t limit) {
  std::vector<std::string> categories;
  std::map<std::string, std::vector<MeasuredPrompt>> by_category;
  for (const MeasuredPrompt& prompt : prompts) {
    std::vector<MeasuredPrompt>& chosen = by_category[prompt.category];
    if (chosen.empty()) categories.push_back(prompt.category);
    if (limit == 0 || chosen.size() < limit) chosen.push_back(prompt);
  }
  std::vector<MeasuredPrompt> result;
  for (const std::string& category : categories) {
    result.insert(result.end(), by_category[category].begin(), by_category[category].end());
  }
  return result;
}

namespace {

constexpr size_t kMostNamed = 3;

/// "'a', 'b', 'c' and 4 others"
std::string named(const std::vector<std::string>& ids) {
  std::string names;
  const size_t shown = ids.size() > kMostNamed + 1 ? kMostNamed : ids.size();
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) names += i + 1 == ids.size() ? " and " : ", ";
    names += quoted_name(ids[i]);
  }
  if (shown < ids.size()) names += " and " + std::to_string(ids.size() - shown) + " others";
  return names;
}

}  // namespace

fs::path prompts_path(const fs::path& file) {
  return file_beside(file, ".prompts.jsonl");
}

void keep_prompts(const fs::path& file, const std::vector<MeasuredPrompt>& prompts) {
  std::string lines;
  for (const MeasuredPrompt& prompt : prompts) {
    const nlohmann::ordered_json line = {{"id", prompt.id}, {"category", prompt.category}, {"prompt", prompt.text}};
    lines += line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  write_file_atomically(prompts_path(file), lines);
}

std::vector<MeasuredPrompt> prompts_of(const Sweep& sweep, const fs::path& file,
                                       const std::vector<MeasuredPrompt>& known) {
  std::map<std::string, std::string> texts;  // by hash
  std::string problem;
  const auto add = [&](const std::vector<MeasuredPrompt>& prompts) {
    for (const MeasuredPrompt& prompt : prompts) texts.try_emplace(damage_hash_text(prompt.text), prompt.text);
  };
  std::error_code ignored;
  try {
    if (fs::exists(prompts_path(file), ignored)) add(read_prompts(prompts_path(file)));
  } catch (const Error& e) {
    problem = std::string(" ") + e.what();
  }
  add(known);
  std::vector<MeasuredPrompt> found;
  std::vector<std::string> missing;
  for (const SweepPrompt& prompt : sweep.prompts) {
    const auto text = texts.find(prompt.hash);
    if (text == texts.end())
      missing.push_back(prompt.id);
    else
      found.push_back({prompt.id, prompt.category, text->second});
  }
  if (missing.empty()) return found;
  throw bad_input("The sweep " + shown(file) +
                  " was measured with prompts whose texts are not here: " + named(missing) + "." + problem);
}

}  // namespace canopy
