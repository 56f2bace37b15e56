#include "engine/comparison/prompt_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/base/text_encoding.h"
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

}  // namespace canopy
