// The ISA gate (design.md section 4). Compilers may contract a*b+c differently in specialisations of one shader; on the
// software devices of other tests that never happens. RADV's null device compiles for real AMD targets without the
// hardware. Its disassembly shows whether narrow and wide kernels of the exact path round alike, and whether they spill
// registers.

#include <gtest/gtest.h>

#include <cctype>
#include <initializer_list>
#include <memory>
#include <string>

#include "engine/vulkan/context.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/kernel.h"
#include "engine/vulkan/linear_config.h"
#include "tests/vulkan/isa_text.h"
#include "tests/vulkan/radv_null_device.h"

namespace canopy::vk {

std::span<const ShaderCode> test_shaders();

namespace {

using testing::count_multiply_adds;
using testing::MultiplyAdds;
using testing::rounding_mismatch;

constexpr const char* radv = CANOPY_RADV_ICD;

class IsaGate : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = testing::choose_radv_null_device(radv, GetParam()); !why.empty()) GTEST_SKIP() << why;
    instance_ = std::make_unique<Instance>(InstanceOptions{.validation = Validation::off});
    context_ = std::make_unique<Context>(*instance_, 0, ContextOptions{.pipeline_statistics = true});
    ASSERT_TRUE(context_->features().pipeline_statistics);
  }

  enum class Spills { forbidden, reported };

  /// Compiles a kernel. Fails the test if it has no disassembly, or spills where that is forbidden.
  MultiplyAdds compile(const ShaderCode& shader, const KernelOptions& options, Spills spills = Spills::forbidden) {
    const Kernel& kernel = context_->kernel(shader, options);
    std::string numbers;
    bool has_registers = false;
    for (const KernelStatistic& statistic : kernel.statistics()) {
      const bool is_spill = statistic.name.starts_with("Spilled ");
      if (is_spill && spills == Spills::forbidden) {
        EXPECT_EQ(statistic.value, 0) << kernel.name() << ": " << statistic.name;
      }
      if (is_spill || statistic.name == "VGPRs") {
        has_registers = has_registers || !is_spill;
        numbers += std::to_string(static_cast<int>(statistic.value)) + " " + statistic.name + ", ";
      }
    }
    EXPECT_TRUE(has_registers) << kernel.name();
    for (const KernelText& text : kernel.internal_texts()) {
      if (text.name != "Assembly") continue;
      const MultiplyAdds counts = count_multiply_adds(text.text);
      RecordProperty(property_name(kernel.name()),
                     numbers + std::to_string(counts.fused) + " fused, " + std::to_string(counts.split) + " split");
      return counts;
    }
    ADD_FAILURE() << kernel.name() << " has no disassembly.";
    return {};
  }
  MultiplyAdds compile(const std::string& shader, const KernelOptions& options, Spills spills = Spills::forbidden) {
    return compile(find_shader(shader), options, spills);
  }

  /// Compares the kernel for one column with those for `widths` columns; wider ones than `spill_free` may spill.
  void compare_widths(const std::string& shader, WeightType type, const LinearConfig& config,
                      std::initializer_list<uint32_t> widths, uint32_t spill_free) {
    const MultiplyAdds narrow = compile(shader, linear_options(config, type, 1, false, true));
    EXPECT_GT(narrow.fused, 0u) << shader;
    for (const uint32_t n : widths) {
      const MultiplyAdds wide = compile(shader, linear_options(config, type, n, false, true),
                                        n <= spill_free ? Spills::forbidden : Spills::reported);
      EXPECT_EQ(rounding_mismatch(narrow, 1, wide, n), "") << shader << " with " << n << " columns";
    }
  }

 private:
  static std::string property_name(std::string name) {
    for (char& c : name) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    }
    return name;
  }

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Context> context_;
};
INSTANTIATE_TEST_SUITE_P(, IsaGate, ::testing::Values("NAVI21", "GFX1100"));

constexpr struct {
  WeightType type;
  const char* name;
} weight_types[] = {{WeightType::f32, "f32"},
                    {WeightType::f16, "f16"},
                    {WeightType::bf16, "bf16"},
                    {WeightType::q8_0, "q8_0"},
                    {WeightType::q4_1, "q4_1"}},
  word_types[] = {{WeightType::q5_1, "q5_1"},     {WeightType::q2_k, "q2_k"},     {WeightType::q3_k, "q3_k"},
                  {WeightType::q4_k, "q4_k"},     {WeightType::q5_k, "q5_k"},     {WeightType::q6_k, "q6_k"},
                  {WeightType::iq4_nl, "iq4_nl"}, {WeightType::iq4_xs, "iq4_xs"}, {WeightType::mxfp4, "mxfp4"}};

// GPUs use tiles of at most 8 columns.
constexpr uint32_t widest_tile = 8;

TEST_P(IsaGate, matrixProductsRoundAlikeAtEveryWidth) {
  const LinearConfig config{.rows = 4, .lanes = 32, .split = 1};
  for (const auto& weight : weight_types) {
    const std::string type = weight.name;
    compare_widths("linear_" + type, weight.type, config, {2, 3, 4, 5, 6, 7, 8}, widest_tile);
    compare_widths("linear_add_" + type, weight.type, config, {2, 4, 8}, widest_tile);
    compare_widths("linear_swiglu_" + type, weight.type, config, {2, 4, 8}, widest_tile);
    compare_widths("linear_heads_" + type, weight.type, config, {2, 4, 8}, widest_tile);
  }
}

// Types kept as words hold more of a block at once and spill from seven columns on, as Mesa 22.3 uses at most 132
// registers (GFX11).
TEST_P(IsaGate, productsOfWordsRoundAlikeAtEveryWidth) {
  const LinearConfig config{.rows = 4, .lanes = 32, .split = 1};
  for (const auto& weight : word_types) {
    compare_widths(std::string("linear_") + weight.name, weight.type, config, {2, 4, 6, 8}, 6);
  }
}

// Eight columns of a type with scales spill a few registers here (Mesa 22.3 uses at most 132 on GFX11). That costs time
// but not exactness, and the tuner measures whether such a variant is used at all.
TEST_P(IsaGate, splitMatrixProductsRoundAlikeAtEveryWidth) {
  for (const auto& weight : weight_types) {
    compare_widths(std::string("linear_") + weight.name, weight.type, {.rows = 4, .lanes = 32, .split = 4}, {2, 4, 8},
                   widest_tile / 2);
  }
}

// These have one pipeline for all widths. They must fuse where the shader says fma(), and must not spill.
TEST_P(IsaGate, rowKernelsDoNotSpill) {
  for (const char* cache : {"f32", "f16"}) {
    for (const uint32_t head : {64u, 128u}) {
      EXPECT_GT(compile(std::string("attention_") + cache, {.spec = {{0, 32}, {1, head}, {2, 4}}}).fused, 0u);
      EXPECT_GT(compile(std::string("rope_store_") + cache, {.spec = {{0, 32}, {1, head}, {2, 0}, {3, 1}}}).fused, 0u);
    }
  }
  for (const auto& weight : weight_types) EXPECT_GT(compile(std::string("embed_") + weight.name, {}).fused, 0u);
}

// The gate notices contraction: without `precise` the compiler fuses a product that is used once and rounds one that is
// also stored.
TEST_P(IsaGate, catchesContraction) {
  const ShaderCode& shader = find_shader(test_shaders(), "contract");
  const MultiplyAdds narrow = compile(shader, {.spec = {{0, 1}}});
  const MultiplyAdds wide = compile(shader, {.spec = {{0, 4}}});
  EXPECT_NE(rounding_mismatch(narrow, 1, wide, 4), "")
      << narrow.fused << " fused, " << narrow.split << " split; " << wide.fused << " fused, " << wide.split << " split";
}

}  // namespace
}  // namespace canopy::vk
