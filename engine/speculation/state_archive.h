#pragma once
// Reads or writes what a controller has learnt, field by field, so that a recording of it goes on as it would have.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace canopy {

/// One that reads throws Error(bad_input) where the bytes end too early or hold what no state can be: a number that is
/// not finite, a count beyond its limit.
class StateArchive {
 public:
  virtual ~StateArchive() = default;

  /// Whether fields are read; else they are written.
  virtual bool reads() const = 0;
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

}  // namespace canopy
