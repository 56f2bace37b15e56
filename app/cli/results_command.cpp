// canopy-cli results: measurements as a web page or as Markdown.

#include <memory>

#include "app/cli/bench_report.h"
#include "app/cli/commands.h"
#include "app/cli/model_options.h"
#include "app/cli/terminal.h"
#include "app/share/results.h"
#include "app/share/results_page.h"
#include "engine/base/mapped_file.h"

namespace canopy::cli {
namespace {

struct ResultsOptions {
  std::vector<std::string> files;
  std::string html, markdown;
};

int show_results(const ResultsOptions& options) {
  if (options.html == "-" && options.markdown == "-")
    throw UsageError("Only one of --html and --markdown can go to standard output.");
  const std::vector<NamedFile> outputs = {{"--html", options.html}, {"--markdown", options.markdown}};
  require_outputs_apart(outputs, named_files("the measurement", {options.files.begin(), options.files.end()}));
  std::vector<app::Results> all;
  for (const std::string& file : options.files) all.push_back(app::read_results(file));
  if (!options.html.empty()) {
    write_report(options.html, app::results_page(all));
    if (options.html != "-") note("The page is in " + shown(options.html) + ".");
  }
  if (options.html.empty() || !options.markdown.empty())
    write_report(options.markdown.empty() ? "-" : options.markdown, app::results_markdown(all));
  return 0;
}

}  // namespace

void add_results(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("results", "Make a web page or Markdown of sweeps and comparisons");
  const auto options = std::make_shared<ResultsOptions>();
  command->add_option("files", options->files, "Files of `canopy-cli sweep`; the first is put beside the others")
      ->required();
  command->add_option("--html", options->html,
                      "Write a web page with plots, machines and the raw files; - is standard output");
  command->add_option("--markdown", options->markdown,
                      "Write tables to paste; - is standard output, which is the default");
  command->callback([&action, options] { action = [options] { return show_results(*options); }; });
}

}  // namespace canopy::cli
