// Faults while drafting: a device that is lost at any stage, NaN, too little memory, pairs that do not fit. Each gives
// the right error, and the next reply is written as usual.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/session/engine.h"
#include "engine/session/reply_writer.h"
#include "tests/base/expect_error.h"
#include "tests/compute/forwarding_device.h"
#include "tests/model/golden_data.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

/// A device that fails when told to.
class FaultyDevice final : public ForwardingDevice {
 public:
  FaultyDevice() : ForwardingDevice(make_reference_device()) {}

  int calls_left = std::numeric_limits<int>::max();  // passes and copies until the device is lost
  std::string spoilt;                                // reading a buffer of this name gives NaN
  uint64_t available = 0;                            // bytes; 0: what there is

  bool run(Commands& commands, const std::stop_token& stop) override {
    count_call();
    return ForwardingDevice::run(commands, stop);
  }
  void write(Buffer& to, uint64_t offset, std::span<const std::byte> from) override {
    count_call();
    ForwardingDevice::write(to, offset, from);
  }
  std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) override {
    auto buffer = ForwardingDevice::allocate(bytes, name);
    named_.push_back({std::string(name), buffer.get(), 0, bytes});
    return buffer;
  }
  std::unique_ptr<Buffer> part(Buffer& whole, uint64_t offset, uint64_t bytes, std::string_view name) override {
    named_.push_back({std::string(name), &whole, offset, bytes});
    return ForwardingDevice::part(whole, offset, bytes, name);
  }
  void read_all(std::span<const BufferRead> reads) override {
    count_call();
    ForwardingDevice::read_all(reads);
    for (const BufferRead& r : reads) {
      for (const Named& named : named_) {
        if (named.buffer != r.from || named.name != spoilt) continue;
        const uint64_t first = std::max(named.offset, r.offset);
        const uint64_t end = std::min(named.offset + named.bytes, r.offset + r.to.size());
        if (first < end) std::memset(&r.to[first - r.offset], 0xFF, end - first);  // a NaN, and no token
      }
    }
  }
  MemoryInfo memory() const override {
    MemoryInfo info = ForwardingDevice::memory();
    if (available > 0) info.available = available;
    return info;
  }

 private:
  void count_call() {
    if (calls_left-- <= 0) throw Error(ErrorKind::device_lost, "The device was lost.");
  }

  /// A buffer or a part of one.
  struct Named {
    std::string name;
    const Buffer* buffer;
    uint64_t offset, bytes;
  };
  std::vector<Named> named_;
};

class SpeculationFaults : public ::testing::Test {
 protected:
  void open() {
    loaded_.reset();
    device_ = std::make_unique<FaultyDevice>();
    loaded_ = Engine::open(*device_, request(), {});
    prompt_ = loaded_->text.encode_raw("def read_file(path, mode='r'):\n");
  }
  void SetUp() override { open(); }

  static OpenRequest request() {
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    request.context = 256;
    request.self_test = false;
    return request;
  }
  ReplySettings in(DecodeMode mode, float temperature = 0) const {
    ReplySettings settings;
    settings.mode = mode;
    settings.max_tokens = tokens_;
    settings.sampling.temperature = temperature;
    return settings;
  }

  void expect_goes_on(const std::vector<uint32_t>& ids) {
    const std::span<const uint32_t> committed = loaded_->resident->current().tokens();
    EXPECT_LE(loaded_->resident->current().feature_length(), committed.size());
    EXPECT_EQ(loaded_->reply(prompt_, in(DecodeMode::tree)).ids, ids);
  }

  std::unique_ptr<FaultyDevice> device_;
  std::unique_ptr<Engine> loaded_;
  std::vector<uint32_t> prompt_;
  uint32_t tokens_ = 10;
};

TEST_F(SpeculationFaults, TheControllerIsThereBeforeAPolicyWasChosen) {
  const std::unique_ptr<SpeculationState> made =
      pair_speculation(*loaded_->model, loaded_->drafter.get(), nullptr, CostTable());
  SpeculationState& state = *made;
  EXPECT_FALSE(state.is_started());
  state.controller().begin_reply();
  const uint32_t token = 1;
  state.controller().observe({.emitted = {&token, 1}});
  state.use(CostPolicy::measured);
  EXPECT_TRUE(state.is_started());
}

TEST_F(SpeculationFaults, ADeviceLostAtAnyCallEndsTheReplyWithThatError) {
  tokens_ = 5;  // lost at each of the calls in turn
  for (const DecodeMode mode : {DecodeMode::tree, DecodeMode::chain, DecodeMode::adaptive}) {
    SCOPED_TRACE(to_string(mode));
    open();
    const std::vector<uint32_t> ids = loaded_->reply(prompt_, in(DecodeMode::ar)).ids;
    bool lost = true;
    for (int calls = 0; lost; ++calls) {
      SCOPED_TRACE(calls);
      ASSERT_LT(calls, 1000);
      loaded_->resident->clear();
      device_->calls_left = calls;
      lost = false;
      try {
        EXPECT_EQ(loaded_->reply(prompt_, in(mode)).ids, ids);
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::device_lost);
        lost = true;
      }
      device_->calls_left =
          std::numeric_limits<int>::max();  // a real device stays lost; the state must be right all the same
      expect_goes_on(ids);
    }
  }
}

TEST_F(SpeculationFaults, LogitsThatAreNoNumbersAreToldAndForgotten) {
  const std::vector<uint32_t> ids = loaded_->reply(prompt_, in(DecodeMode::ar)).ids;
  device_->spoilt = "best";
  expect_error("logits are not numbers at position", [&] { loaded_->reply(prompt_, in(DecodeMode::tree)); });
  device_->spoilt = "logits";
  expect_error("the model's output is broken", [&] { loaded_->reply(prompt_, in(DecodeMode::tree, 0.8f)); });
  for (const char* const buffer : {"drafted logits", "drafted sums"}) {
    SCOPED_TRACE(buffer);
    device_->spoilt = buffer;
    expect_error("depth 1", [&] { loaded_->reply(prompt_, in(DecodeMode::tree)); });
    expect_error("depth 1", [&] { loaded_->reply(prompt_, in(DecodeMode::chain)); });
    EXPECT_EQ(loaded_->reply(prompt_, in(DecodeMode::ar)).ids, ids);  // which needs no drafter
  }
  device_->spoilt.clear();
  expect_goes_on(ids);
}

TEST_F(SpeculationFaults, BudgetsBeyondWhatFitsCountAsWhatFits) {
  const std::vector<uint32_t> ids = loaded_->reply(prompt_, in(DecodeMode::ar)).ids;
  for (const uint32_t budget : {127u, 128u, 1010u, 4'000'000'000u}) {
    ReplySettings settings = in(DecodeMode::tree);
    settings.budget = budget;
    const Reply reply = loaded_->reply(prompt_, settings);
    EXPECT_EQ(reply.ids, ids) << budget;
    for (const RoundRecord& round : reply.rounds) EXPECT_LE(round.width, loaded_->model->limits().max_width);
  }
}

TEST_F(SpeculationFaults, ADrafterThatDoesNotFitTheMemoryIsToldWithItsSize) {
  const uint64_t needed = loaded_->drafter->device_bytes();
  const DrafterFile file = DrafterFile::open(request().drafter);
  device_->available = needed - 1;
  try {
    Drafter::load(file, *loaded_->model, {CacheType::f16, {}});
    FAIL() << "was loaded";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(std::string(e.what()).find("The drafter needs"), std::string::npos) << e.what();
  }
  device_->available = needed;
  EXPECT_NO_THROW(Drafter::load(file, *loaded_->model, {CacheType::f16, {}}));
}

TEST_F(SpeculationFaults, PairsThatDoNotFitAreRefusedWithTheReason) {
  const auto refuse = [&](const char* model, const char* drafter, const char* reason) {
    OpenRequest other = request();
    other.path = golden_folder() / model;
    other.drafter = golden_folder() / drafter;
    expect_error(reason, [&] { Engine::open(*device_, other, {}); });
  };
  refuse("tiny-llama3", "tiny-qwen3-dflash-b8", "hidden");
  refuse("tiny-qwen3", "tiny-llama3", "500 tokens and the model 1010");
  refuse("tiny-qwen3-dflash-b8", "tiny-qwen3-dflash-b8", "drafter");

  OpenRequest optional = request();
  optional.drafter = golden_folder() / "tiny-llama3";
  optional.drafter_is_optional = true;
  EXPECT_EQ(Engine::open(*device_, optional, {})->drafter, nullptr);
}

TEST_F(SpeculationFaults, ADrafterNeedsATargetThatKeepsItsTaps) {
  const ModelFile file = ModelFile::open(request().path);
  ModelOptions options;
  options.context = 128;
  options.aux_layers = {1, 3};
  const auto model = Model::load(*device_, file, options);
  const DrafterFile drafter = DrafterFile::open(request().drafter);
  expect_error("taps", [&] { Drafter::load(drafter, *model, {}); });
}

}  // namespace
}  // namespace canopy::test
