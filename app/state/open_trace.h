#pragma once
// Opens traces in the window: a file of the user, or one of the recorded runs that come with Canopy.

#include <span>
#include <string>

namespace canopy::app {

struct ViewModel;

struct Demo {
  const char* title;   // "Code"
  const char* detail;  // what the reply is about, in a few words
  const char* asset;   // file name in the assets folder
};

/// The recorded runs that come with Canopy.
std::span<const Demo> demos();

/// Shows a trace, paused at its first round. Damage becomes a warning. If the file cannot be opened, that becomes a
/// card, and what was shown stays.
void open_trace(ViewModel& view, const std::string& path);

/// Shows and plays a demo from its first round. A missing demo becomes a card.
void watch_demo(ViewModel& view, size_t demo);

}  // namespace canopy::app
