#pragma once
// What speculation has learnt, field by field as bytes and back (docs/traces.md, "Drafting"), so that a recording of
// it goes on as it would have.

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace canopy {

/// Raised whenever the same calls to a controller give other choices than before, or it keeps more: a recording of a
/// later number is not re-run to its own decisions. 2: drafts that cost no pass; what 1 says of others still holds.
constexpr uint32_t controller_rules = 2;

/// One that reads throws Error(bad_input) where the bytes end too early or hold what no state can be: a number that is
/// not finite, a count beyond its limit.
class StateArchive {
 public:
  virtual ~StateArchive() = default;

  /// Whether fields are read; else they are written.
  virtual bool reads() const = 0;
  /// The controller_rules that they are of.
  virtual uint32_t rules() const = 0;
  virtual void number(double& value) = 0;
  /// At most `most`, which what is written never exceeds.
  virtual void whole(uint32_t& value, uint32_t most = UINT32_MAX) = 0;
  virtual void large(uint64_t& value) = 0;

  void flag(bool& value) {
    uint32_t bit = value ? 1 : 0;
    whole(bit, 1);
    value = bit == 1;
  }

  /// The number of elements of a container, which reading resizes.
  template <class Container>
  void size(Container& container, uint32_t most) {
    auto count = static_cast<uint32_t>(container.size());
    whole(count, most);
    if (reads()) container.resize(count);
  }
};

// What a controller has learnt, as bytes of a record (docs/traces.md, "Drafting").

class StateWriter final : public StateArchive {
 public:
  explicit StateWriter(std::string& bytes, uint32_t rules = controller_rules) : out_(bytes), rules_(rules) {}

  bool reads() const override { return false; }
  uint32_t rules() const override { return rules_; }
  void number(double& value) override { out_.number(value); }
  void whole(uint32_t& value, uint32_t) override { out_.whole(value); }
  void large(uint64_t& value) override { out_.whole(value); }

 private:
  ByteWriter out_;
  uint32_t rules_;
};

class StateReader final : public StateArchive {
 public:
  explicit StateReader(Reader& reader, uint32_t rules = controller_rules) : reader_(reader), rules_(rules) {}

  bool reads() const override { return true; }
  uint32_t rules() const override { return rules_; }
  void number(double& value) override {
    value = reader_.read<double>("a number of what was learnt");
    // Sums of squares of times and tokens: far below this, and its square is still a number.
    constexpr double most = 1e150;
    if (std::abs(value) <= most) return;
    throw bad_input("A number of what was learnt is " + std::to_string(value) + "; at most 1e150 is allowed.");
  }
  void whole(uint32_t& value, uint32_t most) override {
    value = read_whole(reader_, "a count of what was learnt");
    if (value <= most) return;
    throw bad_input("A count of what was learnt is " + std::to_string(value) + "; at most " + std::to_string(most) +
                    " is allowed.");
  }
  void large(uint64_t& value) override { value = read_whole<uint64_t>(reader_, "a count of what was learnt"); }

 private:
  Reader& reader_;
  uint32_t rules_;
};

}  // namespace canopy
