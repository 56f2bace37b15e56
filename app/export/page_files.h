#pragma once
// The style and the scripts of the pages (app/export/*.js, page.css), built into the program.

#include <string_view>

namespace canopy::app {

std::string_view page_style();
/// Of a page that shows a recording.
std::string_view player_script();
std::string_view paint_script();
std::string_view recording_script();
/// Of a report of results.
std::string_view report_script();

}  // namespace canopy::app
