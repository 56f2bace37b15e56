#pragma once
// A sweep or a comparison as a web page of one file: verdict, plots, machine, versions, all figures and the raw file.

#include <span>
#include <string>

#include "app/share/results.h"

namespace canopy::app {

/// all  at least one; the first is put beside each of the others
std::string results_page(std::span<const Results> all);

}  // namespace canopy::app
