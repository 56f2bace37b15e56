#include "app/conversation/chat_search.h"

#include <algorithm>

namespace canopy::app {
namespace {

char folded(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::vector<ChatHit> find_in(const Conversation& conversation, std::string_view wanted, size_t most) {
  std::vector<ChatHit> hits;
  if (wanted.empty()) return hits;
  for (const Message& message : conversation) {
    auto at = message.text.begin();
    while (hits.size() < most) {
      at = std::search(at, message.text.end(), wanted.begin(), wanted.end(),
                       [](char a, char b) { return folded(a) == folded(b); });
      if (at == message.text.end()) break;
      const auto begin = static_cast<size_t>(at - message.text.begin());
      hits.push_back({message.id, begin, begin + wanted.size()});
      at += static_cast<std::ptrdiff_t>(wanted.size());
    }
  }
  return hits;
}

}  // namespace canopy::app
