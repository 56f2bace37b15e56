#pragma once
// canopy-cli trace export: rounds as pictures, a recording as a page or an animation.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace canopy::cli {

struct ShareChoice {
  std::string svg, png, html, animation;  // files to write; empty: not asked for
  std::string theme;  // "dark", "light", "projector"; empty: both of the first two in an SVG file, else dark
  std::string size = "1280x720";
  double scale = 1;
  std::optional<uint64_t> rounds;  // of a page or an animation; none: as many as there are

  bool asked() const { return !svg.empty() || !png.empty() || !html.empty() || !animation.empty(); }
};

void add_share_options(CLI::App& command, ShareChoice& choice);

/// Writes the files that were asked for of a trace. Throws UsageError and bad_input.
void share_trace(const std::string& trace, const ShareChoice& choice, std::optional<uint64_t> round);

}  // namespace canopy::cli
