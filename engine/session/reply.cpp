#include "engine/session/reply.h"

#include <utility>

#include "engine/base/error.h"

namespace canopy {

std::vector<uint32_t> TextModel::encode_raw(std::string_view text) const {
  std::vector<uint32_t> ids = tokenizer->encode(text, SpecialTokens::parse);
  const auto bos = tokenizer->bos();
  if (tokenizer->adds_bos() && bos && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

TextModel make_text_model(const ModelFile& file) {
  const TokenizerSource& source = file.tokenizer();
  TextModel text;
  text.tokenizer = make_tokenizer(source);
  if (text.tokenizer->vocab_size() > file.config().vocab) {
    throw bad_input("The tokenizer has " + std::to_string(text.tokenizer->vocab_size()) +
                    " tokens, but the model has embeddings for only " + std::to_string(file.config().vocab) + ".");
  }
  text.chat = source.chat_template.empty() ? ChatTemplate::create(*text.tokenizer)
                                           : ChatTemplate::create(source.chat_template, *text.tokenizer);
  if (!source.tool_template.empty()) {
    text.tool_chat = ChatTemplate::create(source.tool_template, *text.tokenizer);
    if (!text.tool_chat->warning().empty()) text.tool_chat.reset();  // the other one is tried with tools
  }
  if (!text.chat->warning().empty()) text.warnings.push_back(text.chat->warning());

  const auto ends = text.tokenizer->end_ids();
  text.stop_ids.assign(ends.begin(), ends.end());
  text.stop_ids.insert(text.stop_ids.end(), file.config().eos.begin(), file.config().eos.end());
  const auto message_ends = text.tokenizer->message_end_ids();
  std::erase_if(text.stop_ids, [&](uint32_t id) { return std::ranges::binary_search(message_ends, id); });
  std::sort(text.stop_ids.begin(), text.stop_ids.end());
  text.stop_ids.erase(std::unique(text.stop_ids.begin(), text.stop_ids.end()), text.stop_ids.end());
  if (text.stop_ids.empty()) {
    text.warnings.emplace_back("The model names no token that ends a reply: replies end at the token limit.");
  }
  return text;
}

ReplySettings settings_of(const Generate& command, uint64_t vocabulary) {
  ReplySettings settings;
  settings.begun = command.begun.ids;
  settings.begun.insert(settings.begun.end(), command.begun.ending.begin(), command.begun.ending.end());
  if (!settings.begun.empty() && command.begun.vocabulary != vocabulary)
    throw bad_input("The reply cannot go on: it was written by a model with another vocabulary.");
  settings.sampling = command.sampling;
  settings.max_tokens = command.max_tokens;
  settings.mode = command.mode.value_or(DecodeMode::adaptive);
  settings.budget = command.budget;
  settings.sources = command.sources;
  settings.stop_loops = command.stop_loops;
  settings.probabilities = command.rounds && command.probabilities;
  settings.times_plain = true;
  settings.turn = static_cast<uint64_t>(std::ranges::count(command.turns, "assistant", &ChatTurn::role));
  return settings;
}

std::string Reply::thinking() const {
  if (!thought.told_apart) return {};
  std::string thinking = text.substr(0, thought.bytes);
  thinking.erase(thinking.find_last_not_of(" \t\r\n") + 1);
  return thinking;
}

std::string advice_on_room(uint32_t context, uint32_t model_context) {
  if (context >= model_context)
    return ", all that the model was made for. Use fewer tokens, or begin a new conversation.";
  return ". Use fewer tokens, or load the model with a longer context: it was made for " +
         std::to_string(model_context) + ".";
}

double Reply::tokens_per_second() const {
  uint64_t emitted = 0;
  for (const RoundRecord& round : rounds) emitted += round.emitted.size();
  return decode_ms > 0 ? 1000.0 * static_cast<double>(emitted) / decode_ms : 0;
}

double Reply::tau() const {
  uint64_t emitted = 0;
  for (const RoundRecord& round : rounds) emitted += round.emitted.size();
  return rounds.empty() ? 0 : static_cast<double>(emitted) / static_cast<double>(rounds.size());
}

ReplyText::ReplyText(const Tokenizer& tokenizer, std::vector<std::string> stop_strings,
                     std::span<const uint32_t> prompt)
    : tokenizer_(tokenizer), stops_(std::move(stop_strings)) {
  if (!ReplyChannels::known_to(tokenizer)) return;
  channels_.emplace();
  channels_->begin(prompt, [&](uint32_t id) {
    return ReplyChannels::Piece{tokenizer.token_bytes(id), tokenizer.is_special(id)};
  });
}

std::string ReplyText::push(uint32_t id) {
  if (tokenizer_.is_special(id)) {
    if (!channels_) return {};
    std::string shown = show(characters_.finish());  // it belongs to the text in front of the token
    ReplyChannels::Shown headless;
    if (channels_->control(tokenizer_.token_bytes(id), headless)) shown += end_message();
    return shown + show(headless);
  }
  std::string_view bytes = tokenizer_.token_bytes(id);
  if (at_start_ && tokenizer_.drops_leading_space() && bytes.starts_with(' ')) bytes.remove_prefix(1);
  at_start_ = false;
  return show(characters_.push(bytes));
}

std::string ReplyText::push_end(uint32_t id) {
  return channels_ && tokenizer_.is_special(id) ? push(id) : std::string();
}

std::string ReplyText::show(const std::string& characters) {
  return show(channels_ ? channels_->text(characters) : ReplyChannels::Shown{{}, characters});
}

/// A stop string is looked for in what the model wrote, not in what is put between its messages.
std::string ReplyText::show(const ReplyChannels::Shown& part) {
  if (stops_.stopped()) return {};
  completed_ += part.lead.size() + part.text.size();
  std::string shown = part.lead + stops_.push(part.text);
  text_ += shown;
  return shown;
}

/// No stop string reaches from one message into the next.
std::string ReplyText::end_message() {
  std::string shown = stops_.finish();
  text_ += shown;
  return shown;
}

std::string ReplyText::finish() {
  const std::string rest = show(characters_.finish());
  return rest + end_message();
}

ThoughtPart ReplyText::thought() const {
  if (!channels_) return {};
  ThoughtPart thought = channels_->thought();
  // Less is shown than came, where something is held back or a stop string was met.
  thought.bytes = std::min(thought.bytes, static_cast<uint32_t>(text_.size()));
  return thought;
}

namespace {

bool has_letter(std::string_view bytes) {
  return std::ranges::any_of(bytes, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
  });
}

}  // namespace

void LoopGuard::clear() {
  ids_.clear();
  repeats_.fill(0);
  since_letter_ = 0;
}

/// Whether the token belongs to a code block or to a row of a table.
bool LoopGuard::is_exempt(std::string_view bytes) {
  constexpr size_t kept = 8;
  bool exempt = fence_ != 0 || line_.starts_with('|');
  for (const char c : bytes) {
    if (c == '\n') {
      line_.clear();
    } else if (line_.size() < kept && !(line_.empty() && (c == ' ' || c == '\t'))) {
      line_ += c;
      const bool marks = line_ == "```" || line_ == "~~~";
      if (marks && fence_ == 0)
        fence_ = c;
      else if (marks && fence_ == c)
        fence_ = 0;
      exempt |= marks;
    }
    exempt |= fence_ != 0 || line_.starts_with('|');
  }
  return exempt;
}

bool LoopGuard::push(uint32_t id, std::string_view bytes) {
  if (is_exempt(bytes)) {
    clear();
    return false;
  }
  since_letter_ = has_letter(bytes) ? 0 : since_letter_ + 1;
  ids_.push_back(id);
  const size_t last = ids_.size() - 1;
  for (size_t p = 1; p <= std::min<size_t>(kLongest, last); ++p)
    repeats_[p] = ids_[last - p] == id ? repeats_[p] + 1 : 0;
  for (uint32_t p = kShortest; p <= kLongest; ++p) {
    const uint32_t wanted = (kTimes - 1) * p;
    const bool shorter = repeats_[1] >= wanted || repeats_[2] >= wanted;
    if (repeats_[p] < wanted || shorter || since_letter_ >= p) continue;
    clear();
    return true;
  }
  return false;
}

namespace {

constexpr std::chrono::milliseconds kTextInterval{33};  // a window shows at most 30 new texts a second

}  // namespace

ReplyPublisher::ReplyPublisher(uint64_t reply_id, uint32_t prompt_tokens, uint32_t begun, Publish publish)
    : publish_(std::move(publish)), prompt_tokens_(prompt_tokens), begun_(begun), tokens_(begun) {
  pending_.reply_id = reply_id;
}

ReplyCallbacks ReplyPublisher::callbacks(bool rounds, std::stop_token stop) {
  ReplyCallbacks callbacks;
  callbacks.stop = std::move(stop);
  callbacks.prefill = [this](uint32_t done, uint32_t total) {
    publish_(PrefillProgress{pending_.reply_id, done, total}, true);
  };
  callbacks.started = [this](const ReplyStart& start) {
    publish_(ReplyStarted{pending_.reply_id, prompt_tokens_, start.reused_tokens, start.prefill_ms, start.first_token,
                          start.begun_bytes,
                          std::make_shared<const std::vector<uint32_t>>(start.before.begin(), start.before.end())},
             true);
  };
  callbacks.token = [this](const ReplyProgress& progress) { token(progress); };
  if (rounds) callbacks.round = [this](const RoundRecord& record) { round(record); };
  return callbacks;
}

void ReplyPublisher::token(const ReplyProgress& progress) {
  if (progress.reply_tokens == begun_ + 1 && tokens_ == begun_) {
    text_begin_ = progress.text_end;  // the first new token belongs to the prompt's pass and to no round
  } else if (progress.reply_tokens > tokens_) {
    text_ends_.push_back(progress.text_end);
  }
  tokens_ = progress.reply_tokens;
  pending_.text += progress.text;
  pending_.reply_tokens = progress.reply_tokens;
  pending_.context_used = progress.context_used;
  pending_.tokens_per_second = progress.tokens_per_second;
  pending_.thought = progress.thought;
  has_pending_ = true;
  if (is_due()) publish_text(true);
}

void ReplyPublisher::round(const RoundRecord& record) {
  if (has_pending_) publish_text(false);
  RoundFinished finished;
  finished.reply_id = pending_.reply_id;
  finished.round = std::make_shared<const RoundRecord>(record);
  finished.first_index = tokens_ - static_cast<uint32_t>(text_ends_.size());
  finished.text_begin = text_begin_;
  text_begin_ = text_ends_.back();
  finished.text_ends = std::exchange(text_ends_, {});
  publish_(std::move(finished), is_due());
}

void ReplyPublisher::flush() {
  if (has_pending_) publish_text(true);
}

bool ReplyPublisher::is_due() {
  const auto now = std::chrono::steady_clock::now();
  if (now - woken_ < kTextInterval) return false;
  woken_ = now;
  return true;
}

void ReplyPublisher::publish_text(bool wake) {
  publish_(pending_, wake);
  pending_.text.clear();
  has_pending_ = false;
}

}  // namespace canopy
