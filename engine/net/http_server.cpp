#include "engine/net/http_server.h"

#ifndef _WIN32
#include <arpa/inet.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/text.h"
#include "engine/net/sockets.h"

namespace canopy {

namespace {

using ServerClock = std::chrono::steady_clock;

ServerClock::time_point after(double seconds) {
  return ServerClock::now() + std::chrono::duration_cast<ServerClock::duration>(std::chrono::duration<double>(seconds));
}

int milliseconds_to(ServerClock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - ServerClock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

enum class Ready { yes, timeout, ending };

/// Waits for events of a socket. `ending` becomes readable when the server ends.
Ready wait_for(SocketId socket, short events, SocketId ending, ServerClock::time_point until) {
  for (;;) {
    pollfd both[2] = {{socket, events, 0}, {ending, POLLIN, 0}};
    const int count = poll_sockets(both, 2, milliseconds_to(until));
    if (count < 0 && was_interrupted()) continue;
    if (count < 0 || (both[1].revents & POLLIN) != 0) return Ready::ending;
    if (both[0].revents != 0) return Ready::yes;
    if (ServerClock::now() >= until) return Ready::timeout;
  }
}

struct ClientGone {};

/// What is large goes back to the system when it is freed. By itself glibc's allocator learns from the first large body
/// to keep such memory, up to 64 MiB for each of its arenas, of which there are eight for every core.
void return_large_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 2 << 20);
#endif
}

std::string address_words(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    } else {
      ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    }
  }
  return text;
}

std::string head_text(int status, std::string_view type, const HttpHeaders& headers) {
  std::string head = "HTTP/1.1 " + std::to_string(status) + " " + std::string(http_reason(status)) + "\r\n";
  if (!type.empty()) head += "Content-Type: " + std::string(type) + "\r\n";
  for (const auto& [name, value] : headers) head += name + ": " + value + "\r\n";
  return head + "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n";
}

/// One connection: its bytes, and the answer to the request that is being handled.
class Connection final : public HttpAnswer {
 public:
  Connection(OwnedSocket socket, SocketId ending, const HttpLimits& limits)
      : socket_(std::move(socket)), ending_(ending), limits_(limits) {
    set_no_delay(socket_.get());
    set_nonblocking(socket_.get());
  }

  /// Serves request after request until the client or the server has enough.
  void serve(const HttpServer::Admission& admission, const HttpServer::Handler& handler) {
    try {
      while (serve_one(admission, handler)) {
      }
    } catch (const ClientGone&) {
      return;
    } catch (const HttpFault& fault) {
      try {
        if (!begun_) refuse(fault);
      } catch (const ClientGone&) {
        return;
      }
    }
    std::string().swap(buffer_);  // a client that sees the end may send as much again at once
    linger();
  }

  void send(int status, std::string_view type, std::string_view body, const HttpHeaders& headers) override {
    begun_ = true;
    std::string text = head_text(status, type, headers);
    if (status != 204) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    text += closes() + "\r\n";
    if (!is_head_) text += body;
    write_all(text);
    whole_ = true;
  }

  void begin(int status, std::string_view type, const HttpHeaders& headers) override {
    begun_ = true;
    chunked_ = version_11_;
    if (!chunked_) keep_ = false;
    write_all(head_text(status, type, headers) + (chunked_ ? "Transfer-Encoding: chunked\r\n" : "") + closes() +
              "\r\n");
  }

  bool write(std::string_view piece) override {
    if (piece.empty()) return !is_closed();
    try {
      if (!chunked_) {
        write_all(piece);
        return true;
      }
      char size[32];
      const int digits = std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
      write_all(std::string(size, static_cast<size_t>(digits)) + std::string(piece) + "\r\n");
      return true;
    } catch (const ClientGone&) {
      gone_ = true;
      return false;
    }
  }

  void end() override {
    if (chunked_) write_all("0\r\n\r\n");
    whole_ = true;
  }

  bool begun() const override { return begun_; }

  bool is_closed() override {
    if (gone_) return true;
    pollfd both[2] = {{socket_.get(), POLLIN | kClosedByPeer, 0}, {ending_, POLLIN, 0}};
    if (poll_sockets(both, 2, 0) <= 0) return false;
    // A client that shuts down its sending half still reads by HTTP's letter, but no client of this kind does that.
    gone_ = both[1].revents != 0 || (both[0].revents & (kClosedByPeer | POLLHUP | POLLERR)) != 0;
    return gone_;
  }

 private:
  std::string closes() const { return keep_ ? "" : "Connection: close\r\n"; }

  bool serve_one(const HttpServer::Admission& admission, const HttpServer::Handler& handler) {
    begun_ = whole_ = chunked_ = keep_ = is_head_ = false;
    version_11_ = true;
    if (buffer_.empty() && !receive(after(limits_.idle_s))) return false;
    const ServerClock::time_point until = after(limits_.head_s);
    size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (buffer_.size() > kMostHeadBytes)
        throw HttpFault(431, "The head has more than " + byte_figures(kMostHeadBytes) + ".");
      if (!receive(until)) throw HttpFault(408, "The head did not come in time.");
    }
    if (end + 4 > kMostHeadBytes) throw HttpFault(431, "The head has more than " + byte_figures(kMostHeadBytes) + ".");
    HttpRequest request = parse_http_head(std::string_view(buffer_).substr(0, end + 4));
    version_11_ = request.is_1_1;
    buffer_.erase(0, end + 4);
    request.local_address = address_by(::getsockname);
    request.remote_address = address_by(::getpeername);
    is_head_ = request.method == "HEAD";
    if (!admission(request, *this)) return false;
    if (request.content_length > limits_.body_bytes)
      throw HttpFault(413, "The body has " + std::to_string(request.content_length) + " bytes; at most " +
                               std::to_string(limits_.body_bytes) + " are allowed.");
    read_body(request);
    keep_ = request.keeps_alive;
    try {
      handler(request, *this);
    } catch (const ClientGone&) {
      throw;
    } catch (const std::exception&) {
      keep_ = false;
      if (!begun_) throw HttpFault(500, "The request could not be answered.");
    }
    if (!begun_) throw HttpFault(500, "The request was not answered.");
    return whole_ && keep_ && !gone_;
  }

  void read_body(HttpRequest& request) {
    const ServerClock::time_point until = after(limits_.body_s);
    const std::string* expect = request.header("expect");
    if (expect != nullptr && buffer_.empty() && request.content_length > 0) write_all("HTTP/1.1 100 Continue\r\n\r\n");
    while (buffer_.size() < request.content_length)
      if (!receive(until)) throw HttpFault(408, "The body did not come in time.");
    std::string next = buffer_.substr(request.content_length);  // mostly nothing
    buffer_.resize(request.content_length);
    request.body = std::move(buffer_);
    buffer_ = std::move(next);
  }

  /// Takes what has come. False: nothing came in time, or the server ends.
  bool receive(ServerClock::time_point until) {
    for (;;) {
      if (wait_for(socket_.get(), POLLIN, ending_, until) != Ready::yes) return false;
      char bytes[16384];
      const auto count = ::recv(socket_.get(), bytes, sizeof bytes, 0);
      if (count > 0) {
        buffer_.append(bytes, static_cast<size_t>(count));
        return true;
      }
      if (count < 0 && (was_interrupted() || would_block())) continue;
      throw ClientGone();
    }
  }

  void write_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = send_some(socket_.get(), bytes);
      if (count > 0) {
        bytes.remove_prefix(static_cast<size_t>(count));
        continue;
      }
      if (count < 0 && was_interrupted()) continue;
      const bool full = count < 0 && would_block();
      if (!full || wait_for(socket_.get(), POLLOUT, ending_, after(limits_.write_s)) != Ready::yes) throw ClientGone();
    }
  }

  void refuse(const HttpFault& fault) {
    keep_ = false;
    // In the form of OpenAI's errors, which most clients here can read. The sentences are this folder's own.
    const std::string body = std::string("{\"error\":{\"message\":\"") + fault.what() +
                             "\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}\n";
    send(fault.status, "application/json", body, {});
  }

  /// Takes what still comes for a moment: closing with unread bytes would take the answer from the client.
  void linger() {
    ::shutdown(socket_.get(), kEndOfSending);
    const ServerClock::time_point until = after(1);
    char bytes[16384];
    for (uint64_t left = uint64_t{4} << 20; left > sizeof bytes; left -= sizeof bytes) {
      if (wait_for(socket_.get(), POLLIN, ending_, until) != Ready::yes) return;
      if (::recv(socket_.get(), bytes, sizeof bytes, 0) <= 0) return;
    }
  }

  /// Of one of the connection's ends; empty where the system does not tell.
  template <class Name>
  std::string address_by(Name* name) const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (name(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    return address_words(address);
  }

  OwnedSocket socket_;
  SocketId ending_;
  const HttpLimits& limits_;
  std::string buffer_;  // that came and is not read yet
  bool begun_ = false, whole_ = false, chunked_ = false, keep_ = false, gone_ = false, is_head_ = false;
  bool version_11_ = true;
};

OwnedSocket listening(const HttpServer::Address& address) {
  start_sockets();
  addrinfo wish{};
  wish.ai_socktype = SOCK_STREAM;
  wish.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wish, &found);
  if (problem != 0)
    throw Error(ErrorKind::unavailable, "There is no address " + quoted_name(address.host) +
                                            " to listen at: " + std::string(::gai_strerror(problem)) + ".");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  std::string why;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    OwnedSocket socket = open_socket(each->ai_family, each->ai_socktype, each->ai_protocol);
    if (socket) {
      set_address_reuse(socket.get());
      if (::bind(socket.get(), each->ai_addr, static_cast<socklen_t>(each->ai_addrlen)) == 0 &&
          ::listen(socket.get(), 128) == 0)
        return socket;
    }
    why = socket_error_words();
  }
  throw Error(ErrorKind::unavailable,
              "Nothing can listen at " + address.host + ", port " + std::to_string(address.port) + ": " + why + ".");
}

}  // namespace

class HttpServer::Work {
 public:
  Work(const Address& address, const HttpLimits& limits, Admission admission, Handler handler)
      : limits_(limits), admission_(std::move(admission)), handler_(std::move(handler)), listener_(listening(address)) {
    return_large_memory();
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                              : reinterpret_cast<sockaddr_in&>(bound).sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~Work() {
    close();
    thread_.join();
    for (Served& each : served_) each.thread.join();
  }

  uint16_t port() const { return port_; }

  void close() {
    if (!closed_.exchange(true)) ending_.raise();
  }

 private:
  struct Served {
    std::atomic<bool> over{false};
    std::thread thread;
  };

  void accept_all() {
    while (wait_for(listener_.get(), POLLIN, ending_.get(), after(60)) != Ready::ending) {
      served_.remove_if([](Served& each) {
        if (!each.over) return false;
        each.thread.join();
        return true;
      });
      OwnedSocket socket = accept_socket(listener_.get());
      if (!socket) {
        // Trying again at once would only burn time.
        if (is_out_of_sockets()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        continue;
      }
      if (served_.size() >= limits_.connections) {
        constexpr std::string_view busy =
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        set_nonblocking(socket.get());
        send_some(socket.get(), busy);
        continue;
      }
      Served& served = served_.emplace_back();
      try {
        served.thread = std::thread([this, &served, id = socket.get()] {
          try {
            Connection(OwnedSocket(id), ending_.get(), limits_).serve(admission_, handler_);
          } catch (const std::exception&) {  // memory that is short: the connection ends
          }
          served.over = true;
        });
        socket.release();  // it is the thread's
      } catch (const std::exception&) {
        served_.pop_back();
      }
    }
  }

  const HttpLimits limits_;
  const Admission admission_;
  const Handler handler_;
  OwnedSocket listener_;
  WakeSocket ending_;
  uint16_t port_ = 0;
  std::atomic<bool> closed_{false};
  std::list<Served> served_;  // of the thread below
  std::thread thread_;
};

HttpServer::HttpServer(const Address& address, const HttpLimits& limits, Admission admission, Handler handler)
    : work_(std::make_unique<Work>(address, limits, std::move(admission), std::move(handler))) {}

HttpServer::~HttpServer() = default;

uint16_t HttpServer::port() const {
  return work_->port();
}

void HttpServer::close() {
  work_->close();
}

}  // namespace canopy
