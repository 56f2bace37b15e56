#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "app/base/choices.h"
#include "engine/base/cache_type.h"
#include "engine/compute/backend.h"
#include "engine/format/quantize_on_load.h"

namespace canopy::app {

inline constexpr uint32_t kMinSide = 320;   // pixels of the window
inline constexpr uint32_t kMaxSide = 8192;  // pixels; every Vulkan device can draw 4096, most of them this much

struct AppOptions {
  std::string model;  // as given, or the default model's path
  bool model_given = false;
  std::string device;  // index, part of a name, or a type
  QuantizeOnLoad quantize = QuantizeOnLoad::none;
  CacheType kv = CacheType::f16;
  DeviceSettings settings;
  std::string prompt;             // empty: none
  std::string replay;             // path of a trace to show; empty: none
  std::optional<uint64_t> round;  // round of the trace, counted from 0
  bool dump_json = false;         // write the trace as JSON to standard output instead
  bool offscreen = false;
  std::string shot;  // PNG path; empty: none
  uint32_t width = 1280, height = 800;
  float scale = 1.0f;
  ThemeKind theme = ThemeKind::dark;
  WindowLayout layout = WindowLayout::watch;
  SamplingSettings sampling = chat_sampling();
  uint32_t max_tokens = kMaxTokens;
  bool exit_after_reply = false;
  bool system_fonts = true;
  bool validate = false;
  // Whether the command line gave values that replace the saved ones, and the path of the saved ones (empty: nothing is
  // saved).
  bool size_given = false, scale_given = false, theme_given = false, layout_given = false, sampling_given = false,
       max_tokens_given = false;
  std::string settings_file;
  std::string settings_problem;  // why settings cannot be saved, as a sentence for the user
  bool keeps_chats = false;      // chats are saved in the user's data folder
};

/// Reads the command line. Returns nullopt when the program should end (help, version or a wrong argument); exit_code
/// then has its exit code, and the text for the user is in the streams.
std::optional<AppOptions> parse_options(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
                                        int& exit_code);

/// "WxH" with both sides in kMinSide ... kMaxSide. Throws Error (bad_input).
void parse_size(const std::string& text, uint32_t& width, uint32_t& height);

/// The path where the set-up puts the default model: models/SmolLM2-135M-Instruct.Q4_1.gguf in the cache folder.
std::string default_model_path();

}  // namespace canopy::app
