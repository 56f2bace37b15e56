#include "engine/endpoint/chat_stream.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

using nlohmann::json;

constexpr const char* kWhat = "the server's event";

std::optional<uint32_t> count_in(const json& usage, const char* field) {
  const JsonFields fields(usage, "usage of the server's event");
  return fields.has(field) ? std::optional(fields.u32(field)) : std::nullopt;
}

}  // namespace

std::string ChatStream::push(std::string_view bytes) {
  bytes_ += bytes.size();
  if (bytes_ > kMostReplyBytes)
    throw bad_input("The server sent more than " + std::to_string(kMostReplyBytes >> 20) + " MiB for one reply.");
  std::string added;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    if (line_.size() + end > kMostEventBytes)
      throw bad_input("The server sent a line of more than " + std::to_string(kMostEventBytes >> 20) + " MiB.");
    line_ += bytes.substr(0, end);
    if (end == bytes.size()) break;
    bytes.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    take_line(line_, added);
    line_.clear();
  }
  return added;
}

void ChatStream::take_line(std::string_view line, std::string& added) {
  // Comments, empty lines and other fields of server-sent events carry nothing here.
  constexpr std::string_view prefix = "data:";
  if (done_ || !line.starts_with(prefix)) return;
  line.remove_prefix(prefix.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") {
    done_ = true;
  } else if (!line.empty()) {
    take_event(line, added);
  }
}

void ChatStream::take_event(std::string_view data, std::string& added) {
  const json event = parse_json(data, "The server's event");
  const JsonFields fields(event, kWhat);
  if (fields.has("error"))
    throw bad_input("The server says: " +
                    printable(fields.at("error").dump(-1, ' ', false, json::error_handler_t::replace), 512) + ".");
  if (const json* usage = fields.object("usage")) {
    if (const auto count = count_in(*usage, "completion_tokens")) tokens_ = count;
    if (const auto count = count_in(*usage, "prompt_tokens")) prompt_tokens_ = count;
  }
  if (!fields.has("choices")) return;
  const json& choices = fields.list("choices");
  if (choices.empty()) return;  // the event with the counts alone
  const JsonFields choice(choices.front(), "the choice of the server's event");
  if (const json* delta = choice.object("delta")) {
    const JsonFields parts(*delta, "the delta of the server's event");
    const std::string content = parts.text_or("content", "");
    // Thinking has its own field in servers that take it apart; its tokens are counted with the reply's.
    const bool thinks = !parts.text_or("reasoning_content", "").empty() || !parts.text_or("reasoning", "").empty();
    if (!content.empty() || thinks) ++pieces_;
    added += content;
    text_ += content;
  }
  if (choice.has("finish_reason")) finish_reason_ = printable(choice.text("finish_reason"), 64);
}

}  // namespace canopy
