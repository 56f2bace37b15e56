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

}  // namespace canopy::test
