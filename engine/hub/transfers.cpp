#include "engine/hub/transfers.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace canopy {
namespace {

constexpr size_t kMostAnswerHeaders = 200;
constexpr size_t kMostHeaderBytes = size_t{64} << 10;  // of all of an answer
constexpr long kLeastBytesPerSecond = 1000;

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, FreeUrl>;

/// A part of an address; empty where it has none.
std::string url_part(const Url& url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

Url parse_url(const std::string& text) {
  Url url(curl_url());
  if (!url) throw out_of_memory("There is no memory for an address.");
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK)
    throw bad_input(quoted_name(text) + " is no address; an address is as https://host/path.");
  return url;
}

void check_url(const Url& url, const std::string& text) {
  const std::string scheme = ascii_lower(url_part(url, CURLUPART_SCHEME));
  if (scheme != "http" && scheme != "https")
    throw bad_input("The address " + quoted_name(text) + " begins with " + quoted_name(scheme) +
                    "; allowed are http and https.");
  if (!url_part(url, CURLUPART_USER).empty() || !url_part(url, CURLUPART_PASSWORD).empty())
    throw bad_input("An address has a user or a password in it, which is not allowed.");
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Whether trying again may help.
bool is_trouble_of_the_network(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:  // a handshake that was cut; a certificate that is refused has a code of its own
    case CURLE_AGAIN: return true;
    default: return false;
  }
}

bool is_about_certificates(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_ISSUER_ERROR ||
         code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_INVALIDCERTSTATUS;
}

void start_curl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

}  // namespace

UrlOrigin url_origin(const std::string& text) {
  const Url url = parse_url(text);
  check_url(url, text);
  return {ascii_lower(url_part(url, CURLUPART_SCHEME)), ascii_lower(url_part(url, CURLUPART_HOST)),
          url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT)};
}

std::string url_behind(const std::string& base, const std::string& location) {
  const Url url = parse_url(base);
  if (curl_url_set(url.get(), CURLUPART_URL, location.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    throw bad_input("The server leads to " + quoted_name(location) + ", which is no address.");
  check_url(url, location);
  return url_part(url, CURLUPART_URL);
}

std::string url_escaped(std::string_view text, bool slashes) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 128 && (std::isalnum(byte) != 0 || std::string_view("-._~").find(c) != std::string_view::npos ||
                       (slashes && c == '/'))) {
      escaped += c;
    } else {
      escaped += '%';
      escaped += hex[byte >> 4];
      escaped += hex[byte & 15];
    }
  }
  return escaped;
}

const std::string* AnswerHead::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &std::pair<std::string, std::string>::first);
  return found == headers.end() ? nullptr : &found->second;
}

bool is_worth_another_try(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::string redirected(const std::string& url, const AnswerHead& head) {
  const std::string* location = head.header("location");
  if (location == nullptr)
    throw Error(ErrorKind::unavailable,
                "The server of " + quoted_name(url_origin(url).host) + " leads elsewhere without saying where.");
  const std::string next = url_behind(url, *location);
  if (url_origin(url).scheme == "https" && url_origin(next).scheme != "https")
    throw Error(ErrorKind::unavailable, "The hub leads from https to http at " + quoted_name(url_origin(next).host) +
                                            ", which is not encrypted; nothing is fetched from there.");
  return next;
}

class Transfers::Work {
 public:
  explicit Work(const TransferLimits& limits) : limits_(limits) {
    start_curl();
    multi_ = curl_multi_init();
    if (multi_ == nullptr) throw out_of_memory("There is no memory for a download.");
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() {
    while (!transfers_.empty()) drop(transfers_.begin()->first);
    curl_multi_cleanup(multi_);
  }

  uint64_t start(const TransferRequest& request, BodySink sink) {
    const uint64_t id = next_++;
    Transfer& made = transfers_[id];
    made.sink = std::move(sink);
    made.host = url_origin(request.url).host;
    made.easy = curl_easy_init();
    if (made.easy == nullptr) {
      transfers_.erase(id);
      throw out_of_memory("There is no memory for a download.");
    }
    set_up(made, request);
    curl_multi_add_handle(multi_, made.easy);
    return id;
  }

  void drop(uint64_t id) {
    const auto found = transfers_.find(id);
    if (found == transfers_.end()) return;
    curl_multi_remove_handle(multi_, found->second.easy);
    curl_easy_cleanup(found->second.easy);
    curl_slist_free_all(found->second.headers);
    transfers_.erase(found);
  }

  size_t active() const { return transfers_.size(); }

  std::vector<TransferEnd> wait(double seconds) {
    int running = 0;
    curl_multi_perform(multi_, &running);
    if (running > 0 && running == static_cast<int>(transfers_.size())) {
      curl_multi_poll(multi_, nullptr, 0, static_cast<int>(seconds * 1e3), nullptr);
      curl_multi_perform(multi_, &running);
    }
    std::vector<TransferEnd> ends;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      const auto found =
          std::ranges::find_if(transfers_, [&](const auto& each) { return each.second.easy == message->easy_handle; });
      if (found == transfers_.end()) continue;
      const uint64_t id = found->first;
      ends.push_back(end_of(id, found->second, code));
      const std::exception_ptr thrown = found->second.thrown;
      drop(id);
      if (thrown) std::rethrow_exception(thrown);
    }
    return ends;
  }

 private:
  struct Transfer {
    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    std::string host;
    BodySink sink;
    AnswerHead head;
    size_t head_bytes = 0;
    bool refused = false;
    std::exception_ptr thrown;
    char words[CURL_ERROR_SIZE] = {};
  };

  void set_up(Transfer& t, const TransferRequest& request) {
    const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(t.easy, option, value); };
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // a connection for each transfer
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits_.connect_s * 1e3));
    set(CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
    set(CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(limits_.silence_s)));
    set(CURLOPT_USERAGENT, "canopy/" CANOPY_VERSION);
    set(CURLOPT_ERRORBUFFER, t.words);
    if (const char* certificates = std::getenv("SSL_CERT_FILE"); certificates != nullptr && *certificates != 0)
      set(CURLOPT_CAINFO, certificates);
    if (!request.range.empty()) set(CURLOPT_RANGE, request.range.c_str());
    const auto add = [&](const std::string& line) { t.headers = curl_slist_append(t.headers, line.c_str()); };
    if (!request.token.empty()) add("Authorization: Bearer " + request.token);
    if (!request.if_range.empty()) add("If-Range: " + request.if_range);
    if (t.headers != nullptr) set(CURLOPT_HTTPHEADER, t.headers);
    set(CURLOPT_HEADERDATA, &t);
    set(CURLOPT_HEADERFUNCTION, &Work::take_header);
    set(CURLOPT_WRITEDATA, &t);
    set(CURLOPT_WRITEFUNCTION, &Work::take_body);
  }

  static size_t take_header(char* bytes, size_t size, size_t count, void* data) {
    auto& t = *static_cast<Transfer*>(data);
    const std::string_view line(bytes, size * count);
    try {
      t.head_bytes += line.size();
      if (t.head_bytes > kMostHeaderBytes || t.head.headers.size() > kMostAnswerHeaders) return 0;
      if (line.starts_with("HTTP/")) {  // also of a proxy's answer before, and of "100 Continue"
        t.head = {};
        return line.size();
      }
      const size_t colon = line.find(':');
      if (colon != std::string_view::npos) {
        t.head.headers.emplace_back(ascii_lower(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1))));
      }
    } catch (...) {
      t.thrown = std::current_exception();
      return 0;
    }
    return line.size();
  }

  static size_t take_body(char* bytes, size_t size, size_t count, void* data) {
    auto& t = *static_cast<Transfer*>(data);
    try {
      note_status(t);
      const bool taken = t.sink(t.head, std::as_bytes(std::span(bytes, size * count)));
      if (taken) return size * count;
      t.refused = true;
    } catch (...) {
      t.thrown = std::current_exception();
    }
    return 0;
  }

  static void note_status(Transfer& t) {
    long status = 0;
    curl_easy_getinfo(t.easy, CURLINFO_RESPONSE_CODE, &status);
    t.head.status = static_cast<int>(status);
  }

  TransferEnd end_of(uint64_t id, Transfer& t, CURLcode code) {
    note_status(t);
    TransferEnd end{id, TransferEnd::How::whole, t.head, ""};
    if (t.refused) {
      end.how = TransferEnd::How::refused;
    } else if (code != CURLE_OK) {
      const std::string words = printable(t.words[0] != 0 ? t.words : curl_easy_strerror(code));
      end.how = is_trouble_of_the_network(code) ? TransferEnd::How::cut : TransferEnd::How::wrong;
      end.problem = "The transfer from " + quoted_name(t.host) + " failed: " + words + ".";
      if (is_about_certificates(code))
        end.problem = "The connection to " + quoted_name(t.host) +
                      " is not to be trusted, so that nothing is fetched: " + words +
                      ". Where a proxy of your own stands in between, SSL_CERT_FILE names its certificate.";
    }
    return end;
  }

  TransferLimits limits_;
  CURLM* multi_ = nullptr;
  uint64_t next_ = 1;
  std::map<uint64_t, Transfer> transfers_;
};

Transfers::Transfers(const TransferLimits& limits) : work_(std::make_unique<Work>(limits)) {}
Transfers::~Transfers() = default;

uint64_t Transfers::start(const TransferRequest& request, BodySink sink) {
  return work_->start(request, std::move(sink));
}

void Transfers::drop(uint64_t id) {
  work_->drop(id);
}

size_t Transfers::active() const {
  return work_->active();
}

std::vector<TransferEnd> Transfers::wait(double seconds) {
  return work_->wait(seconds);
}

}  // namespace canopy
