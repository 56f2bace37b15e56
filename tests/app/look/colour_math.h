#pragma once
// Colour science for checking the theme: WCAG 2 contrast, CIEDE2000, and dichromacy simulated at full strength.

#include <array>

#include "app/look/theme.h"

namespace canopy::test {

enum class Vision { normal, deutan, protan, tritan };

/// WCAG 2 contrast ratio, 1 ... 21.
double contrast(app::Colour a, app::Colour b);
/// Linear RGB of a colour as somebody with this vision sees it (Machado, Oliveira and Fernandes 2009, severity 1).
std::array<double, 3> seen(app::Colour colour, Vision vision);
/// CIEDE2000 (Sharma, Wu and Dalal 2005) between two colours as seen.
double difference(app::Colour a, app::Colour b, Vision vision);

}  // namespace canopy::test
