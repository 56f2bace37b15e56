#include "tests/app/ui/colour_math.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace canopy::test {
namespace {

using Vec3 = std::array<double, 3>;

Vec3 linear(app::Colour colour) {
  Vec3 out;
  for (int i = 0; i < 3; ++i) {
    const double c = static_cast<double>(colour >> (8 * i) & 0xFFu) / 255.0;
    out[static_cast<size_t>(i)] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return out;
}

double luminance(app::Colour colour) {
  const Vec3 c = linear(colour);
  return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
}

Vec3 lab(const Vec3& rgb) {
  const double x = (0.4124564 * rgb[0] + 0.3575761 * rgb[1] + 0.1804375 * rgb[2]) / 0.95047;
  const double y = 0.2126729 * rgb[0] + 0.7151522 * rgb[1] + 0.0721750 * rgb[2];
  const double z = (0.0193339 * rgb[0] + 0.1191920 * rgb[1] + 0.9503041 * rgb[2]) / 1.08883;
  auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
  return {116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))};
}

double degrees(double radians) {
  return radians * 180 / std::numbers::pi;
}
double radians(double degrees) {
  return degrees * std::numbers::pi / 180;
}

double hue(double a, double b) {
  if (a == 0 && b == 0) return 0;
  const double h = degrees(std::atan2(b, a));
  return h < 0 ? h + 360 : h;
}

double mean_hue(double h1, double h2, double chroma_product) {
  if (chroma_product == 0) return h1 + h2;
  if (std::abs(h1 - h2) <= 180) return (h1 + h2) / 2;
  return h1 + h2 < 360 ? (h1 + h2 + 360) / 2 : (h1 + h2 - 360) / 2;
}

double hue_difference(double h1, double h2, double chroma_product) {
  if (chroma_product == 0) return 0;
  double d = h2 - h1;
  if (d > 180) d -= 360;
  if (d < -180) d += 360;
  return d;
}

double ciede2000(const Vec3& p, const Vec3& q) {
  const double c1 = std::hypot(p[1], p[2]), c2 = std::hypot(q[1], q[2]), mean_c7 = std::pow((c1 + c2) / 2, 7);
  const double g = 0.5 * (1 - std::sqrt(mean_c7 / (mean_c7 + std::pow(25.0, 7))));
  const double a1 = (1 + g) * p[1], a2 = (1 + g) * q[1];
  const double cp1 = std::hypot(a1, p[2]), cp2 = std::hypot(a2, q[2]);
  const double h1 = hue(a1, p[2]), h2 = hue(a2, q[2]);
  const double dl = q[0] - p[0], dc = cp2 - cp1;
  const double dh = 2 * std::sqrt(cp1 * cp2) * std::sin(radians(hue_difference(h1, h2, cp1 * cp2)) / 2);
  const double l = (p[0] + q[0]) / 2, c = (cp1 + cp2) / 2, h = mean_hue(h1, h2, cp1 * cp2);
  const double t = 1 - 0.17 * std::cos(radians(h - 30)) + 0.24 * std::cos(radians(2 * h)) +
                   0.32 * std::cos(radians(3 * h + 6)) - 0.20 * std::cos(radians(4 * h - 63));
  const double sl = 1 + 0.015 * (l - 50) * (l - 50) / std::sqrt(20 + (l - 50) * (l - 50));
  const double sc = 1 + 0.045 * c, sh = 1 + 0.015 * c * t;
  const double c7 = std::pow(c, 7), rc = 2 * std::sqrt(c7 / (c7 + std::pow(25.0, 7)));
  const double theta = 30 * std::exp(-std::pow((h - 275) / 25, 2));
  const double rt = -std::sin(radians(2 * theta)) * rc;
  return std::sqrt(std::pow(dl / sl, 2) + std::pow(dc / sc, 2) + std::pow(dh / sh, 2) + rt * dc / sc * dh / sh);
}

using Matrix = std::array<Vec3, 3>;
constexpr Matrix kDeutan = {
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};
constexpr Matrix kProtan = {
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}};
constexpr Matrix kTritan = {
    {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};

}  // namespace

double contrast(app::Colour a, app::Colour b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

std::array<double, 3> seen(app::Colour colour, Vision vision) {
  const Vec3 c = linear(colour);
  if (vision == Vision::normal) return c;
  const Matrix& m = vision == Vision::deutan ? kDeutan : vision == Vision::protan ? kProtan : kTritan;
  Vec3 out;
  for (size_t i = 0; i < 3; ++i) out[i] = std::clamp(m[i][0] * c[0] + m[i][1] * c[1] + m[i][2] * c[2], 0.0, 1.0);
  return out;
}

double difference(app::Colour a, app::Colour b, Vision vision) {
  return ciede2000(lab(seen(a, vision)), lab(seen(b, vision)));
}

}  // namespace canopy::test
