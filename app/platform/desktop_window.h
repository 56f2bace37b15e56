#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/gfx/ui_device.h"
#include "app/gfx/window_target.h"
#include "app/look/imgui_context.h"
#include "app/platform/file_dialog.h"
#include "app/settings/options.h"

struct GLFWwindow;

namespace canopy::app {

/// A GLFW window with a Dear ImGui context and the device that draws it. Only one at a time, on the main thread.
class DesktopWindow {
 public:
  /// Throws Error (unavailable) when there is no display or no device that can draw on it.
  explicit DesktopWindow(const AppOptions& options);
  ~DesktopWindow();
  DesktopWindow(const DesktopWindow&) = delete;
  DesktopWindow& operator=(const DesktopWindow&) = delete;

  /// Call once the context is configured, before the first frame.
  void start_drawing();

  bool should_close() const;
  /// False while the window is minimised or has no area.
  bool drawable() const;
  float content_scale() const;
  /// Size at 100%, in pixels of the design, whatever the display's density.
  uint32_t width_at_100() const;
  uint32_t height_at_100() const;
  bool software_device() const { return device_->is_software(); }
  const std::vector<std::string>& validation_messages() const { return device_->validation_messages(); }
  double seconds() const;

  /// Sleeps until an event comes or that many seconds have passed.
  void wait_events(double seconds);
  /// Takes the events that are there. Not inside the function of set_before_modifier_release().
  void poll_events();
  /// Whether there was input or a change of the window since the last call, but for the pointer moving with no button
  /// held.
  bool take_input();
  /// Whether the pointer moved with no button held since the last call.
  bool take_pointer_motion();
  /// Files that were dropped on the window or chosen in the dialog since the last call.
  std::optional<ChosenFiles> take_files();

  /// Sets a function to call before the release of Ctrl, Shift, Alt or Super is passed on. It should draw a frame: Dear
  /// ImGui takes all waiting events into one frame where it can, and a shortcut typed within one slow frame would
  /// otherwise be seen after its modifier was released.
  void set_before_modifier_release(std::function<void()> take_input) { before_release_ = std::move(take_input); }

  bool has_file_dialog() const { return has_dialog_; }
  void open_file_dialog(FileDialog::Wanted wanted) { dialog_.open(wanted); }

  void begin_frame();
  /// Draws and presents. If `shot` is not empty, writes the presented picture there as a PNG.
  void end_frame(ImU32 clear, const std::string& shot);

  /// Ends wait_events(). May be called from any thread.
  static void wake();

 private:
  void install_callbacks();
  bool looks_as_before(ImU32 clear);

  struct Library {  // GLFW; initialised before everything else here and terminated after it
    Library();
    ~Library();
  } library_;
  GLFWwindow* window_ = nullptr;
  struct WindowOwner {
    GLFWwindow*& window;
    ~WindowOwner();
  } owner_{window_};
  ImguiContext context_;
  std::unique_ptr<UiDevice> device_;
  std::unique_ptr<WindowTarget> target_;
  bool platform_ready_ = false;
  bool input_ = true, pointer_moved_ = false;
  bool uncovered_ = true;               // what the window shows may be damaged
  std::optional<uint64_t> shown_hash_;  // of the frame that it shows
  std::function<void()> before_release_;
  std::vector<std::string> dropped_;
  bool has_dialog_ = false;
  FileDialog dialog_;
};

}  // namespace canopy::app
