// canopy-cli trace: shows a recorded trace, asks it what if, adds drafts to it, and makes pictures and pages of it.

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/export/animation.h"
#include "app/export/recording_page.h"
#include "app/export/round_picture.h"
#include "app/state/number_options.h"
#include "app/state/round_log.h"
#include "app/state/words.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/session/reply_trace.h"
#include "engine/trace/round_statistics.h"
#include "engine/trace/trace_export.h"
#include "engine/trace/trace_reader.h"
#include "engine/whatif/elsewhere.h"
#include "engine/whatif/model_shapes.h"
#include "engine/whatif/what_if.h"

namespace canopy::cli {
namespace {

// One round of a trace as text: the tree with its accepted path, the reason for its width, and its times.

enum class Lines { unicode, ascii };

/// A token in quotes, with control characters made visible; its id if the trace has no text for it.
std::string shown_token(const TraceReader& trace, uint32_t token) {
  const trace::Piece* piece = trace.piece(token);
  if (piece == nullptr) return "#" + std::to_string(token);
  return "\"" + printable(piece->bytes, 64) + "\"";
}

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
         << strokes_.accepted << " accepted   " << strokes_.refused << " the big model went on differently   "
         << strokes_.not_reached << " below such a node   " << strokes_.bonus << " the big model's own token\n"
         << "q: the drafter's probability, p: the big model's, path: the drafter's for the path from the root\n\n";
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

/// Prints round `index` of the trace, without words of other chats, which files of before have. Throws what
/// TraceReader::round() throws.
void show_round(const TraceReader& trace, size_t index, Lines lines, std::ostream& out) {
  const RoundRecord record = without_other_chats(trace.round(index));
  out << "pass      " << record.round << " of reply " << trace.reply_of(index) << ", after " << record.context
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

// A whole trace and its statistics as text.

std::string percent(double share) {
  return fixed(100 * share, 1) + "%";
}

std::string model_text(const TraceModel& model) {
  std::string text = printable(model.name.empty() ? model.file_name : model.name);
  std::string details;
  for (const std::string& detail : {model.file_name, model.architecture, model.quantization}) {
    if (!detail.empty()) details += (details.empty() ? "" : ", ") + printable(detail);
  }
  return details.empty() ? text : text + " (" + details + ")";
}

void show_header(const TraceHeader& header, std::ostream& out) {
  const auto line = [&](const char* name, const std::string& text) {
    if (!text.empty()) out << name << printable(text, 1024) << "\n";
  };
  const std::optional<int64_t> moment = app::moment_in(header.created);
  line("recorded  ",
       (moment ? app::local_time_and_zone(*moment) : header.created) + " by Canopy " + header.canopy_version);
  line("target    ", model_text(header.target));
  if (header.drafter) line("drafter   ", model_text(*header.drafter));
  line("device    ",
       header.device + " (" + header.driver + ")" + (header.backend.empty() ? "" : ", " + header.backend));
  if (!header.times.empty()) line("times     ", header.times + ", not recorded there");
  line("cache     ", header.kv_type + ", " + std::to_string(header.context) + " positions");
  line("kernels   ", header.variants);
  line("costs     ", header.calibration);
  if (header.redacted) line("redacted  ", "no texts; tokens are numbered anew in each pass");
}

std::string request_text(const TraceReplyBegin& begin) {
  std::string text = "mode " + std::string(to_string(begin.mode));
  if (!begin.policy.empty()) text += ", policy " + printable(begin.policy);
  if (begin.budget > 0) text += ", budget " + std::to_string(begin.budget);
  const SamplingSettings& sampling = begin.sampling;
  if (sampling.temperature == 0) {
    text += ", greedy";
  } else {
    text += ", temperature " + fixed(double{sampling.temperature}, 2) + ", top-k " + std::to_string(sampling.top_k) +
            ", top-p " + fixed(double{sampling.top_p}, 2) + ", min-p " + fixed(double{sampling.min_p}, 2) + ", seed " +
            std::to_string(sampling.seed);
  }
  return text + ", at most " + std::to_string(begin.max_tokens) + " tokens";
}

void show_reply(const TraceReply& reply, size_t index, std::ostream& out) {
  out << "\nreply " << index << "   " << request_text(reply.begin) << "\n";
  out << "prompt    " << reply.begin.prompt_tokens << " tokens";
  if (reply.prefill) {
    out << ", " << reply.prefill->reused_tokens << " of them in the cache already, " << fixed(reply.prefill->ms, 1)
        << " ms";
  }
  out << "\nend       ";
  if (!reply.end) {
    out << "not recorded\n";
    return;
  }
  const TraceReplyEnd& end = *reply.end;
  out << to_string(end.reason) << " after " << end.reply_tokens << " tokens, " << fixed(end.decode_ms, 1) << " ms\n";
  if (!end.text.empty()) out << "text      " << printable(end.text, 300) << "\n";
}

std::string emitted_text(const TraceReader& trace, const RoundRecord& record) {
  std::string text;
  for (const uint32_t token : record.emitted) text += (text.empty() ? "" : " ") + shown_token(trace, token);
  return text;
}

void show_rounds(const TraceReader& trace, const TraceReply& reply, std::ostream& out) {
  if (reply.rounds == 0) return;
  out << "\n    pass  context   shape  width  drafted  emitted        ms\n";
  for (size_t i = reply.first_round; i < reply.first_round + reply.rounds; ++i) {
    const RoundRecord record = trace.round(i);
    const std::string shape(to_string(record.shape));
    char line[128];
    std::snprintf(line, sizeof line, "%8zu %8u %7s %6u %8u %8zu %9.3f  ", i, record.context, shape.c_str(),
                  record.width, drafted_part(record).tokens, record.emitted.size(), record.ms.total());
    out << line << emitted_text(trace, record) << "\n";
  }
}

void show_histogram(const RoundStatistics& statistics, std::ostream& out) {
  constexpr double longest = 40;
  uint64_t most = 1;
  for (const auto& [accepted, rounds] : statistics.accepted_histogram()) most = std::max(most, rounds);
  out << "\npasses by guesses that became text\n";
  for (const auto& [accepted, rounds] : statistics.accepted_histogram()) {
    const double length = longest * static_cast<double>(rounds) / static_cast<double>(most);
    char line[64];
    std::snprintf(line, sizeof line, "%6u %8llu  ", accepted, static_cast<unsigned long long>(rounds));
    out << line << std::string(static_cast<size_t>(length + 0.5), '#') << "\n";
  }
}

void show_depths(const RoundStatistics& statistics, std::ostream& out) {
  if (statistics.by_depth().empty()) return;
  out << "\n depth  offered  accepted     rate\n";
  for (size_t i = 0; i < statistics.by_depth().size(); ++i) {
    const DepthCounts& depth = statistics.by_depth()[i];
    const double rate = static_cast<double>(depth.accepted) / static_cast<double>(std::max<uint64_t>(1, depth.offered));
    char line[96];
    std::snprintf(line, sizeof line, "%6zu %8llu %9llu %8s\n", i + 1, static_cast<unsigned long long>(depth.offered),
                  static_cast<unsigned long long>(depth.accepted), percent(rate).c_str());
    out << line;
  }
}

/// Nothing where the drafter alone was asked.
void show_sources(const RoundStatistics& statistics, std::ostream& out) {
  if (!statistics.has_text_drafts()) return;
  out << "\n source           offered  accepted     rate\n";
  for (const DraftSources sources : {kFromDflash, kFromSuffix, kUsualSources}) {
    const SourceCounts& counts = statistics.by_source(sources);
    const double rate =
        static_cast<double>(counts.accepted) / static_cast<double>(std::max<uint64_t>(1, counts.offered));
    char line[96];
    std::snprintf(line, sizeof line, " %-15s %8llu %9llu %8s\n", list_of(sources).c_str(),
                  static_cast<unsigned long long>(counts.offered), static_cast<unsigned long long>(counts.accepted),
                  percent(rate).c_str());
    out << line;
  }
  out << " passes from the text alone: " << statistics.rounds_by(kFromSuffix) << "\n";
}

void show_shapes(const RoundStatistics& statistics, std::ostream& out) {
  out << "\n shape   passes   tokens      tau     tok/s\n";
  for (const DecodeMode shape : {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree}) {
    const ShapeCounts& counts = statistics.of(shape);
    if (counts.rounds == 0) continue;
    char line[96];
    std::snprintf(line, sizeof line, "%6s %8llu %8llu %8.3f %9.1f\n", std::string(to_string(shape)).c_str(),
                  static_cast<unsigned long long>(counts.rounds), static_cast<unsigned long long>(counts.emitted),
                  counts.tau(), counts.tokens_per_second());
    out << line;
  }
}

void show_stages(const RoundStatistics& statistics, std::ostream& out) {
  const RoundTimes &ms = statistics.ms(), &device = statistics.device_ms();
  const double total = ms.total();
  out << "\n stage    wall ms    share  device ms\n";
  const auto stage = [&](const char* name, double wall, double on_device) {
    char line[96];
    std::snprintf(line, sizeof line, "%6s %10.1f %8s %10.1f\n", name, wall,
                  percent(total > 0 ? wall / total : 0).c_str(), on_device);
    out << line;
  };
  stage("draft", ms.draft, device.draft);
  stage("build", ms.build, device.build);
  stage("verify", ms.verify, device.verify);
  stage("walk", ms.walk, device.walk);
  stage("commit", ms.commit, device.commit);
  stage("other", ms.other, device.other);
}

void show_prediction(const char* name, const PredictionError& error, std::ostream& out) {
  if (error.rounds == 0) return;
  out << name << "off by " << percent(error.mean_error()) << " in the mean, " << percent(std::abs(error.bias()))
      << (error.bias() < 0 ? " too short" : " too long") << " in sum, over " << error.rounds << " passes\n";
}

/// Prints where it was recorded, its replies, and a line for each round. Throws what TraceReader::round() throws.
void show_trace(const TraceReader& trace, std::ostream& out) {
  show_header(trace.header(), out);
  for (size_t i = 0; i < trace.replies().size(); ++i) {
    show_reply(trace.replies()[i], i, out);
    show_rounds(trace, trace.replies()[i], out);
  }
}

void show_statistics(const RoundStatistics& statistics, std::ostream& out) {
  out << "passes    " << statistics.rounds() << ", " << statistics.cut_rounds() << " of them ended inside their tree\n"
      << "tokens    " << statistics.emitted() << ", " << fixed(statistics.tau(), 3) << " a pass, "
      << fixed(statistics.tokens_per_second(), 1) << " a second\n"
      << "nodes     " << statistics.accepted() << " of " << statistics.drafted() << " drafted came into the text ("
      << percent(statistics.node_utilisation()) << ")\n";
  show_shapes(statistics, out);
  show_histogram(statistics, out);
  show_depths(statistics, out);
  show_sources(statistics, out);
  show_stages(statistics, out);
  out << "\n";
  show_prediction("pass      ", statistics.total_error(), out);
  show_prediction("draft     ", statistics.draft_error(), out);
  show_prediction("verify    ", statistics.verify_error(), out);
  const Correlation& expectation = statistics.expectation();
  if (expectation.pairs == 0) return;
  out << "expected  " << fixed(expectation.mean_x, 3) << " tokens a pass, emitted " << fixed(expectation.mean_y, 3)
      << ", correlation " << fixed(expectation.value(), 3) << ", over " << expectation.pairs << " passes\n";
}

// canopy-cli trace export: rounds as pictures, a recording as a page or an animation.

struct ShareChoice {
  std::string svg, png, html, animation;  // files to write; empty: not asked for
  std::string theme;  // "dark", "light", "projector"; empty: both of the first two in an SVG file, else dark
  std::string size = "1280x720";
  double scale = 1;
  std::optional<uint64_t> rounds;  // of a page or an animation; none: as many as there are

  bool asked() const { return !svg.empty() || !png.empty() || !html.empty() || !animation.empty(); }
};

std::optional<app::ThemeKind> theme_named(const std::string& name) {
  for (const app::ThemeKind kind : {app::ThemeKind::dark, app::ThemeKind::light, app::ThemeKind::projector})
    if (name == app::to_string(kind)) return kind;
  return std::nullopt;
}

app::PictureSize size_of(const std::string& words) {
  app::PictureSize size;
  const char* const end = words.data() + words.size();
  const auto [after_width, bad_width] = std::from_chars(words.data(), end, size.width);
  if (bad_width == std::errc() && after_width != end && *after_width == 'x') {
    const auto [after, bad] = std::from_chars(after_width + 1, end, size.height);
    if (bad == std::errc() && after == end) return size;
  }
  throw UsageError("--size is " + quoted_name(words) + "; it must be like 1280x720.");
}

void write(const std::string& target, const std::function<std::string()>& content) {
  if (target.empty()) return;
  write_file_atomically(target, content());
  note("Written: " + shown(target));
}

void add_share_options(CLI::App& command, ShareChoice& choice) {
  const char* const group = "Pictures";
  command.add_option("--html", choice.html, "Write the recording as a web page that needs nothing else")->group(group);
  command.add_option("--animation", choice.animation, "Write some passes as an SVG picture that moves")->group(group);
  command
      .add_option("--rounds", choice.rounds,
                  "Passes of the page (default: all from --round on) or the animation (default: 10)")
      ->transform(app::numbers<uint64_t>(1, UINT64_MAX))
      ->group(group);
  command.add_option("--svg", choice.svg, "Write a pass as an SVG picture")->group(group);
  command.add_option("--png", choice.png, "Write a pass as a PNG picture")->group(group);
  command
      .add_option("--theme", choice.theme,
                  "dark, light or projector (default: dark; an SVG file has dark and light and follows its reader)")
      ->check(CLI::IsMember({"dark", "light", "projector"}))
      ->group(group);
  command.add_option("--size", choice.size, "Width and height of a picture")->capture_default_str()->group(group);
  command.add_option("--scale", choice.scale, "Pixels of a PNG for each of its size: 2 for fine screens")
      ->transform(app::numbers(0.25, 8.0))
      ->capture_default_str()
      ->group(group);
}

/// Writes the files that were asked for of a trace. Throws UsageError and bad_input.
void share_trace(const std::string& trace, const ShareChoice& choice, std::optional<uint64_t> round) {
  const app::PictureSize size = size_of(choice.size);
  const std::optional<app::ThemeKind> theme = theme_named(choice.theme);
  const app::ThemeKind one_theme = theme.value_or(app::ThemeKind::dark);
  const auto scale = static_cast<float>(choice.scale);
  const bool pictures = !choice.svg.empty() || !choice.png.empty();
  if (!round && pictures) throw UsageError("A picture is of one pass: name it with --round, counted from 0.");
  if (!choice.animation.empty() && std::filesystem::path(choice.animation).extension() != ".svg")
    throw UsageError("--animation is " + quoted_name(choice.animation) + "; its name must end in .svg.");
  const auto log = std::make_shared<const app::TraceLog>(trace);
  const app::SharedRun run = app::run_of(log);
  write(choice.html, [&] {
    return app::recording_page(run,
                               app::round_range(log->rounds(), round.value_or(0), choice.rounds, app::kMostPageRounds));
  });
  write(choice.svg, [&] { return app::round_svg(*log, *round, theme, size); });
  write(choice.png, [&] { return app::round_png(*log, *round, one_theme, size, scale); });
  write(choice.animation, [&] {
    const size_t first = round.value_or(0), left = first < log->rounds() ? log->rounds() - first : 0;
    const auto range = app::round_range(
        log->rounds(), first, choice.rounds.value_or(std::min(left, app::kAnimatedRounds)), app::kMostAnimatedRounds);
    return app::animated_svg(run, range, theme, size);
  });
}

// canopy-cli trace what-if: a recording with the costs of another device, and other widths, policies and depths.

using nlohmann::ordered_json;

struct WhatIfOptions {
  std::string file, costs, device, model, mode, policy, output;
  uint32_t budget = 0, widest = 0, depth = 0;
  bool as_json = false;
};

WhatIfWish wish_of(const WhatIfOptions& options) {
  WhatIfWish wish;
  if (!options.mode.empty()) wish.mode = decode_mode_of(options.mode);
  if (!options.policy.empty()) wish.policy = cost_policy_of(options.policy);
  if (options.budget > 0) wish.budget = options.budget;
  if (options.widest > 0) wish.widest = options.widest;
  if (options.depth > 0) wish.deepest = options.depth;
  return wish;
}

/// What is wrong with a file of costs names that file alone.
CostsElsewhere costs_of(const WhatIfOptions& options, const std::string& context, const TraceHeader& header,
                        std::span<const RecordedReply> replies) {
  if (!options.costs.empty() && options.costs != "self") return costs_of_file(options.costs, header, replies);
  return with_context(context, [&] {
    if (options.device.empty()) return costs_as_recorded(header);
    return costs_of_device(predict::device_profile(options.device), header, replies, options.model);
  });
}

ordered_json to_json(const WhatIfRound& round) {
  const RoundRecord& record = round.record;
  return {{"reply", round.reply},
          {"context", record.context},
          {"shape", to_string(record.shape)},
          {"width", record.width},
          {"emitted", record.emitted.size()},
          {"ms", record.ms.total()},
          {"ar_ms", round.ar_ms},
          {"same_as_recorded", round.as_recorded}};
}

ordered_json to_json(const WhatIf& run, const CostsElsewhere& there) {
  const WhatIfSummary summary = summarize(run);
  uint64_t decisions_same = 0;
  ordered_json passes = ordered_json::array(), widths = ordered_json::array();
  for (const WhatIfRound& round : run.rounds) {
    decisions_same += round.chosen && round.as_recorded ? 1 : 0;
    passes.push_back(to_json(round));
  }
  for (const auto& [width, count] : summary.widths) widths.push_back({{"width", width}, {"rounds", count}});
  return {{"source", to_string(there.source)},
          {"device", there.name},
          {"from", there.from},
          {"exact", run.exact},
          {"why_not", run.why_not},
          {"rounds", run.rounds.size()},
          {"decisions", run.chosen},
          {"decisions_same_as_recorded", decisions_same},
          {"rounds_same_as_recorded", run.as_recorded},
          {"left_out", run.left_out},
          {"tokens", run.tokens},
          {"ms", run.ms},
          {"tokens_per_second", run.tokens_per_second()},
          {"ar_tokens_per_second", run.ar_tokens_per_second()},
          {"ratio", summary.ratio},
          {"tokens_a_round", run.tokens_a_round()},
          {"verdict", summary.verdict},
          {"widths", std::move(widths)},
          {"passes", std::move(passes)}};
}

constexpr size_t kMostOfASentence = 4096;

constexpr const char* kDensify = " canopy-cli trace densify gives the recording what is missing.";

bool lacks_drafts(const TraceReader& trace) {
  return std::ranges::any_of(trace.replies(), [](const TraceReply& reply) { return !reply.dense; });
}

/// Whether these drafts can be added, so that more of it is exact: of blocks, not of what drafts token by token.
bool can_add_drafts(std::span<const RecordedReply> replies) {
  return std::ranges::none_of(replies,
                              [](const RecordedReply& reply) { return (reply.drafting.sources & kFromSteps) != 0; });
}

void print(const WhatIf& run, const CostsElsewhere& there, bool can_densify) {
  const WhatIfSummary summary = summarize(run);
  std::cout << printable(there.name) << " (" << to_string(there.source) << "): " << fixed(run.tokens_per_second(), 1)
            << " tokens/s, plain decoding " << fixed(run.ar_tokens_per_second(), 1) << "; " << run.tokens
            << " tokens in " << run.rounds.size() << " passes, " << fixed(run.tokens_a_round(), 2) << " a pass\n"
            << summary.verdict << "\n";
  if (run.chosen > 0) {
    uint64_t same = 0;
    for (const WhatIfRound& round : run.rounds) same += round.chosen && round.as_recorded ? 1 : 0;
    std::cout << "chosen as recorded: " << same << " of " << run.chosen << "\n";
  }
  std::cout << printable(there.from, kMostOfASentence) << "\n";
  if (run.exact) {
    std::cout << "Exact but for the times: each pass begins where the one before it ended.\n";
  } else {
    std::cout << printable(run.why_not, kMostOfASentence) << (can_densify ? kDensify : "") << "\n";
    if (run.left_out > 0) std::cout << "Left out, since nothing of them is known: " << run.left_out << " passes.\n";
  }
}

int run_what_if(const WhatIfOptions& options) {
  if (!options.device.empty() && !options.costs.empty()) {
    throw UsageError("Give one of --costs and --device: both say what passes cost.");
  }
  const std::vector<NamedFile> outputs = {{"--output", options.output}};
  require_outputs_apart(outputs, {{"the trace", options.file}, {"the calibration", options.costs}});
  const auto trace = std::make_shared<const TraceReader>(TraceReader::open(options.file));
  if (!trace->notice().empty()) note("warning: " + shown(options.file) + ": " + trace->notice());
  catch_interrupts();
  const std::string context = "The recording " + shown(options.file);
  const std::vector<RecordedReply> replies = with_context(context, [&] { return recorded_replies(trace); });
  const CostsElsewhere there = costs_of(options, context, trace->header(), replies);
  return with_context(context, [&] {
    WhatIfWish wish = wish_of(options);
    wish.costs = there.costs;
    if (wish.costs && !wish.mode) wish.mode = mode_elsewhere(replies);
    const WhatIf run = what_if(replies, wish, {{}, interruption()});
    if (!options.output.empty() && !run.exact && lacks_drafts(*trace)) {
      throw bad_input("What it would be cannot be written as a recording. " + run.why_not +
                      (can_add_drafts(replies) ? kDensify : ""));
    }
    if (!options.output.empty()) write_recording_elsewhere(options.output, *trace, replies, run, wish, there);
    if (options.as_json) {
      std::cout << to_json(run, there).dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
    } else {
      print(run, there, lacks_drafts(*trace) && can_add_drafts(replies));
    }
    return 0;
  });
}

void add_what_if(CLI::App& trace, Action& action) {
  CLI::App* part = trace.add_subcommand(
      "what-if",
      "What another device, width, policy or depth would have made of the same text, re-run in virtual time");
  const auto options = std::make_shared<WhatIfOptions>();
  part->add_option("file", options->file, "A .canopytrace file")->required();
  part->add_option("--costs", options->costs,
                   "self (the default: as recorded), or a calibration that was measured elsewhere (canopy-cli "
                   "calibrate --output)");
  std::string names;
  for (const predict::DeviceProfile& each : predict::device_profiles()) {
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  part->add_option("-d,--device", options->device, "Predict what passes cost on a device: " + names);
  part->add_option("-m,--model", options->model,
                   "With --device, for recordings that do not say how large their model is, its shape: " +
                       predict::allowed_shapes());
  part->add_option("--mode", options->mode, "As in generate (default: as recorded; with other costs adaptive)")
      ->check(CLI::IsMember({"ar", "chain", "tree", "adaptive"}));
  part->add_option("--policy", options->policy, "As in generate (default: as recorded)")
      ->check(CLI::IsMember({"measured", "static", "ema", "ema+calib", "paper"}));
  part->add_option("--budget", options->budget, "Drafted nodes of each tree, in mode tree")
      ->transform(app::numbers(1u, 1024u));
  part->add_option("--widest", options->widest, "Most rows of a pass")->transform(app::numbers(1u, 4096u));
  part->add_option("--depth", options->depth, "Most tokens of a draft")->transform(app::numbers(1u, 1024u));
  part->add_option("-o,--output", options->output,
                   "Write what it would have been as a recording, whose header says where its times come from");
  part->add_flag("--json", options->as_json, "Print one JSON object");
  part->callback([&action, options] { action = [options] { return run_what_if(*options); }; });
}

// canopy-cli trace densify: adds a draft behind every token of a recorded text.

struct DensifyOptions {
  std::string file;
  ModelChoice model;
};

int run_densify(DensifyOptions& options) {
  catch_interrupts();
  options.model.self_test = false;
  const TraceReader recorded = TraceReader::open(options.file);  // before the model is loaded
  const OpenedModel opened = open_model(options.model);
  ProgressLine line;
  DenseCallbacks callbacks;
  callbacks.progress = [&](uint64_t done, uint64_t total) { line.show({"Drafting behind every token", done, total}); };
  callbacks.stop = interruption();
  const DenseReport report = densify(*opened.model, options.file, callbacks);
  line.clear();
  std::cout << report.replies << " replies, " << report.added << " drafts added (" << report.bytes << " bytes)";
  if (report.dense_before > 0) std::cout << "; dense already: " << report.dense_before;
  if (report.compared > 0) {
    std::cout << "; the same as recorded, bit for bit: " << report.same << " of " << report.compared;
  }
  std::cout << "\n";
  return 0;
}

void add_densify(CLI::App& trace, Action& action) {
  CLI::App* part = trace.add_subcommand(
      "densify",
      "Add the draft behind every token of the texts, so that what-if is exact; needs the model and the drafter of the "
      "recording");
  const auto options = std::make_shared<DensifyOptions>();
  part->add_option("file", options->file, "A .canopytrace file, which grows")->required();
  add_model_options(*part, options->model);
  part->callback([&action, options] { action = [options] { return run_densify(*options); }; });
}

// canopy-cli trace and its parts. Showing a trace needs no device and no model.

struct TraceOptions {
  std::string file;
  std::optional<uint64_t> round;
  bool ascii = false;
  bool as_json = false;
  std::string format = "json";
  std::string output;
  ShareChoice share;
};

/// Opens the trace. Damage is reported on standard error; what can be read is shown all the same.
TraceReader open(const TraceOptions& options) {
  TraceReader trace = TraceReader::open(options.file);
  if (!trace.notice().empty()) note("warning: " + shown(options.file) + ": " + trace.notice());
  if (trace.unknown_records() > 0) {
    note("warning: " + shown(options.file) +
         " was written by a newer Canopy; records that this one does not know are "
         "left out: " +
         std::to_string(trace.unknown_records()) + ".");
  }
  return trace;
}

int show(const TraceOptions& options) {
  const TraceReader trace = open(options);
  if (options.round) {
    show_round(trace, *options.round, options.ascii ? Lines::ascii : Lines::unicode, std::cout);
  } else {
    show_trace(trace, std::cout);
  }
  return 0;
}

int print_statistics(const TraceOptions& options) {
  const TraceReader trace = open(options);
  RoundStatistics statistics;
  for (size_t i = 0; i < trace.rounds(); ++i) statistics.add(trace.round(i));
  if (options.as_json) {
    std::cout << to_json(statistics).dump(2) << "\n";
  } else {
    show_statistics(statistics, std::cout);
  }
  return 0;
}

int export_trace(const TraceOptions& options) {
  const ShareChoice& share = options.share;
  if (share.asked() && !options.output.empty())
    throw UsageError("-o is for the formats json and csv; pictures and pages name their own file.");
  const std::vector<NamedFile> outputs = {{"--output", options.output},
                                          {"--html", share.html},
                                          {"--svg", share.svg},
                                          {"--png", share.png},
                                          {"--animation", share.animation}};
  require_outputs_apart(outputs, {{"the trace", options.file}});
  if (options.share.asked()) {
    open(options);  // and say what is wrong with it
    share_trace(options.file, options.share, options.round);
    return 0;
  }
  if (options.round) throw UsageError("--round belongs to --svg, --png, --html and --animation.");
  const TraceReader trace = open(options);
  const auto write = [&](std::ostream& out) {
    if (options.format == "csv") {
      export_csv(trace, out);
    } else {
      export_json(trace, out);
    }
  };
  if (options.output.empty() || options.output == "-") {
    write(std::cout);
    return 0;
  }
  std::ostringstream content;
  write(content);
  write_file_atomically(options.output, content.view());
  return 0;
}

CLI::App* add_part(CLI::App& trace, const char* name, const char* what, const std::shared_ptr<TraceOptions>& options,
                   Action& action, int (*run)(const TraceOptions&)) {
  CLI::App* part = trace.add_subcommand(name, what);
  part->add_option("file", options->file, "A .canopytrace file")->required();
  part->callback([&action, options, run] { action = [options, run] { return run(*options); }; });
  return part;
}

}  // namespace

void add_trace(CLI::App& app, Action& action) {
  CLI::App* trace = app.add_subcommand("trace", "Look into a recorded trace; only densify needs a device and a model");
  trace->require_subcommand(1);
  const auto options = std::make_shared<TraceOptions>();

  CLI::App* part = add_part(*trace, "show", "Print what was recorded, pass by pass", options, action, show);
  part->add_option("--round", options->round, "Print this pass alone, with its tree; counted from 0")
      ->transform(app::numbers<uint64_t>(0, UINT64_MAX));
  part->add_flag("--ascii", options->ascii, "Draw the tree without Unicode");

  part = add_part(*trace, "stats", "Print what the passes come to", options, action, print_statistics);
  part->add_flag("--json", options->as_json, "Print one JSON object");

  part = add_part(*trace, "export", "Write the trace for other programs", options, action, export_trace);
  part->add_option("--format", options->format, "json has everything, csv a line of numbers for each pass")
      ->check(CLI::IsMember({"json", "csv"}))
      ->capture_default_str();
  part->add_option("-o,--output", options->output, "File to write (default: standard output)");
  part->add_option("--round", options->round, "The pass of a picture, or the first of a page or an animation; from 0")
      ->transform(app::numbers<uint64_t>(0, UINT64_MAX));
  add_share_options(*part, options->share);

  add_what_if(*trace, action);
  add_densify(*trace, action);
}

}  // namespace canopy::cli
