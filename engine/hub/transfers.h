#pragma once
// HTTP and HTTPS: several transfers at once on one thread. No redirect is followed here.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace canopy {

/// The parts of an address that decide who is asked, in small letters: "https", "huggingface.co", "443".
struct UrlOrigin {
  std::string scheme, host, port;
  bool operator==(const UrlOrigin&) const = default;
};

/// Throws bad_input for what is no http or https address, and for one with a user or a password in it.
UrlOrigin url_origin(const std::string& url);

/// Where a Location header leads from `base`; may be relative. Throws bad_input like url_origin().
std::string url_behind(const std::string& base, const std::string& location);

/// The last part of a path or a word of a query, with everything but letters, digits and "-._~" as %XX; slashes are
/// kept where `slashes` says so.
std::string url_escaped(std::string_view text, bool slashes = false);

struct TransferRequest {
  std::string url;
  std::string token;     // sent as "Authorization: Bearer"; empty: none
  std::string range;     // "0-99"; empty: everything
  std::string if_range;  // the ETag that the range must be of; empty: any
};

struct AnswerHead {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in small letters

  /// The header of that name, in small letters; null where there is none.
  const std::string* header(std::string_view name) const;
};

/// Whether a status is trouble that may pass: 408, 429, 500, 502, 503, 504.
bool is_worth_another_try(int status);
bool is_redirect(int status);
inline constexpr int kMostRedirects = 8;
/// Where a redirect from `url` leads. Throws unavailable where it says nowhere, or leads from https to http.
std::string redirected(const std::string& url, const AnswerHead& head);

/// Takes the bytes of a body as they come. False ends the transfer.
using BodySink = std::function<bool(const AnswerHead& head, std::span<const std::byte> bytes)>;

struct TransferEnd {
  enum class How {
    whole,    // with any status
    cut,      // by the network: may be tried again
    refused,  // by its sink
    wrong,    // in a way that trying again does not help, as an untrusted certificate
  };
  uint64_t id = 0;
  How how = How::whole;
  AnswerHead head;
  std::string problem;  // what went wrong, as a sentence; empty for `whole` and `refused`
};

struct TransferLimits {
  double connect_s = 20;
  double silence_s = 30;  // in which less than a kilobyte a second comes; counts as cut
};

/// Proxies are those of the environment (http_proxy, https_proxy, all_proxy, no_proxy), certificates the system's or
/// those of $SSL_CERT_FILE. Belongs to one thread.
class Transfers {
 public:
  explicit Transfers(const TransferLimits& limits = {});
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Starts a transfer. `sink` is called by wait().
  uint64_t start(const TransferRequest& request, BodySink sink);
  /// Ends a transfer at once; it is not reported. Nothing for one that has ended.
  void drop(uint64_t id);
  /// How many are under way.
  size_t active() const;
  /// Goes on with all transfers, for so many seconds at most, and returns those that have ended. Throws what a sink
  /// threw.
  std::vector<TransferEnd> wait(double seconds);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace canopy
