#pragma once
// Traces into the window: a file of the user's, or one of the recorded runs that come with Canopy.

#include <span>
#include <string>

namespace canopy::app {

struct ViewModel;

struct Demo {
  const char* title;   // "Code"
  const char* detail;  // what is written, in a few words
  const char* asset;   // of the assets folder
};

/// The recorded runs that come with Canopy.
std::span<const Demo> demos();

/// Shows a trace, paused on its first round. What is damaged becomes a warning; what cannot be opened a card, and what
/// was shown stays.
void open_trace(ViewModel& view, const std::string& path);

/// Plays a demo from its first round. One that is not there becomes a card.
void watch_demo(ViewModel& view, size_t demo);

}  // namespace canopy::app
