#include "app/state/chat.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/state/chat_journal.h"
#include "app/state/words.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/base/posix.h"
#include "engine/format/json_text.h"
#include "engine/text/unicode.h"

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

namespace {

namespace fs = std::filesystem;

fs::path home() {
  const char* folder = std::getenv(kHome);
  return folder && *folder ? fs::path(folder) : fs::path();
}

}  // namespace

const char* ending_of(ExportFormat format) {
  return format == ExportFormat::markdown ? ".md" : ".json";
}

fs::path typed_path(const std::string& text) {
  if (text == "~") return home();
  return text.starts_with("~/") ? home() / text.substr(2) : fs::path(text);
}

fs::path export_path(const std::string& folder, const std::string& name, ExportFormat format) {
  std::string stem = name;
  for (const ExportFormat each : {ExportFormat::markdown, ExportFormat::json})
    if (stem.size() > strlen(ending_of(each)) && stem.ends_with(ending_of(each))) {
      stem.resize(stem.size() - strlen(ending_of(each)));
      break;
    }
  return typed_path(folder) / (stem + ending_of(format));
}

fs::path documents_folder() {
  std::error_code ignored;
  const fs::path folder = home() / "Documents";
  return fs::is_directory(folder, ignored) ? folder : home();
}

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "canopy-chat";
constexpr uint32_t kExportVersion = 1;
constexpr size_t kLongestName = 60;

std::string figures(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// One line on how a reply was made.
std::string about_reply(const Message& message) {
  const ReplyParameters& p = message.parameters;
  std::string out = p.model;
  auto add = [&](const std::string& part) {
    if (part.empty()) return;
    if (!out.empty()) out += " \u00b7 ";
    out += part;
  };
  add(p.device);
  if (p.mode) add("mode " + std::string(to_string(*p.mode)));
  if (p.sampling.temperature == 0) {
    add("greedy");
  } else {
    add("temperature " + figures(static_cast<double>(p.sampling.temperature), "%.4g"));
    add("top-p " + figures(static_cast<double>(p.sampling.top_p), "%.4g"));
    add("min-p " + figures(static_cast<double>(p.sampling.min_p), "%.4g"));
    if (message.seed) add("seed " + std::to_string(*message.seed));
  }
  add(std::to_string(message.tokens) + (message.tokens == 1 ? " token" : " tokens"));
  if (message.tokens_per_second > 0) add(figures(message.tokens_per_second, "%.1f") + " tok/s measured");
  if (message.result && message.result->tau > 0) add(figures(message.result->tau, "%.2f") + " tokens per pass");
  if (message.rounds > 0) add(counted(message.rounds, "pass", "passes"));
  if (message.result && message.result->reason != FinishReason::stop_token)
    add(std::string("ended by ") + to_string(message.result->reason));
  return out;
}

/// A question with its files as code blocks; a reply with its thinking folded.
std::string text_for_reading(const Message& message) {
  if (message.role == Role::user) return question_with_files(message);
  const Thinking thinking = thinking_of(message);
  if (!thinking.there) return message.text.substr(thinking.answer);
  return "<details><summary>" + thinking_words(message, thinking) + "</summary>\n\n" + thought_of(message) +
         "\n\n</details>\n\n" + message.text.substr(thinking.answer);
}

}  // namespace

std::string markdown_of(const Conversation& chat) {
  std::string out = "# " + chat.shown_title() + "\n";
  if (!chat.system_prompt.empty()) out += "\n**System prompt**\n\n" + chat.system_prompt + "\n";
  for (const Message& message : chat) {
    const bool user = message.role == Role::user;
    out += std::string("\n## ") + (user ? "You" : "Reply") + "\n\n_" + local_time_and_zone(message.created_ms) +
           "_\n\n" + text_for_reading(message) + "\n";
    if (!user) out += "\n_" + about_reply(message) + "_\n";
  }
  return out;
}

std::string json_of(const Conversation& chat) {
  ordered_json head;
  head["format"] = kFormat;
  head["version"] = kExportVersion;
  head["title"] = chat.title;
  head["system_prompt"] = chat.system_prompt;
  if (chat.left_out > 0) head["left_out"] = chat.left_out;
  head["created"] = time_text(chat.created_ms);
  if (!chat.empty()) head["shown"] = chat.leaf();
  std::string out = head.dump(2, ' ', false, ordered_json::error_handler_t::replace);
  out.resize(out.size() - 2);  // without the closing brace and the newline before it
  out += ",\n  \"messages\": [";
  // One line for each message: with every number on a line of its own the file would be longer and hard to compare.
  for (size_t i = 0; i < chat.nodes().size(); ++i) {
    const Conversation::Node& node = chat.nodes()[i];
    ordered_json message;
    message["after"] = node.parent == Conversation::none ? ordered_json() : ordered_json(node.parent);
    message.update(message_json(node.message));
    out += (i == 0 ? "\n    " : ",\n    ") + message.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  }
  return out + "\n  ]\n}\n";
}

Conversation conversation_from(std::string_view text, uint64_t& last_id) {
  const json object = parse_json(text, "The file");
  const JsonFields fields(object, "The file");
  if (fields.text_or("format", "") != kFormat)
    throw bad_input("The file is no chat of Canopy: its \"format\" is \"" + fields.text_or("format", "") +
                    "\", not \"" + kFormat + "\".");
  if (fields.u32("version") > kExportVersion)
    throw bad_input("The file has version " + std::to_string(fields.u32("version")) +
                    ", from a newer Canopy; this one reads up to " + std::to_string(kExportVersion) + ".");
  Conversation chat;
  chat.title = fields.text_or("title", "");
  chat.system_prompt = fields.text_or("system_prompt", "");
  chat.left_out = fields.u32_or("left_out", 0);
  if (fields.has("created")) chat.created_ms = time_from(fields.text("created"), "The file");
  const json& messages = fields.list("messages");
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string what = "message " + std::to_string(i);
    const JsonFields message(messages[i], what);
    if (!message.has("after")) {
      chat.cut(0);
    } else if (message.u32("after") < i) {
      if (chat.leaf() != message.u32("after")) chat.show_leaf(message.u32("after"));
    } else {
      throw bad_input(what + ": \"after\" is " + std::to_string(message.u32("after")) +
                      "; it must be the number of an earlier message.");
    }
    std::string note;  // not reported: a chat without its token ids is complete
    Message read = message_from(messages[i], what, note);
    read.id = ++last_id;
    for (Continuation& each : read.continued) each.reply_id = ++last_id;
    chat.append(std::move(read));
  }
  if (fields.has("shown") && fields.u32("shown") < messages.size()) chat.show_leaf(fields.u32("shown"));
  return chat;
}

std::string export_name(const Conversation& chat, std::string_view ending) {
  std::string name;
  for (char c : chat.shown_title()) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter && name.size() < kLongestName)
      name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!name.empty() && name.back() != '-' && name.size() < kLongestName)
      name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return (name.empty() ? "chat" : name) + std::string(ending);
}

}  // namespace canopy::app
