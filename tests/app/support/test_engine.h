#pragma once
// Dear ImGui's Test Engine as all tests use it, and a stand-in for the renderer.

#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include <functional>

namespace canopy::test {

/// For the current context, which must live until ImGuiTestEngine_Stop.
ImGuiTestEngine* start_test_engine();

/// Runs actions as a user's, drawing with `frame` meanwhile and once more; true when every check in it held.
bool run_test(ImGuiTestEngine* engine, std::function<void(ImGuiTestContext*)> actions,
              const std::function<void()>& frame);

/// After each ImGui::Render(): accepts every texture request.
void accept_textures();
/// Before the context goes.
void drop_textures();

/// One frame of the application, laid out in full and shown nowhere.
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
