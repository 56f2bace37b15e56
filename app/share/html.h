#pragma once
// Web pages that are one file: nothing is loaded from elsewhere, and a Content-Security-Policy forbids it.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace canopy::app {

/// Text as the content of an element or attribute: safe whatever it holds. Line breaks stay.
std::string html_text(std::string_view text);

/// JSON as the content of a <script type="application/json">: only ASCII, and nothing that could end the element.
std::string html_json(const nlohmann::ordered_json& json);

struct HtmlPage {
  std::string title;
  std::string style;   // CSS; the colours of the themes come before it
  std::string script;  // JavaScript; empty: the page has none
  std::string body;    // HTML, in which all foreign text went through html_text() or html_json()
};

/// The whole file. Its policy allows this style and this script, by their hashes, and no connection, picture or frame.
std::string html_of(const HtmlPage& page);

}  // namespace canopy::app
