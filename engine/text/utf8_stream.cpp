#include "engine/text/utf8_stream.h"

#include <utility>

#include "engine/text/utf8.h"

namespace canopy {

std::string Utf8Stream::push(std::string_view bytes) {
  held_.append(bytes);
  std::string_view rest = held_;
  std::string out;
  while (!rest.empty()) {
    const size_t valid = valid_utf8_prefix(rest);
    out.append(rest.substr(0, valid));
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const Utf8Unit unit = next_utf8(rest);
    if (unit.kind == Utf8Kind::incomplete) break;
    out.append(replacement_character);
    rest.remove_prefix(unit.length);
  }
  held_.erase(0, held_.size() - rest.size());
  return out;
}

std::string Utf8Stream::finish() {
  return to_valid_utf8(std::exchange(held_, {}));
}

}  // namespace canopy
