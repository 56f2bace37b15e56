// The whole application: a window, the engine's own thread on a Vulkan device, the default model and the drafter that
// comes with Canopy. CANOPY_CLI names the command line, which must write the same text; CANOPY_PICTURES=folder keeps a
// picture of the window.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/app.h"
#include "app/platform/desktop_window.h"
#include "app/run.h"
#include "engine/session/engine_thread.h"
#include "tests/app/support/test_engine.h"
#include "tests/app/support/tooltip_text.h"
#include "tests/base/default_model.h"

namespace canopy::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLongest = std::chrono::minutes(4);  // for a load or a reply, on a busy machine
constexpr uint32_t kTokens = 12;
constexpr const char* kQuestion = "What is the capital of France?";

app::AppOptions options() {
  app::AppOptions options;
  options.width = 1600;
  options.height = 1000;
  options.system_fonts = false;
  options.validate = true;
  options.max_tokens = kTokens;
  options.sampling.seed = 5;  // sampled, not greedy, so that the text depends on all probabilities
  return options;
}

/// The window with the real engine, used through Dear ImGui's Test Engine.
class Application {
 public:
  Application() : engine_(make_engine()), window_(std::make_unique<app::DesktopWindow>(options())) {
    app_ = std::make_unique<app::App>(*engine_, app::settings_from(options()));
    window_->start_drawing();
    engine_->set_wake([] { app::DesktopWindow::wake(); });
    tests_ = start_test_engine();
  }
  ~Application() {
    engine_->set_wake({});
    ImGuiTestEngine_Stop(tests_);
    app_.reset();
    window_.reset();
    ImGuiTestEngine_DestroyContext(tests_);
  }
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  app::App& app() { return *app_; }
  const app::ViewModel& view() const { return app_->view(); }
  const app::DesktopWindow& window() const { return *window_; }

  bool run(std::function<void(ImGuiTestContext*)> actions) {
    return run_test(tests_, std::move(actions), [this] { frame(); });
  }

  /// Draws frames until the condition holds. False if it does not within kLongest.
  bool wait(ImGuiTestContext* ctx, const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + kLongest;
    while (!condition() && Clock::now() < deadline) ctx->Yield();
    return condition();
  }

  /// Writes the next frame to this file.
  void keep_picture(const std::filesystem::path& file) { shot_ = file.string(); }

 private:
  void frame() {
    // The engine computes on the same processor: draw only a few frames while it does.
    window_->wait_events(app_->engine_busy() ? 0.25 : 0.001);
    window_->take_input();
    app_->pump();
    app_->set_content_scale(window_->content_scale());
    app_->set_window_size(window_->width_at_100(), window_->height_at_100());
    app_->prepare_frame();
    window_->begin_frame();
    app_->draw();
    window_->end_frame(app_->background(), std::exchange(shot_, ""));
    ImGuiTestEngine_PostSwap(tests_);
  }

  std::unique_ptr<EngineClient> engine_;
  std::unique_ptr<app::DesktopWindow> window_;
  std::unique_ptr<app::App> app_;
  ImGuiTestEngine* tests_ = nullptr;
  std::string shot_;
};

/// The text that the command line writes by plain decoding with the window's settings.
std::string plain_text(const std::filesystem::path& model, const std::string& cli) {
  const SamplingSettings sampling = options().sampling;
  const nlohmann::json number[] = {sampling.temperature, sampling.top_p, sampling.min_p};
  std::string command = "'" + cli + "' generate --mode ar --json --model '" + model.string() + "' --prompt '" +
                        kQuestion + "' --max-tokens " + std::to_string(kTokens) + " --seed " +
                        std::to_string(sampling.seed) + " --top-k " + std::to_string(sampling.top_k) +
                        " --temperature " + number[0].dump() + " --top-p " + number[1].dump() + " --min-p " +
                        number[2].dump() + " --no-self-test 2> /dev/null";
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string out;
  std::array<char, 4096> piece;
  while (const size_t count = fread(piece.data(), 1, piece.size(), pipe)) out.append(piece.data(), count);
  EXPECT_EQ(pclose(pipe), 0) << command;
  const auto json = nlohmann::json::parse(out, nullptr, false);
  return json.is_object() ? json.value("text", "") : "";
}

/// Opens the model, asks the question in mode Tree and waits for the reply.
void ask(ImGuiTestContext* ctx, Application& application, const std::filesystem::path& model) {
  const app::ViewModel& view = application.view();
  application.app().run(app::OpenModel{model.string()});
  IM_CHECK(application.wait(ctx, [&] { return view.can_send() || !view.cards.empty(); }));
  IM_CHECK(view.can_send());
  IM_CHECK(!view.model->drafter.empty());
  IM_CHECK(!ctx->ItemExists("//Watch tree/Show slowly"));  // no round yet

  application.app().run(app::SetDrafting{DecodeMode::tree});
  ctx->ItemClick("//Watch chat/##message");
  ctx->KeyChars(kQuestion);
  ctx->KeyPress(ImGuiKey_Enter);
  ctx->Yield(2);
  IM_CHECK(application.wait(ctx, [&] { return !view.busy(); }));

  const app::Message* const message = view.last_reply();
  IM_CHECK(message != nullptr && message->result);
  IM_CHECK(message->result->mode == DecodeMode::tree);
  IM_CHECK_EQ(message->result->reply_tokens, kTokens);
  IM_CHECK(ctx->ItemExists("//Watch tree/Show slowly"));
}

/// Index of the first round of the log that has a draft; the number of rounds when none has.
size_t first_drafted(const app::RoundLog& log) {
  size_t round = 0;
  while (round < log.rounds() && log.summary(round).width <= 1) ++round;
  return round;
}

/// Checks that the panels show the rounds: a tree, and statistics over all rounds.
void look_at_the_rounds(ImGuiTestContext* ctx, Application& application) {
  const app::RoundsState& state = application.view().rounds;
  const size_t rounds = state.log->rounds();
  IM_CHECK_GT(rounds, size_t{1});
  IM_CHECK_LT(rounds, size_t{kTokens});  // some drafted tokens were accepted
  IM_CHECK_GT(state.log->statistics().tau(), 1.0);
  const size_t drafted = first_drafted(*state.log);
  IM_CHECK_LT(drafted, rounds);
  application.app().run(app::ShellCommand(app::ShowPanel{"Live", true}));
  ctx->Yield(4);
  IM_CHECK(contains(tooltip_of(ctx, "//Live/**/Tokens per pass"), "over " + std::to_string(rounds) + " passes"));
  application.app().run(app::RoundsCommand(app::ShowRound{drafted}));
  ctx->Yield(2);
  const auto shown = state.shown();
  IM_CHECK(shown != nullptr);
  IM_CHECK_EQ(shown->nodes.size(), size_t{app::kShownBudget} + 1);
  IM_CHECK(ctx->ItemExists("//Tree/Find accepted"));
}

/// Runs the check against plain decoding by its button: the engine writes the reply once more without drafts.
void check_against_ar(ImGuiTestContext* ctx, Application& application) {
  const app::ArCheck& check = application.view().checks.check;
  application.app().run(app::CheckCommand(app::CheckAgainstAr{application.view().last_reply()->id}));
  IM_CHECK(application.wait(ctx, [&] { return check.phase != app::ArCheck::Phase::none && !check.running(); }));
  IM_CHECK_EQ(static_cast<int>(check.phase), static_cast<int>(app::ArCheck::Phase::same));
  IM_CHECK_EQ(check.plain.size(), size_t{kTokens});
  IM_CHECK(check.plain == check.expected);
}

void keep_picture(ImGuiTestContext* ctx, Application& application) {
  const char* const folder = std::getenv("CANOPY_PICTURES");
  if (folder == nullptr) return;
  ctx->MouseMoveToPos({800, 24});
  application.keep_picture(std::filesystem::path(folder) / "application.png");
  ctx->Yield(2);
}

TEST(Application, AnswersInTheWindowWithTheTextOfPlainDecoding) {
  if (!app::display_present()) GTEST_SKIP() << "there is no display; ctest starts this program under xvfb-run";
  const std::filesystem::path model = default_model();
  if (model.empty()) GTEST_SKIP() << "SmolLM2-135M-Instruct.Q4_1.gguf is not on this machine";
  const char* const cli = std::getenv("CANOPY_CLI");
  ASSERT_NE(cli, nullptr) << "CANOPY_CLI names canopy-cli";
  std::string reply;
  {
    Application application;
    const bool done = application.run([&](ImGuiTestContext* ctx) {
      ask(ctx, application, model);
      if (ctx->IsError()) return;
      reply = application.view().last_reply()->text;
      look_at_the_rounds(ctx, application);
      check_against_ar(ctx, application);
      if (ctx->IsError()) return;
      EXPECT_EQ(application.view().last_reply()->text, reply) << "the chat is left as it was";
      keep_picture(ctx, application);
    });
    EXPECT_TRUE(done);
    for (const app::Card& card : application.view().cards) ADD_FAILURE() << card.title << ": " << card.detail;
    for (const std::string& message : application.window().validation_messages()) ADD_FAILURE() << message;
  }
  EXPECT_FALSE(reply.empty());
  EXPECT_EQ(reply, plain_text(model, cli));
}

}  // namespace
}  // namespace canopy::test
