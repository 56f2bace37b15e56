#pragma once
// What a controller has learnt, as bytes of a record (docs/traces.md, "Drafting").

#include <cmath>
#include <string>

#include "engine/speculation/state_archive.h"
#include "engine/trace/trace_bytes.h"

namespace canopy {

class StateWriter final : public StateArchive {
 public:
  explicit StateWriter(std::string& bytes) : out_(bytes) {}

  bool reads() const override { return false; }
  void number(double& value) override { out_.number(value); }
  void whole(uint32_t& value, uint32_t) override { out_.whole(value); }
  void large(uint64_t& value) override { out_.whole(value); }

 private:
  ByteWriter out_;
};

class StateReader final : public StateArchive {
 public:
  explicit StateReader(Reader& reader) : reader_(reader) {}

  bool reads() const override { return true; }
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
};

}  // namespace canopy
