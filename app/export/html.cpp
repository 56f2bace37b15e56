#include "app/export/html.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "app/export/picture.h"
#include "app/platform/font_face.h"
#include "app/state/theme.h"
#include "app/state/words.h"
#include "engine/base/bytes.h"

namespace canopy::app {
namespace {

std::string css_colour(Colour colour) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", colour & 0xFFu, colour >> 8 & 0xFFu, colour >> 16 & 0xFFu);
  return text;
}

std::string variables(const Theme& t) {
  const std::pair<const char*, Colour> all[] = {{"back", t.back},
                                                {"canvas", t.canvas},
                                                {"panel", t.panel},
                                                {"card", t.card},
                                                {"raised", t.raised},
                                                {"text", t.text},
                                                {"text2", t.text2},
                                                {"text3", t.text3},
                                                {"accent", t.accent},
                                                {"accent-text", t.accent_text},
                                                {"on-accent", t.on_accent},
                                                {"accent-bg", t.accent_bg},
                                                {"ctl", t.ctl},
                                                {"line", t.line},
                                                {"grid", t.grid},
                                                {"accepted", t.accepted},
                                                {"rejected", t.rejected},
                                                {"unreached", t.unreached},
                                                {"bonus", t.bonus},
                                                {"limb", t.limb},
                                                {"limb-unreached", t.limb_unreached},
                                                {"limb-rejected", t.limb_rejected},
                                                {"limb-rejected-bg", t.limb_rejected_bg},
                                                {"twig", mix(t.limb, t.text3, 0.5f)},
                                                {"accepted-text", t.accepted_text},
                                                {"rejected-text", t.rejected_text},
                                                {"bonus-text", t.bonus_text},
                                                {"accepted-bg", t.accepted_bg},
                                                {"accepted-strong-bg", t.accepted_strong_bg},
                                                {"bonus-bg", t.bonus_bg},
                                                {"on-state", t.on_state},
                                                {"draft", t.draft},
                                                {"verify", t.verify},
                                                {"rest", t.rest}};
  std::string out = ":root{";
  for (const auto& [name, colour] : all) out += std::string("--") + name + ":" + css_colour(colour) + ";";
  return out + "}";
}

/// Dark, light as the reader's system prefers, and with more contrast where it asks for that.
std::string themes() {
  return ":root{color-scheme:dark light}" + variables(theme(ThemeKind::dark)) + "@media (prefers-color-scheme:light){" +
         variables(theme(ThemeKind::light)) + "}" + "@media (prefers-color-scheme:light) and (prefers-contrast:more){" +
         variables(theme(ThemeKind::projector)) + "}\n";
}

std::string hash_of(std::string_view text) {
  return "'sha256-" + encode_base64(sha256(text)) + "'";
}

}  // namespace

std::string html_text(std::string_view text) {
  return xml_text(text, LineBreaks::keep);
}

std::string html_json(const nlohmann::ordered_json& json) {
  std::string out;
  for (const char c : json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<' || c == '>' || c == '&') {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out;
}

std::string html_of(const HtmlPage& page) {
  const std::string style = themes() + page.style;
  std::string policy =
      "default-src 'none'; style-src " + hash_of(style) + "; img-src data:; base-uri 'none'; " + "form-action 'none'";
  if (!page.script.empty()) policy += "; script-src " + hash_of(page.script);
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy + "\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += "<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"generator\" content=\"Canopy\">\n";
  out += "<link rel=\"icon\" href=\"data:,\">\n<title>" + html_text(page.title) + "</title>\n";
  out += "<style>" + style + "</style>\n</head>\n<body>\n" + page.body;
  if (!page.script.empty()) out += "<script>" + page.script + "</script>\n";
  return out + "</body>\n</html>\n";
}

namespace {

constexpr size_t kMoreLineStyles = 3;  // s2 to s4 of the page's style

std::string svg_number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 1).ptr;
  std::string out(text.data(), end);
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out;
}

/// An inline SVG element in the making.
class Chart {
 public:
  Chart(double width, double height, const std::string& describes) {
    out_ = "<svg class=\"chart\" viewBox=\"0 0 " + svg_number(width) + " " + svg_number(height) + "\" width=\"" +
           svg_number(width) + "\" height=\"" + svg_number(height) + "\" role=\"img\" aria-label=\"" +
           html_text(describes) + "\">\n";
  }
  void rect(double x, double y, double width, double height, const std::string& colour, const std::string& title = "") {
    out_ += "<rect class=\"" + colour + "\" x=\"" + svg_number(x) + "\" y=\"" + svg_number(y) + "\" width=\"" +
            svg_number(std::max(0.0, width)) + "\" height=\"" + svg_number(std::max(0.0, height)) + "\"";
    out_ += title.empty() ? "/>\n" : "><title>" + html_text(title) + "</title></rect>\n";
  }
  void line(double x0, double y0, double x1, double y1, const std::string& kind) {
    out_ += "<line class=\"" + kind + "\" x1=\"" + svg_number(x0) + "\" y1=\"" + svg_number(y0) + "\" x2=\"" +
            svg_number(x1) + "\" y2=\"" + svg_number(y1) + "\"/>\n";
  }
  void text(double x, double y, const std::string& words, const char* anchor = "start", const char* kind = "") {
    out_ += "<text x=\"" + svg_number(x) + "\" y=\"" + svg_number(y) + "\" text-anchor=\"" + anchor + "\"" +
            (*kind ? " class=\"" + std::string(kind) + "\"" : "") + ">" + html_text(words) + "</text>\n";
  }
  void path(const std::string& data, const std::string& kind) {
    out_ += "<path class=\"" + kind + "\" d=\"" + data + "\"/>\n";
  }
  std::string finish() { return out_ + "</svg>\n"; }

 private:
  std::string out_;
};

double largest(const std::vector<ChartBar>& bars) {
  double most = 0;
  for (const ChartBar& bar : bars) most = std::max(most, bar.value + bar.error);
  return most > 0 ? most : 1;
}

std::string title_of(const ChartBar& bar) {
  return bar.details.empty() ? bar.label + ": " + bar.words : bar.details;
}

constexpr double kBarRow = 24, kBarsTop = 4;  // of level bars

/// A round number so that four steps or fewer reach `most`.
double step_for(double most) {
  const double raw = most / 4, power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0})
    if (factor * power >= raw) return factor * power;
  return 10 * power;
}

std::string tick_words(double value, double step) {
  // As many digits as the step has: 0.25 is not 0.2.
  int digits = 0;
  for (double rest = step; digits < 3 && std::abs(rest - std::round(rest)) > 1e-9 * rest; rest *= 10) ++digits;
  return fixed(value, digits);
}

}  // namespace

std::string upright_bars(const std::vector<ChartBar>& bars, const std::string& describes) {
  constexpr double kWidth = 340, kHeight = 150, kTop = 16, kBottom = 20;
  Chart chart(kWidth, kHeight, describes);
  const double pitch = kWidth / static_cast<double>(std::max<size_t>(bars.size(), 6)), most = largest(bars);
  const double room = kHeight - kTop - kBottom;
  chart.line(0, kHeight - kBottom, kWidth, kHeight - kBottom, "axis");
  for (size_t i = 0; i < bars.size(); ++i) {
    const ChartBar& bar = bars[i];
    const double x = pitch * static_cast<double>(i), height = room * bar.value / most, middle = x + pitch / 2;
    chart.rect(x + 2, kHeight - kBottom - height, pitch - 4, height, bar.colour, title_of(bar));
    chart.text(middle, kHeight - 6, bar.label, "middle");
    if (pitch >= 22) chart.text(middle, kHeight - kBottom - height - 4, bar.words, "middle", "v");
  }
  return chart.finish();
}

double height_of_bars(size_t bars) {
  return kBarsTop * 2 + kBarRow * static_cast<double>(bars);
}

std::string level_bars(const std::vector<ChartBar>& bars, const std::string& describes, double reference) {
  constexpr double kWidth = 520, kBar = 14;
  double label_room = 40, value_room = 40;
  for (const ChartBar& bar : bars) {
    label_room = std::max(label_room, double{text_width(Face::sans, 11, bar.label)} * 1.1 + 12);
    value_room = std::max(value_room, double{text_width(Face::sans, 11, bar.words)} * 1.1 + 12);
  }
  label_room = std::min(label_room, 260.0);
  const double height = height_of_bars(bars.size());
  Chart chart(kWidth, height, describes);
  const double room = kWidth - label_room - value_room, most = std::max(largest(bars), reference);
  for (size_t i = 0; i < bars.size(); ++i) {
    const ChartBar& bar = bars[i];
    const double middle = kBarsTop + kBarRow * (static_cast<double>(i) + 0.5),
                 end = label_room + room * bar.value / most;
    chart.text(label_room - 8, middle + 4, text_within(Face::sans, 11, bar.label, static_cast<float>(label_room - 8)),
               "end", "x2");
    chart.rect(label_room, middle - kBar / 2, end - label_room, kBar, bar.colour, title_of(bar));
    double behind = end;
    if (bar.error > 0) {
      const double reach = room * bar.error / most;
      chart.line(end - reach, middle, end + reach, middle, "error");
      for (const double side : {end - reach, end + reach}) chart.line(side, middle - 4, side, middle + 4, "error");
      behind = end + reach;
    }
    chart.text(behind + 6, middle + 4, bar.words, "start", "v");
  }
  if (reference > 0) {
    const double x = label_room + room * reference / most;
    chart.line(x, 0, x, height, "reference");
  }
  return chart.finish();
}

std::string parted_bar(const std::vector<ChartBar>& parts, const std::string& describes) {
  constexpr double kWidth = 340, kBar = 16;
  double sum = 0;
  for (const ChartBar& part : parts) sum += part.value;
  Chart chart(kWidth, 44, describes);
  double x = 0, words_x = 0;
  for (const ChartBar& part : parts) {
    const double width = sum > 0 ? kWidth * part.value / sum : 0;
    chart.rect(x, 0, width - 1, kBar, part.colour, title_of(part));
    x += width;
    const std::string words = part.label + " " + part.words;
    chart.rect(words_x, 27, 9, 9, part.colour);
    chart.text(words_x + 13, 36, words, "start", "x2");
    words_x += 13 + double{text_width(Face::sans, 11, words)} * 1.1 + 14;
  }
  return chart.finish();
}

namespace {

/// The axes of a line chart and where a value lies on them.
struct LineAxes {
  double width = 520, height = 0, left = 40, right = 16, top = 10, bottom = 24;
  double low = 0, high = 0, step = 1, most = 1;

  LineAxes(const std::vector<ChartLine>& lines, double reference, double tall) : height(tall) {
    double reach = reference, names = 0;
    for (const ChartLine& line : lines) {
      names = std::max(names, double{text_width(Face::sans, 11, line.label)} * 1.1);
      for (const ChartPoint& p : line.points) {
        reach = std::max(reach, p.y + p.error);
        low = low > 0 ? std::min(low, p.x) : p.x;
        high = std::max(high, p.x);
      }
    }
    if (reach <= 0) reach = 1;
    right += std::min(names, 220.0);
    step = step_for(reach);
    most = std::ceil(reach / step - 1e-9) * step;
  }

  double x(double value) const {
    const double share = high > low ? std::log(value / low) / std::log(high / low) : 0.5;
    return left + 14 + (width - left - right - 28) * share;
  }
  double y(double value) const {
    return height - bottom - (height - top - bottom) * std::clamp(value / most, 0.0, 1.0);
  }
};

void draw_axes(Chart& chart, const LineAxes& axes, const std::vector<ChartLine>& lines, double reference) {
  for (double y = 0; y <= axes.most + axes.step / 2; y += axes.step) {
    chart.line(axes.left, axes.y(y), axes.width - axes.right, axes.y(y), "axis");
    chart.text(axes.left - 6, axes.y(y) + 4, tick_words(y, axes.step), "end");
  }
  if (reference > 0) chart.line(axes.left, axes.y(reference), axes.width - axes.right, axes.y(reference), "reference");
  std::map<double, std::string> ticks;
  for (const ChartLine& line : lines)
    for (const ChartPoint& p : line.points) ticks.emplace(p.x, p.words);
  double free_from = 0;
  for (const auto& [value, words] : ticks) {
    const double half = double{text_width(Face::sans, 11, words)} * 0.55;
    if (axes.x(value) - half < free_from) continue;
    chart.text(axes.x(value), axes.height - 8, words, "middle");
    free_from = axes.x(value) + half + 6;
  }
}

}  // namespace

std::string line_chart(const std::vector<ChartLine>& lines, const std::string& describes, double reference,
                       double height) {
  const LineAxes axes(lines, reference, height);
  Chart chart(axes.width, axes.height, describes);
  draw_axes(chart, axes, lines, reference);
  double free_below = -1e9;
  std::vector<std::pair<double, size_t>> ends;  // y of the line's end, its number
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].points.empty()) continue;
    const std::string kind = i == 0 ? "" : " s" + std::to_string((i - 1) % kMoreLineStyles + 2);
    std::string data;
    for (const ChartPoint& p : lines[i].points) {
      const double x = axes.x(p.x);
      data += (data.empty() ? "M" : "L") + svg_number(x) + " " + svg_number(axes.y(p.y));
      if (p.error > 0) chart.line(x, axes.y(p.y - p.error), x, axes.y(p.y + p.error), "error");
    }
    chart.path(data, "line" + kind);
    const std::string name = lines[i].label.empty() ? "" : lines[i].label + ", ";
    for (const ChartPoint& p : lines[i].points)
      chart.rect(axes.x(p.x) - 2.5, axes.y(p.y) - 2.5, 5, 5, "point" + kind, name + p.words + ": " + fixed(p.y, 3));
    ends.emplace_back(axes.y(lines[i].points.back().y), i);
  }
  std::ranges::sort(ends);
  for (const auto& [y, i] : ends) {
    free_below = std::max(free_below + 13, y);
    chart.text(axes.x(lines[i].points.back().x) + 8, free_below + 4, lines[i].label, "start", "x2");
  }
  return chart.finish();
}

}  // namespace canopy::app
