#include "app/platform/desktop_window.h"

#ifndef _WIN32
#include <portable_file_dialogs.h>
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <imgui_impl_glfw.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/posix.h"

// Declared here, as GLFW declares it only together with Vulkan's prototypes, which are not used here.
extern "C" VkResult glfwCreateWindowSurface(VkInstance, GLFWwindow*, const VkAllocationCallbacks*, VkSurfaceKHR*);

namespace canopy::app {
#ifndef _WIN32  // windows_dialogs.cpp has the form of Windows

bool FileDialog::available() {
  return pfd::settings::available();
}

std::vector<std::string> FileDialog::ask(Wanted wanted) const {
  const bool text = wanted == Wanted::text;
  const std::vector<std::string> models = {"Models (GGUF, config.json)", "*.gguf config.json", "All files", "*"};
  const std::vector<std::string> all = {"All files", "*"};
  pfd::open_file dialog(text ? "Attach text files" : "Open model", "", text ? all : models,
                        text ? pfd::opt::multiselect : pfd::opt::none);
  while (!dialog.ready(kDialogPollMilliseconds)) {
    if (!closing_) continue;
    dialog.kill();
    return {};
  }
  return dialog.result();
}

#endif

FileDialog::~FileDialog() {
  closing_ = true;
  if (thread_.joinable()) thread_.join();
}

void FileDialog::open(Wanted wanted) {
  if (open_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  thread_ = std::thread([this, wanted] {
    const std::vector<std::string> paths = ask(wanted);
    if (!paths.empty()) {
      const std::lock_guard lock(mutex_);
      chosen_ = ChosenFiles{paths, wanted == Wanted::text};
    }
    open_ = false;
    if (!closing_) wake_();
  });
}

std::optional<ChosenFiles> FileDialog::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(chosen_, std::nullopt);
}

namespace {

/// Mixes eight bytes at a time: a tree of a thousand nodes has megabytes of vertices.
class Mixer {
 public:
  void word(uint64_t value) { hash_ = std::rotl((hash_ ^ value) * 0x9E3779B97F4A7C15u, 29); }
  void bytes(const void* data, size_t size) {
    const auto* at = static_cast<const std::byte*>(data);
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), at += sizeof(uint64_t)) {
      uint64_t value = 0;
      std::memcpy(&value, at, sizeof value);
      word(value);
    }
    uint64_t rest = size;
    std::memcpy(reinterpret_cast<std::byte*>(&rest) + 1, at, std::min<size_t>(size, 7));
    word(rest);
  }
  template <class T>
  void value(const T& each) {
    bytes(&each, sizeof each);
  }
  uint64_t result() const { return hash_ ^ (hash_ >> 31); }

 private:
  uint64_t hash_ = 0x2545F4914F6CDD1Du;
};

}  // namespace

uint64_t drawn_hash(const ImDrawData& data, ImU32 clear) {
  Mixer mix;
  mix.value(data.DisplayPos);
  mix.value(data.DisplaySize);
  mix.value(data.FramebufferScale);
  mix.word(clear);
  for (const ImDrawList* list : data.CmdLists) {
    mix.bytes(list->VtxBuffer.Data, static_cast<size_t>(list->VtxBuffer.size_in_bytes()));
    mix.bytes(list->IdxBuffer.Data, static_cast<size_t>(list->IdxBuffer.size_in_bytes()));
    for (const ImDrawCmd& command : list->CmdBuffer) {
      mix.value(command.ClipRect);
      mix.value(command.TexRef._TexData);
      mix.value(command.TexRef._TexID);
      mix.word((uint64_t{command.VtxOffset} << 32) | command.IdxOffset);
      mix.word(command.ElemCount);
    }
  }
  return mix.result();
}

bool textures_wait(const ImDrawData& data) {
  if (!data.Textures) return false;
  return std::ranges::any_of(*data.Textures,
                             [](const ImTextureData* each) { return each->Status != ImTextureStatus_OK; });
}

namespace {

constexpr int kSettle = 3;
constexpr double kMaxRate = 30;         // frames a second while the engine works
constexpr double kSoftwareShare = 0.1;  // share of the processor for drawing while the engine works
constexpr double kInputInterval = 1.0 / 60;
constexpr double kInputShare = 0.5;  // more after input, as that is short
constexpr double kPointerShare = 0.25;
constexpr int kPointerFrames = 2;  // what is pointed at is known after the first
constexpr double kMemory = 0.3;

}  // namespace

void FramePacer::on_input() {
  owed_ = kSettle;
  input_ = true;
}

void FramePacer::on_pointer() {
  owed_ = std::max(owed_, kPointerFrames);
  pointer_ = true;
}

void FramePacer::on_engine_event(bool generating) {
  generating_ = generating;
  // While more events follow, each brings a frame anyway. The last event gets all the frames the layout needs.
  owed_ = std::max(owed_, generating ? 1 : kSettle);
}

void FramePacer::on_frame(double start, double cost) {
  cost_ = cost_ == 0 ? cost : cost_ + kMemory * (cost - cost_);
  last_ = start;
  owed_ = std::max(0, owed_ - 1);
  if (input_ || pointer_) {
    rested_ = start + kRest;
  } else if (start >= rested_) {
    rested_ = kNever;
    owed_ = kSettle - 1;
  }
  input_ = pointer_ = false;
}

double FramePacer::engine_interval() const {
  const double by_rate = 1.0 / kMaxRate;
  return software_ ? std::max(by_rate, cost_ / kSoftwareShare) : by_rate;
}

double FramePacer::wait(double now) const {
  if (owed_ == 0 && !moving_) return rested_ == kNever ? kNever : std::max(0.0, rested_ - now);
  double interval = kInputInterval;
  if (software_ && (moving_ || (input_ && generating_))) interval = std::max(interval, cost_ / kInputShare);
  if (!input_ && generating_) interval = engine_interval();
  if (pointer_ && !input_) interval = software_ ? std::max(kInputInterval, cost_ / kPointerShare) : kInputInterval;
  return std::max(0.0, last_ + interval - now);
}

namespace {

std::string glfw_reason() {
  const char* text = nullptr;
  return glfwGetError(&text) != GLFW_NO_ERROR && text ? text : "no reason given";
}

/// Limits a saved size to this screen, as it may come from a larger one.
void fit_to_screen(int& width, int& height) {
  GLFWmonitor* monitor = glfwGetPrimaryMonitor();
  if (!monitor) return;
  int x = 0, y = 0, most_width = 0, most_height = 0;
  glfwGetMonitorWorkarea(monitor, &x, &y, &most_width, &most_height);
  if (most_width >= static_cast<int>(kMinSide)) width = std::min(width, most_width);
  if (most_height >= static_cast<int>(kMinSide)) height = std::min(height, most_height);
}

}  // namespace

DesktopWindow::Library::Library() {
  if (!glfwInit())
    throw Error(ErrorKind::unavailable,
                "No window can be opened here: " + glfw_reason() + ". Run with --offscreen to work without a display.");
}

DesktopWindow::Library::~Library() {
  glfwTerminate();
}

DesktopWindow::WindowOwner::~WindowOwner() {
  if (window) glfwDestroyWindow(window);
}

DesktopWindow::DesktopWindow(const AppOptions& options) : dialog_([] { DesktopWindow::wake(); }) {
  if (!glfwVulkanSupported())
    throw Error(ErrorKind::unavailable,
                std::string("The window needs a Vulkan driver that can draw on this display, and none is installed. ") +
                    kInstallVulkan);
  glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  // By these names desktops find the entry with the icon (packaging/canopy.desktop).
  glfwWindowHintString(GLFW_X11_CLASS_NAME, "canopy");
  glfwWindowHintString(GLFW_X11_INSTANCE_NAME, "canopy");
#ifdef GLFW_WAYLAND_APP_ID  // GLFW 3.4
  glfwWindowHintString(GLFW_WAYLAND_APP_ID, "canopy");
#endif
  int width = static_cast<int>(options.width), height = static_cast<int>(options.height);
  if (!options.size_given) fit_to_screen(width, height);
  window_ = glfwCreateWindow(width, height, "Canopy", nullptr, nullptr);
  if (!window_) throw Error(ErrorKind::unavailable, "The window could not be opened: " + glfw_reason() + ".");
  glfwSetWindowSizeLimits(window_, static_cast<int>(kMinSide), static_cast<int>(kMinSide), GLFW_DONT_CARE,
                          GLFW_DONT_CARE);
  uint32_t count = 0;
  const char** extensions = glfwGetRequiredInstanceExtensions(&count);
  UiDevice::Options device;
  device.instance_extensions.assign(extensions, extensions + count);
  device.validation = options.validate;
  device.make_surface = [this](VkInstance instance) {
    VkSurfaceKHR surface = VK_NULL_HANDLE;
    check(glfwCreateWindowSurface(instance, window_, nullptr, &surface), "Creating the window's surface");
    return surface;
  };
  device_ = std::make_unique<UiDevice>(device);
  has_dialog_ = FileDialog::available();
  install_callbacks();
}

void DesktopWindow::start_drawing() {
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  // Calls the callbacks that were installed before it.
  ImGui_ImplGlfw_InitForVulkan(window_, true);
  platform_ready_ = true;
  target_ =
      std::make_unique<WindowTarget>(*device_, VkExtent2D{static_cast<uint32_t>(width), static_cast<uint32_t>(height)});
  if (const char* file = std::getenv("CANOPY_FRAME_MARK"); file != nullptr && *file != '\0') {
    marks_.open(file);
    if (!marks_)
      throw bad_input(std::string("The file ") + file +
                      " that CANOPY_FRAME_MARK names for the numbers of shown frames cannot be written.");
    target_->mark_frames();
  }
}

DesktopWindow::~DesktopWindow() {
  target_.reset();
  if (platform_ready_) ImGui_ImplGlfw_Shutdown();
  device_.reset();  // before the window, as its surface belongs to the window
}

void DesktopWindow::install_callbacks() {
  glfwSetWindowUserPointer(window_, this);
  static constexpr auto self = [](GLFWwindow* w) { return static_cast<DesktopWindow*>(glfwGetWindowUserPointer(w)); };
  glfwSetCursorPosCallback(window_, [](GLFWwindow* w, double, double) {
    const auto held = [w](int each) { return glfwGetMouseButton(w, each) == GLFW_PRESS; };
    const bool drags = held(GLFW_MOUSE_BUTTON_LEFT) || held(GLFW_MOUSE_BUTTON_MIDDLE) || held(GLFW_MOUSE_BUTTON_RIGHT);
    (drags ? self(w)->input_ : self(w)->pointer_moved_) = true;
  });
  glfwSetMouseButtonCallback(window_, [](GLFWwindow* w, int, int, int) { self(w)->input_ = true; });
  glfwSetScrollCallback(window_, [](GLFWwindow* w, double, double) { self(w)->input_ = true; });
  // Called before the callback of Dear ImGui, which is called from it.
  glfwSetKeyCallback(window_, [](GLFWwindow* w, int key, int, int action, int) {
    self(w)->input_ = true;
    const bool modifier = key >= GLFW_KEY_LEFT_SHIFT && key <= GLFW_KEY_RIGHT_SUPER;
    if (modifier && action == GLFW_RELEASE && self(w)->before_release_) self(w)->before_release_();
  });
  glfwSetCharCallback(window_, [](GLFWwindow* w, unsigned) { self(w)->input_ = true; });
  glfwSetWindowFocusCallback(window_, [](GLFWwindow* w, int) { self(w)->input_ = true; });
  glfwSetCursorEnterCallback(window_, [](GLFWwindow* w, int) { self(w)->input_ = true; });
  glfwSetWindowRefreshCallback(window_, [](GLFWwindow* w) {
    self(w)->input_ = self(w)->uncovered_ = true;
#ifdef _WIN32
    if (self(w)->redraw_ && self(w)->drawable()) self(w)->redraw_();
#endif
  });
  glfwSetFramebufferSizeCallback(window_,
                                 [](GLFWwindow* w, int, int) { self(w)->input_ = self(w)->uncovered_ = true; });
  glfwSetWindowContentScaleCallback(window_, [](GLFWwindow* w, float, float) { self(w)->input_ = true; });
  glfwSetDropCallback(window_, [](GLFWwindow* w, int count, const char** paths) {
    auto& dropped = self(w)->dropped_;
    dropped.insert(dropped.end(), paths, paths + count);
  });
}

bool DesktopWindow::should_close() const {
  return glfwWindowShouldClose(window_);
}

bool DesktopWindow::drawable() const {
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  return width > 0 && height > 0 && !glfwGetWindowAttrib(window_, GLFW_ICONIFIED);
}

float DesktopWindow::content_scale() const {
  float x = 1, y = 1;
  glfwGetWindowContentScale(window_, &x, &y);
  return std::clamp(x, 0.5f, 4.0f);
}

uint32_t DesktopWindow::width_at_100() const {
  int width = 0;
  glfwGetFramebufferSize(window_, &width, nullptr);
  return static_cast<uint32_t>(std::lround(static_cast<float>(width) / content_scale()));
}

uint32_t DesktopWindow::height_at_100() const {
  int height = 0;
  glfwGetFramebufferSize(window_, nullptr, &height);
  return static_cast<uint32_t>(std::lround(static_cast<float>(height) / content_scale()));
}

double DesktopWindow::seconds() const {
  return glfwGetTime();
}

void DesktopWindow::wait_events(double seconds) {
  glfwWaitEventsTimeout(std::max(seconds, 1e-4));
}

void DesktopWindow::poll_events() {
  glfwPollEvents();
}

bool DesktopWindow::take_input() {
  return std::exchange(input_, false);
}

bool DesktopWindow::take_pointer_motion() {
  return std::exchange(pointer_moved_, false);
}

std::optional<ChosenFiles> DesktopWindow::take_files() {
  if (!dropped_.empty()) return ChosenFiles{std::exchange(dropped_, {}), false};
  return dialog_.take();
}

void DesktopWindow::begin_frame() {
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  target_->resize({static_cast<uint32_t>(width), static_cast<uint32_t>(height)});
  target_->new_frame();
  ImGui_ImplGlfw_NewFrame();
  ImGui::NewFrame();
}

/// Whether the frame is the one that the window shows already. On a software device drawing takes far longer than this
/// comparison; mouse moves that change nothing then cost next to nothing. Each look is presented twice before it counts
/// as shown: where the display kept an older picture for whatever reason, no later frame would come to replace it. (On
/// other devices the frames that follow each change are all drawn.)
bool DesktopWindow::looks_as_before(ImU32 clear) {
  constexpr int kPresentations = 2;
  if (!software_device()) return false;
  const ImDrawData& data = *ImGui::GetDrawData();
  const uint64_t hash = drawn_hash(data, clear);
  if (hash != shown_hash_ || textures_wait(data) || uncovered_ || target_->stale()) times_shown_ = 0;
  shown_hash_ = hash;
  uncovered_ = false;
  return times_shown_ >= kPresentations;
}

void DesktopWindow::end_frame(ImU32 clear, const std::string& shot) {
  ImGui::Render();
  if (shot.empty() && looks_as_before(clear)) return;
  std::optional<Image> picture;
  bool shown = target_->render(ImGui::GetDrawData(), clear, shot.empty() ? nullptr : &picture);
  if (!shown) shown = target_->render(ImGui::GetDrawData(), clear, shot.empty() ? nullptr : &picture);
  if (!shown) input_ = true;  // being resized: try again with the next frame
  times_shown_ = shown ? times_shown_ + 1 : 0;
  if (shown && marks_.is_open()) marks_ << target_->presented() << std::endl;
  // A software device draws on the processor: wait here, so that the pacer measures the full cost of a frame.
  if (software_device()) target_->wait();
  if (shot.empty()) return;
  if (!picture)
    throw Error(ErrorKind::unavailable,
                "This display does not let the window's picture be read back; use --offscreen.");
  write_png(*picture, shot);
}

void DesktopWindow::wake() {
  glfwPostEmptyEvent();
}

}  // namespace canopy::app
