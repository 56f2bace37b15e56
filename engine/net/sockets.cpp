#include "engine/net/sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "engine/base/error.h"

#ifdef _WIN32
#include <mstcpip.h>
#else
#include <fcntl.h>
#include <linux/tcp.h>  // alone has the counter of bytes, and contradicts the C library's header
#include <sys/eventfd.h>
#include <unistd.h>
#endif

namespace canopy {

OwnedSocket::~OwnedSocket() {
  if (id_ == kNoSocket) return;
#ifdef _WIN32
  ::closesocket(id_);
#else
  ::close(id_);
#endif
}

void set_no_delay(SocketId socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, reinterpret_cast<const char*>(&on), sizeof on);
}

#ifdef _WIN32

void start_sockets() {
  static const int failed = [] {
    WSADATA data;
    return ::WSAStartup(MAKEWORD(2, 2), &data);
  }();
  if (failed != 0) throw Error(ErrorKind::unavailable, "Windows gives this program no network.");
}

OwnedSocket open_socket(int family, int type, int protocol) {
  return OwnedSocket(
      ::WSASocketW(family, type, protocol, nullptr, 0, WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT));
}

OwnedSocket accept_socket(SocketId listener) {
  OwnedSocket socket(::accept(listener, nullptr, nullptr));
  if (socket) ::SetHandleInformation(reinterpret_cast<HANDLE>(socket.get()), HANDLE_FLAG_INHERIT, 0);
  return socket;
}

int poll_sockets(pollfd* sockets, unsigned count, int milliseconds) {
  return ::WSAPoll(sockets, count, milliseconds);
}

int64_t send_some(SocketId socket, std::string_view bytes) {
  constexpr size_t most = size_t{1} << 30;  // what a call takes is an int
  return ::send(socket, bytes.data(), static_cast<int>(std::min(bytes.size(), most)), 0);
}

void set_nonblocking(SocketId socket) {
  u_long on = 1;
  ::ioctlsocket(socket, FIONBIO, &on);
}

void set_address_reuse(SocketId socket) {
  // SO_REUSEADDR lets a second program take the address here; without it a port is free at once, too.
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, reinterpret_cast<const char*>(&on), sizeof on);
}

bool was_interrupted() {
  return ::WSAGetLastError() == WSAEINTR;
}
bool would_block() {
  return ::WSAGetLastError() == WSAEWOULDBLOCK;
}
bool is_out_of_sockets() {
  return ::WSAGetLastError() == WSAEMFILE || ::WSAGetLastError() == WSAENOBUFS;
}
std::string socket_error_words() {
  return std::system_category().message(::WSAGetLastError());
}

/// A datagram to itself.
WakeSocket::WakeSocket() {
  start_sockets();
  socket_ = open_socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int size = sizeof own;
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  if (!socket_ || ::bind(socket_.get(), address, size) != 0 || ::getsockname(socket_.get(), address, &size) != 0 ||
      ::connect(socket_.get(), address, size) != 0)
    throw Error(ErrorKind::unavailable, "Windows gives no socket to end waits with: " + socket_error_words());
}

void WakeSocket::raise() {
  ::send(socket_.get(), "", 1, 0);
}

std::optional<uint64_t> received_bytes(SocketId socket) {
#ifdef SIO_TCP_INFO
  DWORD version = 0, size = 0;
  TCP_INFO_v0 info{};
  if (::WSAIoctl(socket, SIO_TCP_INFO, &version, sizeof version, &info, sizeof info, &size, nullptr, nullptr) == 0)
    return info.BytesIn;
#endif
  (void)socket;
  return std::nullopt;
}

#else

void start_sockets() {}

OwnedSocket open_socket(int family, int type, int protocol) {
  return OwnedSocket(::socket(family, type | SOCK_CLOEXEC, protocol));
}

OwnedSocket accept_socket(SocketId listener) {
  return OwnedSocket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
}

int poll_sockets(pollfd* sockets, unsigned count, int milliseconds) {
  return ::poll(sockets, count, milliseconds);
}

int64_t send_some(SocketId socket, std::string_view bytes) {
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

void set_nonblocking(SocketId socket) {
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
}

void set_address_reuse(SocketId socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

bool was_interrupted() {
  return errno == EINTR;
}
bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}
bool is_out_of_sockets() {
  return errno == EMFILE || errno == ENFILE;
}
std::string socket_error_words() {
  return std::strerror(errno);
}

WakeSocket::WakeSocket() : socket_(::eventfd(0, EFD_CLOEXEC)) {
  if (!socket_) throw Error(ErrorKind::unavailable, "The system gives no descriptor to end waits with.");
}

void WakeSocket::raise() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(socket_.get(), &one, sizeof one);
}

std::optional<uint64_t> received_bytes(SocketId socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return info.tcpi_bytes_received;
}

#endif

}  // namespace canopy
