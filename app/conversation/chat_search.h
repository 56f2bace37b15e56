#pragma once
// Finding text in a conversation. Pure.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "app/conversation/conversation.h"

namespace canopy::app {

/// Bytes [begin, end) of a message's text.
struct ChatHit {
  uint64_t message = 0;
  size_t begin = 0, end = 0;
  bool operator==(const ChatHit&) const = default;
};

/// Where `wanted` occurs on the shown path, in its order; ASCII letters are alike in either case. At most `most`.
std::vector<ChatHit> find_in(const Conversation& conversation, std::string_view wanted, size_t most = 10'000);

}  // namespace canopy::app
