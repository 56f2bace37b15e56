#include "app/export/round_picture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/export/raster.h"
#include "app/platform/image.h"
#include "app/state/round_log.h"
#include "app/state/words.h"
#include "app/tree/limb_shapes.h"
#include "app/tree/tree_model.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace canopy::app {
namespace {

using namespace tree_design;

constexpr float kMeasuredAt = 12;  // em of the words whose widths the layout is given

Point at_point(TreePoint p, Point origin) {
  return {p.x + origin.x, p.y + origin.y};
}

/// The outline of a ribbon: along its upper edge, and back along the lower one.
Path outline_of(const Ribbon& ribbon, float reached) {
  const Spine spine = spine_of(ribbon, reached);
  std::vector<Point> points;
  for (uint32_t i = 0; i < spine.count; ++i) {
    const SpinePoint& p = spine.point[i];
    points.push_back({p.at.x - p.across.x * p.half, p.at.y - p.across.y * p.half});
  }
  for (uint32_t i = spine.count; i-- > 0;) {
    const SpinePoint& p = spine.point[i];
    points.push_back({p.at.x + p.across.x * p.half, p.at.y + p.across.y * p.half});
  }
  return polygon(points);
}

/// The middle line of a ribbon.
Path middle_of(const Ribbon& r) {
  const float half = (r.p.x + r.q.x) * 0.5f;
  Path path;
  path.move({r.from, r.p.y});
  if (r.from < r.p.x - 0.5f) path.line({r.p.x, r.p.y});
  path.cubic({half, r.p.y}, {half, r.q.y}, {r.q.x, r.q.y});
  return path;
}

/// A return sign as high as a small letter: a line down, one to the left, and the head of an arrow.
void draw_return_sign(Picture& picture, Point left_middle, float width, float em, Colour colour) {
  const float right = left_middle.x + width * 0.8f, left = left_middle.x + width * 0.06f;
  const float top = left_middle.y - em * 0.26f, y = left_middle.y + em * 0.13f, head = width * 0.3f;
  const Stroke stroke{colour, std::max(1.0f, em * 0.1f), 0, 0};
  picture.stroke(Path().move({right, top}).line({right, y}).line({left, y}), stroke);
  picture.stroke(Path().move({left + head, y - head}).line({left, y}).line({left + head, y + head}), stroke);
}

/// The corner of a word that was found in the text: the upper right one of its pill.
Path filled_corner(Point corner, float side) {
  return polygon({{corner.x - side, corner.y}, corner, {corner.x, corner.y + side}});
}

class TreePainter {
 public:
  TreePainter(Picture& picture, const TreeDrawing& drawing)
      : to_(picture), d_(drawing), tree_(drawing.tree), g_(drawing.geometry), t_(drawing.theme) {}

  void limbs() {
    for (const NodeLook look : {NodeLook::not_reached, NodeLook::undecided, NodeLook::rejected}) limbs_of(look);
    for (size_t i = 0; i < g_.tufts.size(); ++i)
      if (share_shown(d_.reveal, g_.words.tufts[i]) > 0) tuft(g_.words.tufts[i], g_.tufts[i]);
    glow();
    limbs_of(NodeLook::accepted);
    limbs_of(NodeLook::bonus);
  }

  void words() {
    for (const bool path : {false, true})
      for (uint32_t node = 0; node < tree_.size(); ++node)
        if (g_.nodes[node].named && tree_.on_path(node) == path && strength_of(d_.reveal, node) > 0) word(node);
  }

 private:
  uint32_t head_of(const Limb& limb) const {
    return limb.to_tuft ? g_.words.tufts[limb.child].heads.front() : limb.child;
  }
  NodeLook look(const Limb& limb) const {
    return limb.to_tuft ? look_of(d_.reveal, g_.words.tufts[limb.child]) : look_of(tree_, d_.reveal, limb.child);
  }
  float shown(const Limb& limb) const {
    return limb.to_tuft ? share_shown(d_.reveal, g_.words.tufts[limb.child]) : d_.reveal.nodes[limb.child].shown;
  }
  float lit(const Limb& limb) const { return limb.to_tuft ? 0 : d_.reveal.nodes[limb.child].lit; }

  Ribbon ribbon(const Limb& limb, float width) const {
    Ribbon r = limb_ribbon(tree_, g_, limb, pill_width(g_, d_.reveal, limb.parent), width, 1);
    r.from += d_.origin.x;
    for (TreePoint* end : {&r.p, &r.q}) *end = {end->x + d_.origin.x, end->y + d_.origin.y};
    return r;
  }

  void limbs_of(NodeLook wanted) {
    for (const Limb& limb : g_.limbs) {
      if (look(limb) != wanted || shown(limb) <= 0) continue;
      wanted == NodeLook::bonus ? dotted(limb) : wood(limb, wanted);
    }
  }

  void wood(const Limb& limb, NodeLook wanted) {
    const NodeReveal& head = d_.reveal.nodes[head_of(limb)];
    const Ribbon r = ribbon(limb, head.width);
    const float grown = limb.to_tuft ? std::min(1.0f, shown(limb) * 4) : ease_out(shown(limb));
    const bool hollow = wanted == NodeLook::rejected && std::max(limb.begin, limb.end) >= kHollowFrom;
    if (wanted == NodeLook::accepted && lit(limb) < 1) to_.fill(outline_of(r, grown), faded(t_.limb, head.strength));
    const float reached = wanted == NodeLook::accepted ? lit(limb) : grown;
    if (reached <= 0) return;
    const Colour colour = faded(limb_colour(t_, wanted, hollow), head.strength);
    // A thin limb that hardly tapers is a line: a twentieth of the text of its outline.
    if (!hollow && reached >= 1 && std::max(r.begin, r.end) < 6 && std::abs(r.begin - r.end) < 1) {
      to_.stroke(middle_of(r), {colour, (r.begin + r.end) * 0.5f, 0, 0});
      return;
    }
    Shape shape{outline_of(r, reached), colour, {}};
    if (hollow) shape.stroke = {faded(t_.rejected, 0.75f * head.strength), 1, 0, 0};
    to_.add(std::move(shape));
  }

  /// Light around the accepted limbs that fades over nine pixels.
  void glow() {
    constexpr int kSteps = 5;
    constexpr float kReach = 9, kAlpha = 0.06f;
    for (const Limb& limb : g_.limbs) {
      if (look(limb) != NodeLook::accepted || lit(limb) < 1) continue;
      const Ribbon r = ribbon(limb, 1);
      const float strength = d_.reveal.nodes[head_of(limb)].strength;
      for (int i = kSteps; i > 0; --i)
        to_.stroke(middle_of(r), {faded(t_.accepted, kAlpha * strength),
                                  std::max(r.begin, r.end) + 2 * kReach * static_cast<float>(i) / kSteps, 0, 0});
    }
  }

  /// The bonus was not drafted, so its limb is a row of dots.
  void dotted(const Limb& limb) {
    Ribbon r = ribbon(limb, 1);
    r.from = std::min(r.from + 3, r.p.x);
    r.q.x -= 8;
    to_.stroke(middle_of(r), {faded(t_.bonus, strength_of(d_.reveal, limb.child)), 2.2f, 2, 3});
  }

  void tuft(const Tuft& tuft, const TuftBox& box) {
    const NodeLook now = look_of(d_.reveal, tuft);
    const float strength = d_.reveal.nodes[tuft.heads.front()].strength;
    const TwigBundle bundle = twigs_of(tuft, box, 1);
    const auto there =
        static_cast<size_t>(std::ceil(static_cast<float>(bundle.twigs.size()) * share_shown(d_.reveal, tuft)));
    const auto point = [&](TreePoint p) { return at_point(p, d_.origin); };
    Path wood, heads, ends;
    for (size_t i = 0; i < there; ++i) {
      const Twig& twig = bundle.twigs[i];
      wood.move(point(bundle.from)).cubic(point(twig.leave), point(twig.arrive), point(twig.end));
      (now == NodeLook::rejected && twig.head ? heads : ends).append(circle(point(twig.end), bundle.dot));
    }
    to_.stroke(std::move(wood), {faded(limb_colour(t_, now, false), strength), bundle.wood, 0, 0});
    if (!ends.steps().empty()) to_.fill(std::move(ends), faded(twig_end_colour(t_, now), strength));
    if (!heads.steps().empty()) to_.fill(std::move(heads), faded(t_.rejected, strength));
    if (there > 0) tuft_label(tuft, box, strength);
  }

  void tuft_label(const Tuft& tuft, const TuftBox& box, float strength) {
    const Point at = at_point({box.label_x, box.y}, d_.origin);
    if (is_found(tree_, tuft))
      to_.fill(filled_corner({at.x + box.label_width, at.y - 6}, found_corner(g_.pill_height, 1)),
               faded(found_colour(t_, look_of(d_.reveal, tuft)), strength));
    if (tuft.nodes == 1) {
      write_word(to_, at, Face::mono, g_.text * g_.text_scale, faded(t_.text3, strength), d_.labels[tuft.heads.front()],
                 box.label_width);
      return;
    }
    const float x = at.x + to_.write(at, Face::mono, 11, faded(t_.text2, strength), "+" + std::to_string(tuft.nodes));
    to_.write({x, at.y}, Face::mono, 11, faded(t_.text3, strength), " \u00b7 " + percentage(tuft.mass));
  }

  void word(uint32_t node) {
    const NodeBox& box = g_.nodes[node];
    const NodeLook look = look_of(tree_, d_.reveal, node);
    const NodeReveal& reveal = d_.reveal.nodes[node];
    const float strength = strength_of(d_.reveal, node), half = g_.pill_height * 0.5f;
    // A word lights up when the light has run through the limb to it.
    const NodeLook now = look == NodeLook::accepted && reveal.lit < 1 ? NodeLook::undecided : look;
    const Point a = at_point({box.x, box.y - half}, d_.origin);
    const Point b = {a.x + pill_width(g_, d_.reveal, node), a.y + g_.pill_height};
    const float round = pill_round(tree_.nodes[node], g_.pill_height);
    frame(now, a, b, round, strength);
    if (d_.reveal.verified > 0 && look != NodeLook::root)
      to_.stroke(rectangle(a, b, round), {faded(t_.accent, d_.reveal.verified * strength), 1.5f, 0, 0});
    if (is_found(tree_.nodes[node]))
      to_.fill(filled_corner({b.x, now == NodeLook::not_reached ? a.y + 2 : a.y},
                             found_corner(g_.pill_height, g_.text_scale)),
               faded(found_colour(t_, now), strength));
    const bool strong = now == NodeLook::accepted || now == NodeLook::bonus || now == NodeLook::root;
    const float left = now == NodeLook::root ? 10 : look == NodeLook::bonus ? 14 : pad_left;
    write_word(to_, {a.x + left * g_.text_scale, a.y + half}, strong ? Face::mono_semibold : Face::mono,
               g_.text * g_.text_scale, faded(word_colour(t_, tree_.nodes[node], now), strength), d_.labels[node],
               box.label_room);
    if (g_.figures && (now == NodeLook::accepted || now == NodeLook::rejected)) {
      const Colour colour = now == NodeLook::accepted ? t_.accepted_text : t_.rejected_text;
      to_.write({b.x - pad_right * g_.text_scale, a.y + half}, Face::mono, figure_text * g_.text_scale,
                faded(colour, strength), percentage(tree_.nodes[node].q), Align::right);
    }
    badge(now, {a.x, a.y + half}, round == 0, strength);
  }

  void frame(NodeLook look, Point a, Point b, float round, float strength) {
    const auto pill = [&](Colour fill, Colour line, float width, float dash = 0, float gap = 0) {
      to_.add(Shape{rectangle(a, b, round), faded(fill, strength), {faded(line, strength), width, dash, gap}});
    };
    switch (look) {
      case NodeLook::root: pill(t_.raised, t_.text2, 1.5f); break;
      case NodeLook::undecided: pill(t_.card, t_.ctl, 1); break;
      case NodeLook::accepted:
        for (const float reach : {6.0f, 3.0f})
          to_.fill(rectangle({a.x - reach, a.y - reach}, {b.x + reach, b.y + reach}, round + reach),
                   faded(t_.accepted, 0.07f * strength));
        pill(t_.accepted_bg, t_.accepted, 1.5f);
        break;
      case NodeLook::rejected: pill(t_.canvas, t_.rejected, 1.2f, 4, 3); break;
      case NodeLook::bonus: pill(t_.bonus_bg, t_.bonus, 1.5f, 2, 2.4f); break;
      case NodeLook::not_reached:
        // Free of the limb below, so that the word can be read.
        to_.fill(rectangle({a.x + 4, a.y + 2}, {b.x, b.y - 2}), faded(t_.canvas, strength));
        break;
    }
  }

  /// square: the dot of a word that was not reached, as its pill would be.
  void badge(NodeLook look, Point at, bool square, float strength) {
    const float reach = std::min(tree_design::badge * g_.text_scale, g_.pill_height * 0.42f);
    const auto draw = [&](NodeFate fate) { draw_badge(to_, t_, fate, at, reach, t_.canvas, strength); };
    switch (look) {
      case NodeLook::root:
      case NodeLook::undecided: break;
      case NodeLook::accepted: draw(NodeFate::accepted); break;
      case NodeLook::rejected: draw(NodeFate::rejected); break;
      case NodeLook::bonus: draw(NodeFate::bonus); break;
      case NodeLook::not_reached:
        to_.fill(square ? rectangle({at.x + 1, at.y - 2}, {at.x + 5, at.y + 2}) : circle({at.x + 3, at.y}, 2.4f),
                 faded(t_.unreached, strength));
        break;
    }
  }

  Picture& to_;
  const TreeDrawing& d_;
  const TreeModel& tree_;
  const TreeGeometry& g_;
  const Theme& t_;
};

/// A star of five points, the first one up.
Path star(Point c, float reach) {
  constexpr float kWaist = 0.45f, kTurn = 0.62831853f;  // radius of the inner corners as a share; a tenth of a turn
  std::vector<Point> corners;
  for (int i = 0; i < 10; ++i) {
    const float angle = kTurn * (static_cast<float>(i) - 2.5f), r = i % 2 == 0 ? reach : reach * kWaist;
    corners.push_back({c.x + r * std::cos(angle), c.y + r * std::sin(angle)});
  }
  return polygon(corners);
}

}  // namespace

void draw_badge(Picture& picture, const Theme& t, NodeFate fate, Point c, float r, Colour ground, float strength) {
  const Colour colour = faded(fate_colour(t, fate), strength);
  switch (fate) {
    case NodeFate::root: break;
    case NodeFate::accepted:
      picture.fill(circle(c, r + 1), faded(ground, strength));
      picture.fill(circle(c, r), colour);
      picture.stroke(Path()
                         .move({c.x - r * 0.5f, c.y + r * 0.02f})
                         .line({c.x - r * 0.12f, c.y + r * 0.4f})
                         .line({c.x + r * 0.52f, c.y - r * 0.38f}),
                     {faded(t.on_state, strength), r * 0.28f, 0, 0});
      break;
    case NodeFate::rejected: {
      const float reach = r * 0.58f;
      picture.fill(circle(c, r), faded(ground, strength));
      Path cross;
      cross.move({c.x - reach, c.y - reach}).line({c.x + reach, c.y + reach});
      cross.move({c.x + reach, c.y - reach}).line({c.x - reach, c.y + reach});
      picture.stroke(std::move(cross), {colour, r * 0.36f, 0, 0});
      break;
    }
    case NodeFate::not_reached: picture.fill(circle(c, std::max(1.8f, r * 0.42f)), colour); break;
    case NodeFate::bonus:
      picture.fill(circle(c, r * 1.1f), faded(ground, strength));
      picture.fill(star(c, r * 1.35f), colour);
      break;
  }
}

float write_word(Picture& picture, Point left_middle, Face face, float em, Colour colour, const std::string& label,
                 float room) {
  const std::string words = text_within(face, em, label, room + em * 0.12f);
  const float cell = text_width(face, em, "0");
  std::string_view rest = words;
  float x = left_middle.x;
  while (!rest.empty()) {
    if (rest.starts_with(kReturnSign)) {
      draw_return_sign(picture, {x, left_middle.y}, cell, em, colour);
      x += cell;
      rest.remove_prefix(kReturnSign.size());
      continue;
    }
    const std::string_view run = rest.substr(0, rest.find(kReturnSign));
    const float width = text_width(face, em, run);
    picture.add(Letters{
        std::string(run), {x, left_middle.y + baseline_below_middle(face, em)}, face, em, colour, Align::left, width});
    x += width;
    rest.remove_prefix(run.size());
  }
  return x - left_middle.x;
}

std::vector<float> label_widths(const std::vector<std::string>& labels) {
  std::vector<float> widths;
  for (const std::string& label : labels) widths.push_back(text_width(Face::mono, kMeasuredAt, label));
  return widths;
}

std::vector<std::pair<float, std::string>> placed_depths(const TreeGeometry& geometry, float width) {
  std::vector<std::pair<float, std::string>> placed;
  float free_from = 0;
  for (uint32_t depth = 0; depth < geometry.columns.x.size(); ++depth) {
    std::string words = depth_words(depth);
    const float x = geometry.left + geometry.columns.x[depth], wide = text_width(Face::sans, 11, words);
    if (x < free_from || x + wide > width - 8) continue;
    placed.emplace_back(x, std::move(words));
    free_from = x + wide + 4;
  }
  return placed;
}

void draw_depth_line(Picture& picture, const TreeDrawing& drawing, float width) {
  for (const auto& [x, words] : placed_depths(drawing.geometry, width))
    picture.write({drawing.origin.x + x, drawing.origin.y + 12}, Face::sans, 11, drawing.theme.text3, words);
}

void draw_tree(Picture& picture, const TreeDrawing& drawing) {
  TreePainter painter(picture, drawing);
  painter.limbs();
  painter.words();
}

namespace {

constexpr float kMargin = 20, kTitle = 44, kCaption = 36, kLegend = 34, kLeastTitle = 160;

/// What is said of a round where there is this much room: at the least which one it is.
/// `times` says where times come from that were not measured; it is never left out.
std::string figures_of(const RoundRecord& record, size_t round, size_t rounds, const std::string& times, float room) {
  const std::string source = times.empty() ? "" : " " + times;
  const std::string number = "pass " + grouped(round + 1) + " of " + grouped(rounds);
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
  record_ = log.round_to_share(round);
  if (!record_) throw bad_input("The tree of pass " + std::to_string(round) + " is not there any more.");
  tree_ = tree_of_round(*record_, log, round);
  labels_ = tree_labels(tree_, log);
  geometry_ = arrange({tree_, label_widths(labels_), canvas_of(size), true}, {});
}

std::string RoundCard::words() const {
  std::string words = "Pass " + grouped(round_ + 1) + " of " + grouped(rounds_) + ". ";
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
                                   std::to_string(index + 1) + " " + std::string(phase_name(moment.phase, tree_))) +
                     14;
  picture.write({at.x + name, at.y}, Face::sans, 14, t.text2,
                text_within(Face::sans, 14, phase_sentence(moment.phase, emitted, tree_), room - name));
}

void RoundCard::draw_legend(Picture& picture, const Theme& t, const TreeReveal& reveal) const {
  const float middle = static_cast<float>(size_.height) - kLegend * 0.5f, right = picture.width() - kMargin;
  const auto count = told_of(tree_, reveal);
  float x = kMargin;
  for (LegendItem item : kLegendItems) {
    if (tree_.is_plain() && item.fate != NodeFate::bonus) continue;
    if (tree_.is_plain()) item.words = "big model\u2019s own";
    const std::string figure = grouped(count[static_cast<size_t>(item.fate)]);
    const float words = text_width(Face::sans, 12, item.words), wide = text_width(Face::mono, 12, figure);
    if (x + 18 + words + 6 + wide > right) return;
    draw_badge(picture, t, item.fate, {x + 6, middle}, item.fate == NodeFate::bonus ? 5 : 6, t.canvas);
    picture.write({x + 18, middle}, Face::sans, 12, t.text2, item.words);
    picture.write({x + 18 + words + 6, middle}, Face::mono, 12, t.text, figure);
    x += 18 + words + 6 + wide + 18;
  }
  if (tree_.found > 0) {
    constexpr const char* kWords = "found in the text";
    const std::string figure = grouped(tree_.found);
    const float words = text_width(Face::sans, 12, kWords), wide = text_width(Face::mono, 12, figure);
    if (x + 18 + words + 6 + wide > right) return;
    picture.stroke(rectangle({x, middle - 4.5f}, {x + 12, middle + 4.5f}), {t.text2, 1.2f, 0, 0});
    picture.fill(filled_corner({x + 12, middle - 4.5f}, 6), t.text2);
    picture.write({x + 18, middle}, Face::sans, 12, t.text2, kWords);
    picture.write({x + 18 + words + 6, middle}, Face::mono, 12, t.text, figure);
    x += 18 + words + 6 + wide + 18;
  }
  const std::string thickness = thickness_words(tree_.sources);
  for (const std::string& words : {thickness + " \u00b7 tufts: more guesses", thickness}) {
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
  const auto lines = chain_note_lines(*chain, record_->emitted.size(), tree_.sources);
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
