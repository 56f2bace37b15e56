#include "app/share/page_round.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/layout/limb_shapes.h"
#include "app/layout/tree_caption.h"
#include "app/layout/tree_labels.h"
#include "app/layout/tree_places.h"
#include "app/layout/tree_reveal.h"
#include "app/share/tree_picture.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace canopy::app {
namespace {

using nlohmann::ordered_json;

constexpr size_t kDraftCards = 8;        // of one position
constexpr uint32_t kNumberedNodes = 41;  // rows of the largest tree whose nodes are numbered while it grows

double tenth(float length) {
  return std::round(static_cast<double>(length) * 10) / 10;
}

int ten_thousandths(double share) {
  return static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * 10000));
}

const char* kind_of(CaptionPart::Kind kind) {
  switch (kind) {
    case CaptionPart::Kind::accepted: return "accepted";
    case CaptionPart::Kind::token: return "token";
    case CaptionPart::Kind::aside: return "aside";
    default: return "";
  }
}

/// A round in the making.
class PageRound {
 public:
  PageRound(const RoundLog& log, size_t round, PageTexts& labels) : log_(log), table_(labels) {
    const auto record = log.round(round);
    if (!record) throw bad_input("The tree of round " + std::to_string(round) + " is not there any more.");
    record_ = record;
    tree_ = tree_of_round(*record, log, round);
    labels_ = tree_labels(tree_, log);
    geometry_ = arrange({tree_, label_widths(labels_), kPageCanvas, true}, {});
    number_ = round + 1;
  }

  ordered_json json() {
    figures();
    nodes();
    boxes();
    limbs();
    tufts();
    depths();
    draft();
    notes();
    return std::move(json_);
  }

 private:
  void figures() {
    json_["number"] = number_;
    json_["plain"] = record_->nodes.empty();
    json_["width"] = record_->width;
    json_["accepted"] = tree_.counted(NodeFate::accepted);
    json_["emitted"] = record_->emitted.size();
    json_["ms"] = std::round(record_->ms.total() * 1000) / 1000;
    json_["reason"] = printable(record_->choice.reason, max_reason_bytes);
    ordered_json caption = ordered_json::array();
    for (const CaptionPart& part : tree_caption(tree_, labels_, record_->emitted.size()))
      caption.push_back({kind_of(part.kind), part.text});
    json_["caption"] = std::move(caption);
  }

  void nodes() {
    std::string fates;
    std::vector<uint32_t> parents, labels;
    std::vector<int> q, target;
    for (uint32_t i = 0; i < tree_.size(); ++i) {
      const TreeNodeView& node = tree_.nodes[i];
      fates += static_cast<char>('0' + static_cast<int>(node.fate));
      parents.push_back(node.parent == TreeNode::none ? 0 : node.parent);
      labels.push_back(table_.number_of(labels_[i]));
      q.push_back(ten_thousandths(node.q));
      const bool known = i < record_->nodes.size() && i > 0 && !std::isnan(record_->nodes[i].log_p);
      target.push_back(known ? ten_thousandths(std::exp(double{record_->nodes[i].log_p})) : -1);
    }
    json_["f"] = fates;
    json_["p"] = parents;
    json_["l"] = labels;
    json_["q"] = q;
    json_["t"] = target;
    json_["path"] = tree_.path;
    json_["bonus"] = tree_.bonus ? static_cast<int64_t>(*tree_.bonus) : -1;
  }

  void boxes() {
    json_["pill"] = tenth(geometry_.pill_height);
    json_["text"] = tenth(geometry_.text * geometry_.text_scale);
    json_["grown"] = tenth(geometry_.text_scale);
    json_["figures"] = geometry_.figures;
    ordered_json boxes = ordered_json::array();
    for (uint32_t i = 0; i < tree_.size(); ++i) {
      const NodeBox& box = geometry_.nodes[i];
      if (box.named)
        boxes.push_back({i, tenth(box.x), tenth(box.y), tenth(box.width), tenth(box.label_room), tenth(box.figure)});
    }
    json_["boxes"] = std::move(boxes);
  }

  void limbs() {
    ordered_json limbs = ordered_json::array();
    for (const Limb& limb : geometry_.limbs) {
      const Ribbon r = limb_ribbon(tree_, geometry_, limb, geometry_.nodes[limb.parent].width, 1, 1);
      limbs.push_back({limb.parent, limb.child, limb.to_tuft ? 1 : 0, tenth(r.from), tenth(r.p.x), tenth(r.p.y),
                       tenth(r.q.x), tenth(r.q.y), tenth(r.begin), tenth(r.end)});
    }
    json_["limbs"] = std::move(limbs);
  }

  void tufts() {
    ordered_json tufts = ordered_json::array();
    for (size_t i = 0; i < geometry_.tufts.size(); ++i) {
      const Tuft& tuft = geometry_.words.tufts[i];
      const TuftBox& box = geometry_.tufts[i];
      const TwigBundle bundle = twigs_of(tuft, box, 1);
      ordered_json twigs = ordered_json::array();
      for (const Twig& twig : bundle.twigs)
        twigs.push_back({tenth(twig.end.x - bundle.from.x), tenth(twig.end.y - bundle.from.y), twig.head ? 1 : 0});
      tufts.push_back({{"heads", tuft.heads},
                       {"nodes", tuft.nodes},
                       {"mass", ten_thousandths(tuft.mass)},
                       {"rejected", tuft.rejected},
                       {"x", tenth(bundle.from.x)},
                       {"y", tenth(bundle.from.y)},
                       {"wood", tenth(bundle.wood)},
                       {"dot", tenth(bundle.dot)},
                       {"label", {tenth(box.label_x), tenth(box.label_width)}},
                       {"twigs", std::move(twigs)}});
    }
    json_["tufts"] = std::move(tufts);
  }

  void depths() {
    ordered_json depths = ordered_json::array();
    for (const auto& [x, words] : placed_depths(geometry_, kPageCanvas.width)) depths.push_back({tenth(x), words});
    json_["depths"] = std::move(depths);
  }

  /// The drafter's likeliest tokens of each place, for the moment in which they are guessed.
  void draft() {
    ordered_json columns = ordered_json::array();
    const auto positions = draft_positions(tree_);
    for (size_t d = 0; d < positions.size() && d + 1 < geometry_.columns.x.size(); ++d) {
      const float x = geometry_.left + geometry_.columns.x[d + 1];
      const bool last = d + 2 >= geometry_.columns.x.size();
      const float next = last ? kPageCanvas.width : geometry_.columns.x[d + 2] + geometry_.left;
      const size_t count = std::min(positions[d].size(), kDraftCards);
      columns.push_back({{"x", tenth(x)},
                         {"width", tenth(std::max(14.0f, std::min(next - x - 8, 112.0f)))},
                         {"nodes", std::vector<uint32_t>(positions[d].begin(),
                                                         positions[d].begin() + static_cast<std::ptrdiff_t>(count))}});
    }
    json_["draft"] = std::move(columns);
  }

  /// Words that stand beside the tree, where they cover nothing of it.
  void notes() {
    std::vector<TreeRect> taken = path_pills(tree_, geometry_, 1);
    for (const TreeRect& each : other_words(tree_, geometry_, 1)) taken.push_back(each);
    const uint32_t guesses = tree_.size() - 1 - (tree_.bonus ? 1 : 0);
    const std::string words = "one pass, " + std::to_string(guesses) + (guesses == 1 ? " guess" : " guesses");
    const TreePoint size = {text_width(Face::sans_medium, 13, words) + 28, 24};
    const auto places = note_places(kPageCanvas, size, (kPageCanvas.width - size.x) * 0.5f);
    const std::optional<TreeRect> place = clear_place(places, taken);
    if (place) json_["passNote"] = {tenth(place->x0), tenth(place->y0), tenth(size.x), words};
    json_["order"] = order(taken);
    const auto chain = chain_estimate(*record_, tree_);
    if (!chain || !geometry_.chain_note) return;
    const auto lines = chain_note_lines(*chain, record_->emitted.size());
    json_["note"] = {tenth(geometry_.chain_note->x0), tenth(geometry_.chain_note->y0), lines[0], lines[1], lines[2]};
  }

  /// Where the numbers of nodes stand while the tree grows; none in trees of many.
  ordered_json order(std::vector<TreeRect> taken) const {
    ordered_json order = ordered_json::array();
    if (tree_.size() > kNumberedNodes) return order;
    for (uint32_t i = 1; i < tree_.size(); ++i) {
      if (!geometry_.nodes[i].named || i == tree_.bonus) continue;
      const TreePoint size = {text_width(Face::mono, 11, std::to_string(i)), 14};
      const auto place = clear_place(number_places(pill_of(geometry_, i, 1), size, 1), taken);
      if (!place) continue;
      taken.push_back(*place);
      order.push_back({i, tenth(place->x0), tenth((place->y0 + place->y1) * 0.5f)});
    }
    return order;
  }

  const RoundLog& log_;
  PageTexts& table_;
  std::shared_ptr<const RoundRecord> record_;
  size_t number_ = 0;
  TreeModel tree_;
  std::vector<std::string> labels_;
  TreeGeometry geometry_;
  ordered_json json_ = ordered_json::object();
};

}  // namespace

uint32_t PageTexts::number_of(const std::string& text) {
  const auto [at, added] = numbers_.emplace(text, static_cast<uint32_t>(texts_.size()));
  if (added) texts_.push_back(text);
  return at->second;
}

ordered_json page_round(const RoundLog& log, size_t round, PageTexts& labels) {
  return PageRound(log, round, labels).json();
}

}  // namespace canopy::app
