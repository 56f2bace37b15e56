#include "app/cli/trace_share.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <system_error>

#include "app/base/number_options.h"
#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/rounds/trace_log.h"
#include "app/share/animation.h"
#include "app/share/recording_page.h"
#include "app/share/round_picture.h"
#include "engine/base/atomic_file.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"

namespace canopy::cli {
namespace {

std::optional<app::ThemeKind> theme_named(const std::string& name) {
  for (const app::ThemeKind kind : {app::ThemeKind::dark, app::ThemeKind::light, app::ThemeKind::projector})
    if (name == app::to_string(kind)) return kind;
  return std::nullopt;
}

app::PictureSize size_of(const std::string& words) {
  app::PictureSize size;
  const char* const end = words.data() + words.size();
  const auto [after_width, bad_width] = std::from_chars(words.data(), end, size.width);
  if (bad_width == std::errc() && after_width != end && *after_width == 'x') {
    const auto [after, bad] = std::from_chars(after_width + 1, end, size.height);
    if (bad == std::errc() && after == end) return size;
  }
  throw UsageError("--size is " + quoted_name(words) + "; it must be like 1280x720.");
}

void write(const std::string& target, const std::function<std::string()>& content) {
  if (target.empty()) return;
  write_file_atomically(target, content());
  note("Written: " + shown(target));
}

}  // namespace

void add_share_options(CLI::App& command, ShareChoice& choice) {
  const char* const group = "Pictures";
  command.add_option("--html", choice.html, "Write the recording as a web page that needs nothing else")->group(group);
  command.add_option("--animation", choice.animation, "Write some rounds as an SVG picture that moves")->group(group);
  command
      .add_option("--rounds", choice.rounds,
                  "Rounds of the page (default: all from --round on) or the animation (default: 10)")
      ->transform(app::numbers<uint64_t>(1, UINT64_MAX))
      ->group(group);
  command.add_option("--svg", choice.svg, "Write a round as an SVG picture")->group(group);
  command.add_option("--png", choice.png, "Write a round as a PNG picture")->group(group);
  command
      .add_option("--theme", choice.theme,
                  "dark, light or projector (default: dark; an SVG file has dark and light and follows its reader)")
      ->check(CLI::IsMember({"dark", "light", "projector"}))
      ->group(group);
  command.add_option("--size", choice.size, "Width and height of a picture")->capture_default_str()->group(group);
  command.add_option("--scale", choice.scale, "Pixels of a PNG for each of its size: 2 for fine screens")
      ->transform(app::numbers(0.25, 8.0))
      ->capture_default_str()
      ->group(group);
}

void share_trace(const std::string& trace, const ShareChoice& choice, std::optional<uint64_t> round) {
  const app::PictureSize size = size_of(choice.size);
  const std::optional<app::ThemeKind> theme = theme_named(choice.theme);
  const app::ThemeKind one_theme = theme.value_or(app::ThemeKind::dark);
  const auto scale = static_cast<float>(choice.scale);
  const bool pictures = !choice.svg.empty() || !choice.png.empty();
  if (!round && pictures) throw UsageError("A picture is of one round: name it with --round, counted from 0.");
  if (!choice.animation.empty() && std::filesystem::path(choice.animation).extension() != ".svg")
    throw UsageError("--animation is " + quoted_name(choice.animation) + "; its name must end in .svg.");
  const auto log = std::make_shared<const app::TraceLog>(trace);
  const app::SharedRun run = app::run_of(log);
  write(choice.html, [&] {
    return app::recording_page(run,
                               app::round_range(log->rounds(), round.value_or(0), choice.rounds, app::kMostPageRounds));
  });
  write(choice.svg, [&] { return app::round_svg(*log, *round, theme, size); });
  write(choice.png, [&] { return app::round_png(*log, *round, one_theme, size, scale); });
  write(choice.animation, [&] {
    const size_t first = round.value_or(0), left = first < log->rounds() ? log->rounds() - first : 0;
    const auto range = app::round_range(
        log->rounds(), first, choice.rounds.value_or(std::min(left, app::kAnimatedRounds)), app::kMostAnimatedRounds);
    return app::animated_svg(run, range, theme, size);
  });
}

}  // namespace canopy::cli
