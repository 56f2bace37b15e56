// canopy-cli trace densify: adds a draft behind every token of a recorded text.

#include <iostream>
#include <memory>
#include <string>

#include "app/cli/interrupt.h"
#include "app/cli/model_options.h"
#include "app/cli/terminal.h"
#include "app/cli/trace_what_if.h"
#include "engine/session/dense_drafts.h"

namespace canopy::cli {
namespace {

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

}  // namespace

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

}  // namespace canopy::cli
