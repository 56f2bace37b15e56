#pragma once
// A small cache of the rounds that were read last: panels ask for the same round in every frame.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/trace/round_record.h"

namespace canopy::app {

class RecentRounds {
 public:
  using Round = std::shared_ptr<const RoundRecord>;

  /// The round of this index, from the cache or else from read(), which returns a Round. A null result is not cached.
  template <class Read>
  Round get(size_t index, Read&& read) {
    const auto end = rounds_.begin() + static_cast<std::ptrdiff_t>(size_);
    const auto found = std::find_if(rounds_.begin(), end, [&](const auto& each) { return each.first == index; });
    if (found != end) {
      std::rotate(rounds_.begin(), found, found + 1);
      return rounds_.front().second;
    }
    Round round = read();
    if (!round) return nullptr;
    size_ = std::min(size_ + 1, rounds_.size());
    std::move_backward(rounds_.begin(), rounds_.begin() + static_cast<std::ptrdiff_t>(size_) - 1,
                       rounds_.begin() + static_cast<std::ptrdiff_t>(size_));
    rounds_.front() = {index, round};
    return round;
  }

 private:
  std::array<std::pair<size_t, Round>, 16> rounds_;
  size_t size_ = 0;
};

}  // namespace canopy::app
