#pragma once
// The dialog that exports the shown chat or imports one.

#include <cstdint>
#include <string>

#include "app/state/view_model.h"
#include "app/ui/dialogs.h"

namespace canopy::app {

/// The dialog that exports the shown chat or imports one; open while view.chat.files says so. A failure is shown in it,
/// and it stays open with the text that was typed.
class ChatFilesDialog {
 public:
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  void suggest(const ViewModel& view);
  void draw_export(const ViewModel& view, CommandSink& sink, float width);
  void draw_import(const ViewModel& view, CommandSink& sink, float width);
  void look_for_file();
  /// A text box for a path with a button that opens the browser for it. True when Enter was pressed in it.
  bool path_box(const char* id, std::string& path, PathFilter wanted, float width, bool focus = false);

  ChatFiles open_ = ChatFiles::closed;
  bool focus_ = false;  // give the first text box the keyboard
  ExportFormat format_ = ExportFormat::markdown;
  std::string folder_, name_, import_;
  std::string suggested_;   // name that was suggested, while the user has not changed it
  uint64_t named_for_ = 0;  // id of the first message of the chat that name_ was suggested for
  std::string looked_at_;   // the path that exists_ is about
  bool exists_ = false;     // there is a file at looked_at_
  PathBrowser browser_;
};

}  // namespace canopy::app
