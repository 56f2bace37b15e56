#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "app/cli/logits_command.h"
#include "probe.h"

namespace canopy::peer {
namespace {

using nlohmann::ordered_json;

struct Text {
  std::vector<int32_t> ids;
  uint32_t window = 0;
};

Text read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read.");
  const ordered_json json = ordered_json::parse(file);
  return {json.at("ids").get<std::vector<int32_t>>(), json.at("window").get<uint32_t>()};
}

void check(const Text& text, uint32_t vocab, const std::string& path) {
  if (text.window == 0) throw std::runtime_error(path + ": \"window\" is 0; at least 1 is needed.");
  for (const int32_t id : text.ids) {
    if (id < 0 || static_cast<uint32_t>(id) >= vocab) {
      throw std::runtime_error(path + ": token " + std::to_string(id) + " is outside llama.cpp's vocabulary of " +
                               std::to_string(vocab) + ".");
    }
  }
}

}  // namespace

void run_logits(const LogitsOptions& options) {
  const Text text = read_text(options.ids_file);
  PeerOptions peer_options = options.peer;
  peer_options.context = text.window;
  PeerContext peer(peer_options);
  check(text, peer.vocab(), options.ids_file);

  std::ofstream rows;
  if (!options.rows_file.empty()) {
    rows.exceptions(std::ios::failbit | std::ios::badbit);
    rows.open(options.rows_file, std::ios::binary);
  }
  ordered_json tops = ordered_json::array();
  for (size_t start = 0; start < text.ids.size(); start += text.window) {
    const auto window = std::span(text.ids).subspan(start, std::min<size_t>(text.window, text.ids.size() - start));
    peer.truncate(0);
    for (uint32_t first = 0; first < window.size(); first += options.chunk) {
      const auto chunk = window.subspan(first, std::min<size_t>(options.chunk, window.size() - first));
      peer.append(chunk, first, Outputs::all);
      for (uint32_t row = 0; row < chunk.size(); ++row) {
        const std::span<const float> logits = peer.logits(row);
        tops.push_back(cli::likeliest(logits, options.top));
        if (rows.is_open()) {
          rows.write(reinterpret_cast<const char*>(logits.data()), static_cast<std::streamsize>(logits.size_bytes()));
        }
      }
    }
  }
  if (rows.is_open()) rows.close();
  const ordered_json json = {{"backend", options.peer.backend == Backend::cpu ? "cpu" : "vulkan"},
                             {"device", peer.device()},
                             {"threads", peer.threads()},
                             {"top", tops}};
  std::cout << json.dump() << "\n";
}

}  // namespace canopy::peer
