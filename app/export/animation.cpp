#include "app/export/animation.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "app/state/conversation.h"
#include "engine/base/text.h"
#include "engine/text/unicode.h"

namespace canopy::app {
namespace {

constexpr float kCell = 0.6f * TextStrip::kEm;

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::lround(text_width(Face::mono, 1, text) / 0.6f));
}

}  // namespace

TextStrip::TextStrip(const SharedRun& run, float width)
    : per_line_(std::max<size_t>(10, static_cast<size_t>(width / kCell))) {
  for (const SharedReply& reply : run.replies) {
    first_piece_.push_back(pieces_.size());
    first_round_.push_back(reply.first_round);
    add(reply);
  }
}

void TextStrip::add(const SharedReply& reply) {
  line_ = column_ = 0;
  const std::string& text = reply.message.text;
  const Thinking thinking = thinking_of(reply.message);  // whose tags are left out
  bool answers = !thinking.there;
  for (const TokenSpan& span : reply.message.spans) {
    const size_t end = std::min<size_t>(span.end, text.size());
    if (span.begin >= end) continue;
    const bool before = span.node == 0;
    const auto round = static_cast<int64_t>(reply.first_round + span.round) - (before ? 1 : 0);
    std::string shown;
    const size_t thought = std::max<size_t>(span.begin, thinking.begin), thought_end = std::min(end, thinking.end);
    if (thought < thought_end) shown = text.substr(thought, thought_end - thought);
    const size_t answer = std::max<size_t>(span.begin, thinking.answer);
    if (answer < end) shown += (std::exchange(answers, true) ? "" : "\n\n") + text.substr(answer, end - answer);
    if (!shown.empty()) place(shown, round, span.source, !before);
  }
}

/// Puts a token's text behind what is there, a line at a time. A word that does not fit goes to the next line whole.
void TextStrip::place(const std::string& text, int64_t round, TokenSource source, bool marked) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string words = printable(rest.substr(0, end), rest.size() * 8 + 16);
    size_t columns = columns_of(words);
    if (column_ > 0 && column_ + columns > per_line_ && columns <= per_line_) {
      ++line_, column_ = 0;
      if (words.starts_with(' ')) words.erase(0, 1), --columns;
    }
    while (!words.empty()) {
      const size_t room = per_line_ - column_;
      size_t taken = 0, wide = 0;
      while (taken < words.size()) {
        const size_t length = next_utf8(std::string_view(words).substr(taken)).length;
        const size_t cells = columns_of(std::string_view(words).substr(taken, length));
        if (wide + cells > room) break;
        taken += length, wide += cells;
      }
      if (taken > 0) pieces_.push_back({words.substr(0, taken), line_, column_, wide, round, source, marked});
      column_ += wide;
      words.erase(0, taken);
      if (words.empty()) break;
      if (taken == 0 && column_ == 0) break;  // a single character wider than the line
      ++line_, column_ = 0;
    }
    rest.remove_prefix(end);
    if (rest.empty()) break;
    rest.remove_prefix(1);
    ++line_, column_ = 0;
  }
}

void TextStrip::draw(Picture& picture, const Theme& t, Point corner, size_t lines, size_t round, bool told) const {
  size_t reply = 0;
  for (size_t i = 0; i < first_round_.size(); ++i)
    if (first_round_[i] <= round) reply = i;
  const auto until = static_cast<int64_t>(round) - (told ? 0 : 1);
  const size_t from = first_piece_.empty() ? 0 : first_piece_[reply];
  const size_t to = reply + 1 < first_piece_.size() ? first_piece_[reply + 1] : pieces_.size();
  size_t last = 0;
  for (size_t i = from; i < to; ++i)
    if (pieces_[i].round <= until) last = pieces_[i].line;
  const size_t top = last + 1 > lines ? last + 1 - lines : 0;
  float cursor_x = corner.x, cursor_y = corner.y + kLine * 0.5f;
  for (size_t i = from; i < to; ++i) {
    const Piece& piece = pieces_[i];
    if (piece.round > until) break;
    const float x = corner.x + static_cast<float>(piece.column) * kCell;
    const float width = static_cast<float>(piece.columns) * kCell;
    if (piece.line < top) continue;
    const float y = corner.y + static_cast<float>(piece.line - top) * kLine, middle = y + kLine * 0.5f;
    const bool now = piece.round == static_cast<int64_t>(round);
    const bool blank = piece.text.find_first_not_of(' ') == std::string::npos;
    if (piece.marked && !blank && piece.source == TokenSource::accepted)
      picture.fill(rectangle({x + 0.5f, middle - 9}, {x + width - 0.5f, middle + 9}, 2),
                   now ? t.accepted_strong_bg : t.accepted_bg);
    if (piece.marked && !blank && piece.source != TokenSource::accepted)
      picture.stroke(Path().move({x, middle + 8}).line({x + width, middle + 8}), {t.bonus, 2, 2, 2});
    picture.write({x, middle}, now ? Face::mono_semibold : Face::mono, kEm, now ? t.text : t.text2, piece.text);
    cursor_x = x + width, cursor_y = middle;
  }
  picture.fill(rectangle({cursor_x + 2, cursor_y - 8}, {cursor_x + 9, cursor_y + 8}), t.accent);
}

namespace {

constexpr size_t kTextLines = 3;
constexpr float kTextMargin = 20, kTextHeight = kTextLines * TextStrip::kLine + 20;

/// A still of an animation.
struct Still {
  RoundMoment moment;
  double ms = 0;  // that it is seen
};

/// Few steps, as the file holds each of them whole.
std::vector<Still> stills_of(bool drafted) {
  if (!drafted) return {{{Phase::commit, 1}, 900}};
  return {{{Phase::insert, 1}, 900}, {{Phase::walk, 1}, 700}, {{Phase::commit, 1}, 1600}};
}

/// Draws stills of a run.
class Studio {
 public:
  Studio(const SharedRun& run, const PictureSize& size)
      : run_(run), size_(size), text_(run, static_cast<float>(size.width) - 2 * kTextMargin - 10) {
    check_picture_size(size, static_cast<uint32_t>(kTextHeight));
  }

  RoundCard card(size_t round) const {
    return {*run_.log, round, {size_.width, size_.height - static_cast<uint32_t>(kTextHeight)}};
  }

  /// Draws into a picture of the whole size.
  void draw(Picture& picture, const RoundCard& card, size_t round, ThemeKind theme_kind,
            const RoundMoment& moment) const {
    const Theme& t = theme(theme_kind);
    const float width = static_cast<float>(size_.width), height = static_cast<float>(size_.height);
    const float top = height - kTextHeight;
    card.draw(picture, theme_kind, moment);
    picture.fill(rectangle({0, top}, {width, height}), t.panel);
    text_.draw(picture, t, {kTextMargin, top + 10}, kTextLines, round, moment.phase == Phase::commit);
  }

 private:
  const SharedRun& run_;
  PictureSize size_;
  TextStrip text_;
};

Picture empty_picture(const PictureSize& size) {
  return {static_cast<float>(size.width), static_cast<float>(size.height)};
}

}  // namespace

std::string animated_svg(const SharedRun& run, const RoundRange& range, std::optional<ThemeKind> theme,
                         const PictureSize& size, const ShareCallbacks& callbacks) {
  const Studio studio(run, size);
  Picture dark = empty_picture(size), light = empty_picture(size);
  SvgOptions options;
  options.description =
      "A tree of continuations is guessed; the big model reads it in one pass and keeps what it would have written "
      "itself.";
  for (size_t i = 0; i < range.count; ++i) {
    callbacks.step(i, range.count);
    const size_t round = range.first + i;
    const RoundCard card = studio.card(round);
    if (i == 0) options.title = "Canopy: " + card.title();
    for (const Still& still : stills_of(card.record().nodes.size() > 1)) {
      const std::string name = "g" + std::to_string(options.times.size());
      options.times.push_back({name, options.loop_ms, options.loop_ms + still.ms});
      options.loop_ms += still.ms;
      for (Picture* picture : {&dark, &light}) {
        if (theme && picture == &light) continue;
        picture->add(Group{name});
        studio.draw(*picture, card, round, theme.value_or(picture == &dark ? ThemeKind::dark : ThemeKind::light),
                    still.moment);
      }
    }
  }
  return svg_of(dark, options, theme ? nullptr : &light);
}

}  // namespace canopy::app
