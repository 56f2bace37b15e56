#include "app/share/round_picture.h"

#include <algorithm>
#include <array>

#include "app/base/figures.h"
#include "app/layout/tree_caption.h"
#include "app/layout/tree_labels.h"
#include "app/picture/png.h"
#include "app/picture/raster.h"
#include "app/picture/svg.h"
#include "app/rounds/dump_trace.h"
#include "app/share/tree_picture.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace canopy::app {
namespace {

constexpr float kMargin = 20, kTitle = 44, kCaption = 36, kLegend = 34, kLeastTitle = 160;

/// What is said of a round where there is this much room: at the least which one it is.
/// `times` says where times come from that were not measured; it is never left out.
std::string figures_of(const RoundRecord& record, size_t round, size_t rounds, const std::string& times, float room) {
  const std::string source = times.empty() ? "" : " " + times;
  const std::string number = "round " + grouped(round + 1) + " of " + grouped(rounds);
  const std::string all = number + " \u00b7 width " + grouped(record.width) + " \u00b7 " +
                          grouped(record.emitted.size()) + " emitted \u00b7 " + milliseconds(record.ms.total()) +
                          source;
  if (text_width(Face::mono, 12, all) <= room) return all;
  return times.empty() ? number : number + " \u00b7" + source;
}

CanvasSize canvas_of(const PictureSize& size) {
  return {static_cast<float>(size.width), static_cast<float>(size.height) - kTitle - kCaption - kLegend, 1};
}

Face face_of(CaptionPart::Kind kind) {
  if (kind == CaptionPart::Kind::accepted) return Face::sans_semibold;
  return kind == CaptionPart::Kind::token ? Face::mono_semibold : Face::sans;
}

Colour colour_of_part(const Theme& t, CaptionPart::Kind kind) {
  switch (kind) {
    case CaptionPart::Kind::accepted: return t.accepted_text;
    case CaptionPart::Kind::token: return t.bonus_text;
    case CaptionPart::Kind::aside: return t.text3;
    default: return t.text;
  }
}

float width_of_parts(const std::vector<CaptionPart>& parts) {
  float width = 0;
  for (const CaptionPart& part : parts)
    if (part.kind != CaptionPart::Kind::aside) width += text_width(face_of(part.kind), 15, part.text);
  return width;
}

/// Writes the parts one after the other; an aside that does not fit is left out.
void write_parts(Picture& picture, const Theme& t, Point at, float room, const std::vector<CaptionPart>& parts) {
  float x = at.x;
  for (const CaptionPart& part : parts) {
    const Face face = face_of(part.kind);
    const float left = at.x + room - x;
    if (part.kind == CaptionPart::Kind::aside && text_width(face, 15, part.text) > left) return;
    if (left < 15) return;
    if (part.kind == CaptionPart::Kind::token)
      x += write_word(picture, {x, at.y}, face, 15, colour_of_part(t, part.kind), part.text, left);
    else
      x += picture.write({x, at.y}, face, 15, colour_of_part(t, part.kind), text_within(face, 15, part.text, left));
  }
}

struct LegendItem {
  NodeFate fate;
  const char* words;
};
constexpr LegendItem kLegendItems[] = {{NodeFate::accepted, "accepted"},
                                       {NodeFate::rejected, "rejected"},
                                       {NodeFate::not_reached, "not reached"},
                                       {NodeFate::bonus, "bonus"}};

/// The nodes of each fate that may be told: in slow motion only those that the walk has come to.
std::array<uint32_t, kFates> told_of(const TreeModel& tree, const TreeReveal& reveal) {
  std::array<uint32_t, kFates> count{};
  for (uint32_t i = 0; i < tree.size(); ++i) {
    const NodeReveal& node = reveal.nodes[i];
    const NodeFate fate = tree.nodes[i].fate;
    const bool lit = fate != NodeFate::accepted || node.lit >= 1;
    if (node.judged && lit && (fate != NodeFate::bonus || node.shown > 0)) ++count[static_cast<size_t>(fate)];
  }
  return count;
}

}  // namespace

void check_picture_size(const PictureSize& size, uint32_t more) {
  const PictureSize least = {kSmallestPicture.width, kSmallestPicture.height + more}, most = kLargestRoundPicture;
  if (size.width >= least.width && size.height >= least.height && size.width <= most.width &&
      size.height <= most.height)
    return;
  throw bad_input("A picture of " + std::to_string(size.width) + "x" + std::to_string(size.height) +
                  " was asked for; allowed: " + std::to_string(least.width) + "x" + std::to_string(least.height) +
                  " to " + std::to_string(most.width) + "x" + std::to_string(most.height) + ".");
}

RoundCard::RoundCard(const RoundLog& log, size_t round, const PictureSize& size)
    : round_(round),
      rounds_(log.rounds()),
      size_(size),
      title_(printable(log.origin())),
      times_(printable(log.times())) {
  check_picture_size(size);
  check_round(round, log.rounds());
  record_ = log.round(round);
  if (!record_) throw bad_input("The tree of round " + std::to_string(round) + " is not there any more.");
  tree_ = tree_of_round(*record_, log, round);
  labels_ = tree_labels(tree_, log);
  geometry_ = arrange({tree_, label_widths(labels_), canvas_of(size), true}, {});
}

std::string RoundCard::words() const {
  std::string words = "Round " + grouped(round_ + 1) + " of " + grouped(rounds_) + ". ";
  for (const CaptionPart& part : tree_caption(tree_, labels_, record_->emitted.size())) words += part.text;
  return words;
}

void RoundCard::draw(Picture& picture, ThemeKind kind, const RoundMoment& moment) const {
  const Theme& t = theme(kind);
  const TreeReveal now = reveal(tree_, moment.phase, moment.progress);
  const auto width = static_cast<float>(size_.width), height = static_cast<float>(size_.height);
  picture.fill(rectangle({0, 0}, {width, height}), t.canvas);
  picture.fill(rectangle({0, 0}, {width, kTitle + kCaption}), t.panel);
  draw_title(picture, t);
  draw_caption(picture, t, moment);
  const TreeDrawing drawing{tree_, geometry_, now, labels_, t, {0, kTitle + kCaption}};
  draw_depth_line(picture, drawing, width);
  draw_tree(picture, drawing);
  if (now.whole) draw_chain_note(picture, t);
  draw_legend(picture, t, now);
}

void RoundCard::draw_title(Picture& picture, const Theme& t) const {
  const float middle = kTitle * 0.5f + 2, right = picture.width() - kMargin;
  const std::string figures = figures_of(*record_, round_, rounds_, times_, right - kMargin - kLeastTitle);
  picture.write({right, middle}, Face::mono, 12, t.text2, figures, Align::right);
  const float room = right - kMargin - text_width(Face::mono, 12, figures) - 24;
  picture.write({kMargin, middle}, Face::sans_semibold, 14, t.text, text_within(Face::sans_semibold, 14, title_, room));
}

void RoundCard::draw_caption(Picture& picture, const Theme& t, const RoundMoment& moment) const {
  const Point at = {kMargin, kTitle + kCaption * 0.5f - 2};
  const float room = picture.width() - 2 * kMargin;
  const size_t emitted = record_->emitted.size();
  if (moment.phase == Phase::commit && moment.progress >= 1) {
    std::vector<CaptionPart> parts = tree_caption(tree_, labels_, emitted);
    if (width_of_parts(parts) > room) parts = brief_caption(tree_, emitted);
    if (width_of_parts(parts) > room) parts = briefest_caption(emitted);
    write_parts(picture, t, at, room, parts);
    return;
  }
  const auto index = static_cast<size_t>(moment.phase);
  const float name = picture.write(at, Face::sans_semibold, 15, t.accent_text,
                                   std::to_string(index + 1) + " " + std::string(phase_texts()[index].name)) +
                     14;
  picture.write({at.x + name, at.y}, Face::sans, 14, t.text2,
                text_within(Face::sans, 14, phase_sentence(moment.phase, emitted), room - name));
}

void RoundCard::draw_legend(Picture& picture, const Theme& t, const TreeReveal& reveal) const {
  const float middle = static_cast<float>(size_.height) - kLegend * 0.5f, right = picture.width() - kMargin;
  const auto count = told_of(tree_, reveal);
  float x = kMargin;
  for (const LegendItem& item : kLegendItems) {
    const std::string figure = grouped(count[static_cast<size_t>(item.fate)]);
    const float words = text_width(Face::sans, 12, item.words), wide = text_width(Face::mono, 12, figure);
    if (x + 18 + words + 6 + wide > right) return;
    draw_badge(picture, t, item.fate, {x + 6, middle}, item.fate == NodeFate::bonus ? 5 : 6, t.canvas);
    picture.write({x + 18, middle}, Face::sans, 12, t.text2, item.words);
    picture.write({x + 18 + words + 6, middle}, Face::mono, 12, t.text, figure);
    x += 18 + words + 6 + wide + 18;
  }
  for (const std::string words : {"branch thickness: how sure the drafter was \u00b7 tufts: more guesses",
                                  "branch thickness: how sure the drafter was"}) {
    if (right - text_width(Face::sans, 12, words) < x + 8) continue;
    picture.write({right, middle}, Face::sans, 12, t.text3, words, Align::right);
    return;
  }
}

void RoundCard::draw_chain_note(Picture& picture, const Theme& t) const {
  const auto chain = chain_estimate(*record_, tree_);
  if (!chain || !geometry_.chain_note) return;
  const TreeRect& place = *geometry_.chain_note;
  const Point at = {place.x0, place.y0 + kTitle + kCaption + 7};
  const auto lines = chain_note_lines(*chain, record_->emitted.size());
  for (size_t i = 0; i < lines.size(); ++i)
    picture.write({at.x, at.y + 16 * static_cast<float>(i)}, Face::sans, 11, i == 0 ? t.text2 : t.text3, lines[i]);
}

std::string svg_of_card(const RoundCard& card, std::optional<ThemeKind> theme) {
  const auto drawn = [&](ThemeKind kind) {
    Picture picture(static_cast<float>(card.size().width), static_cast<float>(card.size().height));
    card.draw(picture, kind);
    return picture;
  };
  const SvgOptions options{"Canopy: " + card.title(), card.words(), 0, {}};
  if (theme) return svg_of(drawn(*theme), options);
  const Picture light = drawn(ThemeKind::light);
  return svg_of(drawn(ThemeKind::dark), options, &light);
}

std::string png_of_card(const RoundCard& card, ThemeKind theme, float scale) {
  Picture picture(static_cast<float>(card.size().width), static_cast<float>(card.size().height));
  card.draw(picture, theme);
  return encode_png(rasterize(picture, scale));
}

std::string round_svg(const RoundLog& log, size_t round, std::optional<ThemeKind> theme, const PictureSize& size) {
  return svg_of_card(RoundCard(log, round, size), theme);
}

std::string round_png(const RoundLog& log, size_t round, ThemeKind theme, const PictureSize& size, float scale) {
  return png_of_card(RoundCard(log, round, size), theme, scale);
}

}  // namespace canopy::app
