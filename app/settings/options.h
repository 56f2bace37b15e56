#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "app/base/choices.h"
#include "engine/format/quantize_on_load.h"

namespace canopy::app {

inline constexpr uint32_t kMinSide = 320;   // pixels of the window
inline constexpr uint32_t kMaxSide = 8192;  // what every Vulkan device can draw is 4096; beyond it most can do this

struct AppOptions {
  std::string model;  // as given, or the default model's path
  bool model_given = false;
  std::string device;  // index, part of a name, or a type
  QuantizeOnLoad quantize = QuantizeOnLoad::none;
  std::string prompt;             // empty: none given
  std::string replay;             // a trace to show; empty: none
  std::optional<uint64_t> round;  // of it, counted from 0
  bool dump_json = false;         // write it to standard output instead
  bool offscreen = false;
  std::string shot;  // PNG path; empty: none
  uint32_t width = 1280, height = 800;
  float scale = 1.0f;
  ThemeKind theme = ThemeKind::dark;
  SamplingSettings sampling = chat_sampling();
  uint32_t max_tokens = 512;
  bool exit_after_reply = false;
  bool system_fonts = true;
  bool validate = false;
  // Which of the remembered values the command line overrules, and where they are; empty: nothing is remembered.
  bool size_given = false, scale_given = false, theme_given = false, sampling_given = false;
  std::string settings_file;
  std::string settings_problem;  // why nothing can be remembered, for the user
  bool keeps_chats = false;      // in the user's data folder
};

/// Reads the command line. Returns nullopt when the program is done already (help, version, or a wrong argument), with
/// the exit code in exit_code and everything to say written to the streams.
std::optional<AppOptions> parse_options(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
                                        int& exit_code);

/// "WxH" with both sides in kMinSide ... kMaxSide. Throws Error (bad_input).
void parse_size(const std::string& text, uint32_t& width, uint32_t& height);

/// Where the set-up puts the default model: the cache folder's models/SmolLM2-135M-Instruct.Q4_1.gguf.
std::string default_model_path();

}  // namespace canopy::app
