// A device that runs out of memory at any moment of a load: the error arrives, and the model that was there still
// writes.

#include <gtest/gtest.h>

#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

/// What fails, and how often the device was asked for memory.
struct Scarcity {
  std::atomic<int64_t> first{-1};  // the request of this number and those after it fail; negative: none
  std::atomic<int64_t> left{0};    // so many of them
  std::atomic<int64_t> requests{0};
};

class ScarceDevice : public ForwardingDevice {
 public:
  ScarceDevice(std::unique_ptr<Device> inner, Scarcity& scarcity)
      : ForwardingDevice(std::move(inner)), scarcity_(scarcity) {}
  std::unique_ptr<Buffer> allocate(uint64_t bytes, std::string_view name) override {
    ask(name);
    return ForwardingDevice::allocate(bytes, name);
  }
  std::unique_ptr<Activations> allocate_activations(uint32_t max_width, uint32_t cols, std::string_view name) override {
    ask(name);
    return ForwardingDevice::allocate_activations(max_width, cols, name);
  }
  std::unique_ptr<KvCache> allocate_kv(const KvShape& shape, uint32_t layers, std::string_view name) override {
    ask(name);
    return ForwardingDevice::allocate_kv(shape, layers, name);
  }
  std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                      std::string_view name) override {
    ask(name);
    return ForwardingDevice::make_weight(parts, layout, name);
  }

 private:
  void ask(std::string_view name) {
    const int64_t number = scarcity_.requests++;
    if (scarcity_.first >= 0 && number >= scarcity_.first && scarcity_.left-- > 0) {
      throw out_of_memory("There is no memory for " + std::string(name) + ".");
    }
  }

  Scarcity& scarcity_;
};

class LoadFaultsTest : public EngineThreadTest {
 protected:
  void start_scarce() {
    EngineBackend backend;
    backend.open_device = [this](const std::string&, uint32_t) -> std::unique_ptr<Device> {
      return std::make_unique<ScarceDevice>(make_reference_device(uint64_t{8} << 30), scarcity_);
    };
    backend.list_devices = [] { return std::vector<DeviceChoice>{{"0", "Reference", "reference", true, ""}}; };
    backend.device_uuid = [](const std::string&) -> std::string { return "reference"; };
    engine_ = std::make_unique<EngineThread>(backend);
  }

  std::string short_answer(uint64_t id) {
    engine_->post(question(id, 3));
    return text_of(until<ReplyFinished>());
  }

  /// The events of a load, up to what says how it ended.
  bool loads(const LoadModel& load) {
    engine_->post(load);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
      for (const Event& event : engine_->poll()) {
        if (std::holds_alternative<ModelReady>(event)) return true;
        if (const auto* failure = std::get_if<Failure>(&event)) {
          EXPECT_EQ(failure->kind, ErrorKind::out_of_memory);
          EXPECT_NE(failure->detail.find("There is no memory for "), std::string::npos) << failure->detail;
          return false;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "the load did not end";
    return true;
  }

  Scarcity scarcity_;
};

TEST_F(LoadFaultsTest, TheOldModelWritesOnWhereverTheNewOneRunsOutOfMemory) {
  start_scarce();
  LoadModel load = tiny();
  load.draft = false;
  ASSERT_TRUE(loads(load));
  const std::string before = short_answer(1);
  uint64_t id = 2, failures = 0;
  for (int64_t n = 0; n < 200; ++n) {
    scarcity_.requests = 0;
    scarcity_.left = 2;  // the load beside the old model, and the next one, which has all memory
    scarcity_.first = n;
    const bool loaded = loads(load);
    ASSERT_EQ(short_answer(id++), before) << "after request " << n;
    if (loaded) break;
    ++failures;
  }
  EXPECT_GT(failures, 30u);
  EXPECT_LT(failures, 200u);
}

}  // namespace
}  // namespace canopy::test
