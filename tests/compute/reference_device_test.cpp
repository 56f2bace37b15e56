// Errors of the reference device for wrong arguments, and its memory, copies and commands.

#include "tests/reference/reference_device.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tests/compute/forwarding_device.h"
#include "tests/compute/op_bench.h"
#include "tests/compute/random_data.h"

namespace canopy::test {
namespace {

template <class F>
ErrorKind kind_of_error(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::cancelled;
}

TEST(ReferenceDevice, AccountsForItsMemory) {
  const auto device = make_reference_device(1000);
  EXPECT_EQ(device->memory().available, 1000u);
  {
    const auto buffer = device->allocate(600, "first");
    EXPECT_EQ(device->memory().available, 400u);
    EXPECT_EQ(kind_of_error([&] { device->allocate(500, "second"); }), ErrorKind::out_of_memory);
    EXPECT_EQ(device->memory().available, 400u);
  }
  EXPECT_EQ(device->memory().available, 1000u);
}

TEST(ReferenceDevice, HandsOutZeroedMemory) {
  const auto device = make_reference_device();
  const auto buffer = device->allocate(16, "buffer");
  std::vector<uint32_t> words(4, 7);
  device->read(*buffer, 0, std::as_writable_bytes(std::span(words)));
  EXPECT_EQ(words, std::vector<uint32_t>(4, 0));
}

TEST(ReferenceDevice, RefusesCopiesOutsideABuffer) {
  const auto device = make_reference_device();
  const auto buffer = device->allocate(16, "buffer");
  const std::vector<std::byte> data(8);
  EXPECT_EQ(kind_of_error([&] { device->write(*buffer, 12, data); }), ErrorKind::bad_input);
  EXPECT_EQ(kind_of_error([&] { device->write(*buffer, 2, data); }), ErrorKind::bad_input);
  EXPECT_EQ(kind_of_error([&] { device->write(*buffer, ~uint64_t{3}, data); }), ErrorKind::bad_input);
}

TEST(ReferenceDevice, RefusesPartsThatDoNotFit) {
  const auto device = make_reference_device();
  Random random(1);
  const FileMatrix a = random.matrix(WeightType::q8_0, 4, 64);
  const FileMatrix narrow = random.matrix(WeightType::q8_0, 4, 32);
  const FileMatrix other_type = random.matrix(WeightType::q4_1, 4, 64);
  const FileMatrix short_one = random.matrix(WeightType::q8_0, 3, 64);
  WeightPart truncated = a.part();
  truncated.data = truncated.data.first(truncated.data.size() - 1);
  WeightPart ragged = a.part();
  ragged.cols = 63;
  const auto refused = [&](std::vector<WeightPart> parts, WeightLayout layout) {
    return kind_of_error([&] { device->make_weight(parts, layout, "w"); }) == ErrorKind::bad_input;
  };
  EXPECT_TRUE(refused({}, WeightLayout::stacked));
  EXPECT_TRUE(refused({a.part(), narrow.part()}, WeightLayout::stacked));
  EXPECT_TRUE(refused({a.part(), other_type.part()}, WeightLayout::stacked));
  EXPECT_TRUE(refused({a.part(), short_one.part()}, WeightLayout::paired));
  EXPECT_TRUE(refused({a.part()}, WeightLayout::paired));
  EXPECT_TRUE(refused({a.part(), a.part(), a.part()}, WeightLayout::paired));
  EXPECT_TRUE(refused({truncated}, WeightLayout::stacked));
  EXPECT_TRUE(refused({ragged}, WeightLayout::stacked));
}

TEST(ReferenceDevice, RefusesActivationsReadAtAnotherWidth) {
  const auto device = make_reference_device();
  OpBench bench(*device);
  Random random(1);
  const Weight* weight = bench.weight(random.matrix(WeightType::f32, 2, 4));
  const Activations* in = bench.activations(3, 4, random.values(12));
  Buffer* out = bench.output(6);
  EXPECT_EQ(kind_of_error([&] { bench.run([&](Recorder& r) {
                                  r(LinearArgs{2, weight, in, 0, out, 2, 0});
                                }); }),
            ErrorKind::bad_input);
}

TEST(ReferenceDevice, ReplaysWithNewContents) {
  const auto device = make_reference_device();
  const auto logits = device->allocate(8, "logits");
  const auto out = device->allocate(8, "out");
  Recorder record;
  record(ArgmaxArgs{1, logits.get(), 2, out.get()});
  const auto commands = device->compile(record.finish());
  for (const uint32_t winner : {0u, 1u}) {
    std::vector<float> values(2);
    values[winner] = 1;
    device->write(*logits, 0, as_bytes_of(values));
    EXPECT_TRUE(device->run(*commands));
    uint32_t id = 9;
    device->read(*out, 0, std::as_writable_bytes(std::span(&id, 1)));
    EXPECT_EQ(id, winner);
  }
}

TEST(ReferenceDevice, StopsBetweenOpsWhenAskedTo) {
  const auto device = make_reference_device();
  const auto logits = device->allocate(4, "logits");
  const auto first = device->allocate(8, "first");
  const auto second = device->allocate(8, "second");
  device->write(*second, 0, as_bytes_of(std::vector<uint32_t>{77, 77}));
  Recorder record;
  record(ArgmaxArgs{1, logits.get(), 1, first.get()});
  record(ArgmaxArgs{1, logits.get(), 1, second.get()});
  const auto commands = device->compile(record.finish());
  EXPECT_FALSE(device->run(*commands, test::stopped_before()));
  uint32_t id = 0;
  device->read(*second, 0, std::as_writable_bytes(std::span(&id, 1)));
  EXPECT_EQ(id, 77u);
}

}  // namespace
}  // namespace canopy::test
