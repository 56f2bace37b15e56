#include "engine/endpoint/endpoint_address.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace canopy {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr size_t kMostHost = 253, kMostPath = 1024;

[[noreturn]] void refuse_url(std::string_view url, const std::string& why) {
  throw bad_input("The address " + quoted_name(url) + " " + why + ". Give one like http://127.0.0.1:8000/v1.");
}

bool is_host(std::string_view host, bool in_brackets) {
  const auto allowed = [&](unsigned char c) {
    return in_brackets ? std::isxdigit(c) != 0 || c == ':' || c == '.' : std::isalnum(c) != 0 || c == '-' || c == '.';
  };
  return !host.empty() && host.size() <= kMostHost && std::ranges::all_of(host, allowed);
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
  if (url.starts_with("https://")) refuse_url(url, "begins with https, which is not supported");
  if (!url.starts_with(kScheme)) refuse_url(url, "does not begin with http://");
  std::string_view rest = url.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash), path = rest.substr(slash);
  EndpointAddress address;
  const bool in_brackets = authority.starts_with('[');
  const size_t host_end = in_brackets ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (host_end == std::string_view::npos) refuse_url(url, "has a bracket that is not closed");
  address.host = authority.substr(in_brackets ? 1 : 0, host_end - (in_brackets ? 1 : 0));
  if (!is_host(address.host, in_brackets)) refuse_url(url, "names no host");
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
