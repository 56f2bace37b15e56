#include "engine/base/utc_time.h"

#include <array>
#include <chrono>
#include <ctime>

namespace canopy {

std::string utc_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts = {};
  if (::gmtime_r(&now, &parts) == nullptr) return {};
  std::array<char, 32> text = {};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace canopy
