#include "engine/net/http_message.h"

#include <algorithm>
#include <charconv>

namespace canopy {
namespace {

bool is_token_character(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
}

bool is_http_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

std::string small_letters(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

[[noreturn]] void refuse_head(const char* sentence) {
  throw HttpFault(400, sentence);
}

void read_request_line(std::string_view line, HttpRequest& request) {
  const size_t first = line.find(' '), second = line.rfind(' ');
  if (first == std::string_view::npos || second == first) refuse_head("The first line is no request of HTTP.");
  const std::string_view method = line.substr(0, first), target = line.substr(first + 1, second - first - 1),
                         version = line.substr(second + 1);
  if (!is_http_token(method)) refuse_head("The first line is no request of HTTP.");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    if (version.starts_with("HTTP/")) throw HttpFault(505, "HTTP/1.1 and HTTP/1.0 are spoken here.");
    refuse_head("The first line is no request of HTTP.");
  }
  // A page of another server could be asked for by a whole address; only paths are meant here.
  const auto visible = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
  if (!target.starts_with('/') || !std::ranges::all_of(target, visible)) refuse_head("The target is no path.");
  request.method = method;
  const size_t question = std::min(target.find('?'), target.size());
  request.path = target.substr(0, question);
  request.query = target.substr(std::min(question + 1, target.size()));
  request.is_1_1 = request.keeps_alive = version == "HTTP/1.1";
}

void add_header(std::string_view line, HttpRequest& request) {
  if (line.front() == ' ' || line.front() == '\t') refuse_head("A header goes on in another line.");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_http_token(line.substr(0, colon)))
    refuse_head("A header has no name, or a blank behind it.");
  const std::string_view value = without_blanks(line.substr(colon + 1));
  const auto allowed = [](unsigned char c) { return c == '\t' || (c >= 0x20 && c != 0x7f); };
  if (!std::ranges::all_of(value, allowed)) refuse_head("A header has a control character.");
  if (request.headers.size() >= kMostHeaders) throw HttpFault(431, "There are more than 100 headers.");
  request.headers.emplace_back(small_letters(line.substr(0, colon)), value);
}

size_t count_of(const HttpRequest& request, std::string_view name) {
  return static_cast<size_t>(
      std::ranges::count_if(request.headers, [&](const auto& header) { return header.first == name; }));
}

void read_meaning(HttpRequest& request) {
  for (const char* once : {"host", "content-length", "content-type", "authorization", "x-api-key", "origin"})
    if (count_of(request, once) > 1) throw HttpFault(400, "The header " + std::string(once) + " is there twice.");
  if (count_of(request, "transfer-encoding") > 0)
    throw HttpFault(501, "A body in chunks is not read here: send its length in Content-Length.");
  const std::string* host = request.header("host");
  if (host == nullptr && request.is_1_1) refuse_head("The header Host is missing.");
  if (const std::string* length = request.header("content-length")) {
    const char* const end = length->data() + length->size();
    const auto [stop, error] = std::from_chars(length->data(), end, request.content_length);
    if (error != std::errc() || stop != end) refuse_head("The header Content-Length is no number.");
  }
  if (const std::string* connection = request.header("connection")) {
    const std::string wish = small_letters(*connection);
    if (wish.find("close") != std::string::npos) request.keeps_alive = false;
    if (wish.find("keep-alive") != std::string::npos) request.keeps_alive = true;
  }
}

bool is_v4(std::string_view host) {
  int parts = 0;
  while (parts < 4) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(host.data(), host.data() + host.size(), number);
    if (error != std::errc() || number > 255) return false;
    host.remove_prefix(static_cast<size_t>(end - host.data()));
    if (++parts == 4) return host.empty();
    if (!host.starts_with('.')) return false;
    host.remove_prefix(1);
  }
  return false;
}

}  // namespace

const std::string* HttpRequest::header(std::string_view name) const {
  const auto found = std::ranges::find_if(headers, [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? nullptr : &found->second;
}

HttpRequest parse_http_head(std::string_view head) {
  HttpRequest request;
  for (bool first = true;; first = false) {
    const size_t end = head.find("\r\n");
    if (end == std::string_view::npos) refuse_head("A line does not end as HTTP's do.");
    const std::string_view line = head.substr(0, end);
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos)
      refuse_head("A line has a line break or a zero in it.");
    head.remove_prefix(end + 2);
    if (first) {
      read_request_line(line, request);
    } else if (line.empty()) {
      break;
    } else {
      add_header(line, request);
    }
  }
  if (!head.empty()) refuse_head("There is something behind the head.");
  read_meaning(request);
  return request;
}

std::string_view http_reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Answer";
  }
}

std::string host_of(std::string_view header) {
  if (header.starts_with('[')) {
    const size_t end = header.find(']');
    if (end == std::string_view::npos) return {};
    const std::string_view rest = header.substr(end + 1);
    return rest.empty() || rest.front() == ':' ? small_letters(header.substr(1, end - 1)) : std::string();
  }
  const size_t colon = std::min(header.find(':'), header.size());
  if (header.find(':', std::min(colon + 1, header.size())) != std::string_view::npos) return {};
  std::string_view host = header.substr(0, colon);
  if (host.ends_with('.')) host.remove_suffix(1);
  return small_letters(host);
}

bool is_loopback_host(std::string_view host) {
  return host == "localhost" || host == "::1" || (is_v4(host) && host.starts_with("127."));
}

}  // namespace canopy
