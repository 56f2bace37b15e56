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

/// A GLFW window with a Dear ImGui context and the device that draws it. One at a time, on the main thread.
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
  /// Neither minimised nor of no size.
  bool drawable() const;
  float content_scale() const;
  /// Pixels of the design, whatever the display's density.
  uint32_t width_at_100() const;
  uint32_t height_at_100() const;
  bool software_device() const { return device_->is_software(); }
  const std::vector<std::string>& validation_messages() const { return device_->validation_messages(); }
  double seconds() const;

  /// Sleeps until an event or for the time, in seconds.
  void wait_events(double seconds);
  /// Whether the user or the system did something to the window since the last call.
  bool take_input();
  /// A file dropped on the window or chosen in the dialog since the last call.
  std::optional<std::string> take_path();

  /// Called before the release of Ctrl, Shift, Alt or Super is passed on. Dear ImGui takes as many events into one
  /// frame as it can; a shortcut typed within one slow frame would be seen with its modifier up already.
  void set_before_modifier_release(std::function<void()> take_input) { before_release_ = std::move(take_input); }

  bool has_file_dialog() const { return has_dialog_; }
  void open_file_dialog() { dialog_.open(); }

  void begin_frame();
  /// Draws and presents; writes a PNG of what is presented when shot is not empty.
  void end_frame(ImU32 clear, const std::string& shot);

  /// From any thread: ends wait_events().
  static void wake();

 private:
  void install_callbacks();

  struct Library {  // GLFW, initialised before and ended after everything else here
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
  bool input_ = true;
  std::function<void()> before_release_;
  std::optional<std::string> dropped_;
  bool has_dialog_ = false;
  FileDialog dialog_;
};

}  // namespace canopy::app
