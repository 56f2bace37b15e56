#pragma once
// A small server on a port of this machine that answers each connection as a test says: well, slowly or wrongly.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace canopy::test {

class FakeServer {
 public:
  /// One accepted connection: the request, and what sends to it. send() is false once the other side has gone.
  struct Connection {
    int socket;
    std::string request;
    bool send(std::string_view bytes) const {
      while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<size_t>(sent));
      }
      return true;
    }
    /// Sends nothing until the other side has gone.
    void wait_until_left() const {
      char byte;
      while (::recv(socket, &byte, 1, 0) > 0) {
      }
    }
    /// The body of an answer that has no length: it ends with the connection.
    bool begin(int status = 200, const char* type = "text/event-stream") const {
      return send("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: " + type +
                  "\r\nConnection: close\r\n\r\n");
    }
    bool text(const std::string& words) const {
      return send("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + words + "\"}}]}\n\n");
    }
    bool finish(const char* reason, int tokens) const {
      return send("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" + std::string(reason) +
                  "\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":" +
                  std::to_string(tokens) + "}}\n\ndata: [DONE]\n\n");
    }
  };
  using Answer = std::function<void(const Connection&)>;

  explicit FakeServer(Answer answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    ::listen(listener_, 8);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeServer() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }
  int connections() const { return connections_; }
  bool stopping() const { return stopping_; }

 private:
  void serve() {
    while (!stopping_) {
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) break;
      ++connections_;
      // A client that leaves while its window is closed is noticed minutes later.
      const timeval patience{0, 300'000};
      ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      answer_({socket, read_request(socket)});
      ::shutdown(socket, SHUT_RDWR);
      ::close(socket);
    }
  }

  static std::string read_request(int socket) {
    std::string request;
    char bytes[4096];
    size_t wanted = std::string::npos;
    while (wanted == std::string::npos || request.size() < wanted) {
      const ssize_t got = ::recv(socket, bytes, sizeof bytes, 0);
      if (got <= 0) break;
      request.append(bytes, static_cast<size_t>(got));
      const size_t end = request.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      const size_t length = request.find("Content-Length: ");
      wanted = end + 4 + (length < end ? std::stoul(request.substr(length + 16)) : 0);
    }
    return request;
  }

  Answer answer_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> connections_{0};
  std::thread thread_;
};

}  // namespace canopy::test
