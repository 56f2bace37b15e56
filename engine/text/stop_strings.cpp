#include "engine/text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace canopy {
namespace {

// Length of the longest end of text that is the beginning of stop, the whole of stop excluded.
size_t begun(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.ends_with(stop.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopStrings::push(std::string_view text) {
  if (stopped_) return {};
  held_.append(text);
  size_t stop_at = std::string::npos;
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    stop_at = std::min(stop_at, held_.find(stop));
    keep = std::max(keep, begun(held_, stop));
  }
  if (stop_at != std::string::npos) {
    stopped_ = true;
    return std::exchange(held_, {}).substr(0, stop_at);
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopStrings::finish() {
  return std::exchange(held_, {});
}

}  // namespace canopy
