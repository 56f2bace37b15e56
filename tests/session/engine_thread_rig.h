#pragma once
// Runs an engine thread over reference devices, and sends and receives like a front end.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/session/engine_thread.h"
#include "tests/compute/forwarding_device.h"
#include "tests/model/golden_data.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {

/// What is known of the devices that an engine opened.
struct DeviceBook {
  std::atomic<int> open{0};
  std::atomic<int> runs{0};                 // of all of them
  std::atomic<int> run_ms{0};               // that each run takes longer
  std::atomic<uint64_t> bytes_at_close{0};  // that a device still held when it was closed last
};

/// A device that is lost for good at the next run once `lose` is set.
class FragileDevice : public ForwardingDevice {
 public:
  FragileDevice(std::unique_ptr<Device> inner, std::atomic<bool>& lose, DeviceBook& book)
      : ForwardingDevice(std::move(inner)), lose_(lose), book_(book) {
    ++book_.open;
  }
  ~FragileDevice() override {
    book_.bytes_at_close = memory().total - memory().available;
    --book_.open;
  }
  bool run(Commands& commands, const std::stop_token& stop) override {
    ++book_.runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(book_.run_ms));
    if (lose_.exchange(false)) lost_ = true;
    if (lost_) throw Error(ErrorKind::device_lost, "The device was lost.");
    return ForwardingDevice::run(commands, stop);
  }
  /// The reference device does not measure its own speed; a report needs one.
  DevicePeak measure_peak() override {
    DevicePeak peak;
    peak.read_gb_s = 10;
    peak.fma_gflop_s = peak.plain_fma_gflop_s = 100;
    peak.matrix_gflop_s = 800;
    return peak;
  }

 private:
  std::atomic<bool>& lose_;
  DeviceBook& book_;
  bool lost_ = false;
};

class EngineThreadTest : public ::testing::Test {
 protected:
  void start(uint64_t memory = uint64_t{8} << 30) {
    EngineBackend backend;
    backend.open_device = [this, memory](const std::string& selector, uint32_t threads) -> std::unique_ptr<Device> {
      if (selector == "none") throw Error(ErrorKind::unavailable, "There is no device \"none\".");
      ++devices_opened_;
      threads_opened_ = threads;
      return std::make_unique<FragileDevice>(make_reference_device(memory), lose_, book_);
    };
    backend.list_devices = [] { return std::vector<DeviceChoice>{{"0", "Reference", "reference", true, ""}}; };
    backend.device_uuid = [](const std::string& selector) -> std::string {
      if (selector == "none") throw Error(ErrorKind::unavailable, "There is no device \"none\".");
      return selector == "1" ? "another" : "reference";  // the uuid of all devices opened here is "reference"
    };
    backend.commit = "1a2b3c";
    backend.reported_shape = "tiny-q4_0";
    backend.replies = replies_;
    backend.serve = serve_;
    engine_ = std::make_unique<EngineThread>(backend);
  }

  std::filesystem::path replies_;  // EngineBackend::replies
  MakeService serve_;              // EngineBackend::serve

  static LoadModel tiny() {
    LoadModel load;
    load.path = golden_folder() / "tiny-qwen3";
    load.context = 512;
    return load;
  }

  static Generate question(uint64_t id, uint32_t max_tokens = 24) {
    Generate generate;
    generate.reply_id = id;
    generate.raw_prompt = "def main():\n";
    generate.max_tokens = max_tokens;
    return generate;
  }

  /// Rounds of a reply in trees that earlier replies may help with, kept under a chat.
  double rounds_of(uint64_t id, const std::string& chat) {
    Generate asked = question(id, 40);
    asked.mode = DecodeMode::tree;
    asked.sources = kUsualSources | kFromEarlier;
    asked.chat = chat;
    engine_->post(asked);
    return 39 / await<ReplyFinished>().tau;
  }

  /// Waits for the first event T and returns all events up to it; empty if none comes within a minute.
  template <class T>
  std::vector<Event> until() {
    std::vector<Event> seen;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
      for (Event& event : engine_->poll()) waiting_.push_back(std::move(event));
      while (!waiting_.empty()) {
        seen.push_back(std::move(waiting_.front()));
        waiting_.erase(waiting_.begin());
        if (std::holds_alternative<T>(seen.back())) return seen;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "the event did not come";
    for (const Event& event : seen)
      if (const auto* failure = std::get_if<Failure>(&event))
        ADD_FAILURE() << failure->title << ": " << failure->detail;
    return {};
  }

  template <class T>
  T await() {
    const std::vector<Event> events = until<T>();
    return events.empty() ? T{} : std::get<T>(events.back());
  }

  static std::string text_of(const std::vector<Event>& events) {
    std::string text;
    for (const Event& event : events) {
      if (const auto* delta = std::get_if<TextDelta>(&event)) text += delta->text;
    }
    return text;
  }

  std::string answer(uint64_t id) {
    engine_->post(question(id));
    return text_of(until<ReplyFinished>());
  }

  std::atomic<bool> lose_{false};
  std::atomic<int> devices_opened_{0};
  std::atomic<uint32_t> threads_opened_{0};  // of the newest device
  DeviceBook book_;
  std::vector<Event> waiting_;
  std::unique_ptr<EngineThread> engine_;
};

}  // namespace canopy::test
