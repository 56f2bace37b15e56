#include "app/cli/trace_command_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "app/base/local_time.h"
#include "app/cli/terminal.h"
#include "app/cli/trace_command_tree.h"
#include "engine/base/printable.h"

namespace canopy::cli {
namespace {

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
  if (header.redacted) line("redacted  ", "no texts; tokens are numbered anew in each round");
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
  out << "\n   round  context   shape  width  drafted  emitted        ms\n";
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
  out << "\nrounds by drafted tokens in the text\n";
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

void show_shapes(const RoundStatistics& statistics, std::ostream& out) {
  out << "\n shape   rounds   tokens      tau     tok/s\n";
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
      << (error.bias() < 0 ? " too short" : " too long") << " in sum, over " << error.rounds << " rounds\n";
}

}  // namespace

void show_trace(const TraceReader& trace, std::ostream& out) {
  show_header(trace.header(), out);
  for (size_t i = 0; i < trace.replies().size(); ++i) {
    show_reply(trace.replies()[i], i, out);
    show_rounds(trace, trace.replies()[i], out);
  }
}

void show_statistics(const RoundStatistics& statistics, std::ostream& out) {
  out << "rounds    " << statistics.rounds() << ", " << statistics.cut_rounds() << " of them ended inside their tree\n"
      << "tokens    " << statistics.emitted() << ", " << fixed(statistics.tau(), 3) << " a round, "
      << fixed(statistics.tokens_per_second(), 1) << " a second\n"
      << "nodes     " << statistics.accepted() << " of " << statistics.drafted() << " drafted came into the text ("
      << percent(statistics.node_utilisation()) << ")\n";
  show_shapes(statistics, out);
  show_histogram(statistics, out);
  show_depths(statistics, out);
  show_stages(statistics, out);
  out << "\n";
  show_prediction("round     ", statistics.total_error(), out);
  show_prediction("draft     ", statistics.draft_error(), out);
  show_prediction("verify    ", statistics.verify_error(), out);
  const Correlation& expectation = statistics.expectation();
  if (expectation.pairs == 0) return;
  out << "expected  " << fixed(expectation.mean_x, 3) << " tokens a round, emitted " << fixed(expectation.mean_y, 3)
      << ", correlation " << fixed(expectation.value(), 3) << ", over " << expectation.pairs << " rounds\n";
}

}  // namespace canopy::cli
