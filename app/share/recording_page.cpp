#include "app/share/recording_page.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "app/base/figures.h"
#include "app/base/local_time.h"
#include "app/base/model_name.h"
#include "app/conversation/thinking.h"
#include "app/layout/tree_reveal.h"
#include "app/share/chart.h"
#include "app/share/html.h"
#include "app/share/page_files.h"
#include "app/share/page_round.h"
#include "engine/base/printable.h"

namespace canopy::app {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostQuestionBytes = 20'000;

const char* source_class(TokenSource source) {
  return source == TokenSource::accepted ? "a" : source == TokenSource::own ? "b" : "";
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
  out += row("Rounds", grouped(s.rounds())) + row("Tokens", grouped(s.emitted()));
  out += row("Tokens per pass (\u03c4)", fixed(s.tau(), 2));
  out += row("Tokens a second, " + times, speed(s.tokens_per_second()));
  const double rounds = static_cast<double>(std::max<uint64_t>(1, s.rounds()));
  out += row("A pass, " + times, milliseconds(s.ms().total() / rounds));
  out += row("Guesses in the text", grouped(s.accepted()) + " of " + grouped(s.drafted()));
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
                         grouped(rounds) + " rounds with " + std::to_string(i) + " right"});
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
  const auto stage = [&](const char* name, double time) {
    return ChartBar{name, time, millisecond_figure(time / rounds) + " ms", name, 0, ""};
  };
  std::string out = "<section><h2>Right guesses in a pass</h2>" +
                    upright_bars(histogram, "Rounds by the number of guesses that were right") + "</section>\n";
  if (!depths.empty())
    out += "<section><h2>Right at each place, %</h2>" +
           upright_bars(depths, "Share of guesses that were right, by place") + "</section>\n";
  return out + "<section><h2>What a pass takes</h2>" +
         parted_bar({stage("draft", ms.draft), stage("verify", ms.verify), stage("rest", rest)},
                    "Mean time of the stages of a round") +
         "<p class=\"hint\">Mean over " + grouped(s.rounds()) + " rounds, " +
         (times == "measured" ? "measured by the wall clock" : html_text(times)) + ".</p></section>\n";
}

constexpr std::string_view kBodyBegin = R"(<main>
<section id="chat" aria-label="Text">
<p id="question"></p>
<p id="reply"></p>
<ul><li><span class="a">blue</span> guessed by the drafter, confirmed</li>
<li><span class="b">dotted</span> written by the big model itself</li></ul>
</section>
<section id="stage" aria-label="Draft tree">
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
<div><canvas id="mark-bonus"></canvas><dt>bonus</dt><dd id="bonus" class="mono"></dd></div>
<p>branch thickness: how sure the drafter was</p>
</dl>
<div id="card" hidden></div>
</section>
<nav aria-label="Time">
<div class="row">
<button id="first" aria-label="First round"><svg viewBox="0 0 16 16"><path d="M3 3h2v10H3zM13 3v10L6 8z"/></svg></button>
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
<input id="scrub" type="range" min="0" step="1" value="0" aria-label="Round">
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
    out += "<p class=\"hint\">rounds " + grouped(range.first + 1) + " to " + grouped(range.first + range.count) +
           " of " + grouped(run.log->rounds()) + "</p>";
  out += "</header>\n" + std::string(kBodyBegin) + html_text(times) + std::string(kBody);
  for (uint32_t i = 0; i < kPhases; ++i)
    out += "<button aria-pressed=\"false\">" + std::to_string(i + 1) + "  " + std::string(phase_texts()[i].name) +
           "</button>";
  out += std::string(kBodyEnd) + figures_of_run(statistics, times) + charts_of(statistics, times) + where_it_was(run);
  out +=
      "</div>\n</main>\n<footer><p>A recorded run of a language model that is written by speculative decoding: a small "
      "drafter guesses a tree of continuations, the big model reads it in one pass and keeps what it would have "
      "written itself. The page needs no network.";
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
