#include "tests/fuzz/trace_archive.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/trace/trace_format.h"
#include "tests/fuzz/archive.h"

namespace canopy::fuzz {
namespace {

constexpr std::pair<std::string_view, trace::Kind> kKinds[] = {
    {"", trace::Kind::header},           {"pieces", trace::Kind::pieces}, {"reply_begin", trace::Kind::reply_begin},
    {"prefill", trace::Kind::prefill},   {"round", trace::Kind::round},   {"reply_end", trace::Kind::reply_end},
    {"drafting", trace::Kind::drafting}, {"draft", trace::Kind::draft},   {"dense", trace::Kind::dense},
};

trace::Kind kind_of(std::string_view name) {
  const auto known = std::ranges::find(kKinds, name, &std::pair<std::string_view, trace::Kind>::first);
  if (known != std::end(kKinds)) return known->second;
  uint8_t number = 0xff;  // for unknown kinds
  std::from_chars(name.data(), name.data() + name.size(), number);
  return static_cast<trace::Kind>(number);
}

}  // namespace

std::string trace_of(std::string_view input) {
  if (input.starts_with(trace::magic)) return std::string(input);
  std::string file;
  trace::append_prologue(file);
  for (const ArchivedFile& record : split_archive(input))
    trace::append_record(file, kind_of(record.name), record.bytes);
  return file;
}

}  // namespace canopy::fuzz
