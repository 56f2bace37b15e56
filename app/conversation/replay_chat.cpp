#include "app/conversation/replay_chat.h"

#include <algorithm>
#include <span>
#include <utility>

#include "app/base/local_time.h"
#include "app/base/model_name.h"
#include "app/conversation/message.h"
#include "app/conversation/prompt_turns.h"
#include "engine/text/reply_channels.h"
#include "engine/text/utf8_stream.h"

namespace canopy::app {
namespace {

std::string name_of(const TraceModel& model) {
  return model_name(model.name, model.file_name, model.quantization);
}

ReplayOrigin replay_origin_of(const TraceHeader& header) {
  ReplayOrigin origin;
  origin.target = name_of(header.target);
  if (header.drafter) origin.drafter = name_of(*header.drafter);
  origin.device = header.times.empty() ? header.device : header.device + " (" + header.times + ")";
  origin.driver = header.driver;
  const std::optional<int64_t> moment = moment_in(header.created);
  origin.recorded = moment ? local_minute(*moment) : header.created;
  origin.redacted = header.redacted;
  origin.times = header.times;
  return origin;
}

/// Appends the text of tokens, in whole characters, and returns the size of the text in bytes after each token.
class Writer {
 public:
  /// drops_space: the vocabulary begins every text with a space that the user does not see; leave it out.
  Writer(const TraceLog& log, std::span<const uint32_t> prompt, std::string& text, bool drops_space)
      : log_(log), text_(text), drops_space_(drops_space) {
    const auto piece = [&](uint32_t token) {
      const auto found = log.piece(token);
      return found ? ReplyChannels::Piece{found->bytes, found->control} : ReplyChannels::Piece{};
    };
    in_channels_ = channels_.begin(prompt, piece);
  }

  uint32_t push(uint32_t token) {
    const auto piece = log_.piece(token);
    if (piece && !piece->control) {
      std::string_view bytes = piece->bytes;
      if (std::exchange(drops_space_, false) && bytes.starts_with(' ')) bytes.remove_prefix(1);
      add(characters_.push(bytes));
    } else if (piece && in_channels_) {
      add(characters_.finish());
      ReplyChannels::Shown headless;
      channels_.control(piece->bytes, headless);
      text_ += headless.lead + headless.text;
    }
    return static_cast<uint32_t>(text_.size());
  }

  ThoughtPart thought() const { return in_channels_ ? channels_.thought() : ThoughtPart(); }

 private:
  void add(const std::string& characters) {
    if (!in_channels_) {
      text_ += characters;
      return;
    }
    const ReplyChannels::Shown shown = channels_.text(characters);
    text_ += shown.lead + shown.text;
  }

  const TraceLog& log_;
  std::string& text_;
  Utf8Stream characters_;
  ReplyChannels channels_;
  bool in_channels_ = false;
  bool drops_space_;
};

ReplyFinished result_of(const TraceReply& reply, const ReplySummary& summary, uint32_t emitted, double rounds_ms) {
  ReplyFinished result;
  result.reason = reply.end ? reply.end->reason : FinishReason::cancelled;
  result.mode = summary.mode;
  result.prompt_tokens = reply.begin.prompt_tokens;
  if (reply.prefill) result.reused_tokens = reply.prefill->reused_tokens;
  if (reply.prefill) result.prefill_ms = reply.prefill->ms;
  result.reply_tokens = reply.end ? reply.end->reply_tokens : emitted + 1;
  result.decode_ms = reply.end && reply.end->decode_ms > 0 ? reply.end->decode_ms : rounds_ms;
  if (result.decode_ms > 0) result.tokens_per_second = 1000.0 * emitted / result.decode_ms;
  if (summary.rounds > 0) result.tau = static_cast<double>(emitted) / static_cast<double>(summary.rounds);
  return result;
}

/// Index of the first turn that the conversation so far (`said`) does not have. The prompt of a conversation that goes
/// on repeats all of it. Only the user's turns are compared, since the model's own text may look different in a prompt.
size_t first_unsaid(const std::vector<ChatTurn>& turns, const std::vector<ChatTurn>& said) {
  bool goes_on = turns.size() > said.size();
  for (size_t i = 0; goes_on && i < said.size(); ++i)
    goes_on = turns[i].role == said[i].role && (turns[i].role != "user" || turns[i].content == said[i].content);
  if (goes_on) return said.size();
  return turns.empty() ? 0 : turns.size() - 1;  // a new conversation, or the same question again
}

}  // namespace

ReplayChat::ReplayChat(const TraceLog& log, uint64_t& last_id) : origin_(replay_origin_of(log.reader().header())) {
  for (size_t i = 0; i < log.replies().size(); ++i) add(log, i, last_id);
  said_.clear();
}

void ReplayChat::add(const TraceLog& log, size_t index, uint64_t& last_id) {
  const TraceReply& recorded = log.reader().replies()[index];
  const ReplySummary& summary = log.replies()[index];
  Reply reply;
  reply.first_round = summary.first_round;
  reply.rounds = summary.rounds;
  std::vector<ChatTurn> turns = prompt_turns(recorded.begin.prompt, [&](uint32_t token) { return log.piece(token); });
  ReplyParameters& asked = reply.whole.parameters;
  if (!turns.empty() && turns.front().role == "system") {
    asked.system_prompt = std::move(turns.front().content);
    turns.erase(turns.begin());
  }
  for (size_t i = first_unsaid(turns, said_); i < turns.size(); ++i) {
    Message question;
    question.id = ++last_id;
    question.role = turns[i].role == "assistant" ? Role::assistant : Role::user;
    question.text = turns[i].content;
    reply.questions.push_back(std::move(question));
  }
  reply.whole.id = ++last_id;
  reply.whole.role = Role::assistant;
  asked.sampling = recorded.begin.sampling;
  asked.max_tokens = recorded.begin.max_tokens;
  asked.mode = summary.mode;
  asked.budget = summary.budget;
  asked.model = origin_.target;
  asked.device = origin_.device;
  if (asked.sampling.temperature > 0) reply.whole.seed = asked.sampling.seed;
  write(log, recorded, summary, reply);
  said_ = std::move(turns);
  said_.push_back({"assistant", reply.whole.text});
  replies_.push_back(std::move(reply));
}

/// Puts the text together from the tokens of the rounds, so that the round and node of each byte are known.
void ReplayChat::write(const TraceLog& log, const TraceReply& recorded, const ReplySummary& summary, Reply& reply) {
  Message& message = reply.whole;
  Writer writer(log, recorded.begin.prompt, message.text, recorded.end && !recorded.end->text.starts_with(' '));
  uint32_t begin = summary.first_token ? writer.push(*summary.first_token) : 0;
  reply.begin = begin;
  uint32_t emitted = 0;
  double ms = 0;
  for (size_t i = 0; i < summary.rounds; ++i) {
    const auto round = log.round(summary.first_round + i);
    if (!round) break;  // the file was changed after it was opened
    std::vector<uint32_t> ends;
    for (const uint32_t token : round->emitted) ends.push_back(writer.push(token));
    append_spans(message, *round, static_cast<uint32_t>(i), begin, ends);
    if (!ends.empty()) begin = ends.back();
    reply.ends.push_back(begin);
    emitted += static_cast<uint32_t>(round->emitted.size());
    ms += round->ms.total();
  }
  message.thought = writer.thought();
  // To what the user saw, where that is its beginning: a stop string ends the reply before its last token.
  if (recorded.end && message.text.starts_with(recorded.end->text)) cut_text(message, recorded.end->text.size());
  message.rounds = static_cast<uint32_t>(summary.rounds);
  message.tokens = emitted + 1;
  message.result = result_of(recorded, summary, emitted, ms);
  message.tokens_per_second = message.result->tokens_per_second;
}

Message ReplayChat::up_to(const Reply& reply, size_t round, bool told) const {
  const size_t rounds = round - reply.first_round + (told ? 1 : 0);  // of which the text is shown
  if (rounds >= reply.ends.size()) return reply.whole;
  Message message = reply.whole;
  const uint32_t end = rounds > 0 ? reply.ends[rounds - 1] : reply.begin;
  cut_text(message, end);
  std::erase_if(message.spans, [&](const TokenSpan& span) { return span.round >= rounds; });
  message.writing = true;
  message.result.reset();
  return message;
}

void ReplayChat::show(size_t round, bool told) {
  if ((round == shown_round_ && told == told_) || replies_.empty()) return;
  shown_round_ = round;
  told_ = told;
  size_t shown = 0;
  for (size_t i = 0; i < replies_.size(); ++i)
    if (replies_[i].rounds > 0 && replies_[i].first_round <= round) shown = i;
  if (shown == shown_reply_) {
    conversation_.back() = up_to(replies_[shown], round, told);
    return;
  }
  shown_reply_ = shown;
  conversation_.clear();
  for (size_t i = 0; i <= shown; ++i) {
    for (const Message& question : replies_[i].questions) conversation_.append(question);
    conversation_.append(i == shown ? up_to(replies_[i], round, told) : replies_[i].whole);
  }
  conversation_.system_prompt = replies_[shown].whole.parameters.system_prompt;
}

std::optional<size_t> ReplayChat::first_round(uint64_t message) const {
  for (const Reply& reply : replies_)
    if (reply.whole.id == message) return reply.first_round;
  return std::nullopt;
}

}  // namespace canopy::app
