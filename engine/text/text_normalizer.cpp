#include "engine/text/text_normalizer.h"

#include <utility>

#include "engine/base/error.h"
#include "engine/text/utf8.h"

namespace canopy {
namespace {

// Steps come with a model: thirty of them that double a text would fill the memory. Normal forms, the greatest that
// anybody needs, make at most eleven bytes of one.
class GrowthLimit {
 public:
  explicit GrowthLimit(size_t text) : text_(text) {}

  void check(size_t bytes) const {
    if (bytes / 64 <= text_ + 1024) return;
    throw bad_input("The normalizer of tokenizer.json makes " + std::to_string(bytes) + " bytes of a text of " +
                    std::to_string(text_) + "; at most 64 times as many and 64 KiB are allowed.");
  }

 private:
  size_t text_;  // bytes before the first step
};

// Each step returns whether it changed the text, and then its result in `out`.

bool run(const TextNormalizer::Unicode& step, std::string_view text, TextPlace, const GrowthLimit& limit,
         std::string& out) {
  if (is_ascii(text)) return false;
  out = to_unicode_form(text, step.form);
  limit.check(out.size());
  return true;
}

bool run(const TextNormalizer::Prepend& step, std::string_view text, TextPlace place, const GrowthLimit& limit,
         std::string& out) {
  if (text.empty() || place == TextPlace::inside) return false;
  if (step.only_at_text_start && place != TextPlace::text_start) return false;
  if (step.unless_there && text.starts_with(step.text)) return false;
  limit.check(step.text.size() + text.size());
  out.assign(step.text).append(text);
  return true;
}

bool run(const TextNormalizer::Replace& step, std::string_view text, TextPlace, const GrowthLimit& limit,
         std::string& out) {
  size_t at = step.from.empty() ? std::string_view::npos : text.find(step.from);
  if (at == std::string_view::npos) return false;
  out.clear();
  out.reserve(text.size() + text.size() / 2);
  size_t done = 0;
  for (; at != std::string_view::npos; at = text.find(step.from, done)) {
    out.append(text.substr(done, at - done)).append(step.to);
    limit.check(out.size());
    done = at + step.from.size();
  }
  out.append(text.substr(done));
  return true;
}

bool run(const TextNormalizer::ReplaceMatches& step, std::string_view text, TextPlace, const GrowthLimit& limit,
         std::string& out) {
  Regex::Matcher matcher;
  out.clear();
  size_t done = 0;
  for (size_t from = 0; from <= text.size();) {
    const auto match = step.regex.find(text, from, matcher);
    if (!match) break;
    out.append(text.substr(done, match->begin - done)).append(step.to);
    limit.check(out.size());
    done = from = match->end;
    if (match->end == match->begin) {  // go on behind the next character
      if (from == text.size()) break;
      from += next_utf8(text.substr(from)).length;
    }
  }
  out.append(text.substr(done));
  return true;
}

bool run(const TextNormalizer::Compiled& step, std::string_view text, TextPlace, const GrowthLimit& limit,
         std::string& out) {
  out = step.table->apply(text);
  limit.check(out.size());
  return true;
}

}  // namespace

std::string_view TextNormalizer::apply(std::string_view text, TextPlace place, std::string& buffer) const {
  const GrowthLimit limit(text.size());
  std::string next;
  for (const Step& step : steps_) {
    const bool changed = std::visit([&](const auto& s) { return run(s, text, place, limit, next); }, step);
    if (!changed) continue;
    std::swap(buffer, next);
    text = buffer;
  }
  return text;
}

}  // namespace canopy
