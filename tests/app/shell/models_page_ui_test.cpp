// The page "Models" and the first start without a model, as a user works with them, against a hub on this machine.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "app/shell/models_page.h"
#include "app/state/hub_fit.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/panel_context.h"
#include "tests/app/support/test_engine.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"
#include "tests/format/tiny_model.h"
#include "tests/hub/served_hub.h"

namespace canopy::test {
namespace {

app::ModelSearchResult models_of_others(const app::ModelSearchRequest& request, const std::stop_token&) {
  app::ModelSearchResult result;
  result.target = request.target;
  app::FoundModel kept, broken, drafter;
  kept.path = "/ollama/blobs/sha256-1";
  kept.name = "llama3.2:3b";
  kept.bytes = 2'000'000'000;
  kept.source = "Ollama";
  kept.notes = {"a template of its own"};
  broken.name = "gone:latest";
  broken.source = "Ollama";
  broken.problem = "Its manifest names a file that is not there.";
  drafter.path = "/cache/drafter";
  drafter.name = "z-lab/Qwen3-8B-DFlash-b16";
  drafter.bytes = 1'000'000'000;
  drafter.source = "Hugging Face";
  drafter.drafter = true;
  result.found = {kept, broken, drafter};
  return result;
}

/// What the hub serves: a small model in two types, one that is gated, and one whose drafter is known.
void fill(ServedHub& hub) {
  const std::string model = tiny_gguf().build();
  hub.repos["some/Model-GGUF"] = {{"tiny-Q4_K_M.gguf", model},
                                  {"tiny-Q8_0.gguf", model + std::string(20'000, 'x')},
                                  {"mtp-a-head-for-further-tokens.gguf", "a head"}};
  hub.repos["someone/Qwen3-8B-GGUF"] = {{"Qwen3-8B-Q4_K_M.gguf", model}};
  hub.repos["z-lab/Qwen3-8B-DFlash-b16"] = {{"config.json", "{}"}, {"model.safetensors", "no weights"}};
  hub.refused["gated/A-Model"] = {403, "GatedRepo"};
  hub.found = {{{"id", "some/Model-GGUF"}, {"downloads", 1'234'567}, {"tags", {"gguf", "license:apache-2.0"}}},
               {{"id", "gated/A-Model-With-A-Rather-Long-Name-That-Goes-On-And-On-Instruct-2507-GGUF"},
                {"downloads", 12},
                {"gated", "manual"},
                {"tags", {"license:a-licence-of-its-own"}}}};
}

ImGuiWindow* body_of_page() {
  for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive && std::string_view(window->Name).find("/Models body") != std::string_view::npos)
      return window;
  return nullptr;
}

class ModelsPageUi : public testing::Test {
 protected:
  ModelsPageUi() { fill(hub_); }
  app::AppSettings settings() {
    app::AppSettings settings;
    settings.model_lister = models_of_others;
    settings.hub = [this] { return app::HubPlace{hub_.settings(folder_.path() / "cache"), ServedHub::limits()}; };
    return settings;
  }
  static bool wait_for(ImGuiTestContext* ctx, const std::function<bool()>& so) {
    for (int i = 0; i < 2000 && !so(); ++i) {  // other threads work by the clock, which frames of a test do not follow
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ctx->SleepNoSkip(0.01f, 0.01f);
    }
    ctx->Yield(2);
    return so();
  }
  static void search(ImGuiTestContext* ctx, const char* words) {
    IM_CHECK(ImGui::GetIO().WantTextInput);  // the page opens with the keyboard in its box
    ctx->KeyCharsAppendEnter(words);
    ctx->Yield(2);
  }

  TempFolder folder_;
  ServedHub hub_;
};

TEST_F(ModelsPageUi, SearchesLooksInsideFetchesAndOpens) {
  UiHarness ui(settings());
  const auto hub = [&]() -> const app::HubState& { return ui.view().hub; };
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_O);
    ctx->Yield(3);
    IM_CHECK(ui.view().shell.page == app::WindowPage::models);
    IM_CHECK(wait_for(ctx, [&] { return !hub().pairs.empty(); }));
    IM_CHECK(hub_.asked().empty());
    search(ctx, "tiny");
    IM_CHECK(wait_for(ctx, [&] { return hub().searched; }));
    IM_CHECK_EQ(hub().found.size(), 2u);
    ctx->ItemClick("//Models/**/Look inside");
    IM_CHECK(wait_for(ctx, [&] { return hub().contents && !hub().contents->weighing; }));
    {
      const DrawnTexts drawn;
      ctx->Yield();
      IM_CHECK(drawn.any_contains("Q4_K_M"));
      IM_CHECK(drawn.any_contains("GB: fits"));
      IM_CHECK(!drawn.any_contains("mmproj"));
    }
    ctx->ItemClick("//Models/**/Fetch");
    IM_CHECK(wait_for(ctx, [&] { return !hub().downloads.empty() && !hub().downloading(); }));
    IM_CHECK_STR_EQ(hub().downloads[0].problem.c_str(), "");
    IM_CHECK(ctx->ItemExists("//Models/**/Off the list"));
    ctx->ItemClick("//Models/**/Open fetched");
    ctx->Yield(3);
    IM_CHECK(ui.view().shell.page == app::WindowPage::rounds);
  }));
  EXPECT_EQ(ui.engine().last<LoadModel>().path, hub().downloads.at(0).path);
  EXPECT_TRUE(std::filesystem::exists(hub().downloads.at(0).path));
}

TEST_F(ModelsPageUi, AStoppedDownloadGoesOn) {
  UiHarness ui(settings());
  const auto hub = [&]() -> const app::HubState& { return ui.view().hub; };
  hub_.hold_after(3);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::ShellCommand(app::ShowPage{app::WindowPage::models}));
    ui.app().run(app::HubCommand(app::FetchModel{"some/Model-GGUF:Q8_0", ""}));
    IM_CHECK(wait_for(ctx, [&] { return hub().downloads[0].progress.done > 0; }));
    ctx->ItemClick("//Models/**/Stop download");
    ctx->Yield(2);
    IM_CHECK(!hub().downloading());
    hub_.release();
    ctx->ItemClick("//Models/**/Go on");
    IM_CHECK(wait_for(ctx, [&] { return hub().downloads[0].phase == app::HubDownload::Phase::there; }));
    ctx->ItemClick("//Models/**/Off the list");
    ctx->Yield(2);
    IM_CHECK(hub().downloads.empty());
  }));
  EXPECT_EQ(hub_.count("tiny-Q8_0.gguf bytes=0-"), 1u);
}

TEST_F(ModelsPageUi, AModelIsFetchedAndOpenedWithItsDrafter) {
  UiHarness ui(settings());
  const auto hub = [&]() -> const app::HubState& { return ui.view().hub; };
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::ShellCommand(app::ShowPage{app::WindowPage::models}));
    ui.app().run(app::HubCommand(app::LookIntoRepo{"someone/Qwen3-8B-GGUF"}));
    IM_CHECK(wait_for(ctx, [&] { return hub().contents && !hub().contents->weighing; }));
    ctx->ItemClick("//Models/**/Fetch with drafter");
    IM_CHECK(wait_for(ctx, [&] { return hub().downloads.size() == 2 && !hub().downloading(); }));
    for (const app::HubDownload& each : hub().downloads) IM_CHECK_STR_EQ(each.problem.c_str(), "");
    ctx->ItemClick("//Models/**/Open fetched");
    ctx->Yield(3);
  }));
  EXPECT_EQ(ui.engine().last<LoadModel>().path, hub().downloads.at(0).path);
  EXPECT_EQ(ui.engine().last<LoadModel>().drafter, hub().downloads.at(1).path);
}

TEST_F(ModelsPageUi, OpensWhatOtherProgramsKeepAndSaysWhatIsBroken) {
  UiHarness ui(settings(), 1280, 1000);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Top bar/Model");
    ctx->Yield(2);
    ctx->ItemClick("//$FOCUSED/Get models");
    IM_CHECK(wait_for(ctx, [&] { return ui.view().models.looked; }));
    IM_CHECK(ui.view().shell.page == app::WindowPage::models);
    // A wildcard finds only what is in view.
    ImGui::SetScrollY(body_of_page(), body_of_page()->ScrollMax.y);
    ctx->Yield(3);
    const DrawnTexts drawn;
    ctx->Yield();
    IM_CHECK(drawn.any_contains("kept by Ollama"));
    IM_CHECK(drawn.any_contains("a template of its own"));
    IM_CHECK(drawn.any_contains("not there"));
    ctx->ItemClick("//Models/**/Open here");
    ctx->Yield(2);
  }));
  EXPECT_EQ(ui.engine().last<LoadModel>().path, "/ollama/blobs/sha256-1");
  EXPECT_TRUE(hub_.asked().empty());
}

// Over the page as well, which it then leaves: as a model that is opened there does.
TEST(EngineBoxUi, OpensTheEngineAtTheAddressWithTheKey) {
  UiHarness ui;
  ui.engine().script = answers_with({});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_E);
    ctx->Yield(3);
    IM_CHECK(ui.view().models.engine_box_shown);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!ui.view().models.engine_box_shown);
    IM_CHECK_EQ(ui.engine().count<LoadModel>(), 0u);
    ui.app().run(app::ShellCommand(app::ShowPage{app::WindowPage::models}));
    ui.app().run(app::ModelsCommand(app::ShowEngineBox{}));
    ctx->Yield(3);
    // Each value ends with Enter, which opens where there is an address.
    ctx->ItemInputValue("//$FOCUSED/##engine key", "a-key-for-tests");
    IM_CHECK_EQ(ui.engine().count<LoadModel>(), 0u);
    ctx->ItemInputValue("//$FOCUSED/##engine address", "gpu-box:8737");
    ctx->Yield(3);
    IM_CHECK_EQ(ui.engine().count<LoadModel>(), 1u);
    const LoadModel load = ui.engine().last<LoadModel>();
    IM_CHECK_STR_EQ(load.path.c_str(), "http://gpu-box:8737");
    IM_CHECK_STR_EQ(load.key.c_str(), "a-key-for-tests");
    IM_CHECK(!ui.view().models.engine_box_shown);
    IM_CHECK(ui.view().shell.page == app::WindowPage::rounds);
  }));
}

TEST_F(ModelsPageUi, ErrorsAreSaidInThePage) {
  UiHarness ui(settings());
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::ShellCommand(app::ShowPage{app::WindowPage::models}));
    ui.app().run(app::HubCommand(app::LookIntoRepo{"gated/A-Model"}));
    IM_CHECK(wait_for(ctx, [&] { return !ui.view().hub.repo_problem.empty(); }));
    const DrawnTexts drawn;
    ctx->Yield();
    IM_CHECK(drawn.has("It cannot be looked into"));
    IM_CHECK(drawn.any_contains("gated"));
    ctx->ItemClick("//Models/**/Close the page");
    ctx->Yield(2);
    IM_CHECK(ui.view().shell.page == app::WindowPage::rounds);
  }));
}

TEST_F(ModelsPageUi, TheFirstStartOffersModelsAndWithoutANetworkTheDemo) {
  app::AppSettings first = settings();
  first.welcome = true;
  HubSettings nowhere = hub_.settings(folder_.path() / "cache");
  nowhere.endpoint = "http://127.0.0.1:1";
  first.hub = [nowhere] { return app::HubPlace{nowhere, ServedHub::limits()}; };
  UiHarness ui(first, 1600, 1200);
  ui.app().run(app::HubCommand(app::LookAtPairs{}));
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    IM_CHECK(wait_for(ctx, [&] { return !ui.view().hub.pairs.empty(); }));
    IM_CHECK(ctx->ItemExists("//Start/**/Fetch suiting pair"));
    IM_CHECK(ctx->ItemExists("//Start/**/Own file"));
    IM_CHECK(!ctx->ItemExists("//Start/**/Demo without network"));
    ctx->ItemClick("//Start/**/Fetch small model");
    IM_CHECK(wait_for(ctx, [&] { return ui.view().hub.unreachable; }));
    IM_CHECK(!ui.view().hub.downloading());
    ctx->ItemClick("//Start/**/Demo without network");
    ctx->Yield(3);
    IM_CHECK(ui.view().replaying());
  }));
}

// At every size: nothing leaves its window, and no text lies over another, wherever the page is scrolled to.
struct ModelsPageSize {
  float width, height, scale;
};

/// What the page shows at most: long names, all kinds of trouble, downloads in every phase.
app::ViewModel full_page() {
  using Phase = app::HubDownload::Phase;
  app::ViewModel view;
  view.devices = some_devices();
  app::HubState& hub = view.hub;
  hub.folder = "/nowhere/somebody/.cache/huggingface/hub";
  hub.free_bytes = 123'456'789'012;
  for (const KnownPair& pair : known_pairs()) hub.pairs.push_back(app::weigh_pair(pair, app::hub_here(view)));
  const std::string name = "somebody/A-Model-With-A-Rather-Long-Name-That-Goes-On-And-On-Instruct-2507-GGUF:UD-Q4_K_XL";
  const DownloadProgress progress{"a.gguf", 1'234'567'890, 23'456'789'012, 123'456'789, 3725.0, ""};
  DownloadProgress waiting = progress;
  waiting.waiting = "The server is busy; trying again in 4 min 12 s";
  const std::string problem =
      "somebody/A-Model is gated or forbidden (status 403): accept its terms at "
      "https://huggingface.co/somebody/A-Model, "
      "and set HF_TOKEN to a token of an account that may read it.";
  hub.downloads = {{1, name, "z-lab/Qwen3-8B-DFlash-b16", Phase::runs, progress, "", ""},
                   {2, name + "2", "", Phase::runs, waiting, "", ""},
                   {3, "a/b:Q8_0", "", Phase::waits, {}, "", ""},
                   {4, "a/c:Q8_0", "a/d", Phase::stopped, progress, "", ""},
                   {5, "a/d", "", Phase::there, progress, "", "/cache/d"},
                   {6, "a/e", "", Phase::there, progress, "", "/cache/e"},
                   {7, "a/f", "", Phase::failed, {}, problem, ""}};
  hub.searched = true;
  hub.words = "a long question with many words that nobody would ask of a hub, but somebody will";
  hub.found = {{"somebody/A-Model-With-A-Rather-Long-Name-That-Goes-On-And-On-Instruct-2507-GGUF", 1'234'567, 3,
                "a-licence-of-its-own", true, true},
               {"a/b", 0, 0, "", false, false}};
  view.models.looked = true;
  view.models.found = models_of_others({}, {}).found;
  return view;
}

app::HubContents full_repository(bool weighed) {
  app::HubContents contents;
  contents.licence = "apache-2.0";
  contents.weighing = !weighed;
  contents.pairs = pairs_for(known_pairs(), "Qwen/Qwen3-8B-GGUF");
  for (const char* label : {"UD-Q4_K_XL", "Q8_0", "a-file-that-names-no-quantization-at-all-and-is-long.gguf"}) {
    app::HubOffer offer{std::string("a/b:") + label, {label, label, {{label, 8'000'000'000, ""}}, ""}, 12'345'678, {}};
    if (weighed) offer.weight = {9'000'000'000, 94.5};
    contents.offers.push_back(offer);
  }
  contents.offers.back().variant.missing = "model-00002-of-00003.gguf";
  contents.heads = {{"mtp-a-head-for-further-tokens.gguf", 123'456'789, ""}};
  return contents;
}

/// Draws one panel in frames of its own, at a scale.
class ScaledPanel {
 public:
  ScaledPanel(app::Panel& panel, const ModelsPageSize& size)
      : context_(panel, size.width, size.height, app::ThemeKind::dark, size.scale) {
    ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
  }
  ScaledPanel(const ScaledPanel&) = delete;
  ScaledPanel& operator=(const ScaledPanel&) = delete;
  ~ScaledPanel() { drop_textures(); }
  app::ViewModel& view() { return context_.view; }
  void frames(int count) {
    for (int i = 0; i < count; ++i) {
      ImGui::GetIO().DeltaTime = 1.0f / 60;
      ImGui::NewFrame();
      context_.draw();
      ImGui::Render();
      accept_textures();
      context_.fold();
    }
  }
  void expect_whole(const char* what) {
    frames(3);
    for (const float place : {0.0f, 0.2f, 0.4f, 0.6f, 0.8f, 1.0f}) {
      if (ImGuiWindow* body = body_of_page()) ImGui::SetScrollY(body, std::floor(body->ScrollMax.y * place));
      frames(2);
      const DrawnTexts texts;
      frames(1);
      EXPECT_GT(texts.all().size(), 3u) << what;
      EXPECT_EQ(texts.cut(), std::vector<std::string>()) << what << " at " << place;
      EXPECT_EQ(texts.overlapping(), std::vector<std::string>()) << what << " at " << place;
    }
  }

 private:
  PanelContext context_;
};

class ModelsPages : public testing::TestWithParam<ModelsPageSize> {};

TEST_P(ModelsPages, NothingIsCutOrOverlaps) {
  app::ModelsPage page;
  ScaledPanel panel(page, GetParam());
  panel.view() = full_page();
  app::HubState& hub = panel.view().hub;
  panel.expect_whole("what was found");
  hub.searching = true;
  panel.expect_whole("a search");
  hub.searching = false;
  hub.search_problem = "The transfer from 'huggingface.co' failed: Could not resolve host: huggingface.co.";
  panel.expect_whole("no network");
  hub.repo = "somebody/A-Model-With-A-Rather-Long-Name-That-Goes-On-And-On-Instruct-2507-GGUF";
  hub.reading = true;
  panel.expect_whole("a repository is read");
  hub.reading = false;
  hub.contents = full_repository(false);
  panel.expect_whole("a repository before it is weighed");
  hub.contents = full_repository(true);
  panel.expect_whole("a repository");
  hub.contents.reset();
  hub.repo_problem = hub.downloads.back().problem;
  panel.expect_whole("a refusal");
  panel.view() = {};
  panel.expect_whole("nothing known yet");
}

/// What the start page shows where no model is here yet, alone.
class FirstModelsPanel final : public app::Panel {
 public:
  const char* name() const override { return "First models"; }
  void draw(const app::ViewModel& view, app::CommandSink& sink) override {
    app::draw_first_models(view, sink, ImGui::GetWindowSize().x);
  }
};

TEST_P(ModelsPages, TheFirstStartHasRoomForItsWords) {
  FirstModelsPanel first;
  ScaledPanel panel(first, GetParam());
  panel.view() = full_page();
  panel.view().hub.unreachable = true;
  panel.expect_whole("the first start");
}

INSTANTIATE_TEST_SUITE_P(, ModelsPages,
                         testing::Values(ModelsPageSize{480, 360, 1}, ModelsPageSize{640, 480, 1},
                                         ModelsPageSize{720, 540, 1.5f}, ModelsPageSize{960, 720, 2},
                                         ModelsPageSize{1280, 800, 1}, ModelsPageSize{1280, 800, 0.75f},
                                         ModelsPageSize{1920, 1080, 1.5f}, ModelsPageSize{2560, 1440, 1}));

}  // namespace
}  // namespace canopy::test
