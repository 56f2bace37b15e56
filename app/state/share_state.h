#pragma once
// "Share": the box in which a round or a recording becomes a file for others. Pure: no disk and no thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace canopy::app {

enum class ShareKind : uint8_t {
  png,        // the shown round, in pixels
  svg,        // the shown round, as shapes
  page,       // all rounds of the recording or the reply, as a web page
  animation,  // ten rounds from the shown one on, as an SVG picture that moves
};
inline constexpr size_t kShareKinds = 4;

struct ShareState {
  bool box_shown = false;
  ShareKind kind = ShareKind::png;
  bool running = false;
  size_t done = 0, total = 0;  // steps; total 0: not known yet
  std::string saved;           // path of the last file; empty: there is none
  std::string problem;         // why it could not be made, as a sentence; else empty

  /// In [0, 1]; negative where it is not known.
  float fraction() const;
};

struct ShowShare {
  bool shown = true;
};
struct ChooseShare {
  ShareKind kind = ShareKind::png;
};
struct StartShare {
  ShareKind kind = ShareKind::png;
  std::string path;  // "~/" is the home folder; gets the ending of its kind
};
struct StopShare {};
using ShareCommand = std::variant<ShowShare, ChooseShare, StartShare, StopShare>;

/// What a command asks of the thread that makes files.
struct ShareWish {
  std::optional<StartShare> start = {};  // with the whole path
  bool stop = false;
};
/// Applies a command of the user. `possible`: there is a round to share.
ShareWish update(ShareState& state, const ShareCommand& command, bool possible);

/// Takes how far the file is, and how it ended.
void share_progress(ShareState& state, size_t done, size_t total);
void end_share(ShareState& state, const std::string& path, const std::string& problem);

/// ".png", ".svg" or ".html"
const char* ending_of(ShareKind kind);

/// A name to suggest: "canopy-round-12.png", "canopy-code.html". round: from 0; recording: path of the one that is
/// shown, empty for the engine's own rounds.
std::string share_name(ShareKind kind, size_t round, const std::string& recording);

}  // namespace canopy::app
