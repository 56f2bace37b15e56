#pragma once
// A hub on a port of this machine, in the process of the test: it lists, searches and serves parts of files.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/bytes.h"
#include "engine/hub/hub_client.h"
#include "engine/net/http_server.h"

namespace canopy::test {

/// What it serves is set before it is asked, and not changed later.
class ServedHub {
 public:
  std::map<std::string, std::map<std::string, std::string>> repos;  // files by path, by repository
  std::map<std::string, std::pair<int, std::string>> refused;       // repository -> status, X-Error-Code
  std::map<std::string, uint64_t> listed_bytes;                     // of files that are listed as larger than they are
  nlohmann::json found = nlohmann::json::array();                   // what every search finds

  ServedHub()
      : server_(
            {}, {}, [](const HttpRequest&, HttpAnswer&) { return true; }, handler()) {}
  ~ServedHub() { release(); }
  ServedHub(const ServedHub&) = delete;
  ServedHub& operator=(const ServedHub&) = delete;

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }

  HubSettings settings(const std::filesystem::path& cache) const { return {endpoint(), "", cache, false}; }

  /// Small parts, one after the other, and no long waits.
  static HubLimits limits() {
    HubLimits limits;
    limits.first_wait_s = 0.01;
    limits.connections = 1;
    limits.part_bytes = 1024;
    return limits;
  }

  /// Sends so many more parts of files; later ones wait.
  void hold_after(uint64_t parts) {
    const std::lock_guard lock(mutex_);
    allowed_ = parts;
  }
  void release() { hold_after(std::numeric_limits<uint64_t>::max()); }

  /// Requests so far, as "PATH" or "PATH RANGE", the query left out.
  std::vector<std::string> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  size_t count(const std::string& part) const {
    size_t n = 0;
    for (const std::string& each : asked()) n += each.find(part) != std::string::npos ? 1 : 0;
    return n;
  }

 private:
  static constexpr const char* kCommit = "1111111111111111111111111111111111111111";

  static std::string digest_of(const std::string& content) {
    Sha256 sha;
    sha.add(std::as_bytes(std::span(content.data(), content.size())));
    return hex_digits(sha.digest());
  }

  HttpServer::Handler handler() {
    return [this](const HttpRequest& request, HttpAnswer& answer) { serve(request, answer); };
  }

  void serve(const HttpRequest& request, HttpAnswer& answer) {
    const std::string* range = request.header("range");
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request.path + (range != nullptr ? " " + *range : ""));
    }
    if (request.path == "/api/models") return answer.send(200, "application/json", found.dump());
    for (const auto& [repo, refusal] : refused)
      if (request.path.find("/" + repo) != std::string::npos)
        return answer.send(refusal.first, "text/plain", "no", {{"X-Error-Code", refusal.second}});
    for (const auto& [repo, files] : repos) {
      const std::string at = "/api/models/" + repo, resolve = "/" + repo + "/resolve/" + kCommit + "/";
      if (request.path == at + "/revision/main") {
        const nlohmann::json about = {{"id", repo}, {"sha", kCommit}, {"tags", {"gguf", "license:apache-2.0"}}};
        return answer.send(200, "application/json", about.dump());
      }
      if (request.path == at + "/tree/" + kCommit) return answer.send(200, "application/json", tree(files).dump());
      if (!request.path.starts_with(resolve)) continue;
      const auto file = files.find(request.path.substr(resolve.size()));
      if (file != files.end()) return send_part(file->second, range, answer);
    }
    answer.send(404, "text/plain", "no", {{"X-Error-Code", "RepoNotFound"}});
  }

  nlohmann::json tree(const std::map<std::string, std::string>& files) const {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& [path, content] : files) {
      const auto larger = listed_bytes.find(path);
      const uint64_t bytes = larger == listed_bytes.end() ? content.size() : larger->second;
      list.push_back({{"type", "file"},
                      {"path", path},
                      {"size", bytes},
                      {"oid", std::string(40, 'a')},
                      {"lfs", {{"oid", digest_of(content)}, {"size", bytes}}}});
    }
    return list;
  }

  /// Waits where parts are held, until the client has gone.
  bool may_send(HttpAnswer& answer) {
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (allowed_ > 0) {
          if (allowed_ != std::numeric_limits<uint64_t>::max()) --allowed_;
          return true;
        }
      }
      if (answer.is_closed()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  void send_part(const std::string& content, const std::string* range, HttpAnswer& answer) {
    if (!may_send(answer)) return;
    const std::string etag = "\"" + digest_of(content) + "\"";
    if (range == nullptr) return answer.send(200, "application/octet-stream", content, {{"ETag", etag}});
    const size_t dash = range->find('-');
    const uint64_t first = std::strtoull(range->c_str() + std::string("bytes=").size(), nullptr, 10);
    const uint64_t last = std::min<uint64_t>(std::strtoull(range->c_str() + dash + 1, nullptr, 10), content.size() - 1);
    const std::string said =
        "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" + std::to_string(content.size());
    answer.send(206, "application/octet-stream", std::string_view(content).substr(first, last - first + 1),
                {{"ETag", etag}, {"Content-Range", said}});
  }

  mutable std::mutex mutex_;
  uint64_t allowed_ = std::numeric_limits<uint64_t>::max();
  std::vector<std::string> asked_;
  HttpServer server_;  // last, as its threads use all of the above
};

}  // namespace canopy::test
