#pragma once
// All ways to cut a file short and all single flipped bits, by number.

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
  /// Only damages the first `bytes` bytes of the file.
  Damages(std::string whole, uint64_t bytes) : whole_(std::move(whole)), bytes_(std::min(bytes, whole_.size())) {}

  const std::string& whole() const { return whole_; }
  /// Number of cases: first every shorter length from 0 on, then every bit.
  uint64_t count() const { return bytes_ + bytes_ * 8; }
  bool is_cut(uint64_t index) const { return index < bytes_; }
  /// The byte in which a bit is flipped.
  uint64_t byte(uint64_t index) const { return (index - bytes_) / 8; }
  uint64_t bit(uint64_t index) const { return (index - bytes_) % 8; }
  std::string apply(uint64_t index) const;
  std::string describe(uint64_t index) const;

 private:
  std::string whole_;
  uint64_t bytes_;
};

/// CANOPY_ROBUSTNESS_STRIDE, or 1: only every stride-th case is run.
uint64_t stride_from_environment();

/// Checks a refusal: it must be an Error(bad_input) of one printable sentence with `name` in it. Returns what is wrong,
/// or an empty text.
std::string fault_of_refusal(const std::string& message, const std::string& name);

/// A file to damage, and how its damaged forms are used.
struct DamagedUse {
  std::filesystem::path model;  // path that is opened: the file, or its folder
  std::filesystem::path file;   // path that is damaged
  /// Checks a refusal further; returns what is wrong, or an empty text.
  std::function<std::string(uint64_t index, const std::string& message)> judge_refusal;
  /// Opens the model and checks the result; returns what is wrong, or an empty text. Throws what opening throws.
  std::function<std::string(uint64_t index, const std::string& bytes)> use;
};

/// Uses every damaged form (every CANOPY_ROBUSTNESS_STRIDE-th, if that is set), and restores the file at the end.
IsolatedTotals use_every_damage(const Damages& damages, const DamagedUse& seed);

/// A file of a model to damage, and what a load of a damaged form may give.
struct DamagedLoad {
  std::filesystem::path model;  // as above
  std::filesystem::path file;
  std::function<std::string(uint64_t index, const std::string& message)> judge_refusal;
  /// Checks a load that succeeded; returns what is wrong, or an empty text.
  std::function<std::string(uint64_t index, const std::string& bytes, const WholeLoad& loaded)> judge_load;
};

/// use_every_damage() with the whole of loading a model.
IsolatedTotals load_every_damage(const Damages& damages, const DamagedLoad& load);

}  // namespace canopy::test
