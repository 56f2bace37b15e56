#include "engine/model/forward.h"

#include <array>
#include <string>

#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace canopy {
namespace {

struct Entry {
  std::string_view name;
  RecordForward record;
};

// A new architecture is its file and one line here.
constexpr std::array forwards = std::to_array<Entry>({
    {"llama", record_llama},
    {"qwen3", record_qwen3},
});

}  // namespace

RecordForward forward_of(std::string_view architecture) {
  std::string names;
  for (const Entry& entry : forwards) {
    if (entry.name == architecture) return entry.record;
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw bad_input("There is no forward pass for the architecture " + quoted_name(architecture) +
                  "; supported: " + names + ".");
}

}  // namespace canopy
