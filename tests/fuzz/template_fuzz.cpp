// Chat templates: parsing, rendering within limits, and the origin of each byte of a prompt. The input is an archive;
// the text before the first file name is the template, the file "content" is what the user wrote.

#include <algorithm>
#include <string>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/jinja/template.h"
#include "tests/fuzz/archive.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/tokenizer_checks.h"
#include "tests/text/golden_text.h"

namespace canopy::fuzz {
namespace {

using jinja::Dict;
using jinja::List;
using jinja::Segment;
using jinja::Value;

// U+E000, a character that templates do not write by themselves.
constexpr std::string_view mark = "\xEE\x80\x80";

// A fraction of the limits of chats, so that an input takes milliseconds.
constexpr jinja::Limits limits = {
    .source_bytes = 1 << 16, .steps = 20'000, .text_bytes = 1 << 20, .output_bytes = 1 << 16};

constexpr size_t most_written = 256;  // bytes of a reply that is written byte by byte

Value message(const char* role, std::string_view content) {
  Dict fields;
  fields.set("role", Value::markup(role));
  fields.set("content", Value::content(content));
  return fields;
}

Dict conversation(std::string_view content) {
  List messages;
  messages.items = {message("system", content), message("user", content), message("assistant", content),
                    message("user", content)};
  Dict function;
  function.set("name", Value::markup("add"));
  function.set("parameters", List{});
  Dict values;
  values.set("messages", std::move(messages));
  values.set("tools", List{{Value(std::move(function))}});
  values.set("add_generation_prompt", true);
  values.set("bos_token", Value::markup("<s>"));
  values.set("eos_token", Value::markup("</s>"));
  values.set("number", 7);
  values.set("real", 2.5);
  return values;
}

std::tm some_day() {
  std::tm day{};
  day.tm_year = 126;
  day.tm_mday = 21;
  return day;
}

void check_segments(const std::vector<Segment>& segments) {
  size_t size = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    require(!segments[i].text.empty(), "no segment is empty");
    require(i == 0 || segments[i].origin != segments[i - 1].origin, "neighbours differ in origin");
    size += segments[i].text.size();
  }
  require(size <= limits.output_bytes, "a prompt keeps its limit");
}

// Renders the same template twice, and with a message of marks: no mark may come out as the template's own text.
void check_render(const jinja::Template& parsed, std::string_view source, std::string_view content) {
  const auto segments = parsed.render(conversation(content), some_day());
  check_segments(segments);
  const auto again = parsed.render(conversation(content), some_day());
  require(again.size() == segments.size(), "a template renders the same twice");
  for (size_t i = 0; i < segments.size(); ++i) {
    require(segments[i].text == again[i].text, "a template renders the same text twice");
  }
  if (source.find(mark) != std::string_view::npos || source.find('\\') != std::string_view::npos) return;
  for (const Segment& segment : parsed.render(conversation(mark), some_day())) {
    const bool holds_mark = segment.text.find(mark) != std::string::npos;
    require(segment.origin == jinja::Origin::content || !holds_mark, "what a message brings stays content");
  }
}

// A reply written byte by byte: its tokens go into a prompt without adding or removing a control token.
void check_known_tokens(const ChatTemplate& chat, const Tokenizer& tokenizer, std::string_view content) {
  std::vector<uint32_t> written;
  for (const char& c : content) {
    const auto ids = tokenizer.encode({&c, 1}, SpecialTokens::as_text);
    written.insert(written.end(), ids.begin(), ids.end());
  }
  ChatTurn turns[] = {{"user", std::string(content)}, {"assistant", tokenizer.decode(written)}, {"user", "and then"}};
  const auto controls = [&] {
    const auto ids = chat.render_to_ids(turns, tokenizer);
    return std::count_if(ids.begin(), ids.end(), [&](uint32_t id) { return tokenizer.is_special(id); });
  };
  accepted([&] {
    const auto of_text = controls();
    turns[1].tokens = tokens_of_reply(tokenizer, written, turns[1].content);
    require(controls() == of_text, "tokens that are known bring no control token");
  });
}

// Renders a template to ids, as for chats.
void check_chat(std::string_view source, std::string_view content) {
  static const auto tokenizer = golden::tiny_tokenizer();
  const auto chat = ChatTemplate::create(source, *tokenizer);
  const ChatTurn turns[] = {{"system", std::string(content)}, {"user", std::string(content)}};
  std::vector<PromptPart> parts;
  if (!accepted([&] { parts = chat->render(turns); })) return;
  std::vector<TextSpan> spans;
  for (const PromptPart& part : parts) {
    spans.push_back({part.text, part.is_structure ? SpecialTokens::parse : SpecialTokens::as_text});
  }
  check_special_tokens(*tokenizer, spans);
  check_known_tokens(*chat, *tokenizer, content.substr(0, most_written));
  touch(chat->warning());
}

}  // namespace

void run(std::string_view input) {
  const auto files = split_archive(input);
  const std::string_view source = find_file(files, ""), content = find_file(files, "content");
  const bool is_cheap = accepted([&] {
    const auto parsed = jinja::Template::parse(source, "the chat template", limits);
    check_render(parsed, source, content);
  });
  if (is_cheap) check_chat(source, content);
}

}  // namespace canopy::fuzz
