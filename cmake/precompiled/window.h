// Headers that the folders of panels include in nearly every file (cmake/CanopyFastBuild.cmake). Each file still
// includes what it uses.
#pragma once

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "app/ui/panel.h"
#include "app/ui/widgets.h"
