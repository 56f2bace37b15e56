#pragma once
// Colour science to check the themes: WCAG 2 contrast, CIEDE2000, and simulated dichromacy.

#include <array>

#include "app/state/theme.h"

namespace canopy::test {

enum class Vision { normal, deutan, protan, tritan };

/// WCAG 2 contrast ratio, from 1 to 21.
double contrast(app::Colour a, app::Colour b);
/// Linear RGB of a colour as seen with this kind of vision (Machado, Oliveira and Fernandes 2009, severity 1).
std::array<double, 3> seen(app::Colour colour, Vision vision);
/// CIEDE2000 (Sharma, Wu and Dalal 2005) of two colours as seen with this kind of vision.
double difference(app::Colour a, app::Colour b, Vision vision);

}  // namespace canopy::test
