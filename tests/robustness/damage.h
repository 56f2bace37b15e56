#pragma once
// Every way to cut a file short and every single flipped bit, by number.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/robustness/isolated.h"
#include "tests/robustness/whole_load.h"

namespace canopy::test {

class Damages {
 public:
  explicit Damages(std::string whole) : Damages(std::move(whole), UINT64_MAX) {}
  /// Only within the first `bytes` of the file.
  Damages(std::string whole, uint64_t bytes) : whole_(std::move(whole)), bytes_(std::min(bytes, whole_.size())) {}

  const std::string& whole() const { return whole_; }
  /// First every length from 0 to one byte less, then every bit.
  uint64_t count() const { return bytes_ + bytes_ * 8; }
  bool is_cut(uint64_t index) const { return index < bytes_; }
  /// The byte whose bit is flipped.
  uint64_t byte(uint64_t index) const { return (index - bytes_) / 8; }
  uint64_t bit(uint64_t index) const { return (index - bytes_) % 8; }
  std::string apply(uint64_t index) const;
  std::string describe(uint64_t index) const;

 private:
  std::string whole_;
  uint64_t bytes_;
};

/// 1, or what CANOPY_ROBUSTNESS_STRIDE says: every so manieth case is run.
uint64_t stride_from_environment();

/// What every refusal must be: an Error(bad_input) of one printable sentence with `name` in it. Empty, or what is
/// wrong.
std::string fault_of_refusal(const std::string& message, const std::string& name);

/// One seed file, and what becomes of a damaged form of it.
struct DamagedUse {
  std::filesystem::path model;  // what is opened: the file, or the folder it is in
  std::filesystem::path file;   // what is damaged
  /// Judges a refusal further; empty: as it should be.
  std::function<std::string(uint64_t index, const std::string& message)> judge_refusal;
  /// Opens the model and judges what came of it, or throws what opening throws.
  std::function<std::string(uint64_t index, const std::string& bytes)> use;
};

/// Uses every damaged form (every CANOPY_ROBUSTNESS_STRIDE-th, where that is set) and puts the file back at the end.
IsolatedTotals use_every_damage(const Damages& damages, const DamagedUse& seed);

/// One file of a model, and what a load of a damaged form of it may be.
struct DamagedLoad {
  std::filesystem::path model;  // as above
  std::filesystem::path file;
  std::function<std::string(uint64_t index, const std::string& message)> judge_refusal;
  /// Judges a load that succeeded.
  std::function<std::string(uint64_t index, const std::string& bytes, const WholeLoad& loaded)> judge_load;
};

/// use_every_damage(), through the whole of loading a model.
IsolatedTotals load_every_damage(const Damages& damages, const DamagedLoad& load);

}  // namespace canopy::test
