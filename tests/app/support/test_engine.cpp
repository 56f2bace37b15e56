#include "tests/app/support/test_engine.h"

#include <imgui.h>

#include <utility>

namespace canopy::test {

ImGuiTestEngine* start_test_engine() {
  ImGuiTestEngine* engine = ImGuiTestEngine_CreateContext();
  ImGuiTestEngineIO& io = ImGuiTestEngine_GetIO(engine);
  io.ConfigRunSpeed = ImGuiTestRunSpeed_Fast;
  io.ConfigVerboseLevel = ImGuiTestVerboseLevel_Silent;
  io.ConfigVerboseLevelOnError = ImGuiTestVerboseLevel_Info;
  io.ConfigLogToTTY = true;
  io.ConfigSavedSettings = false;
  io.ConfigNoThrottle = true;
  // Time in tests is counted in frames; ctest has the time limit.
  io.ConfigWatchdogWarning = io.ConfigWatchdogKillTest = 1e6f;
  ImGuiTestEngine_Start(engine, ImGui::GetCurrentContext());
  return engine;
}

bool run_test(ImGuiTestEngine* engine, std::function<void(ImGuiTestContext*)> actions,
              const std::function<void()>& frame) {
  ImGuiTest* test = ImGuiTestEngine_RegisterTest(engine, "canopy", "actions", __FILE__, __LINE__);
  test->TestFunc = std::move(actions);
  ImGuiTestEngine_QueueTest(engine, test);
  while (!ImGuiTestEngine_IsTestQueueEmpty(engine)) frame();
  const bool passed = test->Output.Status == ImGuiTestStatus_Success;
  frame();
  ImGuiTestEngine_UnregisterTest(engine, test);
  return passed;
}

void accept_textures() {
  for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
    if (texture->Status == ImTextureStatus_WantCreate) texture->SetTexID(1);
    if (texture->Status == ImTextureStatus_WantDestroy) {
      texture->SetTexID(ImTextureID_Invalid);
      texture->SetStatus(ImTextureStatus_Destroyed);
    } else {
      texture->SetStatus(ImTextureStatus_OK);
    }
  }
}

void drop_textures() {
  for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
    texture->SetTexID(ImTextureID_Invalid);
    texture->SetStatus(ImTextureStatus_Destroyed);
  }
}

}  // namespace canopy::test
