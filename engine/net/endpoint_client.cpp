#include "engine/net/endpoint_client.h"

#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/net/sockets.h"

namespace canopy {
namespace {

constexpr size_t kMostHost = 253, kMostPath = 1024;

[[noreturn]] void refuse_url(std::string_view url, const std::string& why) {
  throw bad_input("The address " + quoted_name(url) + " " + why + ". Give one like http://127.0.0.1:8000/v1.");
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// Names of containers have underscores, which those of the internet may not have.
bool is_name(std::string_view host) {
  return !host.empty() && host.size() <= kMostHost && std::ranges::all_of(host, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  });
}

/// An address of IPv6, which may end in "%" and the name of an interface.
bool is_v6(std::string_view host) {
  const size_t percent = std::min(host.find('%'), host.size());
  const auto allowed = [](unsigned char c) { return std::isxdigit(c) != 0 || c == ':' || c == '.'; };
  return percent > 0 && percent <= kMostHost && std::ranges::all_of(host.substr(0, percent), allowed) &&
         (percent == host.size() || is_name(host.substr(percent + 1)));
}

bool is_url_path(std::string_view path) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("/-._~").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return path.size() <= kMostPath && std::ranges::all_of(path, allowed);
}

}  // namespace

std::string EndpointAddress::shown() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

EndpointAddress parse_endpoint(std::string_view url) {
  std::string_view rest = url;
  if (const size_t scheme = url.find("://"); scheme != std::string_view::npos) {
    const std::string name = lower(url.substr(0, scheme));
    if (name == "https") refuse_url(url, "begins with https, which is not supported");
    if (name != "http") refuse_url(url, "does not begin with http://");
    rest.remove_prefix(scheme + 3);
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash), path = rest.substr(slash);
  EndpointAddress address;
  const bool in_brackets = authority.starts_with('[');
  const size_t host_end = in_brackets ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (host_end == std::string_view::npos) refuse_url(url, "has a bracket that is not closed");
  if (authority.find('@') != std::string_view::npos)
    refuse_url(url, "has a user's name or password, which is not supported");
  if (!in_brackets && std::ranges::count(authority, ':') > 1) {
    refuse_url(url, "has an IPv6 address without brackets: http://[::1]:8000/v1 has them");
  }
  address.host = authority.substr(in_brackets ? 1 : 0, host_end - (in_brackets ? 1 : 0));
  if (!(in_brackets ? is_v6(address.host) : is_name(address.host))) refuse_url(url, "names no host");
  authority.remove_prefix(std::min(authority.size(), host_end + (in_brackets ? 1 : 0)));
  if (!authority.empty()) {
    const std::string_view digits = authority.substr(1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
    const bool whole = error == std::errc() && end == digits.data() + digits.size() && address.port > 0;
    if (!authority.starts_with(':') || !whole) refuse_url(url, "has a port that is no number from 1 to 65535");
  }
  if (!is_url_path(path)) refuse_url(url, "has a path with signs other than letters, digits and -._~");
  while (path.ends_with('/')) path.remove_suffix(1);
  address.path = path.empty() ? "/v1" : std::string(path);
  return address;
}

namespace {

using nlohmann::json;

constexpr const char* kWhat = "the server's event";
constexpr size_t kMostName = 64;  // bytes of the name of an event

std::optional<uint32_t> count_in(const json& usage, const char* field) {
  const JsonFields fields(usage, "usage of the server's event");
  return fields.has(field) ? std::optional(fields.u32(field)) : std::nullopt;
}

}  // namespace

std::string ChatStream::push(std::string_view bytes) {
  bytes_ += bytes.size();
  if (bytes_ > limits_.reply_bytes)
    throw bad_input("The server sent more than " + byte_figures(limits_.reply_bytes) + " for one reply.");
  std::string added;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    if (line_.size() + end > limits_.event_bytes)
      throw bad_input("The server sent a line of more than " + byte_figures(limits_.event_bytes) + ".");
    line_ += bytes.substr(0, end);
    if (end == bytes.size()) break;
    bytes.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    take_line(line_, added);
    line_.clear();
  }
  return added;
}

void ChatStream::take_line(std::string_view line, std::string& added) {
  // Comments and other fields of server-sent events carry nothing here. An empty line ends an event.
  constexpr std::string_view prefix = "data:", name = "event:", own = "canopy.";
  if (line.empty()) event_.clear();
  const bool names = line.starts_with(name);
  if (done_ || (!names && !line.starts_with(prefix))) return;
  line.remove_prefix(names ? name.size() : prefix.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (names) {
    event_ = line.substr(0, kMostName);
  } else if (event_.starts_with(own)) {
    if (named_) named_(event_, line);
  } else if (line == "[DONE]") {
    done_ = true;
  } else if (!line.empty()) {
    take_event(line, added);
  }
}

void ChatStream::take_event(std::string_view data, std::string& added) {
  const json event = parse_json(data, "The server's event");
  const JsonFields fields(event, kWhat);
  if (fields.has("error"))
    throw bad_input("The server says: " +
                    printable(fields.at("error").dump(-1, ' ', false, json::error_handler_t::replace), 512) + ".");
  if (const json* usage = fields.object("usage")) {
    if (const auto count = count_in(*usage, "completion_tokens")) tokens_ = count;
    if (const auto count = count_in(*usage, "prompt_tokens")) prompt_tokens_ = count;
  }
  if (!fields.has("choices")) return;
  const json& choices = fields.list("choices");
  if (choices.empty()) return;  // the event with the counts alone
  const JsonFields choice(choices.front(), "the choice of the server's event");
  if (const json* delta = choice.object("delta")) {
    const JsonFields parts(*delta, "the delta of the server's event");
    const std::string content = parts.text_or("content", "");
    // Thinking has its own field in servers that take it apart; its tokens are counted with the reply's.
    const std::string thinking = parts.text_or("reasoning_content", "") + parts.text_or("reasoning", "");
    thinking_ += thinking;
    if (!content.empty() || !thinking.empty()) ++pieces_;
    added += content;
    text_ += content;
  }
  if (choice.has("finish_reason")) finish_reason_ = printable(choice.text("finish_reason"), 64);
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWatchPause{20};
constexpr uint64_t kMostHeaderBytes = uint64_t{8} << 10 << 7;  // 8 KiB for each of 100 headers, and some
constexpr size_t kMostRefusal = size_t{64} << 10;              // bytes of a refusal that are read
constexpr size_t kMostShownBody = 512;
constexpr size_t kMostUnread = kMostReplyBytes;  // bytes that may wait for the reader

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
  if (!request.more.empty()) body.update(json::parse(request.more));
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
    abandon();
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
    std::string taken = std::exchange(arrived_, {});
    room_.notify_one();
    return taken;
  }

  /// A server that sends headers without an end would fill the memory: the library reads a line whole.
  bool floods() const {
    if (has_headers_ || socket_ == kNoSocket) return false;
    return received_bytes(socket_).value_or(0) > kMostHeaderBytes;
  }
  void abandon() {
    {
      const std::lock_guard lock(mutex_);
      abandoned_ = true;
    }
    room_.notify_one();
    client_.stop();
  }

  int status() const { return status_; }
  httplib::Error error() const { return error_; }  // once it is over
  Clock::time_point last_arrival() const { return last_arrival_; }

 private:
  /// Waits while much is unread, so that a server that is faster than the reader is held up by its connection.
  bool take(std::string_view bytes) {
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [this] { return abandoned_ || arrived_.size() < kMostUnread; });
      if (abandoned_) return false;
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
  std::atomic<SocketId> socket_{kNoSocket};
  std::atomic<int> status_{0};
  std::atomic<bool> has_headers_{false};
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  bool abandoned_ = false;        // guarded by mutex_
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
    case httplib::Error::Canceled: return "The exchange was given up";
    default: return "The exchange failed (" + httplib::to_string(error) + ")";
  }
}

}  // namespace

EndpointClient::EndpointClient(EndpointAddress address, EndpointLimits limits, std::string key)
    : address_(std::move(address)), limits_(limits), key_(std::move(key)) {
  if (!std::ranges::all_of(key_, [](unsigned char c) { return c > 0x20 && c < 0x7f; }))
    throw bad_input("The key for " + address_.shown() +
                    " has a sign that no key may have: letters, digits and marks of ASCII without blanks are allowed.");
}

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
    if (limits.whole_s > 0 && ms_between(start, Clock::now()) > limits.whole_s * 1000)
      give_up(no_server("The server at " + address.shown() + " did not end its reply within " +
                        std::to_string(static_cast<int>(limits.whole_s)) + " s."));
    if (exchange.floods())
      give_up(no_server("The server at " + address.shown() + " sent more than " + byte_figures(kMostHeaderBytes) +
                        " of headers."));
    if (bytes->empty()) continue;
    try {
      take(*bytes);
    } catch (...) {
      exchange.abandon();  // a server that is not heard any more need not go on
      throw;
    }
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

std::string said_in(std::string_view body) {
  const json answer = json::parse(body, nullptr, false);
  if (answer.is_object() && answer.contains("error")) {
    const json& error = answer["error"];
    const json message = error.is_object() && error.contains("message") ? error["message"] : error;
    if (message.is_string()) return printable(message.get_ref<const std::string&>(), kMostShownBody);
  }
  return printable(body, kMostShownBody);
}

EndpointAnswer EndpointClient::get(const std::string& path, size_t most_bytes, const std::stop_token& stop) {
  httplib::Request request;
  request.method = "GET";
  request.path = address_.path + path;
  request.set_header("Accept", "application/json");
  if (!key_.empty()) request.set_header("Authorization", "Bearer " + key_);
  last_ = std::make_shared<Exchange>(address_, limits_, std::move(request));
  EndpointAnswer answer;
  read_all(*last_, address_, limits_, stop, [&](const std::string& bytes) {
    if (answer.body.size() + bytes.size() > most_bytes)
      throw bad_input("The server at " + address_.shown() + " sent more than " + byte_figures(most_bytes) + " at " +
                      path + ".");
    answer.body += bytes;
  });
  answer.status = last_->status();
  return answer;
}

EndpointAnswer EndpointClient::post(const std::string& path, std::string json_text,
                                    const std::function<void(std::string_view)>& take, const std::stop_token& stop) {
  httplib::Request request;
  request.method = "POST";
  request.path = address_.path + path;
  request.body = std::move(json_text);
  request.set_header("Content-Type", "application/json");
  request.set_header("Accept", "text/event-stream");
  if (!key_.empty()) request.set_header("Authorization", "Bearer " + key_);
  last_ = std::make_shared<Exchange>(address_, limits_, std::move(request));
  EndpointAnswer answer;
  read_all(*last_, address_, limits_, stop, [&](const std::string& bytes) {
    if (last_->status() == 200) return take(bytes);
    if (answer.body.size() < kMostRefusal) answer.body += bytes.substr(0, kMostRefusal);
  });
  answer.status = last_->status();
  return answer;
}

EndpointReply EndpointClient::reply(const EndpointRequest& request, const std::function<void(std::string_view)>& text,
                                    const std::stop_token& stop, ChatStream::Named named, StreamLimits stream_limits) {
  ChatStream stream(std::move(named), stream_limits);
  const Clock::time_point start = Clock::now();
  std::optional<Clock::time_point> first, last;
  const auto take = [&](std::string_view bytes) {
    const uint32_t pieces = stream.pieces();
    const std::string added = stream.push(bytes);
    if (stream.pieces() == pieces) return;
    last = last_->last_arrival();
    if (!first) first = last;
    if (text && !added.empty()) text(added);
  };
  const EndpointAnswer answer = post("/chat/completions", body_of(request), take, stop);
  if (answer.status != 200) refuse_status(address_, answer.status, answer.body);
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
