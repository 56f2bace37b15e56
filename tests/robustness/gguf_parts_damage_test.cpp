// Every truncation and every flipped bit of a part of a split GGUF file, through the whole of loading: either a clear
// error that names it, or a model in which only the tensors of that part may differ.

#include <gtest/gtest.h>

#include <set>

#include "tests/format/split_gguf.h"
#include "tests/robustness/damage.h"
#include "tests/robustness/seed_model.h"

namespace canopy::test {
namespace {

/// The canonical names of a part's tensors.
std::set<std::string> tensors_of(const GgufBuilder& part) {
  std::set<std::string> names;
  for (const GgufBuilder::Tensor& tensor : part.tensors)
    names.insert(tensor.name.substr(0, tensor.name.rfind(".weight")));
  return names;
}

/// Damages part `number` in every way and loads the model by its first part.
void load_with_every_damage_of(size_t number) {
  const TempFolder folder;
  const std::vector<GgufBuilder> parts = split_gguf(seed_gguf(), {0, 2, 5, 11});
  const auto paths = write_parts(folder, "seed", parts);
  const WholeLoad whole = load_whole(paths[0]);
  const std::set<std::string> own = tensors_of(parts[number - 1]);
  const Damages damages(parts[number - 1].build());
  DamagedLoad load{paths[0], paths[number - 1], {}, {}};
  load.judge_load = [&](uint64_t index, const std::string&, const WholeLoad& loaded) -> std::string {
    if (damages.is_cut(index)) return "a part that was cut short was loaded";
    WholeLoad expected = whole;
    for (const std::string& name : own) expected.values[name] = loaded.values.at(name);
    return difference(expected, loaded);
  };
  const IsolatedTotals totals = load_every_damage(damages, load);
  EXPECT_GT(totals.refused, 0u);
  EXPECT_GT(totals.accepted, 0u);
}

TEST(GgufPartsDamage, EveryBitOfAPartInTheMiddle) {
  load_with_every_damage_of(2);
}

TEST(GgufPartsDamage, EveryBitOfTheLastPart) {
  load_with_every_damage_of(4);
}

}  // namespace
}  // namespace canopy::test
