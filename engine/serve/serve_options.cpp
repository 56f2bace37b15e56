#include "engine/serve/serve_options.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace canopy {

bool same_key(std::string_view key, std::string_view given) {
  size_t difference = key.size() ^ given.size();
  for (size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<size_t>(static_cast<unsigned char>(given[i]) ^
                                      static_cast<unsigned char>(key.empty() ? 0 : key[i % key.size()]));
  return difference == 0 && !key.empty();
}

std::string served_name(std::string_view file_name) {
  if (file_name.ends_with(".gguf")) file_name.remove_suffix(5);
  return printable(file_name);
}

std::vector<ServeKey> parse_keys(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  std::vector<ServeKey> keys;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    line = line.substr(0, line.find_last_not_of(blanks) + 1);
    if (line.empty() || line.starts_with('#')) continue;
    const size_t blank = line.find_last_of(blanks);
    if (blank == std::string_view::npos) {
      keys.push_back({std::string(line), {}});
    } else {
      keys.push_back(
          {std::string(line.substr(blank + 1)), std::string(line.substr(0, line.find_last_not_of(blanks, blank) + 1))});
    }
  }
  return keys;
}

void validate(const ServeOptions& options) {
  if (options.keys.empty() && !is_loopback_host(options.address.host))
    throw bad_input("The address " + quoted_name(options.address.host) +
                    " can be reached from other machines: give a key with --api-key, --api-key-file or CANOPY_API_KEY, "
                    "or serve at 127.0.0.1.");
  if (options.keys.size() > kMostKeys)
    throw bad_input("There are " + std::to_string(options.keys.size()) + " keys; at most " + std::to_string(kMostKeys) +
                    " are allowed.");
  const auto visible = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
  for (size_t i = 0; i < options.keys.size(); ++i) {
    // Not the key itself: what is said here is seen.
    const std::string which = options.keys.size() == 1 ? "The key" : "Key " + std::to_string(i + 1);
    const std::string& key = options.keys[i].key;
    if (key.size() < kShortestKey || !std::ranges::all_of(key, visible))
      throw bad_input(which + " must have at least " + std::to_string(kShortestKey) +
                      " signs, all of them letters, digits and marks of ASCII without blanks.");
    for (size_t j = 0; j < i; ++j) {
      if (options.keys[j].key == key)
        throw bad_input(which + " is the same as key " + std::to_string(j + 1) + "; each must be another one.");
    }
  }
  for (const std::string& host : options.hosts) {
    if (host_of(host).empty())
      throw bad_input("The name " + quoted_name(host) +
                      ", by which clients may call this machine, is no name of a host.");
  }
  for (const std::string& origin : options.origins) {
    const size_t scheme = origin.find("://");
    const bool is_origin = scheme != std::string::npos && std::ranges::all_of(origin, visible) &&
                           origin.find('/', scheme + 3) == std::string::npos && origin.size() > scheme + 3 &&
                           origin.find('*') == std::string::npos;
    if (!is_origin)
      throw bad_input("The origin " + quoted_name(origin) +
                      " is none: give scheme and host, as in https://chat.example.");
  }
}

}  // namespace canopy
