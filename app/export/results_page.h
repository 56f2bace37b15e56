#pragma once
// Files of comparisons and sweeps, to be shown to others: as a web page of one file, and as Markdown to paste.

#include <filesystem>
#include <span>
#include <string>

#include "engine/bench/sweep.h"

namespace canopy::app {

/// A sweep and the text of the file that it was read from.
struct Results {
  Sweep sweep;
  std::string raw;
};

/// Throws bad_input naming the file and what is wrong with it.
Results read_results(const std::filesystem::path& path);

/// "Sweep" or "Comparison".
std::string kind_words(const Sweep& sweep);

/// "Radeon RX 7900 XTX", with the model where the files differ in it too.
std::string results_name(std::span<const Results> all, size_t index);

/// The verdict as a sentence with its full stop; how much was measured, where nothing can be said yet.
std::string verdict_words(const Sweep& sweep);

/// For each file what was measured where, its verdict, its table and what a reader must know; then the first beside
/// each of the others.
std::string results_markdown(std::span<const Results> all);

// A sweep or a comparison as a web page of one file: verdict, plots, machine, versions, all figures and the raw file.

/// all: at least one; the first is put beside each of the others
std::string results_page(std::span<const Results> all);

}  // namespace canopy::app
