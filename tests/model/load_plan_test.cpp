// Which types a load gives weights where memory is short, and the text of a refusal.

#include "engine/model/load_plan.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "tests/base/temp_folder.h"
#include "tests/compute/forwarding_device.h"
#include "tests/model/random_model.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

/// A device that takes weights in the size of their blocks, as real devices do. The reference device keeps floats.
class PackingDevice : public ForwardingDevice {
 public:
  explicit PackingDevice(uint64_t available) : ForwardingDevice(make_reference_device()), available_(available) {}
  MemoryInfo memory() const override { return {available_, available_}; }
  uint64_t weight_bytes(std::span<const WeightPart> parts, WeightLayout) const override {
    uint64_t bytes = 0;
    for (const WeightPart& part : parts) bytes += row_bytes(part) * part.rows;
    return bytes;
  }

 private:
  uint64_t available_;
};

class LoadPlanTest : public ::testing::Test {
 protected:
  static RandomModel model() {
    RandomModel random;
    random.type = TensorType::bf16;
    random.hidden = 512;
    random.ffn = 2048;
    random.heads = 8;
    random.head_dim = 64;
    random.context = 8192;
    return random;
  }

  LoadPlan plan(uint64_t available, QuantizeOnLoad quantize, uint32_t context = 0) {
    limits_ = {};
    limits_.max_width = limits_.tree_slots = limits_.head_rows = 1;
    return plan_load(file_, PackingDevice(available), available, limits_, context, quantize);
  }

  /// Bytes that the model takes with this context.
  uint64_t needed(QuantizeOnLoad quantize, uint32_t context) {
    return plan(uint64_t{1} << 40, quantize, context).memory.total();
  }

  std::string refusal(uint64_t available, QuantizeOnLoad quantize) {
    try {
      plan(available, quantize);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
      return e.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return "";
  }

  TempFolder folder_;
  ModelFile file_ = ModelFile::open(folder_.write("model.gguf", model().build()));
  ModelLimits limits_;
};

TEST_F(LoadPlanTest, KeepsTheFilesTypesUnlessToldOtherwise) {
  const LoadPlan kept = plan(uint64_t{1} << 40, QuantizeOnLoad::none);
  EXPECT_EQ(kept.quantized, QuantizeOnLoad::none);
  EXPECT_EQ(kept.weights.layers[0].gate_up.type, WeightType::bf16);
  const LoadPlan told = plan(uint64_t{1} << 40, QuantizeOnLoad::q4_k);
  EXPECT_EQ(told.weights.layers[0].gate_up.type, WeightType::q4_k);
  EXPECT_EQ(told.weights.token_embd.type, WeightType::q8_0);  // the tied head
  EXPECT_LT(told.weights.device_bytes, kept.weights.device_bytes / 3);
}

TEST_F(LoadPlanTest, AutomaticTakesTheWidestThatFitsWithRoomForAConversation) {
  EXPECT_EQ(plan(uint64_t{1} << 40, QuantizeOnLoad::automatic).quantized, QuantizeOnLoad::none);
  // The cache may take at most half of the memory that the weights leave (choose_context).
  const auto room_for = [&](QuantizeOnLoad quantize, uint32_t context) {
    const LoadPlan p = plan(uint64_t{1} << 40, quantize, context);
    return std::max(p.memory.total(), p.memory.weights + 2 * p.memory.cache);
  };
  EXPECT_EQ(plan(room_for(QuantizeOnLoad::none, 4096), QuantizeOnLoad::automatic).quantized, QuantizeOnLoad::none);
  EXPECT_EQ(plan(room_for(QuantizeOnLoad::q8_0, 4096), QuantizeOnLoad::automatic).quantized, QuantizeOnLoad::q8_0);
  EXPECT_EQ(plan(room_for(QuantizeOnLoad::q4_k, 4096), QuantizeOnLoad::automatic).quantized, QuantizeOnLoad::q4_k);
  EXPECT_GE(limits_.context, 4096u);
  // A context that the user asked for is kept: the weights are quantized instead.
  const uint64_t exact = needed(QuantizeOnLoad::none, 600);
  EXPECT_EQ(plan(exact, QuantizeOnLoad::automatic, 600).quantized, QuantizeOnLoad::none);
  EXPECT_EQ(plan(exact - 1, QuantizeOnLoad::automatic, 600).quantized, QuantizeOnLoad::q8_0);
}

TEST_F(LoadPlanTest, AutomaticTakesWhatFitsWhereNothingIsRoomy) {
  const uint64_t least = needed(QuantizeOnLoad::q4_k, kMinimumContext);
  EXPECT_EQ(plan(least, QuantizeOnLoad::automatic).quantized, QuantizeOnLoad::q4_k);
  EXPECT_EQ(limits_.context, kMinimumContext);
  EXPECT_EQ(refusal(least - 1, QuantizeOnLoad::automatic).find("--quantize"), std::string::npos);
}

TEST_F(LoadPlanTest, ARefusalNamesTheOptionAndTheSizes) {
  const uint64_t q8_0 = needed(QuantizeOnLoad::q8_0, kMinimumContext);
  const uint64_t q4_k = needed(QuantizeOnLoad::q4_k, kMinimumContext);
  const std::string both = refusal(q8_0, QuantizeOnLoad::none);
  EXPECT_NE(both.find("it would need " + byte_figures(q8_0) + " (--quantize q8_0), which fits."), std::string::npos)
      << both;
  EXPECT_NE(both.find("it would need " + byte_figures(q4_k) + " (--quantize q4_k), which fits."), std::string::npos)
      << both;
  const std::string tight = refusal(q4_k, QuantizeOnLoad::none);
  EXPECT_NE(tight.find("(--quantize q8_0), still too much."), std::string::npos) << tight;
  const std::string further = refusal(q4_k, QuantizeOnLoad::q8_0);
  EXPECT_EQ(further.find("--quantize q8_0"), std::string::npos) << further;
  EXPECT_NE(further.find("(--quantize q4_k), which fits."), std::string::npos) << further;
  EXPECT_EQ(refusal(q4_k - 1, QuantizeOnLoad::q4_k).find("--quantize"), std::string::npos);
}

TEST_F(LoadPlanTest, AFileThatIsQuantizedAlreadyGetsNoSuchAdvice) {
  RandomModel random = model();
  random.type = TensorType::q4_1;
  file_ = ModelFile::open(folder_.write("q4.gguf", random.build()));
  EXPECT_EQ(refusal(1 << 20, QuantizeOnLoad::none).find("--quantize"), std::string::npos);
}

}  // namespace
}  // namespace canopy::test
