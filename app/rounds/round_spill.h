#pragma once
// A file for rounds that left memory. It has no name in the folder, so the system removes it when the program ends,
// even if the program is killed.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/rounds/recent_rounds.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

/// A round in the file. Stays readable as long as it lives, by any thread, also when the spill goes on or has ended.
class SpilledRound {
 public:
  /// Null where the round cannot be read.
  std::shared_ptr<const RoundRecord> read() const;

 private:
  friend class RoundSpill;
  std::shared_ptr<const int> file_;  // its descriptor; null: the round was skipped or dropped
  uint64_t begin_ = 0, end_ = 0;     // offsets
};

class RoundSpill {
 public:
  /// folder: where the file is made when the first round is stored; empty: the user's cache folder.
  explicit RoundSpill(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}
  RoundSpill(RoundSpill&& other) noexcept = default;
  RoundSpill& operator=(RoundSpill&&) = delete;

  /// Stores the next round. If the disk is full or cannot be written, this round and all later ones are dropped.
  void append(const RoundRecord& record);
  /// Takes the place of a round that has no record, so that the numbers of later rounds stay right.
  void skip();
  /// The round that was appended as number `index`, from 0; null where it was skipped or dropped, or cannot be read.
  std::shared_ptr<const RoundRecord> read(size_t index) const;
  /// The same without reading it yet.
  SpilledRound find(size_t index) const;

 private:
  bool open();

  std::filesystem::path folder_;
  std::shared_ptr<const int> file_;  // its descriptor, closed with the last owner
  bool failed_ = false;
  std::vector<uint64_t> ends_;  // for each stored round: the offset in the file where it ends
  std::string bytes_;           // buffer, kept to be reused
  mutable RecentRounds recent_;
};

}  // namespace canopy::app
