#include "app/conversation/prompt_turns.h"

#include <string>
#include <string_view>
#include <utility>

#include "engine/text/utf8_stream.h"

namespace canopy::app {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// The text between control tokens, one string for each stretch. The name of a channel (engine/text/reply_channels.h)
/// is none.
std::vector<std::string> stretches(std::span<const uint32_t> tokens, const PieceOf& piece) {
  std::vector<std::string> found(1);
  Utf8Stream characters;
  bool names_channel = false;
  for (const uint32_t token : tokens) {
    const auto text = piece(token);
    if (!text) continue;
    if (text->control) {
      found.back() += characters.finish();
      found.emplace_back();
      names_channel = text->bytes == "<|channel|>";
    } else if (!names_channel) {
      found.back() += characters.push(text->bytes);
    }
  }
  found.back() += characters.finish();
  return found;
}

struct RoleWord {
  std::string_view word, role;
};
constexpr RoleWord kRoles[] = {
    {"system", "system"}, {"user", "user"}, {"human", "user"}, {"model", "assistant"}, {"assistant", "assistant"}};

/// The role named on the first line of a stretch, which is removed from text; empty where no role is named.
std::string_view take_role(std::string_view& text) {
  const std::string_view rest = text.substr(std::min(text.find_first_not_of(kBlank), text.size()));
  for (const RoleWord& each : kRoles) {
    if (!rest.starts_with(each.word)) continue;
    const std::string_view behind = rest.substr(each.word.size());
    if (!behind.empty() && behind.front() != '\n') continue;
    text = behind;
    return each.role;
  }
  return {};
}

}  // namespace

std::vector<ChatTurn> prompt_turns(std::span<const uint32_t> tokens, const PieceOf& piece) {
  std::vector<ChatTurn> turns;
  std::string all;
  std::string_view role;  // named already, its text still to come
  for (const std::string& stretch : stretches(tokens, piece)) {
    std::string_view text = stretch;
    if (const std::string_view named = take_role(text); !named.empty()) role = named;
    const std::string_view words = trimmed(text);
    if (words.empty()) continue;
    all += (all.empty() ? "" : "\n\n") + std::string(words);
    if (role.empty()) continue;
    turns.push_back({std::string(role), std::string(words)});
    role = {};
  }
  if (turns.empty() && !all.empty()) turns.push_back({"user", std::move(all)});
  return turns;
}

}  // namespace canopy::app
