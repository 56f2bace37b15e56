#include <algorithm>
#include <charconv>

#include "engine/base/printable.h"
#include "engine/text/jinja/format_text.h"

namespace canopy::jinja {
namespace {

// The value that a field asks for; `next` counts the fields without a name.
const Value& field_value(std::string_view field, const Arguments& arguments, size_t& next) {
  size_t index = 0;
  const auto number = std::from_chars(field.data(), field.data() + field.size(), index);
  const bool is_number = number.ec == std::errc() && number.ptr == field.data() + field.size();
  if (field.empty()) index = next++;
  if (field.empty() || is_number) {
    if (index < arguments.positional.size()) return arguments.positional[index];
    throw Failure("'format' has more fields than the " + std::to_string(arguments.positional.size()) +
                  " values given.");
  }
  const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                  [&](const auto& argument) { return argument.first == field; });
  if (found != arguments.named.end()) return found->second;
  throw Failure("'format' has the field " + quoted_name(field) + ", for which no value is given.");
}

}  // namespace

Value format_braces(Context& context, const Text& format, const Arguments& arguments) {
  const std::string_view bytes = format.bytes();
  TextBuilder out(context);
  size_t next = 0;
  for (size_t at = 0; at < bytes.size();) {
    context.step();
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.add(format, at, brace - at);
    at = brace;
    if (at == bytes.size()) break;
    if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
      out.add(format, at, 1);
      at += 2;
      continue;
    }
    const size_t close = bytes.find('}', at);
    if (bytes[at] == '}' || close == std::string_view::npos) throw Failure("'format' has a brace without its partner.");
    print(out, field_value(bytes.substr(at + 1, close - at - 1), arguments, next));
    at = close + 1;
  }
  return out.take();
}

}  // namespace canopy::jinja
