// The window and the engine's work on the device. It adds nothing: the device calls of the application, which draws
// every panel while it writes, are compared with those of the same commands without a window (gui.md, criterion 28).
// And it waits for nothing: it is drawn while the device hangs (criterion 21).

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/app.h"
#include "app/platform/imgui_context.h"
#include "engine/session/engine_thread.h"
#include "tests/app/support/test_engine.h"
#include "tests/compute/forwarding_device.h"
#include "tests/model/golden_data.h"
#include "tests/programs/recorded_calls.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongest = 120s;  // for a reply, on a busy machine

/// An engine thread on a reference device that records the calls it receives.
struct RecordedEngine {
  std::shared_ptr<CallList> calls = std::make_shared<CallList>();
  std::unique_ptr<EngineThread> thread;

  RecordedEngine() {
    EngineBackend backend;
    backend.open_device = [calls = calls](const std::string&, uint32_t) -> std::unique_ptr<Device> {
      return std::make_unique<RecordedCalls>(make_reference_device(), calls);
    };
    backend.list_devices = [] { return std::vector<DeviceChoice>{{"0", "Reference", "reference", true, ""}}; };
    thread = std::make_unique<EngineThread>(backend);
  }

  /// Ends the engine, so that no call can follow, and returns the calls.
  std::vector<DeviceCall> take_calls() {
    thread.reset();
    return calls->all();
  }
};

/// An engine client that passes everything on and keeps the commands and the end of each reply.
class Overheard final : public EngineClient {
 public:
  explicit Overheard(EngineClient& engine) : engine_(engine) {}

  void post(Command command) override {
    posted.push_back(command);
    engine_.post(std::move(command));
  }
  std::vector<Event> poll() override {
    std::vector<Event> events = engine_.poll();
    for (const Event& event : events) rounds += std::holds_alternative<RoundFinished>(event) ? 1 : 0;
    return events;
  }
  void set_wake(std::function<void()> wake) override { engine_.set_wake(std::move(wake)); }
  std::vector<DeviceChoice> devices() const override { return engine_.devices(); }

  std::vector<Command> posted;
  size_t rounds = 0;

 private:
  EngineClient& engine_;
};

/// The application without a window: frames are laid out completely and not shown.
class Screen {
 public:
  explicit Screen(EngineClient& engine) {
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {1600, 1000};
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    app::AppSettings settings;
    settings.system_fonts = false;
    settings.max_tokens = 40;
    settings.sampling.seed = 11;
    app_ = std::make_unique<app::App>(engine, settings);
  }
  ~Screen() {
    app_.reset();
    drop_textures();
  }
  app::App& app() { return *app_; }
  const app::ViewModel& view() const { return app_->view(); }

  void frame() {
    lay_out_frame(*app_);
    vertices_ = std::max(vertices_, ImGui::GetDrawData()->TotalVtxCount);
  }
  /// Draws frames with one panel after the other in front until the condition holds. False if it never does.
  bool frames_until(const std::function<bool()>& condition) {
    constexpr const char* kPanels[] = {"Tree", "Live", "Budget", "Residuals", "Roofline", "KV", "Calibration", "Log"};
    const auto deadline = std::chrono::steady_clock::now() + kLongest;
    for (size_t n = 0; std::chrono::steady_clock::now() < deadline; ++n) {
      app_->run(app::ShellCommand(app::ShowPanel{kPanels[n % std::size(kPanels)], true}));
      frame();
      if (condition()) return true;
    }
    return false;
  }
  int vertices() const { return vertices_; }  // the most vertices of a frame

 private:
  app::ImguiContext context_;
  std::unique_ptr<app::App> app_;
  int vertices_ = 0;
};

struct Watched {
  std::vector<DeviceCall> calls;
  std::vector<Command> commands;
  std::string text;
  size_t rounds = 0;
};

/// Asks the tiny pair of models a question in the window, which draws all the time.
Watched with_the_window(float temperature) {
  RecordedEngine engine;
  Overheard overheard(*engine.thread);
  Watched seen;
  {
    Screen screen(overheard);
    app::App& app = screen.app();
    // Before the model, so that there is one load and no load is cancelled.
    app.run(app::ModelsCommand(app::ChooseDrafter{(golden_folder() / "tiny-qwen3-dflash-b8").string(), true}));
    app.run(app::OpenModel{(golden_folder() / "tiny-qwen3").string()});
    app.run(app::SetDrafting{DecodeMode::tree});
    SamplingSettings sampling = screen.view().sampling;
    sampling.temperature = temperature;
    app.run(app::SetSampling{sampling, true});
    EXPECT_TRUE(screen.frames_until([&] { return screen.view().can_send() && !screen.view().model->drafter.empty(); }));
    app.run(app::SendMessage{"def main():"});
    EXPECT_TRUE(screen.frames_until([&] { return screen.view().can_send(); }));
    for (int n = 0; n < 20; ++n) screen.frame();
    const app::Message* reply = screen.view().last_reply();
    EXPECT_TRUE(reply != nullptr && reply->result);
    if (reply != nullptr) seen.text = reply->text;
    EXPECT_EQ(screen.view().rounds.log->rounds(), overheard.rounds) << "the window has every round";
    EXPECT_GT(screen.vertices(), 5000) << "the window was drawn";
  }
  seen.calls = engine.take_calls();
  seen.commands = overheard.posted;
  seen.rounds = overheard.rounds;
  return seen;
}

/// Sends the same commands without a window, with or without publishing rounds.
Watched with_nobody(const std::vector<Command>& commands, bool rounds) {
  RecordedEngine engine;
  Watched seen;
  for (Command command : commands) {
    if (auto* generate = std::get_if<Generate>(&command)) generate->rounds = rounds;
    engine.thread->post(std::move(command));
  }
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  bool finished = false;
  while (!finished && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(50ms);
    for (const Event& event : engine.thread->poll()) {
      if (const auto* delta = std::get_if<TextDelta>(&event)) seen.text += delta->text;
      seen.rounds += std::holds_alternative<RoundFinished>(event) ? 1 : 0;
      finished = finished || std::holds_alternative<ReplyFinished>(event);
    }
  }
  EXPECT_TRUE(finished);
  seen.calls = engine.take_calls();
  return seen;
}

size_t count(const std::vector<DeviceCall>& calls, DeviceCall::Kind kind) {
  return static_cast<size_t>(
      std::count_if(calls.begin(), calls.end(), [&](const DeviceCall& call) { return call.kind == kind; }));
}

void expect_same_calls(const Watched& watched, const Watched& unwatched) {
  for (const auto kind : {DeviceCall::Kind::run, DeviceCall::Kind::read, DeviceCall::Kind::write})
    EXPECT_EQ(count(watched.calls, kind), count(unwatched.calls, kind)) << "kind " << static_cast<int>(kind);
  EXPECT_TRUE(watched.calls == unwatched.calls) << "call by call, from the load to the end";
}

/// A device whose runs hang as long as it is told to.
class HangingDevice final : public ForwardingDevice {
 public:
  HangingDevice(std::unique_ptr<Device> inner, std::atomic<bool>& hangs, std::atomic<bool>& hung)
      : ForwardingDevice(std::move(inner)), hangs_(hangs), hung_(hung) {}
  bool run(Commands& commands, const std::stop_token& stop) override {
    const auto deadline = std::chrono::steady_clock::now() + kLongest;
    while (hangs_ && std::chrono::steady_clock::now() < deadline) {
      hung_ = true;
      std::this_thread::sleep_for(1ms);
    }
    return ForwardingDevice::run(commands, stop);
  }

 private:
  std::atomic<bool>&hangs_, &hung_;
};

// gui.md, criterion 21: as many frames as five seconds have, with all panels, while the engine stands still in the
// middle of a reply. The longest gap is printed, not judged, as it depends on the machine; a window that waited for the
// engine would draw none of them.
TEST(StalledEngine, TheWindowGoesOnAndTheReplyIsFinishedLater) {
  std::atomic<bool> hangs = false, hung = false;
  EngineBackend backend;
  backend.open_device = [&](const std::string&, uint32_t) -> std::unique_ptr<Device> {
    return std::make_unique<HangingDevice>(make_reference_device(), hangs, hung);
  };
  backend.list_devices = [] { return std::vector<DeviceChoice>{{"0", "Reference", "reference", true, ""}}; };
  EngineThread engine(backend);
  Screen screen(engine);
  screen.app().run(app::OpenModel{(golden_folder() / "tiny-qwen3").string()});
  ASSERT_TRUE(screen.frames_until([&] { return screen.view().can_send(); }));
  screen.app().run(app::SendMessage{"def main():"});
  ASSERT_TRUE(screen.frames_until([&] { return screen.view().rounds.log->rounds() >= 3; }));
  hangs = true;
  ASSERT_TRUE(screen.frames_until([&] { return hung.load(); }));
  const size_t rounds = screen.view().rounds.log->rounds();
  constexpr int kFiveSeconds = 5 * 60;
  double longest = 0;
  for (int n = 0; n < kFiveSeconds; ++n) {
    const auto start = std::chrono::steady_clock::now();
    screen.frame();
    longest =
        std::max(longest, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_TRUE(screen.view().busy());
  EXPECT_LE(screen.view().rounds.log->rounds(), rounds + 1) << "the engine stood still meanwhile";
  std::printf("%d frames beside a stalled engine; the longest gap was %.1f ms\n", kFiveSeconds, longest);
  hangs = false;
  EXPECT_TRUE(screen.frames_until([&] { return screen.view().can_send(); }));
  ASSERT_NE(screen.view().last_reply(), nullptr);
  EXPECT_TRUE(screen.view().last_reply()->result.has_value());
}

// gui.md, criterion 28
TEST(DeviceCalls, AWindowThatShowsEveryRoundAddsNoneToAReply) {
  for (const float temperature : {0.5f, 0.0f}) {
    const Watched watched = with_the_window(temperature);
    ASSERT_GE(watched.rounds, 5u);
    ASSERT_FALSE(watched.text.empty());
    expect_same_calls(watched, with_nobody(watched.commands, true));
    // What cards show of the target's probabilities is computed and read with the pass, without another call.
    const Watched unwatched = with_nobody(watched.commands, false);
    EXPECT_EQ(unwatched.rounds, 0u);
    EXPECT_EQ(unwatched.text, watched.text);
    for (const auto kind : {DeviceCall::Kind::run, DeviceCall::Kind::read, DeviceCall::Kind::write})
      EXPECT_EQ(count(watched.calls, kind), count(unwatched.calls, kind)) << "kind " << static_cast<int>(kind);
    EXPECT_FALSE(watched.calls == unwatched.calls) << "with more bytes";
  }
}

}  // namespace
}  // namespace canopy::test
