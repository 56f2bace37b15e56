#include "app/share/html.h"

#include <cstdio>
#include <utility>

#include "app/base/theme.h"
#include "app/picture/svg.h"
#include "engine/base/base64.h"
#include "engine/base/sha256.h"

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

}  // namespace canopy::app
