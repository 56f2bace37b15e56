#include "app/tree/token_card.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "app/state/words.h"
#include "app/tree/tree_look.h"
#include "app/ui/shapes.h"

namespace canopy::app {
namespace {

using Kind = FactWords::Kind;

const char* state_words(NodeFate fate) {
  switch (fate) {
    case NodeFate::root: return "Root, the last token before";
    case NodeFate::accepted: return "Accepted";
    case NodeFate::rejected: return "Rejected at the frontier";
    case NodeFate::not_reached: return "Not reached";
    case NodeFate::bonus: return "Bonus, the big model\u2019s own";
  }
  return "";
}

std::string log_text(double log) {
  if (!std::isfinite(log)) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", log);
  return text;
}

/// Writes the sentence that explains the state of a node.
class Explanation {
 public:
  Explanation(const TreeModel& tree, const TokenPieces& pieces) : tree_(tree), pieces_(pieces) {}

  std::vector<FactWords> of(uint32_t node) {
    switch (tree_.nodes[node].fate) {
      case NodeFate::root: root(); break;
      case NodeFate::accepted: accepted(node); break;
      case NodeFate::rejected: rejected(node); break;
      case NodeFate::not_reached: not_reached(node); break;
      case NodeFate::bonus: bonus(node); break;
    }
    return std::move(words_);
  }

 private:
  void say(const std::string& text) { words_.push_back({Kind::plain, text}); }
  void figure(uint32_t value) { words_.push_back({Kind::figure, std::to_string(value)}); }
  void token(uint32_t node) {
    const std::optional<uint32_t> id = tree_.nodes[node].token;
    words_.push_back({Kind::token, token_label(id ? pieces_(*id) : std::nullopt, id)});
  }

  void root() {
    if (tree_.size() == 2 && tree_.bonus) {
      say("Nothing was guessed: plain decoding takes one token from here.");
    } else {
      say("The text so far ends here; the guesses are what may follow.");
    }
  }

  void accepted(uint32_t node) {
    const uint32_t rank = tree_.nodes[node].rank;
    const bool by_drafter = tree_.nodes[node].sources == kFromDflash;
    if (rank == 0) {
      say(by_drafter ? "The drafter held it likeliest here, and the big model chose it too."
                     : "It was the likeliest guess here, and the big model chose it too.");
      return;
    }
    say(by_drafter ? "The big model chose it; the drafter held it at rank "
                   : "The big model chose it; it was held at rank ");
    figure(rank);
    say(". A chain, which guesses rank 0 only, would have stopped here.");
  }

  void rejected(uint32_t node) {
    const uint32_t parent = tree_.nodes[node].parent, taken = tree_.next_on_path(parent);
    if (taken == TreeNode::none) {
      say("The big model went on differently.");
      return;
    }
    say("The big model chose ");
    token(taken);
    if (tree_.nodes[taken].fate == NodeFate::bonus) {
      say(", which was not guessed here.");
    } else {
      say(", held here at rank ");
      figure(tree_.nodes[taken].rank);
      say(".");
    }
    if (tree_.nodes[node].rank != 0) return;
    say(" A chain would have ended after ");
    figure(chain_accepted(parent));
    say(" accepted.");
  }

  /// How many nodes on the path to this node have rank 0 from the root on: a chain would have drafted just these.
  uint32_t chain_accepted(uint32_t node) const {
    uint32_t accepted = tree_.nodes[node].depth;
    for (; node != 0; node = tree_.nodes[node].parent)
      if (tree_.nodes[node].rank != 0) accepted = tree_.nodes[node].depth - 1;
    return accepted;
  }

  void not_reached(uint32_t node) {
    uint32_t first = node;
    while (tree_.nodes[tree_.nodes[first].parent].fate == NodeFate::not_reached) first = tree_.nodes[first].parent;
    const uint32_t above = tree_.nodes[first].parent;
    if (tree_.nodes[above].fate != NodeFate::rejected) {
      say("The reply ended before it; whether it was right is not known.");
      return;
    }
    say("Checked with the others, but it stands below ");
    token(above);
    say(", which the big model did not choose.");
  }

  void bonus(uint32_t node) {
    const uint32_t parent = tree_.nodes[node].parent;
    const size_t others = tree_.children(parent).size() - 1;
    if (parent == 0 && tree_.size() == 2) return say("Nothing was guessed: plain decoding takes one token a pass.");
    if (others == 0) {
      say(parent == 0 ? "Nothing was guessed here. " : "Nothing was guessed behind this path. ");
    } else if (others == 1) {
      say("Not guessed here: the only guess was another. ");
    } else {
      say("Not among the ");
      figure(static_cast<uint32_t>(others));
      say(" guessed here. ");
    }
    say("It comes free with the pass.");
  }

  const TreeModel& tree_;
  const TokenPieces& pieces_;
  std::vector<FactWords> words_;
};

/// Where a guess comes from; empty where that was not recorded.
std::string source_words(const RoundRecord& record, const TreeNode& node) {
  if (node.sources == 0) return "";
  const DraftSources sources = proposed_by(node);
  if (sources == kFromDflash) return "Guessed by the drafter.";
  if (record.match == 0)
    return "Recycled: among what the big model found likeliest when it last read the token before.";
  const bool earlier = (node.sources & kFromEarlier) != 0;
  std::string words = sources == kUsualSources ? "Guessed by the drafter and found in " : "Found in ";
  words += earlier ? "an earlier reply: the text\u2019s " : "the text: its ";
  words += record.match == 1 ? "last token" : "last " + grouped(record.match) + " tokens";
  if (node.depth > 1) words += node.depth == 2 ? " and the guess before this one" : " and the guesses before this one";
  words += " stood there";
  const WentOn& on = node.went_on;
  if (on.places == 1) words += " once";
  words += " and ";
  if (on.places > 1) words += grouped(on.times) + " of " + grouped(on.places) + " times ";
  return words + "went on like this; expected with " + percentage(std::exp(node.log_q)) + ".";
}

constexpr const char* kHiddenNote = "A wrong guess with words of another chat: they are not kept with this one.";

/// Why a drafted token's card lacks the target's part; empty where it is all there.
std::string missing_words(const RoundRecord& record, const RoundNode& row) {
  const auto has_p = [](const RoundNode& node) { return std::isfinite(node.log_p); };
  std::string words;
  if (!has_p(row)) {
    words = std::ranges::any_of(record.nodes, has_p)
                ? "In a sampled reply the big model\u2019s probabilities are worked out for the first guesses only."
                : "The big model\u2019s probabilities were not recorded for this pass.";
  }
  if (row.target_token == RoundNode::unknown) {
    if (!words.empty()) words += " ";
    words += "What the big model would have written after it was not drawn, as the text did not come here.";
  }
  return words;
}

}  // namespace

std::string probability_text(double probability) {
  if (!std::isfinite(probability)) return "";
  if (probability > 0 && probability < 0.0005) return "<0.001";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", probability);
  return text;
}

TokenFacts token_facts(const RoundRecord& record, const TreeModel& tree, uint32_t node, const TokenPieces& pieces) {
  const TreeNodeView& view = tree.nodes[node];
  TokenFacts facts;
  facts.fate = view.fate;
  facts.state = state_words(view.fate);
  const bool plain = tree.is_plain() && tree.bonus == node;
  if (plain) facts.state = "The big model\u2019s own";
  const std::optional<trace::Piece> piece = view.token ? pieces(*view.token) : std::nullopt;
  facts.label = token_label(piece, view.token);
  const bool hidden = is_of_other_chat(view);
  if (view.token && !hidden) facts.id = std::to_string(*view.token);
  if (piece && !hidden) facts.bytes = token_bytes(piece->bytes);
  facts.depth = std::to_string(view.depth);
  facts.position = std::to_string(record.context + view.depth);
  facts.sentence = Explanation(tree, pieces).of(node);
  if (view.fate == NodeFate::bonus || node >= record.nodes.size()) return facts;
  const RoundNode& row = record.nodes[node];
  facts.row = std::to_string(node + 1) + " of " + std::to_string(record.width);
  if (node > 0) {
    facts.rank = std::to_string(view.rank);
    facts.q = probability_text(std::exp(row.node.log_q));
    facts.log_q = log_text(row.node.log_q);
    facts.path = probability_text(std::exp(row.node.score));
    facts.p = probability_text(std::exp(double{row.log_p}));
    facts.log_p = log_text(double{row.log_p});
    facts.note = hidden ? kHiddenNote : missing_words(record, row);
    facts.source = source_words(record, row.node);
  }
  if (row.target_token != RoundNode::unknown) {
    facts.choice = token_label(pieces(row.target_token), row.target_token);
    facts.choice_id = std::to_string(row.target_token);
  }
  return facts;
}

namespace {

constexpr float kWidth = 300, kPad = 12, kHead = 24, kRow = 18, kColumnGap = 20;

struct Row {
  const char* name;
  std::string value;
};

struct Rows {
  std::vector<Row> left, right, wide;
};

/// What is not known has no row; the note of the card says why.
Rows rows_of(const TokenFacts& f) {
  Rows rows;
  const auto put = [](std::vector<Row>& column, const char* name, const std::string& value) {
    if (!value.empty()) column.push_back({name, value});
  };
  put(rows.left, "Depth, rank", f.rank.empty() ? f.depth : f.depth + ", " + f.rank);
  put(rows.left, "Position", f.position);
  put(rows.left, "Row", f.row);
  put(rows.right, "Big model\u2019s", f.p);
  put(rows.right, "Held likely", f.q);
  put(rows.right, "Path score", f.path);
  if (!f.log_p.empty() && !f.log_q.empty()) {
    put(rows.wide, "log p, log q", f.log_p + ", " + f.log_q);
  } else {
    put(rows.wide, "log q", f.log_q);
  }
  put(rows.wide, "Bytes", f.bytes);
  if (!f.choice.empty()) put(rows.wide, "After it, the big model writes", f.choice + "  id " + f.choice_id);
  return rows;
}

Type type_of(FactWords::Kind kind) {
  return kind == FactWords::Kind::plain ? Type::secondary : Type::mono;
}

/// Draws text in a column, broken at spaces, and returns its height. With list == null it only measures.
float flow_sentence(ImDrawList* list, ImVec2 at, float width, const std::vector<FactWords>& sentence) {
  const float pitch = px(16);
  float x = at.x, y = at.y;
  const auto put = [&](std::string_view word, const FactWords& from) {
    const Type type = type_of(from.kind);
    const float advance = text_size(type, word).x;
    std::string_view shown = word;
    if (x + text_size(type, word.substr(0, word.find_last_not_of(' ') + 1)).x > at.x + width && x > at.x) {
      x = at.x;
      y += pitch;
    }
    if (x == at.x && !shown.empty() && shown.front() == ' ') return;
    const Theme& t = colours();
    const Colour colour = from.kind == FactWords::Kind::token    ? t.accepted_text
                          : from.kind == FactWords::Kind::figure ? t.text
                                                                 : t.text2;
    if (list) draw_text_middle(list, x, y + pitch * 0.5f, type, colour, shown);
    x += advance;
  };
  for (const FactWords& words : sentence) {
    std::string_view rest = words.text;
    while (!rest.empty()) {
      size_t end = words.kind == FactWords::Kind::plain ? rest.find(' ') : std::string_view::npos;
      end = end == std::string_view::npos ? rest.size() : end + 1;
      put(rest.substr(0, end), words);
      rest.remove_prefix(end);
    }
  }
  return y + pitch - at.y;
}

void draw_row(ImDrawList* list, float left, float right, float middle, const Row& row) {
  const Theme& t = colours();
  draw_text_middle(list, left, middle, Type::secondary, t.text2, row.name);
  const float room = right - left - text_size(Type::secondary, row.name).x - px(8);
  const std::string value = elided(Type::mono, row.value, room);
  draw_text_middle(list, right - text_size(Type::mono, value).x, middle, Type::mono, t.text, value);
}

float rows_height(const Rows& rows) {
  return px(kRow) * static_cast<float>(std::max(rows.left.size(), rows.right.size()) + rows.wide.size());
}

/// The sentences below the rule, one below the other: where the guess comes from and where that stands, what became of
/// it, what is missing.
std::vector<std::vector<FactWords>> sentences_of(const TokenFacts& facts) {
  std::vector<std::vector<FactWords>> sentences;
  for (const std::string& words : {facts.source, facts.place})
    if (!words.empty()) sentences.push_back({{FactWords::Kind::plain, words}});
  sentences.push_back(facts.sentence);
  if (!facts.note.empty()) sentences.push_back({{FactWords::Kind::plain, facts.note}});
  return sentences;
}

/// Draws them, or measures them with list == null. Returns their height.
float flow_sentences(ImDrawList* list, ImVec2 at, float width, const TokenFacts& facts) {
  float height = 0;
  for (const std::vector<FactWords>& sentence : sentences_of(facts)) {
    if (height > 0) height += px(4);
    height += flow_sentence(list, {at.x, at.y + height}, width, sentence);
  }
  return height;
}

}  // namespace

ImVec2 token_card_size(const TokenFacts& facts) {
  const float inner = px(kWidth) - px(kPad) * 2;
  const float words = flow_sentences(nullptr, {0, 0}, inner, facts);
  return {px(kWidth), px(kPad) + px(kHead) + px(4) + rows_height(rows_of(facts)) + px(15) + words + px(kPad)};
}

void draw_token_card(ImDrawList* list, ImVec2 pos, const TokenFacts& facts, bool pinned) {
  const Theme& t = colours();
  const ImVec2 size = token_card_size(facts), end = {pos.x + size.x, pos.y + size.y};
  list->AddRectFilled(pos, end, t.raised, px(6));
  list->AddRect(pos, end, pinned ? t.accent : t.ctl, px(6), pinned ? px(1.5f) : px(1));
  const float left = pos.x + px(kPad), right = end.x - px(kPad);
  float y = pos.y + px(kPad);
  const float head = y + px(kHead) * 0.5f - px(2);
  if (facts.fate != NodeFate::root) draw_fate_badge(list, facts.fate, {left + px(6), head}, px(6.5f), t.raised);
  float x = left + (facts.fate == NodeFate::root ? 0 : px(20));
  const std::string id = facts.id.empty() ? "" : "id " + facts.id;
  const float id_x = right - text_size(Type::mono_caption, id).x;
  draw_text_middle(list, id_x, head, Type::mono_caption, t.text2, id);
  const std::string label =
      elided(Type::mono_semibold, facts.label, id_x - x - px(16) - text_size(Type::base_medium, facts.state).x);
  draw_text_middle(list, x, head, Type::mono_semibold, t.text, label);
  x += text_size(Type::mono_semibold, label).x + px(8);
  draw_text_middle(list, x, head, Type::base_medium, fate_text_colour(colours(), facts.fate), facts.state);
  y += px(kHead) + px(4);
  const Rows rows = rows_of(facts);
  const float column = (right - left - px(kColumnGap)) * 0.5f;
  for (size_t i = 0; i < std::max(rows.left.size(), rows.right.size()); ++i, y += px(kRow)) {
    if (i < rows.left.size()) draw_row(list, left, left + column, y + px(kRow) * 0.5f, rows.left[i]);
    if (i < rows.right.size()) draw_row(list, right - column, right, y + px(kRow) * 0.5f, rows.right[i]);
  }
  for (const Row& row : rows.wide) {
    draw_row(list, left, right, y + px(kRow) * 0.5f, row);
    y += px(kRow);
  }
  y += px(7);
  list->AddRectFilled({left, y}, {right, y + std::max(1.0f, px(1))}, t.ctl);
  y += px(8);
  flow_sentences(list, {left, y}, right - left, facts);
}

ImVec2 place_card(ImVec2 size, ImVec2 item_min, ImVec2 item_max, ImVec2 area_min, ImVec2 area_max,
                  std::span<const ImVec4> avoid) {
  const float gap = px(12);
  const float right = item_max.x - px(4), left = item_min.x + px(4) - size.x;
  const float below = item_max.y + gap, above = item_min.y - gap - size.y;
  const std::array<ImVec2, 4> corners = {ImVec2{right, below}, {right, above}, {left, below}, {left, above}};
  ImVec2 best = corners[0];
  float least = std::numeric_limits<float>::max();
  for (ImVec2 p : corners) {
    p.x = std::clamp(p.x, area_min.x + px(4), std::max(area_min.x + px(4), area_max.x - size.x - px(4)));
    p.y = std::clamp(p.y, area_min.y + px(4), std::max(area_min.y + px(4), area_max.y - size.y - px(4)));
    const auto covered = [&](float x0, float y0, float x1, float y1) {
      const float w = std::min(p.x + size.x, x1) - std::max(p.x, x0),
                  h = std::min(p.y + size.y, y1) - std::max(p.y, y0);
      return w > 0 && h > 0 ? w * h : 0.0f;
    };
    float cost = 100 * covered(item_min.x - gap, item_min.y - gap * 0.5f, item_max.x + gap, item_max.y + gap * 0.5f);
    for (const ImVec4& rect : avoid) cost += covered(rect.x, rect.y, rect.z, rect.w);
    if (cost < least) {
      least = cost;
      best = p;
    }
  }
  return best;
}

namespace {

constexpr double kHoverSeconds = 0.12, kOpenSeconds = 0.16;
constexpr size_t kListed = 6;
constexpr float kTuftRow = 17, kTuftHead = 24, kTuftPad = 10, kBranches = 46, kShare = 44;

std::string together(const Tuft& tuft) {
  return std::to_string(tuft.nodes) + (tuft.nodes == 1 ? " guess, " : " guesses, ") + percentage(tuft.mass) +
         (tuft.nodes == 1 ? "" : " together");
}

size_t listed(const Tuft& tuft) {
  return std::min(kListed, tuft.heads.size());
}

uint32_t others(const Tuft& tuft) {
  return tuft.nodes - static_cast<uint32_t>(listed(tuft));
}

TreeRect card_of(const TreePaint& paint, uint32_t index) {
  const Tuft& tuft = paint.geometry.words.tufts[index];
  const TuftBox& box = paint.geometry.tufts[index];
  float words = 0;
  for (size_t i = 0; i < listed(tuft); ++i)
    words = std::max(words, text_size(Type::mono, paint.labels[tuft.heads[i]]).x);
  const float wide = std::max(px(kBranches) + words + px(kShare) + px(kTuftPad) * 2,
                              text_size(Type::caption_semibold, together(tuft)).x + px(kTuftPad) * 2);
  const float rows = static_cast<float>(listed(tuft) + (others(tuft) > 0 ? 1 : 0));
  const float high = px(kTuftHead) + rows * px(kTuftRow) + px(8);
  const float room_x = std::max(px(4), paint.size.x - wide - px(4)),
              room_y = std::max(px(4), paint.size.y - high - px(4));
  const float x = std::clamp(box.x - px(10), px(4), room_x), y = std::clamp(box.y - high * 0.5f, px(4), room_y);
  return {x, y, x + wide, y + high};
}

}  // namespace

bool OpenTuft::close() {
  const bool was = open.has_value();
  open.reset();
  pinned = false;
  return was;
}

void OpenTuft::point(const TreePaint& paint, std::optional<TreePoint> at, double now, bool reduced_motion) {
  const auto tufts = static_cast<uint32_t>(paint.geometry.tufts.size());
  if (open && *open >= tufts) close();
  if (open) card_ = card_of(paint, *open);
  if (pinned || (at && covers(*at))) return;
  const std::optional<uint32_t> over = at ? tuft_at(paint.geometry, *at) : std::nullopt;
  if (over != pointed_) {
    pointed_ = over;
    since_ = now;
    if (over) keep_drawing(kHoverSeconds + kOpenSeconds + 0.05);
  }
  if (open && over != open) close();
  if (!over || open || now - since_ < kHoverSeconds) return;
  open = over;
  opened_ = now;
  at_once_ = reduced_motion;
  card_ = card_of(paint, *open);
}

bool OpenTuft::click(const TreeGeometry& geometry, TreePoint at) {
  if (pinned) {
    const bool on = covers(at);
    if (!on) close();
    return on;
  }
  if (open && covers(at)) return pinned = true;
  const std::optional<uint32_t> over = tuft_at(geometry, at);
  if (!over) return false;
  open = over;
  opened_ = 0;
  at_once_ = true;
  return pinned = true;
}

void OpenTuft::draw(ImDrawList* list, const TreePaint& paint, double now) const {
  if (!open || *open >= paint.geometry.tufts.size()) return;
  const Theme& t = colours();
  const Tuft& tuft = paint.geometry.words.tufts[*open];
  const float grown = at_once_ ? 1 : ease_out(static_cast<float>((now - opened_) / kOpenSeconds));
  const TreeRect whole = card_of(paint, *open);
  const float middle = (whole.y0 + whole.y1) * 0.5f, half = (whole.y1 - whole.y0) * 0.5f * (0.4f + 0.6f * grown);
  const ImVec2 a = paint.at(whole.x0, middle - half), b = paint.at(whole.x1, middle + half);
  list->AddRectFilled(a, b, t.raised, px(6));
  list->AddRect(a, b, t.text, px(6), pinned ? units(2) : units(1.5f));
  list->PushClipRect(a, b, true);
  draw_text_middle(list, a.x + px(kTuftPad), a.y + px(kTuftHead) * 0.5f + px(1), Type::caption_semibold, t.text,
                   together(tuft));
  const ImVec2 fork = {a.x + px(kTuftPad), (a.y + b.y) * 0.5f + px(6)};
  const NodeLook look = paint.look_of(tuft);
  for (size_t i = 0; i < listed(tuft); ++i) {
    const uint32_t head = tuft.heads[i];
    const float y = a.y + px(kTuftHead) + (static_cast<float>(i) + 0.5f) * px(kTuftRow),
                x = a.x + px(kTuftPad) + px(kBranches);
    const float thick = std::max(1.0f, units(limb_thickness(paint.tree.nodes[head].path, 22)));
    fill_ribbon(list, {fork.x, {fork.x, fork.y}, {x - px(8), y}, thick, thick}, mix(t.limb, t.text3, 0.2f));
    list->AddCircleFilled({x - px(7), y}, units(2), look == NodeLook::rejected ? t.rejected : t.text3, 8);
    const Colour colour = is_of_other_chat(paint.tree.nodes[head]) ? t.text3 : t.text;
    draw_word(list, {x, y}, Type::mono, text_height(Type::mono), colour, paint.labels[head], b.x - x - px(kShare));
    if (is_found(paint.tree.nodes[head])) {
      const float end = std::min(x + text_size(Type::mono, paint.labels[head]).x, b.x - px(kShare));
      draw_found_corner(list, {end + px(8), y - px(6)}, px(6), t.text2);
    }
    const std::string share = percentage(paint.tree.nodes[head].path);
    draw_text_middle(list, b.x - px(kTuftPad) - text_size(Type::mono_caption, share).x, y, Type::mono_caption, t.text2,
                     share);
  }
  if (others(tuft) > 0) {
    const float y = a.y + px(kTuftHead) + (static_cast<float>(listed(tuft)) + 0.5f) * px(kTuftRow);
    draw_text_middle(list, a.x + px(kTuftPad) + px(kBranches), y, Type::caption, t.text3,
                     "and " + std::to_string(others(tuft)) + " more");
  }
  list->PopClipRect();
}

}  // namespace canopy::app
