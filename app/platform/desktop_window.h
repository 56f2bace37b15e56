#pragma once
// The desktop: a window, its file dialog, and when to draw.

#include <imgui.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/platform/imgui_context.h"
#include "app/platform/vulkan.h"
#include "app/state/settings.h"

struct GLFWwindow;

namespace canopy::app {

/// Files that the user gave the window.
struct ChosenFiles {
  std::vector<std::string> paths;
  bool to_attach = false;  // chosen to go with the next question, whatever they are
};

constexpr int kDialogPollMilliseconds = 50;  // between looks at whether an open dialog is to close

/// The system's dialog for opening a model or choosing text files, on a thread of its own, so that the window goes on
/// drawing while it is open.
class FileDialog {
 public:
  /// Whether this system has dialogs: on Linux a program for them (zenity, kdialog, ...).
  static bool available();

  /// wake is called on the dialog's thread when the dialog closes.
  explicit FileDialog(std::function<void()> wake) : wake_(std::move(wake)) {}
  /// Closes an open dialog and waits for its thread.
  ~FileDialog();

  enum class Wanted { model, text };

  /// Opens the dialog unless it is open.
  void open(Wanted wanted);
  /// What was chosen since the last call.
  std::optional<ChosenFiles> take();

 private:
  /// Shows the dialog until a choice is made, which may be none, or closing_ is set.
  std::vector<std::string> ask(Wanted wanted) const;

  std::function<void()> wake_;
  std::mutex mutex_;
  std::optional<ChosenFiles> chosen_;
  std::atomic<bool> open_{false};
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

// Whether a frame would look like the one before: a software device then need not draw it.

/// A hash of all that decides how a frame looks: size, background, vertices, indices, clips and textures. Frames with
/// the same value look the same (but for a chance of 2^-64).
uint64_t drawn_hash(const ImDrawData& data, ImU32 clear);

/// Whether a texture has contents that were not uploaded yet, so that the frame must be drawn.
bool textures_wait(const ImDrawData& data);

// Decides when the window draws a frame. Nothing is drawn while nothing happens. On a software device, where drawing
// takes processor time from the engine, the distance between frames depends on their measured cost.

class FramePacer {
 public:
  /// All times are seconds of one steady clock.
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// Seconds after input at which a frame is drawn again, for tooltips: a little more than their delays
  /// (apply_style()).
  static constexpr double kRest = 0.5;

  explicit FramePacer(bool software_device) : software_(software_device) {}

  /// Call on input: the next frame is drawn at once.
  void on_input();
  /// Call when the pointer moved with no button held: a frame is due soon, as what lies under it may light up. On a
  /// software device such frames take at most a quarter of the processor.
  void on_pointer();
  /// Call on an event of the engine. generating: a load or a reply is in progress, so more events will follow.
  void on_engine_event(bool generating);
  /// Call with true while what is shown moves by itself, so that frames are drawn one after the other.
  void on_motion(bool moving) { moving_ = moving; }
  /// Call after a frame, with the time it began and its cost in seconds, device time included.
  void on_frame(double start, double cost);

  /// Seconds from `now` until the next frame; 0: draw now, kNever: wait for an event.
  double wait(double now) const;

  /// Least distance in seconds between the beginnings of two frames that the engine caused.
  double engine_interval() const;

 private:
  bool software_;
  bool generating_ = false;
  bool moving_ = false;
  int owed_ = 3;          // frames still to draw; Dear ImGui needs up to three until its layout is final
  bool input_ = true;     // the next frame is due to input
  bool pointer_ = false;  // the next frame is due to a move of the pointer
  double last_ = -kNever;
  double cost_ = 0;         // running mean, seconds
  double rested_ = kNever;  // time at which a tooltip is due after input
};

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

  /// Sets a function that draws a frame. Windows keeps the program within poll_events() or wait_events() while the user
  /// resizes the window, and calls it there; elsewhere it is not called.
  void set_redraw(std::function<void()> redraw) { redraw_ = std::move(redraw); }

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
  bool uncovered_ = true;    // what the window shows may be damaged
  uint64_t shown_hash_ = 0;  // of the frame that was presented last,
  int times_shown_ = 0;      // this often
  std::ofstream marks_;      // the numbers of presented frames; open where frames are marked
  std::function<void()> before_release_, redraw_;
  std::vector<std::string> dropped_;
  bool has_dialog_ = false;
  FileDialog dialog_;
};

}  // namespace canopy::app
