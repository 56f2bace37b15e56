#include <cstdio>

#include "tests/text/golden_text.h"

namespace canopy::golden {

std::string published_tokenizer_json(const std::string& name) {
  const auto path = published_folder(name) / (name + ".tokenizer.json.xz");
  if (!std::filesystem::exists(path)) return {};
  const std::string command = "xz -dc '" + path.string() + "'";  // build-essential brings xz
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string text;
  char buffer[1 << 16];
  for (size_t read = 1; read > 0; text.append(buffer, read)) read = std::fread(buffer, 1, sizeof buffer, pipe.get());
  if (text.empty()) throw std::runtime_error("nothing came out of " + command);
  return text;
}

std::unique_ptr<Tokenizer> published_tokenizer(const std::string& name) {
  const std::string tokenizer_json = published_tokenizer_json(name);
  if (tokenizer_json.empty()) return nullptr;
  return Tokenizer::from_tokenizer_json(tokenizer_json,
                                        read_text(published_folder(name) / (name + ".tokenizer_config.json")));
}

}  // namespace canopy::golden
