#pragma once
// Dialogs over the window: the browser for files and folders, "Report this device", "Share", a device of one's own,
// "An engine elsewhere" and "Serve".

#include <optional>
#include <string>

#include "app/state/model_finder.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// A window to choose a file or a folder, for systems without a dialog of their own: a box for a path, and below it
/// folders and files by mouse and keyboard. Paths that lead nowhere are reported in it, and it stays open.
class PathBrowser {
 public:
  /// Opens it with the next draw(). title: also the id of the window. start: a file or folder to begin at; the home
  /// folder where it is empty or not there.
  void open(const char* title, PathFilter filter, const std::string& start);
  bool is_open() const { return title_ != nullptr; }
  /// Closes it with the next draw().
  void close() { closing_ = true; }

  /// Draws it while it is open. The path that was chosen, once; then it is closed.
  std::optional<std::string> draw();

  const FolderList& list() const { return list_; }

 private:
  void enter(const std::string& folder);
  std::optional<std::string> choose();
  bool draw_path(float width);
  bool draw_entries(float width, float height);
  std::optional<std::string> draw_contents(float width);

  const char* title_ = nullptr;  // null while it is closed
  bool opening_ = false, closing_ = false, focus_list_ = false, focus_path_ = false;
  PathFilter wanted_ = PathFilter::models;  // what may be chosen
  bool all_ = false;                        // shows all files
  FolderList list_;
  std::string path_, problem_;
};

// "Report this device": the box that measures the device, shows what was found and saves it as a file to send.

class ReportBox {
 public:
  /// Draws the box while ReportState::box_shown is set. It may be closed while it measures, and opened again.
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  void draw_measuring(const ViewModel& view, CommandSink& sink, float width);
  void draw_start(const ViewModel& view, CommandSink& sink, float width);
  void draw_saving(const ViewModel& view, CommandSink& sink, float width);
  void suggest(const ViewModel& view);

  std::string path_, suggested_;
  bool open_ = false;
};

// "Share": the box that makes a file for others of the shown round or of the whole recording.

class ShareBox {
 public:
  /// Draws the box while ShareState::box_shown is set. It may be closed while a file is made, and opened again.
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  void draw_kinds(const ViewModel& view, CommandSink& sink, float width);
  void draw_saving(const ViewModel& view, CommandSink& sink, float width);
  void suggest(const ViewModel& view);

  std::string path_, suggested_;
  bool open_ = false;
};

// A device of the user's own for "What if": its name and the three figures that decide most.

class OwnDeviceBox {
 public:
  /// Draws the box while WhatIfState::describing is set.
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  void draw_known(const ViewModel& view, CommandSink& sink, float width);
  void draw_form(const ViewModel& view, CommandSink& sink, float width);

  std::string name_, gb_s_, tflops_, dispatch_us_, problem_;
  bool open_ = false;
};

// "An engine elsewhere": its address and key.

class EngineBox {
 public:
  /// Draws the box while ModelsState::engine_box_shown is set.
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  std::string address_, key_;
  bool open_ = false;
};

// "Serve": switches the server of the loaded model on and off, with its settings.

class ServeBox {
 public:
  /// Draws the box while ServedState::box_shown is set.
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  void draw_on(const ViewModel& view, CommandSink& sink, float width);
  void draw_form(const ViewModel& view, CommandSink& sink, float width);

  std::string host_, port_, key_, hosts_, origins_, problem_;
  bool open_ = false;
};

}  // namespace canopy::app
