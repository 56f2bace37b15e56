#include "engine/vulkan/command_list.h"

#include <numeric>
#include <vector>

#include "engine/vulkan/context.h"
#include "engine/vulkan/kernel.h"
#include "tests/vulkan/devices.h"

namespace canopy::vk {

std::span<const ShaderCode> test_shaders();

namespace {

using testing::error_of;

struct ScalePush {
  uint32_t count;
  float offset;
};

struct CountPush {
  uint32_t count;
};

class CommandListTest : public testing::DeviceTest {
 protected:
  static constexpr uint32_t count = 1000;  // not a multiple of the workgroup

  void open_device(const ContextOptions& options = {}) {
    context_ = open(options);
    in_ = context_->create_buffer(BufferKind::device, count * 4, "in");
    out_ = context_->create_buffer(BufferKind::device, count * 4, "out");
    factor_ = context_->create_buffer(BufferKind::host_write, 16, "factor");
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.0F);
    context_->upload(in_, 0, std::as_bytes(std::span(values)));
    const std::array<float, 4> factor = {2, 0, 0, 0};
    context_->upload(factor_, 0, std::as_bytes(std::span(factor)));
  }
  const Kernel& scale() { return context_->kernel(find_shader(test_shaders(), "scale")); }
  static uint32_t groups() { return (count + 63) / 64; }
  template <class T>
  std::vector<T> read(const Buffer& buffer) {
    std::vector<T> values(buffer.bytes() / sizeof(T));
    context_->download(buffer, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }

  std::unique_ptr<Context> context_;
  Buffer in_;
  Buffer out_;
  Buffer factor_;
};
CANOPY_ON_EVERY_DEVICE(CommandListTest);

TEST_P(CommandListTest, runsAKernelOverEveryElement) {
  open_device();
  CommandList list(*context_);
  list.bind(scale(), {in_, out_, factor_}, ScalePush{count, 0.5F});
  list.dispatch(groups());
  context_->run(list);
  const std::vector<float> out = read<float>(out_);
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(out[i], 2.0F * static_cast<float>(i) + 0.5F) << i;
  }
}

TEST_P(CommandListTest, replaysOnChangedData) {
  open_device();
  CommandList list(*context_);
  list.bind(scale(), {in_, out_, factor_}, ScalePush{count, 1});
  list.dispatch(groups());
  list.barrier();
  list.bind(scale(), {out_, in_, factor_}, ScalePush{count, 1});
  list.dispatch(groups());
  const std::array<float, 4> half = {0.5F, 0, 0, 0};
  context_->upload(factor_, 0, std::as_bytes(std::span(half)));
  double expected = 999;
  for (int run = 0; run < 200; ++run) {  // x -> (x/2 + 1)/2 + 1
    context_->run(list);
    expected = static_cast<float>(static_cast<float>(expected * 0.5 + 1) * 0.5F + 1);
  }
  EXPECT_EQ(read<float>(in_)[999], static_cast<float>(expected));
  EXPECT_EQ(list.dispatch_count(), 2u);
}

TEST_P(CommandListTest, appliesSpecialisationConstants) {
  open_device();
  CommandList list(*context_);
  list.bind(context_->kernel(find_shader(test_shaders(), "scale"), {.spec = {{0, 8}, {3, 100}}}), {in_, out_, factor_},
            ScalePush{count, 0});
  list.dispatch(count / 8);
  context_->run(list);
  EXPECT_EQ(read<float>(out_)[7], 114.0F);
}

TEST_P(CommandListTest, readsPartsOfABuffer) {
  open_device();
  std::vector<uint32_t> words(1024);
  std::iota(words.begin(), words.end(), 10u);
  const Buffer source = context_->create_buffer(BufferKind::device, 4096, "words");
  context_->upload(source, 0, std::as_bytes(std::span(words)));
  const Binding view(source, 1024, 2048);
  for (const auto& [name, stride] : {std::pair("gather_words", 1u), std::pair("gather_pairs", 2u)}) {
    CommandList list(*context_);
    list.bind(context_->kernel(find_shader(test_shaders(), name)), {view, out_}, CountPush{100});
    list.dispatch(4);
    context_->run(list);
    EXPECT_EQ(read<uint32_t>(out_)[99], 10 + 256 + 99 * stride + 1) << name;
  }
}

TEST_P(CommandListTest, dispatchesByCountsFromABuffer) {
  open_device();
  const Buffer counts = context_->create_buffer(BufferKind::device, 64, "counts");
  CommandList list(*context_);
  list.fill(out_, 0, count * 4, 0);
  list.fill(counts, 16, 12, 1);  // one workgroup
  list.barrier();
  list.bind(scale(), {in_, out_, factor_}, ScalePush{count, 0.5F});
  list.dispatch_indirect(counts, 16);
  context_->run(list);
  EXPECT_EQ(read<float>(out_)[63], 126.5F);
  EXPECT_EQ(read<float>(out_)[64], 0.0F);
  EXPECT_NE(error_of([&] {
              CommandList bad(*context_);
              bad.bind(scale(), {in_, out_, factor_}, ScalePush{count, 0});
              bad.dispatch_indirect(counts, 56);
            }).find("at offset 56"),
            std::string::npos);
}

TEST_P(CommandListTest, copiesAndFills) {
  open_device();
  CommandList list(*context_);
  list.fill(out_, 0, count * 4, 0x3F800000);
  list.barrier();
  list.barrier();  // the second has no effect
  list.copy(in_, 40, out_, 400, 80);
  list.barrier();
  list.copy(out_, 400, out_, 0, 40);
  context_->run(list);
  const std::vector<float> out = read<float>(out_);
  EXPECT_EQ(out[0], 10.0F);
  EXPECT_EQ(out[9], 19.0F);
  EXPECT_EQ(out[10], 1.0F);
  EXPECT_EQ(out[119], 29.0F);
  EXPECT_EQ(out[120], 1.0F);
}

TEST_P(CommandListTest, needsManyDescriptorSets) {
  open_device();
  CommandList list(*context_);
  for (uint32_t i = 0; i < 200; ++i) {  // more than a pool holds; two pools alternate, so none is reused too early
    list.bind(scale(), {i % 2 == 0 ? in_ : out_, i % 2 == 0 ? out_ : in_, factor_}, ScalePush{1, 0});
    list.dispatch(1);
    list.barrier();
  }
  EXPECT_NO_THROW(context_->run(list));
}

TEST_P(CommandListTest, timesItself) {
  open_device();
  CommandList list(*context_, {.name = "timed", .max_timestamps = 3});
  list.timestamp("start");
  EXPECT_NE(error_of([&] { static_cast<void>(list.timestamps()); }), "");
  const Buffer out = context_->create_buffer(BufferKind::device, 4, "spin");
  list.bind(context_->kernel(find_shader(test_shaders(), "spin")), {out}, CountPush{60000});
  list.dispatch(1);
  list.timestamp("spin");
  list.timestamp("end");
  EXPECT_NE(error_of([&] { list.timestamp("more"); }).find("3 timestamps"), std::string::npos);
  for (int run = 0; run < 3; ++run) {
    context_->run(list);
    const std::vector<Timestamp> times = list.timestamps();
    if (context_->limits().timestamp_valid_bits == 0) {
      EXPECT_TRUE(times.empty());
      return;
    }
    ASSERT_EQ(times.size(), 3u);
    EXPECT_EQ(times[1].label, "spin");
    EXPECT_EQ(times[0].microseconds, 0.0);
    EXPECT_GT(times[1].microseconds, 50.0);  // four million dependent steps
    EXPECT_LT(times[1].microseconds, 5e6);
    EXPECT_GE(times[2].microseconds, times[1].microseconds);
  }
}

TEST_P(CommandListTest, overlapsSubmissionsInOrder) {
  open_device();
  CommandList there(*context_);
  there.bind(scale(), {in_, out_, factor_}, ScalePush{count, 1});
  there.dispatch(groups());
  CommandList back(*context_);
  back.bind(scale(), {out_, in_, factor_}, ScalePush{count, 1});
  back.dispatch(groups());
  const Submission first = context_->submit(there);
  const Submission second = context_->submit(back);
  EXPECT_LT(first, second);
  context_->wait(second);
  EXPECT_TRUE(context_->is_complete(first));
  context_->wait(first);
  EXPECT_EQ(read<float>(in_)[10], (10 * 2 + 1) * 2 + 1);
  EXPECT_NE(error_of([&] { context_->wait(second + 1); }).find("does not exist"), std::string::npos);
}

TEST_P(CommandListTest, objectsInUseOutliveTheirOwners) {
  open_device();
  const Buffer out = context_->create_buffer(BufferKind::device, 4, "result");
  {
    const Buffer temporary = context_->create_buffer(BufferKind::device, 4, "temporary");
    CommandList list(*context_);
    list.fill(temporary, 0, 4, 1);
    list.barrier();
    list.bind(context_->kernel(find_shader(test_shaders(), "spin")), {temporary}, CountPush{60000});
    list.dispatch(1);
    list.barrier();
    list.copy(temporary, 0, out, 0, 4);
    context_->submit(list);
  }
  uint32_t expected = 1;
  for (uint32_t i = 0; i < 60000 * 64; ++i) {
    expected = expected * 1664525u + 1013904223u;
  }
  EXPECT_EQ(read<uint32_t>(out)[0], expected);
}

TEST_P(CommandListTest, refusesToRunTwiceAtOnce) {
  open_device();
  const Buffer out = context_->create_buffer(BufferKind::device, 4, "spin");
  CommandList list(*context_, {.name = "busy"});
  list.bind(context_->kernel(find_shader(test_shaders(), "spin")), {out}, CountPush{60000});
  for (int i = 0; i < 30; ++i) {  // most of a second in all, as a busy machine may stop this thread for a while
    list.dispatch(1);
    list.barrier();
  }
  if (context_->is_complete(context_->submit(list))) GTEST_SKIP() << "done before it could be submitted again";
  EXPECT_NE(error_of([&] { context_->submit(list); }).find("\"busy\" is still running"), std::string::npos);
  context_->wait_idle();
  EXPECT_NO_THROW(context_->run(list));
}

TEST_P(CommandListTest, checksWhatIsBound) {
  open_device({.max_storage_range = 8192, .max_uniform_range = 64, .max_group_count = 100});
  CommandList list(*context_, {.name = "checked"});
  const Buffer large = context_->create_buffer(BufferKind::device, 16384, "large");
  const ScalePush push{count, 0};
  const auto error = [&](std::initializer_list<Binding> bindings) {
    return error_of([&] { list.bind(scale(), bindings, push); });
  };
  EXPECT_NE(error({in_, out_}).find("\"checked\", kernel scale: 2 bindings were given, the shader takes 3"),
            std::string::npos);
  EXPECT_NE(error({in_, large, factor_}).find("has at most 8192 bytes"), std::string::npos);
  EXPECT_NE(error({in_, out_, Binding(large, 0, 80)}).find("uniform buffer of the device"), std::string::npos);
  EXPECT_NE(error({in_, out_, Binding(large, 4, 16)}).find("must be a multiple of"), std::string::npos);
  EXPECT_NE(error({in_, Binding(out_, 0, 4001), factor_}).find("leaves the buffer of 4000"), std::string::npos);
  EXPECT_NE(error({in_, Binding(out_, ~0ull - 255, 512), factor_}).find("leaves the buffer"), std::string::npos);
  EXPECT_NE(error({in_, Binding(out_, 0, 0), factor_}).find("is empty"), std::string::npos);
  EXPECT_NE(error({in_, Buffer(), factor_}).find("is empty"), std::string::npos);
  EXPECT_NE(error_of([&] { list.dispatch(1); }).find("before a kernel was bound"), std::string::npos);
  list.bind(scale(), {in_, out_, factor_}, push);
  EXPECT_NE(error_of([&] { list.dispatch(1, 101); }).find("101 workgroups along y is larger than the device"),
            std::string::npos);
  EXPECT_NE(error_of([&] { list.copy(in_, 0, out_, 4, 4000); }).find("a copy to of 4000 bytes at offset 4"),
            std::string::npos);
  EXPECT_NE(error_of([&] { list.copy(in_, 0, in_, 8, 16); }).find("overlaps itself"), std::string::npos);
  EXPECT_NE(error_of([&] { list.fill(in_, 2, 8, 0); }).find("whole words"), std::string::npos);
  list.dispatch(groups());
  EXPECT_NO_THROW(context_->run(list));  // refused commands have no effect on the list
  EXPECT_NE(error_of([&] { list.dispatch(1); }).find("already finished"), std::string::npos);
}

TEST_P(CommandListTest, checksPushConstants) {
  open_device();
  CommandList list(*context_);
  const std::array<std::byte, 4> few{};
  EXPECT_NE(error_of([&] {
              list.bind(scale(), {in_, out_, factor_}, std::span<const std::byte>(few));
            }).find("4 bytes of push constants were given, the shader takes 8"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              list.bind(scale(), {in_, out_, factor_});
            }).find("0 bytes of push constants"),
            std::string::npos);
}

TEST_P(CommandListTest, movesWhileRecording) {
  open_device();
  CommandList first(*context_);
  first.bind(scale(), {in_, out_, factor_}, ScalePush{count, 3});
  CommandList second = std::move(first);
  second.dispatch(groups());
  context_->run(second);
  EXPECT_EQ(read<float>(out_)[1], 5.0F);
  EXPECT_NE(error_of([&] { first.barrier(); }), "");  // NOLINT: moved from on purpose
}

}  // namespace
}  // namespace canopy::vk
