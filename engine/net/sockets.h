#pragma once
// Sockets as both POSIX and Windows have them, under one set of names. What is not here, as bind and recv, is called
// alike.

#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
#else
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#endif

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace canopy {

#ifdef _WIN32
using SocketId = SOCKET;
constexpr SocketId kNoSocket = INVALID_SOCKET;
constexpr int kEndOfSending = SD_SEND;  // of shutdown()
constexpr short kClosedByPeer = 0;      // an event of poll_sockets(); Windows tells it by POLLHUP
#else
using SocketId = int;
constexpr SocketId kNoSocket = -1;
constexpr int kEndOfSending = SHUT_WR;
constexpr short kClosedByPeer = POLLRDHUP;
#endif

/// A socket that is closed with its owner.
class OwnedSocket {
 public:
  explicit OwnedSocket(SocketId id = kNoSocket) : id_(id) {}
  OwnedSocket(OwnedSocket&& other) noexcept : id_(std::exchange(other.id_, kNoSocket)) {}
  OwnedSocket& operator=(OwnedSocket&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~OwnedSocket();
  SocketId get() const { return id_; }
  SocketId release() { return std::exchange(id_, kNoSocket); }
  explicit operator bool() const { return id_ != kNoSocket; }

 private:
  SocketId id_;
};

/// What is readable from raise() on: to end waits for sockets.
class WakeSocket {
 public:
  /// Throws unavailable where the system has no more descriptors.
  WakeSocket();
  SocketId get() const { return socket_.get(); }
  void raise();

 private:
  OwnedSocket socket_;
};

/// Before the first socket of a process; does nothing where that needs no call.
void start_sockets();
/// As socket() and accept(), but child processes do not get it.
OwnedSocket open_socket(int family, int type, int protocol);
OwnedSocket accept_socket(SocketId listener);
int poll_sockets(pollfd* sockets, unsigned count, int milliseconds);
/// As send(), without a signal where nobody reads any more.
int64_t send_some(SocketId socket, std::string_view bytes);
void set_nonblocking(SocketId socket);
/// What is written goes out at once.
void set_no_delay(SocketId socket);
/// Whether nobody else may listen at an address as long as this socket does, but may again at once after it.
void set_address_reuse(SocketId socket);

// Of the last call that failed, on this thread.
bool was_interrupted();
bool would_block();
bool is_out_of_sockets();
std::string socket_error_words();

/// Bytes that a TCP socket has received so far; nothing where the system does not tell.
std::optional<uint64_t> received_bytes(SocketId socket);

}  // namespace canopy
