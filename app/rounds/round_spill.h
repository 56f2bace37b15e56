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

class RoundSpill {
 public:
  /// folder: where the file is made when the first round is stored; empty: the user's cache folder.
  explicit RoundSpill(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}
  RoundSpill(RoundSpill&& other) noexcept;
  RoundSpill& operator=(RoundSpill&&) = delete;
  ~RoundSpill();

  /// Stores the next round. If the disk is full or cannot be written, this round and all later ones are dropped.
  void append(const RoundRecord& record);
  /// Takes the place of a round that has no record, so that the numbers of later rounds stay right.
  void skip();
  /// The round that was appended as number `index`, from 0; null where it was skipped or dropped, or cannot be read.
  std::shared_ptr<const RoundRecord> read(size_t index) const;

 private:
  bool open();

  std::filesystem::path folder_;
  int descriptor_ = -1;
  bool failed_ = false;
  std::vector<uint64_t> ends_;  // for each stored round: the offset in the file where it ends
  std::string bytes_;           // buffer, kept to be reused
  mutable RecentRounds recent_;
};

}  // namespace canopy::app
