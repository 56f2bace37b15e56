#pragma once
// The interface of a panel, simple parts that several panels use, the cards of failures and warnings, and the panel
// with the messages of the program.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/process.h"
#include "app/state/view_model.h"
#include "app/ui/look.h"

namespace canopy::app {

/// A panel shows a part of the view model and posts commands; it never changes the state or calls the engine. Its
/// window has no padding and does not scroll; contents that may be too high scroll in a child window (PanelBody).
class Panel {
 public:
  virtual ~Panel() = default;

  /// Window title and id; the words on the tab of a docked panel.
  virtual const char* name() const = 0;

  /// Draws into the window, which the shell has begun.
  virtual void draw(const ViewModel& view, CommandSink& sink) = 0;
};

/// Whether a panel of Lab is open and in front of those that share its place, as the last frame had it.
bool in_front(const char* panel);

/// The contents of a panel as a child window that scrolls if needed; it ends when this object is destroyed.
class PanelBody {
 public:
  explicit PanelBody(const char* id, float padding_x = 16, float padding_y = 14);
  ~PanelBody();
  PanelBody(const PanelBody&) = delete;
  PanelBody& operator=(const PanelBody&) = delete;
};

/// Draws a sentence in the middle of the panel, for a panel that has nothing to show yet.
void empty_panel(std::string_view sentence);

/// Draws a card with a bar at its left: a title and wrapped text below it. Returns its height in pixels.
float bar_card(const char* id, float width, Colour bar, std::string_view title, const std::string& words,
               const std::string& more = {});

/// Draws one line with text at the left and a figure at the right; over the given width, or all of the available one.
void pair_line(float width, std::string_view left, std::string_view right, const std::string& tooltip_text = {});
void pair_line(std::string_view left, std::string_view right, const std::string& tooltip_text = {});

/// Draws the cards of failures and warnings at the cursor, `width` pixels wide, the newest last, each with its most
/// likely action first. They never block the window. Without cards it takes no height.
void draw_error_cards(const ViewModel& view, CommandSink& sink, float width);

/// The panel with the messages of the program, to read and to copy.
class LogPanel final : public Panel {
 public:
  explicit LogPanel(std::shared_ptr<MessageLog> log = MessageLog::of_process()) : log_(std::move(log)) {}

  const char* name() const override { return "Log"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  void draw_messages();

  std::shared_ptr<MessageLog> log_;
  uint64_t read_ = 0;  // MessageLog::count() when messages_ was read
  std::vector<MessageLog::Message> messages_;
};

}  // namespace canopy::app
