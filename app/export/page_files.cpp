#include "app/export/page_files.h"

#include "engine/base/embedded_file.h"

CANOPY_EMBED_FILE(page_style, CANOPY_PAGE_DIR "/page.css");
CANOPY_EMBED_FILE(player_script, CANOPY_PAGE_DIR "/player.js");
CANOPY_EMBED_FILE(paint_script, CANOPY_PAGE_DIR "/paint.js");
CANOPY_EMBED_FILE(recording_script, CANOPY_PAGE_DIR "/page.js");
CANOPY_EMBED_FILE(report_script, CANOPY_PAGE_DIR "/report.js");

namespace canopy::app {
namespace {

std::string_view between(const unsigned char* begin, const unsigned char* end) {
  return {reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin)};
}

}  // namespace

std::string_view page_style() {
  return between(canopy_file_page_style, canopy_file_page_style_end);
}

std::string_view player_script() {
  return between(canopy_file_player_script, canopy_file_player_script_end);
}

std::string_view paint_script() {
  return between(canopy_file_paint_script, canopy_file_paint_script_end);
}

std::string_view recording_script() {
  return between(canopy_file_recording_script, canopy_file_recording_script_end);
}

std::string_view report_script() {
  return between(canopy_file_report_script, canopy_file_report_script_end);
}

}  // namespace canopy::app
