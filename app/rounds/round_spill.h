#pragma once
// Rounds that left memory, in a file that has no name: nothing is left of it when the program ends, however it ends.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/rounds/recent_rounds.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

class RoundSpill {
 public:
  /// folder: where the file goes, made with the first round; empty: the user's cache folder.
  explicit RoundSpill(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}
  RoundSpill(RoundSpill&& other) noexcept;
  RoundSpill& operator=(RoundSpill&&) = delete;
  ~RoundSpill();

  /// Stores the next round. Where the disk is full or cannot be written, this one and all that follow are let go.
  void append(const RoundRecord& record);
  /// Takes the place of a round that there is not.
  void skip();
  /// The index-th round appended; null where it was let go or cannot be read.
  std::shared_ptr<const RoundRecord> read(size_t index) const;

 private:
  bool open();

  std::filesystem::path folder_;
  int descriptor_ = -1;
  bool failed_ = false;
  std::vector<uint64_t> ends_;  // of each stored round in the file
  std::string bytes_;           // kept for its memory
  mutable RecentRounds recent_;
};

}  // namespace canopy::app
