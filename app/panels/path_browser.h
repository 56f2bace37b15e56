#pragma once

#include <optional>
#include <string>

#include "app/models/folder_list.h"

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
  bool opening_ = false, closing_ = false, focus_list_ = false;
  PathFilter wanted_ = PathFilter::models;  // what may be chosen
  bool all_ = false;                        // shows all files
  FolderList list_;
  std::string path_, problem_;
};

}  // namespace canopy::app
