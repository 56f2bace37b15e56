#pragma once

#include <string>

namespace canopy {

/// One turn of a conversation. role is "system", "user" or "assistant"; content is UTF-8.
struct ChatTurn {
  std::string role;
  std::string content;
};

}  // namespace canopy
