// What it takes to go on with a sweep: the texts of its prompts, which lie beside it, and the same plan.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "engine/base/bytes.h"
#include "engine/bench/prompt_file.h"
#include "engine/bench/sweep_journal.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/bench/sweep_samples.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using test::expect_error;

class SweepPrompts : public testing::Test {
 protected:
  SweepPrompts() {
    for (size_t i = 0; i < sweep_.prompts.size(); ++i) sweep_.prompts[i].hash = damage_hash_text(prompts_[i].text);
  }

  test::TempFolder folder_;
  const fs::path file_ = folder_.path() / "sweep.json";
  Sweep sweep_ = test::measured_sweep();
  const std::vector<MeasuredPrompt> prompts_ = {{"gsm_01", "gsm", "How many \"apples\"?\nCount."},
                                                {"he_01", "he", "def add(a, b):"}};
};

TEST_F(SweepPrompts, LieBesideItUntilItIsWhole) {
  Sweep part = sweep_;
  part.runs.resize(3);
  SweepJournal(file_, part, prompts_).finish(part);
  const std::vector<MeasuredPrompt> found = prompts_of(part, file_, {});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].id, "gsm_01");
  EXPECT_EQ(found[0].text, prompts_[0].text);
  EXPECT_EQ(found[1].text, prompts_[1].text);
  SweepJournal(file_, part, prompts_).finish(sweep_);
  EXPECT_FALSE(fs::exists(prompts_path(file_)));
  for (const auto& entry : fs::directory_iterator(folder_.path())) EXPECT_EQ(entry.path(), file_);
}

TEST_F(SweepPrompts, AreToldByTheirTextsWhereverTheyAre) {
  const std::vector<MeasuredPrompt> elsewhere = {
      {"x", "y", "something else"}, {"other id", "z", prompts_[1].text}, {"1", "z", prompts_[0].text}};
  const std::vector<MeasuredPrompt> found = prompts_of(sweep_, file_, elsewhere);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text, prompts_[0].text);
  EXPECT_EQ(found[1].id, "he_01") << "the sweep's own name of it";
}

TEST_F(SweepPrompts, ThatAreNowhereAreNamed) {
  expect_error("whose texts are not here: 'gsm_01' and 'he_01'.", [&] { prompts_of(sweep_, file_, {}); });
  expect_error("are not here: 'he_01'.", [&] { prompts_of(sweep_, file_, {{"gsm_01", "gsm", prompts_[0].text}}); });
  std::vector<MeasuredPrompt> changed = prompts_;
  changed[0].text += " ";
  keep_prompts(file_, changed);
  expect_error("are not here: 'gsm_01'.", [&] { prompts_of(sweep_, file_, {}); });
  std::ofstream(prompts_path(file_)) << "no JSON\n";
  expect_error("prompts.jsonl", [&] { prompts_of(sweep_, file_, {}); });
  EXPECT_EQ(prompts_of(sweep_, file_, prompts_).size(), 2u) << "a damaged file does no harm where it is not needed";
  for (int i = 0; i < 9; ++i) sweep_.prompts.push_back({"more_" + std::to_string(i), "gsm", "00"});
  expect_error("'more_0', 'more_1', 'more_2' and 6 others", [&] { prompts_of(sweep_, file_, prompts_); });
}

TEST(PlanDifference, NamesWhatDiffersWithBothValues) {
  const Sweep sweep = test::measured_sweep();
  const auto said = [&](const std::function<void(Sweep&)>& change) {
    Sweep other = sweep;
    change(other);
    return plan_difference(sweep, other);
  };
  EXPECT_EQ(said([](Sweep& s) { s.subjects[0].model = "b.gguf"; }),
            "its model is 'SmolLM2-135M-Instruct.Q4_1.gguf', and here it would be 'b.gguf'");
  EXPECT_EQ(said([](Sweep& s) { s.subjects[0].drafter.clear(); }),
            "its drafter is 'smollm2-135m-dflash.gguf', and here it would be none");
  EXPECT_EQ(said([](Sweep& s) { s.subjects[0].device = "Another GPU"; }),
            "its device is 'A very good GPU', and here it would be 'Another GPU'");
  EXPECT_EQ(said([](Sweep& s) { s.subjects[0].kernels = "8 matrix; x"; }),
            "its family of kernels is '7 matrix', and here it would be '8 matrix'");
  EXPECT_EQ(said([](Sweep& s) { s.contestants[2].way.budget = 8; }),
            "its columns are 'ar, chain, tree 16', and here they would be 'ar, chain, tree 8'");
  EXPECT_EQ(said([](Sweep& s) { s.settings.max_tokens = 21; }), "its longest reply is 100, and here it would be 21");
  EXPECT_EQ(said([](Sweep& s) { s.settings.sampling.temperature = 0.5f; }),
            "its temperature is 0, and here it would be 0.5");
  EXPECT_EQ(said([](Sweep& s) { s.prompts.pop_back(); }), "its number of prompts is 2, and here it would be 1");
  EXPECT_EQ(said([](Sweep& s) { s.prompts[1].id = "he_02"; }),
            "its prompt is 'he, he_01', and here it would be 'he, he_02'");
  EXPECT_EQ(said([](Sweep& s) { s.prompts[0].hash = "00"; }), "the text of its prompt 'gsm_01' is another one here");
  EXPECT_EQ(said([](Sweep& s) { s.baseline = 1; }), "its baseline is 'ar', and here it would be 'chain'");
  EXPECT_EQ(said([](Sweep& s) { s.kind = SweepKind::comparison; }), "one is a sweep, the other a comparison");
}

TEST(PlanDifference, LeavesOutWhatIsNoPlan) {
  const Sweep sweep = test::measured_sweep();
  Sweep other = sweep;
  other.version = "0.2";
  other.created = "2027-01-01T00:00:00Z";
  other.runs.clear();
  other.subjects[0].kernels += "; another";
  other.subjects[0].context = 4096;
  other.subjects[0].energy = "NVML";
  other.subjects[0].self_test = "exact";
  EXPECT_EQ(plan_difference(sweep, other), "");
}

}  // namespace
}  // namespace canopy
