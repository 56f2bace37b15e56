#include "app/cli/trace_command_tree.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "app/cli/terminal.h"
#include "engine/base/printable.h"
#include "engine/trace/round_statistics.h"

namespace canopy::cli {
namespace {

struct Strokes {
  const char *branch, *last, *bar, *gap;
  const char *root, *accepted, *refused, *not_reached, *bonus;
};

constexpr Strokes unicode_strokes = {"├─", "└─", "│ ", "  ", "●", "✓", "×", "·", "★"};
constexpr Strokes ascii_strokes = {"|-", "`-", "| ", "  ", "o", "+", "x", ".", "*"};

/// Draws the tree depth first, without recursion, as a tree may be deep.
class TreeText {
 public:
  TreeText(const TraceReader& trace, const RoundRecord& record, Lines lines, std::ostream& out)
      : trace_(trace),
        record_(record),
        strokes_(lines == Lines::unicode ? unicode_strokes : ascii_strokes),
        out_(out),
        part_(drafted_part(record)),
        children_(record.nodes.size()),
        drafted_(record.nodes.size()) {
    for (uint32_t i = 1; i < record.nodes.size(); ++i) children_[record.nodes[i].node.parent].push_back(i);
    for (uint32_t node = part_.last_node; node != TreeNode::none; node = record.nodes[node].node.parent) {
      drafted_[node] = true;
    }
  }

  void draw() {
    legend();
    out_ << strokes_.root << " " << shown_token(trace_, record_.nodes[0].node.token) << "\n";
    struct Open {
      uint32_t node;
      size_t next;  // index of the next child to draw
    };
    std::vector<Open> path = {{0, 0}};
    while (!path.empty()) {
      Open& top = path.back();
      const auto& children = children_[top.node];
      if (top.next < children.size()) {
        const uint32_t child = children[top.next++];
        const bool last = top.next == children.size() && !has_bonus(top.node);
        line(child, last);
        prefix_ += last ? strokes_.gap : strokes_.bar;
        indents_.push_back(last ? strokes_.gap : strokes_.bar);
        path.push_back({child, 0});
        continue;
      }
      if (has_bonus(top.node)) bonus();
      path.pop_back();
      if (path.empty()) break;
      prefix_.resize(prefix_.size() - indents_.back().size());
      indents_.pop_back();
    }
  }

 private:
  void legend() {
    out_ << "\n"
         << strokes_.accepted << " accepted   " << strokes_.refused << " the target went on differently   "
         << strokes_.not_reached << " below such a node   " << strokes_.bonus << " the target's own token\n"
         << "q: the drafter's probability, p: the target's, path: the drafter's for the path from the root\n\n";
  }

  bool has_bonus(uint32_t node) const { return !part_.cut && node == part_.last_node; }

  const char* mark(uint32_t node) const {
    if (drafted_[node]) return strokes_.accepted;
    return record_.nodes[node].state == NodeState::not_reached ? strokes_.not_reached : strokes_.refused;
  }

  void line(uint32_t index, bool last) {
    const RoundNode& row = record_.nodes[index];
    out_ << prefix_ << (last ? strokes_.last : strokes_.branch) << mark(index) << " "
         << shown_token(trace_, row.node.token) << "  q " << fixed(std::exp(row.node.log_q), 3);
    if (!std::isnan(row.log_p)) out_ << "  p " << fixed(std::exp(double{row.log_p}), 3);
    out_ << "  path " << fixed(std::exp(row.node.score), 3) << "  rank " << row.node.rank;
    if (part_.cut && index == part_.last_node) out_ << "  (the reply ended here)";
    out_ << "\n";
  }

  void bonus() {
    out_ << prefix_ << strokes_.last << strokes_.bonus << " " << shown_token(trace_, record_.emitted.back()) << "\n";
  }

  const TraceReader& trace_;
  const RoundRecord& record_;
  const Strokes& strokes_;
  std::ostream& out_;
  DraftedPart part_;
  std::vector<std::vector<uint32_t>> children_;
  std::vector<bool> drafted_;  // by node: it is on the path that became text
  std::string prefix_;
  std::vector<std::string> indents_;
};

std::string limits_text(const WidthLimits& limits) {
  std::string text;
  const auto add = [&](const char* name, uint32_t limit) {
    if (limit == WidthLimits::none) return;
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(limit);
  };
  add("budget", limits.budget);
  add("depth", limits.depth);
  add("tokens left", limits.tokens_left);
  add("context left", limits.context_left);
  add("rows", limits.rows);
  return text;
}

/// mark: what to say of the candidate, or nothing.
void show_candidate(const WidthForecast& candidate, const char* mark, std::ostream& out) {
  char line[128];
  std::snprintf(line, sizeof line, "%10u %10.3f %10.3f %10.1f%s\n", candidate.width, candidate.expected, candidate.ms,
                candidate.tokens_per_second(), mark);
  out << line;
}

/// Prints all widths if they are few; else one or two of each doubling, the chosen one and the last.
void show_choice(const RoundRecord& record, std::ostream& out) {
  const RoundChoice& choice = record.choice;
  if (!choice.reason.empty()) out << "why       " << printable(choice.reason, 1024) << "\n";
  const std::string limits = limits_text(choice.limits);
  if (!limits.empty()) out << "limits    " << limits << "\n";
  if (choice.ar_tokens_per_second > 0) {
    out << "plain     " << fixed(choice.ar_tokens_per_second, 1) << " tok/s promised by plain decoding\n";
  }
  if (choice.candidates.empty()) return;
  constexpr size_t few = 24;
  const WidthForecast* chosen = chosen_candidate(record);
  out << "\n     width   expected         ms      tok/s\n";
  for (const WidthForecast& candidate : choice.candidates) {
    const uint32_t width = candidate.width;
    const bool round_number = std::has_single_bit(width) || (width % 3 == 0 && std::has_single_bit(width / 3));
    const bool ends = &candidate == &choice.candidates.back() || &candidate == chosen;
    if (choice.candidates.size() > few && !round_number && !ends) continue;
    const bool own = &candidate == chosen;
    show_candidate(candidate, !own ? "" : record.mode == DecodeMode::adaptive ? "  chosen" : "  ran", out);
  }
}

void show_times(const RoundRecord& record, std::ostream& out) {
  out << "\n          wall ms  device ms  predicted ms\n";
  const auto stage = [&](const char* name, double ms, double device, double predicted) {
    char line[128];
    std::snprintf(line, sizeof line, "%-8s %8.3f %10.3f %13.3f\n", name, ms, device, predicted);
    out << line;
  };
  const RoundTimes &ms = record.ms, &device = record.device_ms, &predicted = record.predicted;
  stage("draft", ms.draft, device.draft, predicted.draft);
  stage("build", ms.build, device.build, predicted.build);
  stage("verify", ms.verify, device.verify, predicted.verify);
  stage("walk", ms.walk, device.walk, predicted.walk);
  stage("commit", ms.commit, device.commit, predicted.commit);
  stage("other", ms.other, device.other, predicted.other);
  stage("total", ms.total(), device.total(), predicted.total());
}

}  // namespace

std::string shown_token(const TraceReader& trace, uint32_t token) {
  const trace::Piece* piece = trace.piece(token);
  if (piece == nullptr) return "#" + std::to_string(token);
  return "\"" + printable(piece->bytes, 64) + "\"";
}

void show_round(const TraceReader& trace, size_t index, Lines lines, std::ostream& out) {
  const RoundRecord record = trace.round(index);
  out << "round     " << record.round << " of reply " << trace.reply_of(index) << ", after " << record.context
      << " positions\n"
      << "shape     " << to_string(record.shape) << " (mode " << to_string(record.mode) << "), " << record.width
      << (record.width == 1 ? " row" : " rows") << "\n"
      << "emitted  ";
  for (const uint32_t token : record.emitted) out << " " << shown_token(trace, token);
  out << "  (" << drafted_part(record).tokens << " of " << record.emitted.size() << " were drafted)\n";
  show_choice(record, out);
  show_times(record, out);
  if (!record.nodes.empty()) TreeText(trace, record, lines, out).draw();
}

}  // namespace canopy::cli
