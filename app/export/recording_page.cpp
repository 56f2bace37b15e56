#include "app/export/recording_page.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/export/html.h"
#include "app/export/page_files.h"
#include "app/export/round_picture.h"
#include "app/state/conversation.h"
#include "app/state/round_log.h"
#include "app/state/words.h"
#include "app/tree/limb_shapes.h"
#include "app/tree/tree_geometry.h"
#include "app/tree/tree_look.h"
#include "app/tree/tree_model.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace canopy::app {
namespace {

// A round of a page: laid out here, so that the page's script only animates and paints (app/export/paint.js).

/// Texts that stand once in a page and are named by their number.
class PageTexts {
 public:
  uint32_t number_of(const std::string& text);
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<std::string> texts_;
};

/// The canvas that the page's trees are laid out for, in pixels at 100%.
constexpr CanvasSize kPageCanvas = {1120, 500, 1};

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
    const auto record = log.round_to_share(round);
    if (!record) throw bad_input("The tree of pass " + std::to_string(round) + " is not there any more.");
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
    json_["reason"] = printable(in_plain_words(record_->choice.reason), max_reason_bytes);
    ordered_json caption = ordered_json::array();
    for (const CaptionPart& part : tree_caption(tree_, labels_, record_->emitted.size()))
      caption.push_back({kind_of(part.kind), part.text});
    json_["caption"] = std::move(caption);
    if (!tree_.has_found()) return;
    json_["match"] = tree_.match;
    if (tree_.asked_text_alone()) json_["fromText"] = true;
    ordered_json said = ordered_json::object();  // the sentences of phases that are others than the drafter's
    for (uint32_t i = 0; i < kPhases; ++i) {
      const std::string words = phase_sentence(static_cast<Phase>(i), record_->emitted.size(), tree_);
      if (words != phase_sentence(static_cast<Phase>(i), record_->emitted.size())) said[std::to_string(i)] = words;
    }
    json_["said"] = std::move(said);
  }

  void nodes() {
    std::string fates, sources;
    std::vector<uint32_t> parents, labels, others;  // others: words of other chats, which are muted
    std::vector<int> q, target;
    for (uint32_t i = 0; i < tree_.size(); ++i) {
      const TreeNodeView& node = tree_.nodes[i];
      fates += static_cast<char>('0' + static_cast<int>(node.fate));
      sources += static_cast<char>('0' + static_cast<int>(node.sources));
      parents.push_back(node.parent == TreeNode::none ? 0 : node.parent);
      labels.push_back(table_.number_of(labels_[i]));
      if (is_of_other_chat(node)) others.push_back(i);
      q.push_back(ten_thousandths(node.q));
      const bool known = i < record_->nodes.size() && i > 0 && !std::isnan(record_->nodes[i].log_p);
      target.push_back(known ? ten_thousandths(std::exp(double{record_->nodes[i].log_p})) : -1);
    }
    json_["f"] = fates;
    if (tree_.has_found()) json_["s"] = sources;
    json_["p"] = parents;
    json_["l"] = labels;
    if (!others.empty()) json_["others"] = others;
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
      if (is_found(tree_, tuft)) tufts.back()["found"] = true;
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
    const auto lines = chain_note_lines(*chain, record_->emitted.size(), tree_.sources);
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

uint32_t PageTexts::number_of(const std::string& text) {
  const auto [at, added] = numbers_.emplace(text, static_cast<uint32_t>(texts_.size()));
  if (added) texts_.push_back(text);
  return at->second;
}

/// A round of a log. Lengths are rounded to a tenth of a pixel, probabilities to ten-thousandths. Throws bad_input
/// where the log no longer has its tree.
ordered_json page_round(const RoundLog& log, size_t round, PageTexts& labels) {
  return PageRound(log, round, labels).json();
}

constexpr size_t kMostQuestionBytes = 20'000;

const char* source_class(TokenSource source) {
  return source == TokenSource::accepted ? "a" : "b";
}

/// The bytes of a text that are code: between two lines that begin with three backticks.
std::vector<std::pair<size_t, size_t>> code_in(std::string_view text) {
  std::vector<std::pair<size_t, size_t>> code;
  bool open = false;
  for (size_t line = 0; line < text.size();) {
    const size_t end = std::min(text.find('\n', line), text.size());
    if (text.substr(line, 3) == "```") {
      if (open)
        code.back().second = end;
      else
        code.emplace_back(line, text.size());
      open = !open;
    }
    line = end + 1;
  }
  return code;
}

/// The texts of a reply's tokens up to the end of the range: text, round of the page or -1 for what was there before
/// it, and who wrote it. Thinking is of a kind of its own, and its tags are left out.
ordered_json pieces_of(const SharedReply& reply, const RoundRange& range) {
  ordered_json pieces = ordered_json::array();
  const std::string& text = reply.message.text;
  const auto code = code_in(text);
  const Thinking thinking = thinking_of(reply.message);
  bool answers = !thinking.there;
  size_t block = 0;  // the spans ascend as the blocks do
  const auto put = [&](uint32_t begin, uint32_t end, int64_t round, std::string kind) {
    if (begin >= end || end > text.size()) return;
    while (block < code.size() && code[block].second <= begin) ++block;
    if (block < code.size() && begin >= code[block].first) kind += kind.empty() ? "k" : " k";
    std::string shown = printable(std::string_view(text).substr(begin, end - begin), text.size() * 8, LineBreaks::keep);
    if (begin >= thinking.answer && !std::exchange(answers, true)) shown.insert(0, "\n\n");
    pieces.push_back({std::move(shown), round, std::move(kind)});
  };
  const auto add = [&](uint32_t begin, uint32_t end, int64_t round, const std::string& kind) {
    const auto thought_begin = static_cast<uint32_t>(thinking.begin), thought_end = static_cast<uint32_t>(thinking.end);
    put(std::max(begin, thought_begin), std::min(end, thought_end), round, kind.empty() ? "t" : kind + " t");
    put(std::max(begin, static_cast<uint32_t>(thinking.answer)), end, round, kind);
  };
  for (const TokenSpan& span : reply.message.spans) {
    // What stands before a reply's first round came with the prompt.
    const bool before = span.node == 0;
    const auto round = static_cast<int64_t>(reply.first_round + span.round) - static_cast<int64_t>(range.first);
    if (!before && round >= static_cast<int64_t>(range.count)) break;
    add(span.begin, std::min<uint32_t>(span.end, static_cast<uint32_t>(text.size())),
        before ? round - 1 : std::max<int64_t>(round, -1), before || round < 0 ? "" : source_class(span.source));
  }
  return pieces;
}

ordered_json replies_of(const SharedRun& run, const RoundRange& range) {
  ordered_json replies = ordered_json::array();
  for (const SharedReply& reply : run.replies) {
    if (reply.first_round + reply.rounds <= range.first || reply.first_round >= range.first + range.count) continue;
    const size_t first = std::max(reply.first_round, range.first) - range.first;
    replies.push_back({{"first", first},
                       {"question", printable(reply.question, kMostQuestionBytes, LineBreaks::keep)},
                       {"pieces", pieces_of(reply, range)}});
  }
  if (replies.empty()) replies.push_back({{"first", 0}, {"question", ""}, {"pieces", ordered_json::array()}});
  return replies;
}

ordered_json phases() {
  ordered_json list = ordered_json::array();
  for (uint32_t i = 0; i < kPhases; ++i) {
    const PhaseText& text = phase_texts()[i];
    list.push_back({{"name", text.name}, {"words", text.words}, {"ms", phase_ms(static_cast<Phase>(i), 1000)}});
  }
  return list;
}

ordered_json data_of(const SharedRun& run, const RoundRange& range, RoundStatistics& statistics,
                     const ShareCallbacks& callbacks) {
  PageTexts labels;
  ordered_json rounds = ordered_json::array();
  for (size_t i = 0; i < range.count; ++i) {
    callbacks.step(i, range.count);
    rounds.push_back(page_round(*run.log, range.first + i, labels));
    statistics.add(*run.log->round(range.first + i));
  }
  return {{"canvas", {{"w", kPageCanvas.width}, {"h", kPageCanvas.height}}},
          {"total", run.log->rounds()},
          {"phases", phases()},
          {"replies", replies_of(run, range)},
          {"labels", labels.texts()},
          {"rounds", std::move(rounds)}};
}

std::string row(const std::string& name, const std::string& value) {
  return "<dt>" + html_text(name) + "</dt><dd>" + html_text(value) + "</dd>\n";
}

/// "measured", or where else the times of the rounds come from.
std::string source_of_times(const TraceHeader& header) {
  return header.times.empty() ? "measured" : printable(header.times);
}

std::string where_it_was(const SharedRun& run) {
  const TraceHeader& h = run.header;
  std::string out = "<section class=\"wide\"><h2>Where</h2><dl>\n";
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) out += row(name, value);
  };
  line("Model", model_name(h.target.name, h.target.file_name, h.target.quantization));
  if (h.drafter) line("Drafter", model_name(h.drafter->name, h.drafter->file_name, h.drafter->quantization));
  line("Device", h.device);
  if (!h.times.empty()) line("Times", source_of_times(h) + ": nothing was recorded on this device");
  line("Driver", h.driver);
  line("Keys and values", h.kv_type);
  const std::optional<int64_t> moment = moment_in(h.created);
  line("Recorded", moment ? local_time_and_zone(*moment) : h.created);
  line("By", h.canopy_version.empty() ? "" : "Canopy " + h.canopy_version);
  return out + "</dl></section>\n";
}

std::string figures_of_run(const RoundStatistics& s, const std::string& times) {
  std::string out = "<section><h2>In all</h2><dl>\n";
  out += row("Passes", grouped(s.rounds())) + row("Tokens", grouped(s.emitted()));
  out += row("Tokens per pass", fixed(s.tau(), 2));
  out += row("Tokens a second, " + times, speed(s.tokens_per_second()));
  const double rounds = static_cast<double>(std::max<uint64_t>(1, s.rounds()));
  out += row("A pass, " + times, milliseconds(s.ms().total() / rounds));
  out += row("Guesses in the text", grouped(s.accepted()) + " of " + grouped(s.drafted()));
  if (s.has_text_drafts())
    out += row("Guessed from the text alone", counted(s.rounds_by(kFromSuffix), "pass", "passes"));
  const ShapeCounts& plain = s.of(DecodeMode::ar);
  if (plain.rounds > 0)
    out +=
        row("Plain passes", grouped(plain.rounds) + ", " + milliseconds(plain.ms / static_cast<double>(plain.rounds)));
  if (s.cut_rounds() > 0) out += row("Ended inside their tree", grouped(s.cut_rounds()));
  return out + "</dl></section>\n";
}

std::string charts_of(const RoundStatistics& s, const std::string& times) {
  std::vector<ChartBar> histogram, depths;
  uint32_t most = 0;
  for (const auto& [accepted, rounds] : s.accepted_histogram()) most = std::max(most, accepted);
  for (uint32_t i = 0; i <= std::min(most, 20u); ++i) {
    const auto found = s.accepted_histogram().find(i);
    const uint64_t rounds = found == s.accepted_histogram().end() ? 0 : found->second;
    histogram.push_back({std::to_string(i), static_cast<double>(rounds), grouped(rounds), "accepted", 0,
                         grouped(rounds) + " passes with " + std::to_string(i) + " right"});
  }
  for (size_t i = 0; i < std::min<size_t>(s.by_depth().size(), 16); ++i) {
    const DepthCounts& depth = s.by_depth()[i];
    const double share =
        depth.offered > 0 ? static_cast<double>(depth.accepted) / static_cast<double>(depth.offered) : 0;
    depths.push_back(
        {std::to_string(i + 1), share, fixed(share * 100, 0), "accepted", 0,
         grouped(depth.accepted) + " of " + grouped(depth.offered) + " at place " + std::to_string(i + 1)});
  }
  const RoundTimes& ms = s.ms();
  const double rounds = static_cast<double>(std::max<uint64_t>(1, s.rounds()));
  const double rest = ms.build + ms.walk + ms.commit + ms.other;
  const auto stage = [&](const char* name, const char* colour, double time) {
    return ChartBar{name, time, millisecond_figure(time / rounds) + " ms", colour, 0, ""};
  };
  std::string out = "<section><h2>Right guesses in a pass</h2>" +
                    upright_bars(histogram, "Passes by the number of guesses that were right") + "</section>\n";
  if (!depths.empty())
    out += "<section><h2>Right at each place, %</h2>" +
           upright_bars(depths, "Share of guesses that were right, by place") + "</section>\n";
  return out + "<section><h2>What a pass takes</h2>" +
         parted_bar(
             {stage("guess", "draft", ms.draft), stage("check", "verify", ms.verify), stage("rest", "rest", rest)},
             "Mean time of the stages of a pass") +
         "<p class=\"hint\">Mean over " + counted(s.rounds(), "pass", "passes") + ", " +
         (times == "measured" ? "measured by the wall clock" : html_text(times)) + ".</p></section>\n";
}

constexpr std::string_view kBodyBegin = R"(<main>
<section id="chat" aria-label="Text">
<p id="question"></p>
<p id="reply"></p>
<ul><li><span class="a">blue</span> guessed, confirmed</li>
<li><span class="b">dotted</span> written by the big model itself</li></ul>
</section>
<section id="stage" aria-label="Tree of guesses">
<dl class="numbers">
<div><dt>tokens from this pass</dt><dd id="emitted"></dd></div>
<div><dt>rows read by the big model</dt><dd id="width"></dd></div>
<div><dt>for this pass, )";

constexpr std::string_view kBody = R"(</dt><dd id="ms"></dd></div>
</dl>
<div class="bar"><p id="caption" aria-live="polite"></p><span id="pass"></span></div>
<div class="scroll"><canvas id="tree" role="img"></canvas></div>
<dl class="legend">
<div><canvas id="mark-accepted"></canvas><dt>accepted</dt><dd id="accepted" class="mono"></dd></div>
<div><canvas id="mark-rejected"></canvas><dt>rejected</dt><dd id="rejected" class="mono"></dd></div>
<div><i></i><dt>not reached</dt><dd id="notReached" class="mono"></dd></div>
<div><canvas id="mark-bonus"></canvas><dt id="own">bonus</dt><dd id="bonus" class="mono"></dd></div>
)";

constexpr std::string_view kFoundLegend =
    R"(<div><canvas id="mark-found"></canvas><dt>found in the text</dt><dd id="found" class="mono"></dd></div>
)";

constexpr std::string_view kBodyAfterLegend = R"(</dl>
<div id="card" hidden></div>
</section>
<nav aria-label="Time">
<div class="row">
<button id="first" aria-label="First pass"><svg viewBox="0 0 16 16"><path d="M3 3h2v10H3zM13 3v10L6 8z"/></svg></button>
<button id="previous" aria-label="Previous"><svg viewBox="0 0 16 16"><path d="M11 3v10L4 8z"/></svg></button>
<button id="play" aria-label="Play"><svg class="p" viewBox="0 0 16 16"><path d="M4.5 3 13 8l-8.5 5z"/></svg><svg class="s" viewBox="0 0 16 16"><path d="M4 3h3v10H4zM9 3h3v10H9z"/></svg></button>
<button id="next" aria-label="Next"><svg viewBox="0 0 16 16"><path d="M5 3l7 5-7 5z"/></svg></button>
<button id="slow" aria-pressed="false">Slow motion</button>
<label class="hint">speed <select id="speed"><option>0.1</option><option>0.25</option><option>0.5</option><option selected>1</option><option>2</option><option>4</option><option>10</option></select></label>
<span class="hint">One bar is a pass: blue was guessed, the cap is the big model's own token.</span>
</div>
<div id="phases" hidden>)";

constexpr std::string_view kBodyEnd = R"(</div>
<canvas id="strip" aria-hidden="true"></canvas>
<input id="scrub" type="range" min="0" step="1" value="0" aria-label="Pass">
<p id="why"></p>
<details id="keys"><summary>Keys</summary><p><kbd>Space</kbd> play or pause, <kbd>&larr;</kbd> <kbd>&rarr;</kbd> step, <kbd>Home</kbd> <kbd>End</kbd> first and last, <kbd>S</kbd> slow motion, <kbd>1</kbd>&ndash;<kbd>6</kbd> a phase, <kbd>+</kbd> <kbd>-</kbd> speed, <kbd>?</kbd> these words</p></details>
</nav>
<div class="stats">
)";

std::string body_of(const SharedRun& run, const RoundRange& range, const RoundStatistics& statistics,
                    const ordered_json& data) {
  std::string out =
      "<header><h1>Canopy</h1><p>" + html_text(run_title(run)) + "</p><span class=\"badge\">replayed</span>";
  const std::string times = source_of_times(run.header);
  if (!run.header.times.empty()) out += "<span class=\"badge\">" + html_text(times) + "</span>";
  if (run.header.redacted) out += "<span class=\"badge\">without texts</span>";
  if (range.count < run.log->rounds())
    out += "<p class=\"hint\">passes " + grouped(range.first + 1) + " to " + grouped(range.first + range.count) +
           " of " + grouped(run.log->rounds()) + "</p>";
  out += "</header>\n" + std::string(kBodyBegin) + html_text(times) + std::string(kBody);
  const bool found = statistics.has_text_drafts();
  if (found) out += kFoundLegend;
  out += "<p>" + thickness_words(found ? kUsualSources : kFromDflash) + "</p>\n" + std::string(kBodyAfterLegend);
  for (uint32_t i = 0; i < kPhases; ++i)
    out += "<button aria-pressed=\"false\">" + std::to_string(i + 1) + "  " + std::string(phase_texts()[i].name) +
           "</button>";
  out += std::string(kBodyEnd) + figures_of_run(statistics, times) + charts_of(statistics, times) + where_it_was(run);
  out +=
      "</div>\n</main>\n<footer><p>A recorded run of a language model that is written by speculative decoding: a tree "
      "of continuations is guessed, the big model reads it in one pass and keeps what it would have written itself. "
      "The page needs no network.";
  if (!run.notice.empty()) out += " " + html_text(run.notice);
  out +=
      "</p></footer>\n<noscript><p>The page needs JavaScript to draw trees; its statistics stand "
      "above.</p></noscript>\n";
  return out + "<script type=\"application/json\" id=\"data\">" + html_json(data) + "</script>\n";
}

}  // namespace

std::string run_title(const SharedRun& run) {
  return printable(run.log->origin(), 400);
}

std::string recording_page(const SharedRun& run, const RoundRange& range, const ShareCallbacks& callbacks) {
  RoundStatistics statistics;
  const ordered_json data = data_of(run, range, statistics, callbacks);
  HtmlPage page;
  page.title = "Canopy: " + run_title(run);
  page.style = page_style();
  page.script = std::string(player_script()) + std::string(paint_script()) + std::string(recording_script());
  page.body = body_of(run, range, statistics, data);
  return html_of(page);
}

}  // namespace canopy::app
