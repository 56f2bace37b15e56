#pragma once
// A server of HTTP/1.1 on a TCP port: a thread for each connection, and limits on all that a client may send or wait
// with. It knows nothing of what is served.
//
// Written here, as what Debian has of cpp-httplib bounds neither the time of a head nor the number that wait, and does
// not tell that a client has gone.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/net/http_message.h"

namespace canopy {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpLimits {
  uint32_t connections = 128;  // at once; a further one is told 503 and closed
  double head_s = 10;          // from the first byte of a head to its last
  double body_s = 60;          // likewise of a body
  double idle_s = 60;          // between two requests of a connection
  double write_s = 30;         // that a client may take nothing of what is written
  uint64_t body_bytes = uint64_t{32} << 20;
};

/// The answer to one request: either whole, or a stream. Belongs to the thread that it was given to.
class HttpAnswer {
 public:
  virtual ~HttpAnswer() = default;

  /// Sends a whole answer; at most one, and none after begin().
  virtual void send(int status, std::string_view type, std::string_view body, const HttpHeaders& headers = {}) = 0;

  /// Begins a stream and sends its head at once.
  virtual void begin(int status, std::string_view type, const HttpHeaders& headers = {}) = 0;
  /// Sends a piece of the stream. False: the client is gone.
  virtual bool write(std::string_view piece) = 0;
  /// Ends the stream. Without it the connection is closed, which tells the client that it is not whole.
  virtual void end() = 0;

  virtual bool begun() const = 0;  // that something was sent
  /// Whether the client has closed the connection, or the server ends.
  virtual bool is_closed() = 0;
};

class HttpServer {
 public:
  struct Address {
    std::string host = "127.0.0.1";
    uint16_t port = 0;  // 0: one that is free
  };
  /// Called on the thread of a connection. What it throws becomes a 500 without words.
  using Handler = std::function<void(const HttpRequest& request, HttpAnswer& answer)>;
  /// Looks at a head before its body is read. True: go on; false: it was answered, and the connection is closed.
  using Admission = std::function<bool(const HttpRequest& head, HttpAnswer& answer)>;

  /// Listens at once. Throws unavailable with the system's reason where it cannot.
  HttpServer(const Address& address, const HttpLimits& limits, Admission admission, Handler handler);
  /// Ends all connections and waits for their threads: HttpAnswer::is_closed() is true for handlers.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  /// Takes no more requests and lets handlers end, without waiting for them.
  void close();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace canopy
