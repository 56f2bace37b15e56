#pragma once
// Dear ImGui's Test Engine with the settings of all tests, and functions in place of a renderer.

#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include <functional>

namespace canopy::test {

/// Starts it for the current context, which must exist until ImGuiTestEngine_Stop.
ImGuiTestEngine* start_test_engine();

/// Runs actions as a user would, drawing with `frame` meanwhile and once at the end; true when every check passed.
bool run_test(ImGuiTestEngine* engine, std::function<void(ImGuiTestContext*)> actions,
              const std::function<void()>& frame);

/// Call after each ImGui::Render(): accepts every texture request.
void accept_textures();
/// Call before the context is destroyed.
void drop_textures();

/// Lays out one frame of the application without showing it.
template <class App>
void lay_out_frame(App& app) {
  ImGui::GetIO().DeltaTime = 1.0f / 60;
  app.pump();
  app.prepare_frame();
  ImGui::NewFrame();
  app.draw();
  ImGui::Render();
  accept_textures();
}

}  // namespace canopy::test
