// Compile-time configuration of Dear ImGui, seen by every file that includes imgui.h.
#pragma once

// Chat text holds emoji and CJK beyond the basic plane.
#define IMGUI_USE_WCHAR32

// So that Canopy's code does not use old names, which a later version of Dear ImGui removes.
#define IMGUI_DISABLE_OBSOLETE_FUNCTIONS

// Nothing shows its demonstration, which takes seconds to compile.
#define IMGUI_DISABLE_DEMO_WINDOWS

// Indices stay 16-bit: the Vulkan backend offsets vertices per command, and half the index traffic matters on a
// software device.

#ifdef CANOPY_IMGUI_TEST_ENGINE
#define IMGUI_TEST_ENGINE_ENABLE_COROUTINE_STDTHREAD_IMPL 1
#define IMGUI_TEST_ENGINE_ENABLE_STD_FUNCTION 1
#define IMGUI_TEST_ENGINE_ENABLE_CAPTURE 0  // screenshots come from the application's own off-screen path
#define IMGUI_TEST_ENGINE_ENABLE_IMPLOT 0
#include "imgui_te_imconfig.h"
#endif
