// The ISA gate. Compilers may contract a*b+c differently in specialisations of one shader; on the software devices of
// other tests that never happens. RADV's null device compiles for real AMD targets without the hardware. Its
// disassembly shows whether narrow and wide kernels of the exact path round alike, and its statistics what they cost in
// registers.
//
// RADV_FORCE_FAMILY names the GPU, one for a process: navi31. Kernels and their bounds are listed in isa_kernels.cpp.
// CANOPY_ISA_ALL=1 has every op in all variants that timing may choose, instead of one op. CANOPY_ISA_TABLE=1 prints a
// line for each kernel: registers, waves of a SIMD, bytes of shared memory and of code, ACO's latency and inverse
// throughput (in cycles), and how the kernel multiplies and adds. CANOPY_ISA_TEXT=NAME prints the machine code of the
// kernels whose name, as in the table, has NAME in it. CANOPY_ISA_ONLY=NAME leaves out the kernels whose shader's name
// begins otherwise.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "engine/vulkan/context.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/kernel.h"
#include "tests/vulkan/isa_kernels.h"
#include "tests/vulkan/isa_text.h"

namespace canopy::vk {

std::span<const ShaderCode> test_shaders();

namespace {

using testing::GatedKernel;
using testing::GatedVariant;
using testing::MultiplyAdds;

// What RADV says of a kernel.
class Compiled {
 public:
  explicit Compiled(const Kernel& kernel) : kernel_(kernel), statistics_(kernel.statistics()) {
    for (const KernelText& text : kernel.internal_texts()) {
      if (text.name == "Assembly") counts_ = testing::count_multiply_adds(text.text);
      if (text.name == "NIR Shader(s)") nir_additions_ = testing::count_nir_additions(text.text);
    }
  }

  const std::string& name() const { return kernel_.name(); }
  /// -1 where RADV has no statistic of that name.
  int64_t number(std::string_view statistic) const {
    for (const KernelStatistic& s : statistics_) {
      if (s.name == statistic) return static_cast<int64_t>(s.value);
    }
    return -1;
  }
  const std::optional<MultiplyAdds>& counts() const { return counts_; }
  /// Additions in what the machine code was made of.
  const std::optional<uint32_t>& nir_additions() const { return nir_additions_; }

  void print() const {
    std::printf(
        "%-60s VGPRs %3d, spilled %d + %d, waves %2d, LDS %5d, code %6d, latency %6d, inverse throughput %6d, "
        "fused %4u, split %2u, multiplies %3u, adds %3u\n",
        name().c_str(), int(number("VGPRs")), int(number("Spilled VGPRs")), int(number("Spilled SGPRs")),
        int(number("Subgroups per SIMD")), int(number("LDS size")), int(number("Code size")), int(number("Latency")),
        int(number("Inverse Throughput")), counts_->fused, counts_->split, counts_->multiplies, counts_->adds);
  }

  void print_code(std::string_view wanted) const {
    if (name().find(wanted) == std::string::npos) return;
    for (const KernelText& text : kernel_.internal_texts()) {
      if (text.name == "Assembly") std::printf("%s\n%s\n", name().c_str(), text.text.c_str());
    }
  }

 private:
  const Kernel& kernel_;
  std::vector<KernelStatistic> statistics_;
  std::optional<MultiplyAdds> counts_;
  std::optional<uint32_t> nir_additions_;
};

class IsaGate : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("RADV_FORCE_FAMILY") == nullptr) {
      GTEST_SKIP() << "RADV_FORCE_FAMILY names no GPU; ctest -L isa starts this program with one.";
    }
    instance_ = std::make_unique<Instance>(InstanceOptions{.validation = Validation::off});
    ASSERT_EQ(instance_->list_devices().size(), 1u);
    context_ = std::make_unique<Context>(*instance_, 0, ContextOptions{.pipeline_statistics = true});
    ASSERT_TRUE(context_->features().pipeline_statistics);
  }

  Compiled compile(const ShaderCode& shader, const KernelOptions& options) {
    return Compiled(context_->kernel(shader, options));
  }

  /// Holds one variant to the bounds of its kernel; null, and the test has failed, if RADV tells too little of it.
  std::optional<MultiplyAdds> check(const GatedKernel& kernel, const GatedVariant& variant) {
    const Compiled compiled = compile(find_shader(kernel.shader), variant.options);
    const std::string& name = compiled.name();
    if (!compiled.counts() || !compiled.nir_additions() || compiled.number("VGPRs") <= 0) {
      ADD_FAILURE() << name << " has no disassembly, no NIR or no count of registers.";
      return std::nullopt;
    }
    if (std::getenv("CANOPY_ISA_TABLE") != nullptr) compiled.print();
    if (const char* wanted = std::getenv("CANOPY_ISA_TEXT"); wanted != nullptr) compiled.print_code(wanted);
    EXPECT_EQ(compiled.number("Spilled VGPRs"), 0) << name;
    EXPECT_EQ(compiled.number("Spilled SGPRs"), 0) << name;
    EXPECT_EQ(compiled.number("Scratch size"), 0) << name;
    EXPECT_GE(compiled.number("Subgroups per SIMD"), variant.least_waves) << name;
    EXPECT_EQ(compiled.counts()->adds, *compiled.nir_additions())
        << name << ": an addition was contracted with a product, or taken apart";
    EXPECT_TRUE(!kernel.must_fuse || compiled.counts()->fused > 0) << name << " multiplies and adds in two roundings";
    return compiled.counts();
  }

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Context> context_;
};

TEST_F(IsaGate, kernelsKeepTheirAdditionsAndTheirRegistersAtEveryWidth) {
  size_t count = 0;
  const char* only = std::getenv("CANOPY_ISA_ONLY");
  for (const GatedKernel& kernel : testing::gated_kernels(*context_, std::getenv("CANOPY_ISA_ALL") != nullptr)) {
    if (only != nullptr && !kernel.shader.starts_with(only)) continue;
    std::optional<MultiplyAdds> narrow;
    for (const GatedVariant& variant : kernel.variants) {
      const std::optional<MultiplyAdds> wide = check(kernel, variant);
      ++count;
      if (!narrow) narrow = wide;
      if (!narrow || !wide) continue;
      EXPECT_EQ(testing::rounding_mismatch(*narrow, kernel.variants[0].columns, *wide, variant.columns), "")
          << kernel.shader << " with " << variant.columns << " columns";
    }
  }
  RecordProperty("kernels", static_cast<int>(count));
  EXPECT_GT(count, 0u);
}

// Kernels with cooperative matrices are gated on the GPUs whose matrix cores this RADV compiles for.
TEST_F(IsaGate, seesMatrixCoresWhereRadvHasThem) {
  const std::string family = std::getenv("RADV_FORCE_FAMILY");
  const bool expected = family == "navi31" || family == "gfx1151";
  EXPECT_EQ(context_->features().cooperative_matrix, expected);
  bool gated = false;
  for (const GatedKernel& kernel : testing::gated_kernels(*context_, /*all_variants=*/false)) {
    gated = gated || find_shader(kernel.shader).cooperative_matrix;
  }
  EXPECT_EQ(gated, expected);
}

// Each in its own way, the counts notice contraction: without `precise` the compiler fuses a product that is used once
// and rounds one that is also stored.
TEST_F(IsaGate, catchesContraction) {
  const ShaderCode& shader = find_shader(test_shaders(), "contract");
  const Compiled narrow = compile(shader, {.spec = {{0, 1}}});
  const Compiled wide = compile(shader, {.spec = {{0, 4}}});
  EXPECT_NE(testing::rounding_mismatch(*narrow.counts(), 1, *wide.counts(), 4), "");
  EXPECT_LT(narrow.counts()->adds, *narrow.nir_additions());
}

TEST_F(IsaGate, countsAPreciseMultiplyAndAdd) {
  const Compiled scale = compile(find_shader(test_shaders(), "scale"), {});
  EXPECT_GT(scale.number("VGPRs"), 0);
  EXPECT_EQ(scale.counts()->fused, 0u);
  EXPECT_EQ(scale.counts()->split, 1u);
}

}  // namespace
}  // namespace canopy::vk
