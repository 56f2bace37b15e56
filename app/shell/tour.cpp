#include "app/shell/tour.h"

#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

using Kind = TourWords::Kind;

TourWords plain(std::string text) {
  return {Kind::plain, std::move(text)};
}

TourStep one_token_at_a_time() {
  return {"One token at a time",
          {plain("A language model writes token by token: words, or pieces of them. For each token the whole big model "
                 "is read from memory once; that is a pass. Plain decoding gets one token from every pass.")},
          {{"pass 1", 1, 1}, {"pass 2", 1, 1}, {"pass 3", 1, 1}},
          {TourPart::chat}};
}

TourStep the_text_guesses(const TourFacts& facts) {
  const std::string end = facts.match == 1 ? "token" : std::to_string(facts.match) + " tokens";
  return {"The text itself says what comes next",
          {plain("The last " + end +
                 " of the text were written before, so what followed then is guessed again, and no "
                 "drafter is asked. Here that made " +
                 std::to_string(facts.guesses) +
                 " guesses, numbered as they joined the tree. The thicker a branch, the surer the guess.")},
          {},
          {TourPart::tree}};
}

TourStep the_drafter_guesses(const TourFacts& facts) {
  const bool more = facts.sources == kUsualSources;
  return {
      "A small drafter guesses ahead",
      {plain("A much smaller model, the drafter, guesses what comes next: several tokens ahead, and several choices "
             "for each place. Here it made " +
             std::to_string(facts.guesses) +
             " guesses, numbered as they joined the tree. The thicker a branch, the surer it is of that guess." +
             (more ? " Those with a filled corner stood behind the same words before." : ""))},
      {},
      {TourPart::tree}};
}

TourStep all_at_once(const TourFacts& facts) {
  return {
      "All guesses are checked at once",
      {plain("The big model checks all " + std::to_string(facts.guesses) +
             " guesses in a single pass. On a GPU most of a pass is waiting for the model to come from memory, and it "
             "comes once for all of them: so checking many takes little longer than writing one token.")},
      {},
      {TourPart::tree}};
}

TourStep why_a_tree(const TourFacts& facts) {
  TourStep step{"Why a tree and not a chain?", {}, {}, {TourPart::path}};
  const std::string least = facts.chain_at_least ? "at least " : "";
  if (facts.favourite.empty()) {
    step.words = {
        plain("A guess that does not fit (orange) is dropped with everything behind it, so a single chain ends at its "
              "first one. The tree also holds second and third choices: the text can go on along another branch in the "
              "same pass.")};
    return step;
  }
  const bool drafter = (facts.sources & kFromSuffix) == 0;
  step.words = {plain(drafter ? "The drafter liked " : "The likeliest guess was "),
                {Kind::rejected, facts.favourite},
                plain(drafter ? " best, but the big model wanted " : ", but the big model wanted "),
                {Kind::accepted, facts.taken},
                plain(". A guess that does not fit (orange) is dropped with everything behind it: a single chain "
                      "would have ended here with " +
                      least + std::to_string(facts.chain) + (facts.chain == 1 ? " token" : " tokens") +
                      ". The tree held both and brought " + std::to_string(facts.emitted) + " in the same pass.")};
  step.figure = {{"chain", facts.chain, 1}, {"tree", facts.emitted, facts.emitted > facts.right ? 1u : 0u}};
  return step;
}

TourStep the_models_own_text(const TourFacts& facts) {
  TourStep step{"The text stays the big model\u2019s own", {}, {}, {TourPart::path, TourPart::chat}};
  step.words = {
      plain("A guess is kept (blue) only where it is exactly the token that the big model chose itself. Where none "
            "fits, or none is left, the big model\u2019s own token is written (yellow)")};
  if (!facts.own.empty()) {
    step.words.push_back(plain(", here "));
    step.words.push_back({Kind::bonus, facts.own});
  }
  step.words.push_back(plain(". So the text is, word for word, what it would have written alone."));
  return step;
}

TourStep what_it_brings(const TourFacts& facts) {
  const std::string got = facts.tokens_per_pass.empty() ? "This reply got several tokens"
                                                        : "This reply got " + facts.tokens_per_pass + " tokens";
  std::string price =
      "Beside it stands the price: how long such a pass took where this was recorded, counted in the time that "
      "plain decoding needs for one token";
  if (!facts.plain_tokens.empty())
    price += facts.slower ? ". There it was " + facts.plain_tokens + " of them: more than a pass brings"
                          : ". There it was only " + facts.plain_tokens;
  return {"What it brings, and what it costs",
          {plain(got + " from each pass on average, where plain decoding gets 1: that is the gain. " + price + ".")},
          {},
          {TourPart::numbers}};
}

TourStep when_it_does_not_pay(const TourFacts& facts) {
  const std::string here = facts.slower ? ", as here" : "";
  return {
      "When it does not pay",
      {plain("Where a pass costs more than it brings" + here +
             ", plain decoding is faster: on a computer without a GPU, which pays for every guess, and in text that is "
             "hard to guess. In your own chats Canopy measures gain and price and guesses less, or not at all; this "
             "recording "
             "always makes " +
             std::to_string(facts.guesses) + " guesses, to be looked at. The dashed box predicts how a GPU would do.")},
      {},
      {TourPart::numbers}};
}

}  // namespace

TourStep tour_step(uint32_t step, const TourFacts& facts) {
  switch (step) {
    case 0: return one_token_at_a_time();
    case 1: return facts.sources == kFromSuffix ? the_text_guesses(facts) : the_drafter_guesses(facts);
    case 2: return all_at_once(facts);
    case 3: return why_a_tree(facts);
    case 4: return the_models_own_text(facts);
    case 5: return what_it_brings(facts);
    default: return when_it_does_not_pay(facts);
  }
}

namespace {

constexpr float kCardEdge = 12, kCardBeside = 20;  // to the window's edge and to a hole beside
constexpr float kCardHoleAir = 8, kCardPillAir = 4;
constexpr float kCardStep = 32, kMostCardSteps = 40;  // of the grid of places that are tried

ImVec4 card_rect(const TourCard& card) {
  return {card.pos.x, card.pos.y, card.pos.x + card.size.x, card.pos.y + card.size.y};
}

ImVec4 with_air(const ImVec4& r, float air) {
  return {r.x - air, r.y - air, r.z + air, r.w + air};
}

/// How bad a place is, the weightiest first.
using TourCardCost = std::tuple<bool, bool, float, bool, uint32_t, float, size_t, float>;

class CardSearch {
 public:
  CardSearch(const std::vector<TourCardForm>& forms, ImVec2 window, const TourClear& clear, float scale)
      : forms_(forms), window_(window), clear_(clear), scale_(scale) {}

  TourCard run() {
    for (size_t i = 0; i < forms_.size(); ++i) {
      for (const ImVec4& hole : clear_.holes) beside(i, hole);
      grid(i);
      touching(i);
    }
    return best_;
  }

 private:
  void beside(size_t form, const ImVec4& hole) {
    const ImVec2 card = forms_[form].size;
    const float gap = kCardBeside * scale_, x = (hole.x + hole.z - card.x) * 0.5f,
                y = (hole.y + hole.w - card.y) * 0.5f;
    try_at(form, {hole.z + gap, y});
    try_at(form, {hole.x - gap - card.x, y});
    try_at(form, {x, hole.w + gap});
    try_at(form, {x, hole.y - gap - card.y});
  }

  void grid(size_t form) {
    const ImVec2 card = forms_[form].size;
    const float step = std::max({kCardStep * scale_, window_.x / kMostCardSteps, window_.y / kMostCardSteps});
    // Beyond the last places, which try_at() moves to the window's edge.
    for (float y = 0; y < window_.y - card.y + step; y += step)
      for (float x = 0; x < window_.x - card.x + step; x += step) try_at(form, {x, y});
  }

  /// A card in free room can be moved left or right, and up or down, until it touches something: so one of these places
  /// is free if any is.
  void touching(size_t form) {
    const ImVec2 card = forms_[form].size;
    std::vector<float> xs = {0}, ys = {0};
    const auto add = [&](const ImVec4& r) {
      xs.insert(xs.end(), {r.z, r.x - card.x});
      ys.insert(ys.end(), {r.w, r.y - card.y});
    };
    for (const ImVec4& hole : clear_.holes) add(with_air(hole, kCardHoleAir * scale_ + 1));
    if (clear_.controls.z > clear_.controls.x) add(with_air(clear_.controls, kCardHoleAir * scale_ + 1));
    for (const ImVec4& pill : clear_.path) add(with_air(pill, kCardPillAir * scale_ + 1));
    for (const float x : xs)
      for (const float y : ys) try_at(form, {x, y});
  }

  void try_at(size_t form, ImVec2 pos) {
    const float edge = kCardEdge * scale_;
    TourCard card{pos, forms_[form].size, form};
    card.pos.x = std::floor(std::clamp(pos.x, edge, std::max(edge, window_.x - card.size.x - edge)));
    card.pos.y = std::floor(std::clamp(pos.y, edge, std::max(edge, window_.y - card.size.y - edge)));
    const TourCardCost cost = cost_of(card);
    if (cost >= least_) return;
    least_ = cost;
    best_ = card;
  }

  TourCardCost cost_of(const TourCard& card) const {
    const ImVec4 rect = card_rect(card);
    const ImVec4 roomy = with_air(rect, kCardHoleAir * scale_), pills = with_air(rect, kCardPillAir * scale_);
    float near = 0, path = 0, hole_area = 0;
    for (const ImVec4& hole : clear_.holes) {
      near += overlap_of(roomy, hole);
      hole_area += overlap_of(rect, hole);
    }
    for (const ImVec4& pill : clear_.path) path += overlap_of(pills, pill);
    uint32_t words = 0;
    if (near > 0)
      for (const ImVec4& word : clear_.words) words += overlap_of(rect, word) > 0;
    const bool on_controls = overlap_of(roomy, clear_.controls) > 0;
    return {on_controls, near > 0, path, forms_[card.form].brief, words, hole_area, card.form, distance(rect)};
  }

  /// From the middle of the card to that of the nearest hole; without holes to that of the window.
  float distance(const ImVec4& card) const {
    const auto middle = [](const ImVec4& r) { return ImVec2((r.x + r.z) * 0.5f, (r.y + r.w) * 0.5f); };
    const ImVec2 at = middle(card);
    const auto to = [&](ImVec2 p) { return std::hypot(p.x - at.x, p.y - at.y); };
    if (clear_.holes.empty()) return to({window_.x * 0.5f, window_.y * 0.5f});
    float least = std::numeric_limits<float>::max();
    for (const ImVec4& hole : clear_.holes) least = std::min(least, to(middle(hole)));
    return least;
  }

  const std::vector<TourCardForm>& forms_;
  ImVec2 window_;
  const TourClear& clear_;
  float scale_;
  TourCard best_;
  TourCardCost least_{true, true, std::numeric_limits<float>::max(), true, ~0u, 0, 0, 0};
};

}  // namespace

float overlap_of(const ImVec4& a, const ImVec4& b) {
  const float w = std::min(a.z, b.z) - std::max(a.x, b.x), h = std::min(a.w, b.w) - std::max(a.y, b.y);
  return w > 0 && h > 0 ? w * h : 0;
}

TourCard place_tour_card(const std::vector<TourCardForm>& forms, ImVec2 window, const TourClear& clear, float scale) {
  return CardSearch(forms, window, clear, scale).run();
}

namespace {

constexpr float kCardWidths[] = {388, 520, 680};
constexpr float kCardPad = 20, kBriefPad = 14, kStepLine = 18, kTitleLine = 30, kLine = 21, kBarRow = 23, kToken = 36;
constexpr float kControls = 44, kControlsPad = 8;  // the buttons at the window's lower right corner
constexpr float kScrim = 0.74f, kAround = 6, kHoleRound = 8;

/// Lays out words within a width, broken at spaces; with list == null it only measures. Returns the height.
float flow(ImDrawList* list, ImVec2 at, float width, const std::vector<TourWords>& words) {
  const Theme& t = colours();
  const float pitch = px(kLine);
  float x = 0, y = 0;
  for (const TourWords& part : words) {
    const bool token = part.kind != TourWords::Kind::plain;
    const Type type = token ? Type::figure : Type::chat;
    const Colour colour = part.kind == TourWords::Kind::accepted   ? t.accepted_text
                          : part.kind == TourWords::Kind::rejected ? t.rejected_text
                          : part.kind == TourWords::Kind::bonus    ? t.bonus_text
                                                                   : t.text;
    std::string_view rest = part.text;
    while (!rest.empty()) {
      size_t end = token ? std::string_view::npos : rest.find(' ');
      end = end == std::string_view::npos ? rest.size() : end + 1;
      const std::string_view word = rest.substr(0, end);
      rest.remove_prefix(end);
      const float wide = text_size(type, word.substr(0, word.find_last_not_of(' ') + 1)).x;
      if (x > 0 && x + wide > width) {
        x = 0;
        y += pitch;
      }
      if (x == 0 && word == " ") continue;
      if (list) draw_text_middle(list, at.x + x, at.y + y + pitch * 0.5f, type, colour, word);
      x += text_size(type, word).x;
    }
  }
  return y + pitch;
}

float figure_height(const TourStep& step) {
  return step.figure.empty() ? 0 : px(kBarRow) * static_cast<float>(step.figure.size()) + px(8);
}

void draw_figure(ImDrawList* list, ImVec2 at, float width, const TourStep& step) {
  const Theme& t = colours();
  float name = 0;
  uint32_t most = 1;
  for (const TourBar& bar : step.figure) {
    name = std::max(name, text_size(Type::secondary, bar.name).x);
    most = std::max(most, bar.tokens);
  }
  const float token = std::min(px(kToken), (width - name - px(48)) / static_cast<float>(most) - px(4));
  for (const TourBar& bar : step.figure) {
    const float middle = at.y + px(kBarRow) * 0.5f;
    draw_text_middle(list, at.x, middle, Type::secondary, t.text2, bar.name);
    float x = at.x + name + px(14);
    for (uint32_t i = 0; i < bar.tokens; ++i) {
      const Colour colour = i + bar.bonus >= bar.tokens ? t.bonus : t.accepted;
      list->AddRectFilled({x, middle - px(7)}, {x + token, middle + px(7)}, colour, px(3));
      x += token + px(4);
    }
    draw_text_middle(list, x + px(6), middle, Type::mono_semibold, t.text, std::to_string(bar.tokens));
    at.y += px(kBarRow);
  }
}

void add_part(std::vector<ImVec4>& holes, const ImVec4& place) {
  if (place.z > place.x && place.w > place.y) holes.push_back(place);
}

std::vector<ImVec4> holes_of(const TourStep& step, const TourPlaces& places) {
  std::vector<ImVec4> holes;
  for (const TourPart part : step.parts) {
    switch (part) {
      case TourPart::chat: add_part(holes, places.chat); break;
      case TourPart::tree: add_part(holes, places.tree); break;
      case TourPart::numbers: add_part(holes, places.numbers); break;
      case TourPart::path:
        for (const ImVec4& place : places.path) add_part(holes, place);
        break;
    }
  }
  return holes;
}

/// Dims the corners of a hole outside its round frame, but not where they are in another hole.
void round_corners(ImDrawList* list, const ImVec4& hole, const std::vector<ImVec4>& holes, Colour dim) {
  constexpr float kHalfTurn = 3.1415927f;
  const float r = px(kHoleRound);
  const std::array<std::pair<ImVec2, ImVec2>, 4> corners = {{{{hole.x, hole.y}, {hole.x + r, hole.y + r}},
                                                             {{hole.z, hole.y}, {hole.z - r, hole.y + r}},
                                                             {{hole.z, hole.w}, {hole.z - r, hole.w - r}},
                                                             {{hole.x, hole.w}, {hole.x + r, hole.w - r}}}};
  for (size_t i = 0; i < corners.size(); ++i) {
    const ImVec2 at = corners[i].first;
    const bool inside = std::ranges::any_of(holes, [&](const ImVec4& other) {
      return &other != &hole && at.x >= other.x && at.x <= other.z && at.y >= other.y && at.y <= other.w;
    });
    if (inside) continue;
    const float begin = kHalfTurn * (1 + static_cast<float>(i) * 0.5f);
    list->PathLineTo(at);  // first, as the triangles of the fill all begin there
    list->PathArcTo(corners[i].second, r, begin, begin + kHalfTurn * 0.5f, 8);
    list->PathFillConvex(dim);
  }
}

/// Draws the frame of a hole where it is not inside another one, so that overlapping holes have one outline. area: what
/// is left to draw in, with the holes before `next` taken out of it.
void frame_outside(ImDrawList* list, const ImVec4& hole, const std::vector<ImVec4>& holes, size_t next,
                   const ImVec4& area) {
  if (area.z <= area.x || area.w <= area.y) return;
  if (next == holes.size()) {
    list->PushClipRect({area.x, area.y}, {area.z, area.w}, true);
    list->AddRect({hole.x, hole.y}, {hole.z, hole.w}, colours().accent, px(kHoleRound), px(2));
    list->PopClipRect();
    return;
  }
  ImVec4 out = holes[next];
  if (&holes[next] == &hole || overlap_of(out, hole) <= 0) return frame_outside(list, hole, holes, next + 1, area);
  const float line = px(2);  // its own frame lies inside it
  out = {std::clamp(out.x + line, area.x, area.z), std::clamp(out.y + line, area.y, area.w),
         std::clamp(out.z - line, area.x, area.z), std::clamp(out.w - line, area.y, area.w)};
  frame_outside(list, hole, holes, next + 1, {area.x, area.y, area.z, out.y});
  frame_outside(list, hole, holes, next + 1, {area.x, out.w, area.z, area.w});
  frame_outside(list, hole, holes, next + 1, {area.x, out.y, out.x, out.w});
  frame_outside(list, hole, holes, next + 1, {out.z, out.y, area.z, out.w});
}

/// Dims everything outside the holes: strips between the heights at which one begins or ends.
void draw_scrim(ImDrawList* list, ImVec2 pos, ImVec2 size, const std::vector<ImVec4>& holes) {
  const Colour dim = with_alpha(colours().scrim, kScrim);
  std::vector<float> edges = {pos.y, pos.y + size.y};
  for (const ImVec4& hole : holes) {
    edges.push_back(std::clamp(hole.y, pos.y, pos.y + size.y));
    edges.push_back(std::clamp(hole.w, pos.y, pos.y + size.y));
  }
  std::sort(edges.begin(), edges.end());
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    const float top = edges[i], bottom = edges[i + 1];
    if (bottom <= top) continue;
    std::vector<std::pair<float, float>> open;
    for (const ImVec4& hole : holes)
      if (hole.y <= top && hole.w >= bottom) open.push_back({hole.x, hole.z});
    std::sort(open.begin(), open.end());
    float x = pos.x;
    for (const auto& [from, to] : open) {
      if (from > x) list->AddRectFilled({x, top}, {from, bottom}, dim);
      x = std::max(x, to);
    }
    if (x < pos.x + size.x) list->AddRectFilled({x, top}, {pos.x + size.x, bottom}, dim);
  }
  const ImDrawFlags flags = list->Flags;
  list->Flags &= ~ImDrawFlags_AAFill;  // the frame covers the edge
  for (const ImVec4& hole : holes) round_corners(list, hole, holes, dim);
  list->Flags = flags;
  for (const ImVec4& hole : holes) frame_outside(list, hole, holes, 0, {pos.x, pos.y, pos.x + size.x, pos.y + size.y});
}

/// The forms that the card of a step can have: narrow and high; lower and wider, where that leaves more to see; and for
/// small windows without the figure and the line above the title.
std::vector<TourCardForm> card_forms(const TourStep& step, float window_width) {
  std::vector<TourCardForm> forms;
  for (const bool brief : {false, true}) {
    float last = 0;
    for (const float wide : kCardWidths) {
      const float width = std::min(px(wide), window_width - px(24)), pad = px(brief ? kBriefPad : kCardPad);
      if (width <= last) break;
      last = width;
      const float words = flow(nullptr, {}, width - pad * 2, step.words) + px(8);
      const float more = brief ? 0 : px(kStepLine) + figure_height(step);
      forms.push_back({{width, pad * 2 + px(kTitleLine) + words + more}, brief});
    }
  }
  return forms;
}

/// Gives overlapping holes the same top and bottom where they nearly have, so that their outline has no small steps.
void align(std::vector<ImVec4>& holes) {
  const float near = px(kHoleRound) * 1.5f;
  for (ImVec4& a : holes)
    for (ImVec4& b : holes) {
      if (overlap_of(a, b) <= 0) continue;
      if (std::abs(a.y - b.y) < near) a.y = b.y = std::min(a.y, b.y);
      if (std::abs(a.w - b.w) < near) a.w = b.w = std::max(a.w, b.w);
    }
}

std::vector<ImVec4> moved(std::vector<ImVec4> rects, ImVec2 by) {
  for (ImVec4& r : rects) r = {r.x - by.x, r.y - by.y, r.z - by.x, r.w - by.y};
  return rects;
}

void draw_dots(ImDrawList* list, ImVec2 at, uint32_t step) {
  const Theme& t = colours();
  for (uint32_t i = 0; i < kTourSteps; ++i) {
    const bool now = i == step;
    const float wide = now ? px(18) : px(7);
    list->AddRectFilled({at.x, at.y - px(3.5f)}, {at.x + wide, at.y + px(3.5f)}, i <= step ? t.accent : t.ctl,
                        px(3.5f));
    at.x += wide + px(6);
  }
}

float dots_width() {
  return px(18) + (px(7) + px(6)) * static_cast<float>(kTourSteps - 1);
}

/// Draws a button that is as wide as the wider of its two words, so that it has one place in all steps.
bool wide_button(const ButtonSpec& spec, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({a.x + std::floor((width - button_size(spec).x) * 0.5f), a.y});
  return button(spec);
}

/// Draws the dots and the buttons in the lower right corner of the window, where they stay in all steps. Returns what
/// they cover, as corners in the window.
ImVec4 tour_controls(ImVec2 window, bool with_dots) {
  float width = px(kControlsPad) * 2;
  for (const char* words : {"Skip", "Back", "Next"}) width += button_size({words, Icon::none}).x + px(8);
  width += px(8) + (with_dots ? dots_width() + px(14) : 0);
  const ImVec2 to = {window.x - px(12), window.y - px(12)};
  return {std::max(px(4), to.x - width), to.y - px(kControls), to.x, to.y};
}

void draw_tour_controls(ImDrawList* list, CommandSink& sink, ImVec2 origin, const ImVec4& at, uint32_t step,
                        bool with_dots) {
  const Theme& t = colours();
  const ImVec2 a = {origin.x + at.x, origin.y + at.y}, b = {origin.x + at.z, origin.y + at.w};
  list->AddRectFilled(a, b, t.raised, px(10));
  list->AddRect(a, b, t.ctl, px(10));
  const float middle = (a.y + b.y) * 0.5f;
  if (with_dots) draw_dots(list, {a.x + px(kControlsPad + 6), middle}, step);
  const bool last = step + 1 == kTourSteps;
  ButtonSpec skip{"Skip", Icon::none}, back{"Back", Icon::none, ButtonKind::line},
      next{"Next", Icon::none, ButtonKind::primary};
  skip.tooltip = "Esc. The tour goes on here when you come back";
  const float wide = std::max(button_size(next).x, button_size({"Done", Icon::none}).x);
  next.words = last ? "Done" : "Next";
  back.enabled = step > 0;
  float x = b.x - px(kControlsPad);
  const auto put = [&](const ButtonSpec& spec, float width) {
    x -= width;
    ImGui::SetCursorScreenPos({std::floor(x), std::floor(middle - button_size(spec).y * 0.5f)});
    const bool pressed = wide_button(spec, width);
    x -= px(8);
    return pressed;
  };
  if (put(next, wide)) sink.post(ShellCommand(StepTour{1}));
  if (put(back, button_size(back).x)) sink.post(ShellCommand(StepTour{-1}));
  if (put(skip, button_size(skip).x)) sink.post(ShellCommand(ShowTour{false}));
}

void use_tour_keys(CommandSink& sink, uint32_t step) {
  const auto pressed = [](ImGuiKey key) { return ImGui::IsKeyPressed(key, false) && ImGui::GetIO().KeyMods == 0; };
  // A presenter has PageUp and PageDown.
  if (pressed(ImGuiKey_RightArrow) || pressed(ImGuiKey_PageDown) || pressed(ImGuiKey_Enter))
    sink.post(ShellCommand(StepTour{1}));
  if ((pressed(ImGuiKey_LeftArrow) || pressed(ImGuiKey_PageUp)) && step > 0) sink.post(ShellCommand(StepTour{-1}));
  if (pressed(ImGuiKey_Escape)) sink.post(ShellCommand(ShowTour{false}));
}

}  // namespace

void TourOverlay::draw_card(ImDrawList* list, ImVec2 a, const TourCardForm& form, const TourStep& step,
                            uint32_t index) {
  const Theme& t = colours();
  const ImVec2 b = {a.x + form.size.x, a.y + form.size.y};
  list->AddRectFilled(a, b, t.raised, px(10));
  list->AddRect(a, b, t.ctl, px(10));
  const float pad = px(form.brief ? kBriefPad : kCardPad), inner = form.size.x - pad * 2;
  float x = a.x + pad, y = a.y + pad;
  if (!form.brief) {
    draw_text_middle(list, x, y + px(7), Type::secondary, t.text2,
                     "Tour, step " + std::to_string(index + 1) + " of " + std::to_string(kTourSteps));
    y += px(kStepLine);
  }
  draw_text_middle(list, x, y + px(14), Type::card_title, t.text, elided(Type::card_title, step.title, inner));
  y += px(kTitleLine + 4);
  y += flow(list, {x, y}, inner, step.words) + px(8);
  if (!form.brief) draw_figure(list, {x, y}, inner, step);
}

void TourOverlay::draw(const ViewModel& view, CommandSink& sink, const TourPlaces& places, const TourFacts& facts) {
  const uint32_t index = view.shell.tour.step;
  const TourStep step = tour_step(index, facts);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  std::vector<ImVec4> holes = holes_of(step, places);
  for (ImVec4& hole : holes)
    // On whole pixels, so that no seams are seen between the parts of the scrim.
    hole = {std::floor(std::max(hole.x - px(kAround), viewport->Pos.x + px(3))),
            std::floor(std::max(hole.y - px(kAround), viewport->Pos.y + px(3))),
            std::floor(std::min(hole.z + px(kAround), viewport->Pos.x + viewport->Size.x - px(3))),
            std::floor(std::min(hole.w + px(kAround), viewport->Pos.y + viewport->Size.y - px(3)))};
  align(holes);
  ImGui::SetNextWindowPos(viewport->Pos);
  ImGui::SetNextWindowSize(viewport->Size);
  if (drawn_step_ != index) ImGui::SetNextWindowFocus();
  drawn_step_ = index;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::Begin("Tour", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBackground | ImGuiWindowFlags_NoNavInputs);
  ImGui::PopStyleVar();
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_scrim(list, viewport->Pos, viewport->Size, holes);
  const bool with_dots = viewport->Size.x >= px(360);
  const ImVec4 controls = tour_controls(viewport->Size, with_dots);
  const TourClear clear = {moved(holes, viewport->Pos), moved(places.pills, viewport->Pos),
                           moved(places.words, viewport->Pos), controls};
  const std::vector<TourCardForm> forms = card_forms(step, viewport->Size.x);
  const TourCard card = place_tour_card(forms, viewport->Size, clear, look().scale);
  draw_card(list, {viewport->Pos.x + card.pos.x, viewport->Pos.y + card.pos.y}, forms[card.form], step, index);
  draw_tour_controls(list, sink, viewport->Pos, controls, index, with_dots);
  use_tour_keys(sink, index);
  ImGui::End();
}

}  // namespace canopy::app
