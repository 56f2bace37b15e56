#include "engine/endpoint/endpoint_address.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "engine/base/error.h"
#include "engine/base/printable.h"

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

}  // namespace canopy
