#include "app/base/model_name.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace canopy::app {
namespace {

/// Whether text ends in `end`; upper and lower case ASCII letters are the same.
bool ends_in(std::string_view text, std::string_view end) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return text.size() >= end.size() &&
         std::equal(end.begin(), end.end(), text.end() - static_cast<std::ptrdiff_t>(end.size()),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

std::string model_name(const std::string& name, const std::string& file_name, const std::string& quantization) {
  std::string title = name;
  if (ends_in(file_name, ".gguf")) {
    title = file_name.substr(0, file_name.size() - 5);
    if (!quantization.empty() && ends_in(title, quantization)) {
      title.resize(title.size() - quantization.size());
      while (!title.empty() && std::string_view(".-_ ").find(title.back()) != std::string_view::npos) title.pop_back();
    }
    if (title.empty()) title = name;
  }
  if (title.empty()) title = file_name;
  return quantization.empty() ? title : title + " " + quantization;
}

}  // namespace canopy::app
