// canopy-cli trace: shows a recorded trace. Needs no device and no model.

#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "app/base/number_options.h"
#include "app/cli/commands.h"
#include "app/cli/model_options.h"
#include "app/cli/terminal.h"
#include "app/cli/trace_command_text.h"
#include "app/cli/trace_command_tree.h"
#include "app/cli/trace_share.h"
#include "app/cli/trace_what_if.h"
#include "engine/base/atomic_file.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/trace/round_statistics_json.h"
#include "engine/trace/trace_export.h"

namespace canopy::cli {
namespace {

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

  CLI::App* part = add_part(*trace, "show", "Print what was recorded, round by round", options, action, show);
  part->add_option("--round", options->round, "Print this round alone, with its tree; counted from 0")
      ->transform(app::numbers<uint64_t>(0, UINT64_MAX));
  part->add_flag("--ascii", options->ascii, "Draw the tree without Unicode");

  part = add_part(*trace, "stats", "Print what the rounds come to", options, action, print_statistics);
  part->add_flag("--json", options->as_json, "Print one JSON object");

  part = add_part(*trace, "export", "Write the trace for other programs", options, action, export_trace);
  part->add_option("--format", options->format, "json has everything, csv a line of numbers for each round")
      ->check(CLI::IsMember({"json", "csv"}))
      ->capture_default_str();
  part->add_option("-o,--output", options->output, "File to write (default: standard output)");
  part->add_option("--round", options->round, "The round of a picture, or the first of a page or an animation; from 0")
      ->transform(app::numbers<uint64_t>(0, UINT64_MAX));
  add_share_options(*part, options->share);

  add_what_if(*trace, action);
  add_densify(*trace, action);
}

}  // namespace canopy::cli
