// The window with its real engine on a machine whose NVIDIA driver is made up: ctest puts a library in its place, and
// there is no Vulkan device.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "app/app.h"
#include "app/platform/imgui_context.h"
#include "engine/session/engine_thread.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/test_engine.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

/// Frames are laid out completely and not shown.
class CudaWindow {
 public:
  explicit CudaWindow(EngineClient& engine) {
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {1600, 1000};
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    app::AppSettings settings;
    settings.system_fonts = false;
    settings.layout = app::WindowLayout::lab;
    app_ = std::make_unique<app::App>(engine, settings);
  }
  ~CudaWindow() {
    app_.reset();
    drop_textures();
  }
  app::App& app() { return *app_; }
  const app::ViewModel& view() const { return app_->view(); }

  /// Whether a frame says so within a minute.
  bool says(const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < deadline) {
      DrawnTexts texts;
      lay_out_frame(*app_);
      if (texts.any_contains(text)) return true;
    }
    return false;
  }

 private:
  app::ImguiContext context_;
  std::unique_ptr<app::App> app_;
};

TEST(CudaWindowTest, ListsTheGpuWithItsBackendAndOpensModelsOnIt) {
  const std::unique_ptr<EngineClient> engine = make_engine();
  {
    CudaWindow window(*engine);
    EXPECT_TRUE(window.says("Made-up GPU"));
    EXPECT_TRUE(window.says("CUDA 13.0"));
    ASSERT_EQ(window.view().devices.size(), 3u) << "the processor, and why Vulkan is not here";
    const DeviceChoice& device = window.view().devices[0];
    EXPECT_EQ(device.selector, "cuda:0");
    EXPECT_EQ(device.backend, "cuda");
    EXPECT_TRUE(device.usable) << device.reason;
    EXPECT_TRUE(device.preferred);
    window.app().run(app::OpenModel{(golden_folder() / "tiny-qwen3").string()});
    EXPECT_TRUE(window.says(" on Made-up GPU"));
    ASSERT_TRUE(window.view().model.has_value());
    EXPECT_EQ(window.view().model->backend, "cuda");
  }
}

}  // namespace
}  // namespace canopy::test
