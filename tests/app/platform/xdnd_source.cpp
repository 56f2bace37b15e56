#include "tests/app/platform/xdnd_source.h"

#include <X11/Xatom.h>
#include <X11/Xlib.h>

#include <cctype>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace canopy::test {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);
constexpr auto kPause = std::chrono::milliseconds(20);
constexpr long kVersion = 5;

std::string uri_of(const std::string& path) {
  std::string uri = "file://";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '/' || c == '.' || c == '-' || c == '_') {
      uri += c;
      continue;
    }
    char escaped[4];
    std::snprintf(escaped, sizeof escaped, "%%%02X", byte);
    uri += escaped;
  }
  return uri + "\r\n";
}

class Source {
 public:
  explicit Source(Display* display)
      : display_(display),
        window_(XCreateSimpleWindow(display, DefaultRootWindow(display), 0, 0, 1, 1, 0, 0, 0)),
        uri_list_(atom("text/uri-list")) {}

  bool drop(const std::string& title, const std::string& uris) {
    const auto target = within_patience<Window>([&] { return find(DefaultRootWindow(display_), title); });
    if (!target) return false;
    XSetSelectionOwner(display_, atom("XdndSelection"), window_, CurrentTime);
    send(*target, "XdndEnter", kVersion << 24, static_cast<long>(uri_list_), 0, 0);
    send(*target, "XdndPosition", 0, 200L << 16 | 200L, CurrentTime, static_cast<long>(atom("XdndActionCopy")));
    if (!answered("XdndStatus", uris)) return false;
    send(*target, "XdndDrop", 0, CurrentTime, 0, 0);
    return answered("XdndFinished", uris);
  }

 private:
  Atom atom(const char* name) const { return XInternAtom(display_, name, False); }

  template <class T>
  std::optional<T> within_patience(const std::function<std::optional<T>()>& look) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      if (auto found = look()) return found;
      std::this_thread::sleep_for(kPause);
    }
    return std::nullopt;
  }

  std::optional<Window> find(Window from, const std::string& title) {
    char* name = nullptr;
    const bool named = XFetchName(display_, from, &name) && name;
    const bool found = named && title == name;
    if (named) XFree(name);
    if (found) return from;
    Window root = 0, parent = 0, *children = nullptr;
    unsigned count = 0;
    if (!XQueryTree(display_, from, &root, &parent, &children, &count)) return std::nullopt;
    std::optional<Window> below;
    for (unsigned i = 0; i < count && !below; ++i) below = find(children[i], title);
    if (children) XFree(children);
    return below;
  }

  void send(Window target, const char* type, long one, long two, long three, long four) {
    XEvent event = {};
    event.xclient.type = ClientMessage;
    event.xclient.window = target;
    event.xclient.message_type = atom(type);
    event.xclient.format = 32;
    const long data[] = {static_cast<long>(window_), one, two, three, four};
    for (int i = 0; i < 5; ++i) event.xclient.data.l[i] = data[i];
    XSendEvent(display_, target, False, NoEventMask, &event);
    XFlush(display_);
  }

  /// Waits for a message from the target; meanwhile sends the files when it asks for them.
  bool answered(const char* type, const std::string& uris) {
    return within_patience<bool>([&]() -> std::optional<bool> {
             while (XPending(display_)) {
               XEvent event;
               XNextEvent(display_, &event);
               if (event.type == SelectionRequest) hand_out(event.xselectionrequest, uris);
               if (event.type == ClientMessage && event.xclient.message_type == atom(type)) return true;
             }
             return std::nullopt;
           })
        .has_value();
  }

  void hand_out(const XSelectionRequestEvent& request, const std::string& uris) {
    XChangeProperty(display_, request.requestor, request.property, request.target, 8, PropModeReplace,
                    reinterpret_cast<const unsigned char*>(uris.data()), static_cast<int>(uris.size()));
    XEvent event = {};
    event.xselection.type = SelectionNotify;
    event.xselection.requestor = request.requestor;
    event.xselection.selection = request.selection;
    event.xselection.target = request.target;
    event.xselection.property = request.property;
    event.xselection.time = request.time;
    XSendEvent(display_, request.requestor, False, NoEventMask, &event);
    XFlush(display_);
  }

  Display* display_;
  Window window_;
  Atom uri_list_;
};

}  // namespace

bool drop_files(const std::string& title, const std::vector<std::string>& paths) {
  const std::unique_ptr<Display, int (*)(Display*)> display(XOpenDisplay(nullptr), XCloseDisplay);
  if (!display) return false;
  std::string uris;
  for (const std::string& path : paths) uris += uri_of(path);
  return Source(display.get()).drop(title, uris);
}

}  // namespace canopy::test
