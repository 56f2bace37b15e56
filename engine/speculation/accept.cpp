#include "engine/speculation/accept.h"

#include <string>

#include "engine/base/error.h"

namespace canopy {

void walk_choices(const DraftTree& tree, std::span<const uint32_t> choices, AcceptedPath& path) {
  if (choices.size() != tree.width()) {
    throw bad_input("There are " + std::to_string(choices.size()) + " choices of the target for a draft tree of " +
                    std::to_string(tree.width()) + " rows; there must be one a row.");
  }
  accept(
      tree, [&](uint32_t node) { return choices[node]; }, path);
}

}  // namespace canopy
