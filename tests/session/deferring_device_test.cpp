// Commands that run later than they are started, also through a wrapper: in single calls and in whole replies.

#include "tests/session/deferring_device.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "engine/session/engine.h"
#include "tests/base/expect_error.h"
#include "tests/model/golden_data.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {

/// All that a device must do, but for start() and finish(). Declared only: nothing makes one.
class WithoutStart : public Device {
 public:
  const DeviceInfo& info() const override;
  MemoryInfo memory() const override;
  std::unique_ptr<Buffer> allocate(uint64_t, std::string_view) override;
  std::unique_ptr<Buffer> part(Buffer&, uint64_t, uint64_t, std::string_view) override;
  std::unique_ptr<Activations> allocate_activations(uint32_t, uint32_t, std::string_view) override;
  std::unique_ptr<KvCache> allocate_kv(const KvShape&, uint32_t, std::string_view) override;
  std::unique_ptr<Weight> make_weight(std::span<const WeightPart>, WeightLayout, std::string_view) override;
  uint64_t weight_bytes(std::span<const WeightPart>, WeightLayout) const override;
  uint64_t activation_bytes(uint32_t, uint32_t) const override;
  void write(Buffer&, uint64_t, std::span<const std::byte>) override;
  void read_all(std::span<const BufferRead>) override;
  std::vector<float> read_activations(const Activations&, uint32_t) override;
  void write_activations(Activations&, uint32_t, std::span<const float>) override;
  std::vector<float> read_kv(const KvLayer&, bool, uint32_t, uint32_t) override;
  void write_kv(KvLayer&, bool, uint32_t, std::span<const float>) override;
  DevicePeak measure_peak() override;
  double sample_fma_rate() override;
  std::unique_ptr<Commands> compile(std::span<const Op>, const std::stop_token&) override;
  bool run(Commands&, const std::stop_token&) override;
  double last_run_ms() const override;
};
class WithoutFinish : public WithoutStart {
 public:
  void start(Commands&) override;
};
class WithBoth : public WithoutFinish {
 public:
  void finish() override;
};
// A wrapper that passes on neither would run at once what its tests want to run late, and nobody would notice.
static_assert(std::is_abstract_v<WithoutStart> && std::is_abstract_v<WithoutFinish>,
              "start() and finish() have no defaults");
static_assert(!std::is_abstract_v<WithBoth>, "nothing else is missing");

namespace {

struct Deferred {
  DeferringDevice* inner = nullptr;
  std::unique_ptr<Device> device;  // a wrapper that changes nothing

  Deferred() {
    auto deferring = std::make_unique<DeferringDevice>(make_reference_device());
    inner = deferring.get();
    device = std::make_unique<ForwardingDevice>(std::move(deferring));
  }
};

TEST(DeferringDevice, RunsWhatWasStartedBeforeItIsSeen) {
  const Deferred deferred;
  Device& device = *deferred.device;
  const auto in = device.allocate(4, "in");
  const auto moves = device.allocate(8, "moves");
  const auto out = device.allocate(4, "out");
  Recorder record;
  record(CopyRowsArgs{.count = 1, .cols = 1, .in = in.get(), .moves = moves.get(), .out = out.get()});
  const auto copy = device.compile(record.finish());
  const auto write = [&](uint32_t value) { device.write(*in, 0, as_bytes_of(std::vector<uint32_t>{value})); };
  const auto result = [&] {
    uint32_t value = 0;
    device.read(*out, 0, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  };
  write(1);
  device.start(*copy);
  EXPECT_EQ(deferred.inner->waiting(), 1u) << "the wrapper starts it, and does not run it";
  EXPECT_THROW(device.start(*copy), Error) << "it is still under way";
  EXPECT_EQ(result(), 1u);
  device.start(*copy);
  device.finish();
  write(2);
  EXPECT_EQ(result(), 1u) << "finished before the input changed";
  device.start(*copy);
  write(3);
  EXPECT_EQ(result(), 3u) << "who does not wait is found out";
}

// Features of plain decoding are copied while nothing waits for them.
TEST(DeferringDevice, RepliesAreThoseOfADeviceThatWaits) {
  OpenRequest request;
  request.path = golden_folder() / "tiny-qwen3";
  request.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
  request.context = 256;
  request.self_test = false;
  const Deferred deferred;
  const auto waits = make_reference_device();
  const auto later = Engine::open(*deferred.device, request, {});
  const auto at_once = Engine::open(*waits, request, {});
  const std::vector<uint32_t> prompt = at_once->text.encode_raw("def read_file(path, mode='r'):\n");
  for (const DecodeMode mode : {DecodeMode::ar, DecodeMode::adaptive, DecodeMode::tree, DecodeMode::chain}) {
    ReplySettings settings;
    settings.mode = mode;
    settings.max_tokens = 24;
    const Reply expected = at_once->reply(prompt, settings);
    const Reply reply = later->reply(prompt, settings);
    EXPECT_EQ(reply.ids, expected.ids) << to_string(mode);
  }
  EXPECT_GT(deferred.inner->started(), 0u);
}

}  // namespace
}  // namespace canopy::test
