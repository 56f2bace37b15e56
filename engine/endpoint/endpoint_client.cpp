#include "engine/endpoint/endpoint_client.h"

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/endpoint/chat_stream.h"
#include "engine/endpoint/received_bytes.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWatchPause{20};
constexpr uint64_t kMostHeaderBytes = uint64_t{8} << 10 << 7;  // 8 KiB for each of 100 headers, and some
constexpr size_t kMostShownBody = 512;

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

Error no_server(const std::string& message) {
  return {ErrorKind::unavailable, message};
}

std::string body_of(const EndpointRequest& request) {
  json messages = json::array();
  for (const EndpointMessage& message : request.messages)
    messages.push_back({{"role", message.role}, {"content", message.content}});
  json body = {{"messages", messages},
               {"max_tokens", request.max_tokens},
               {"temperature", request.temperature},
               {"top_p", request.top_p},
               {"seed", request.seed},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}}};
  if (!request.model.empty()) body["model"] = request.model;
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

/// One request on a thread of its own, so that whoever waits can leave at once.
class EndpointClient::Exchange {
 public:
  Exchange(const EndpointAddress& address, const EndpointLimits& limits, httplib::Request request)
      : client_(address.host, address.port), request_(std::move(request)) {
    const auto duration = [](double seconds) {
      return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::duration<double>(seconds));
    };
    client_.set_connection_timeout(duration(limits.connect_s));
    client_.set_read_timeout(duration(limits.silence_s));
    client_.set_write_timeout(duration(10));
    client_.set_follow_location(false);
    client_.set_keep_alive(false);
    client_.set_decompress(false);
    client_.set_tcp_nodelay(true);
    client_.set_socket_options([this](socket_t socket) { socket_ = socket; });
    request_.set_header("Accept-Encoding", "identity");
    request_.response_handler = [this](const httplib::Response& response) {
      status_ = response.status;
      has_headers_ = true;
      return true;
    };
    request_.content_receiver = [this](const char* data, size_t size, auto, auto) { return take({data, size}); };
  }
  ~Exchange() {
    client_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void start() {
    thread_ = std::thread([this] { run(); });
  }

  /// What came since the last call, after at most a moment. Nothing once the exchange is over.
  std::optional<std::string> wait() {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, kWatchPause, [this] { return over_ || !arrived_.empty(); });
    if (over_ && arrived_.empty()) return std::nullopt;
    last_arrival_ = arrived_at_;
    return std::exchange(arrived_, {});
  }

  /// A server that sends headers without an end would fill the memory: the library reads a line whole.
  bool floods() const {
    if (has_headers_ || socket_ < 0) return false;
    return received_bytes(socket_).value_or(0) > kMostHeaderBytes;
  }
  void abandon() { client_.stop(); }

  int status() const { return status_; }
  httplib::Error error() const { return error_; }  // once it is over
  Clock::time_point last_arrival() const { return last_arrival_; }

 private:
  bool take(std::string_view bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (arrived_.size() + bytes.size() > kMostReplyBytes) return false;
      arrived_ += bytes;
      arrived_at_ = Clock::now();
    }
    ready_.notify_one();
    return true;
  }

  void run() {
    httplib::Response response;
    httplib::Error error = httplib::Error::Unknown;
    try {
      client_.send(request_, response, error);
    } catch (const std::exception&) {
      error = httplib::Error::Unknown;
    }
    {
      const std::lock_guard lock(mutex_);
      error_ = error;
      over_ = true;
    }
    ready_.notify_one();
  }

  httplib::Client client_;
  httplib::Request request_;
  std::atomic<int> socket_{-1};
  std::atomic<int> status_{0};
  std::atomic<bool> has_headers_{false};
  std::mutex mutex_;
  std::condition_variable ready_;
  std::string arrived_;           // guarded by mutex_
  Clock::time_point arrived_at_;  // likewise
  bool over_ = false;             // likewise
  httplib::Error error_ = httplib::Error::Success;
  Clock::time_point last_arrival_;  // of the reader
  std::thread thread_;
};

namespace {

std::string words_of(httplib::Error error, const EndpointLimits& limits) {
  switch (error) {
    case httplib::Error::Connection: return "No server answers there";
    case httplib::Error::ConnectionTimeout:
      return "No server answered there within " + std::to_string(static_cast<int>(limits.connect_s)) + " s";
    case httplib::Error::Read: return "The server broke off, or was silent for too long";
    case httplib::Error::Write: return "The server did not take the request";
    case httplib::Error::Canceled: return "The server sent more than is allowed";
    default: return "The exchange failed (" + httplib::to_string(error) + ")";
  }
}

}  // namespace

EndpointClient::EndpointClient(EndpointAddress address, EndpointLimits limits)
    : address_(std::move(address)), limits_(limits) {}

EndpointClient::~EndpointClient() = default;

namespace {

/// Reads an exchange to its end. `take` gets what came, with the status of the answer.
template <class E, class F>
void read_all(E& exchange, const EndpointAddress& address, const EndpointLimits& limits, const std::stop_token& stop,
              F&& take) {
  const Clock::time_point start = Clock::now();
  const auto give_up = [&](Error why) {
    exchange.abandon();
    throw why;
  };
  exchange.start();
  while (std::optional<std::string> bytes = exchange.wait()) {
    if (stop.stop_requested()) give_up(cancelled("The request to " + address.shown() + " was cancelled."));
    if (ms_between(start, Clock::now()) > limits.whole_s * 1000)
      give_up(no_server("The server at " + address.shown() + " did not end its reply within " +
                        std::to_string(static_cast<int>(limits.whole_s)) + " s."));
    if (exchange.floods())
      give_up(no_server("The server at " + address.shown() + " sent more than " +
                        std::to_string(kMostHeaderBytes >> 20) + " MiB of headers."));
    if (!bytes->empty()) take(*bytes);
  }
  if (stop.stop_requested()) throw cancelled("The request to " + address.shown() + " was cancelled.");
  if (exchange.error() != httplib::Error::Success)
    throw no_server(words_of(exchange.error(), limits) + ": " + address.shown() + ".");
}

[[noreturn]] void refuse_status(const EndpointAddress& address, int status, const std::string& body) {
  throw no_server("The server at " + address.shown() + " answered with status " + std::to_string(status) +
                  (body.empty() ? "." : ": " + printable(body, kMostShownBody)));
}

}  // namespace

EndpointReply EndpointClient::reply(const EndpointRequest& request, const std::function<void(std::string_view)>& text,
                                    const std::stop_token& stop) {
  httplib::Request post;
  post.method = "POST";
  post.path = address_.path + "/chat/completions";
  post.body = body_of(request);
  post.set_header("Content-Type", "application/json");
  post.set_header("Accept", "text/event-stream");
  last_ = std::make_shared<Exchange>(address_, limits_, std::move(post));
  ChatStream stream;
  std::string refusal;
  const Clock::time_point start = Clock::now();
  std::optional<Clock::time_point> first, last;
  read_all(*last_, address_, limits_, stop, [&](const std::string& bytes) {
    if (last_->status() != 200) {
      if (refusal.size() < kMostShownBody) refusal += bytes.substr(0, kMostShownBody);
      return;
    }
    const uint32_t pieces = stream.pieces();
    const std::string added = stream.push(bytes);
    if (stream.pieces() == pieces) return;
    last = last_->last_arrival();
    if (!first) first = last;
    if (text && !added.empty()) text(added);
  });
  if (last_->status() != 200) refuse_status(address_, last_->status(), refusal);
  if (!stream.done() && stream.finish_reason().empty())
    throw bad_input("The server at " + address_.shown() + " ended its answer before the reply's end.");
  if (stream.tokens().value_or(0) > request.max_tokens)
    throw bad_input("The server at " + address_.shown() + " counted " + std::to_string(*stream.tokens()) +
                    " tokens of its reply; " + std::to_string(request.max_tokens) + " were asked for at most.");
  EndpointReply reply;
  reply.text = stream.text();
  reply.counted = stream.tokens().has_value();
  reply.tokens = stream.tokens().value_or(stream.pieces());
  reply.prompt_tokens = stream.prompt_tokens().value_or(0);
  reply.ended = stream.finish_reason() != "length";
  if (first) reply.prefill_ms = ms_between(start, *first);
  if (first) reply.decode_ms = ms_between(*first, *last);
  return reply;
}

}  // namespace canopy
