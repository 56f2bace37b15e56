#include "app/platform/embedded_fonts.h"

#include <string>

#include "engine/base/embedded_file.h"
#include "engine/base/error.h"

CANOPY_EMBED_FILE(inter_regular, CANOPY_FONT_DIR "/Inter-Regular.otf");
CANOPY_EMBED_FILE(inter_medium, CANOPY_FONT_DIR "/Inter-Medium.otf");
CANOPY_EMBED_FILE(inter_semibold, CANOPY_FONT_DIR "/Inter-SemiBold.otf");
CANOPY_EMBED_FILE(mono_regular, CANOPY_FONT_DIR "/JetBrainsMono-Regular.ttf");
CANOPY_EMBED_FILE(mono_medium, CANOPY_FONT_DIR "/JetBrainsMono-Medium.ttf");
CANOPY_EMBED_FILE(mono_semibold, CANOPY_FONT_DIR "/JetBrainsMono-SemiBold.ttf");

namespace canopy::app {

std::span<const unsigned char> embedded_font(std::string_view file_name) {
  struct Entry {
    std::string_view name;
    const unsigned char *begin, *end;
  };
  const Entry entries[] = {
      {"Inter-Regular.otf", canopy_file_inter_regular, canopy_file_inter_regular_end},
      {"Inter-Medium.otf", canopy_file_inter_medium, canopy_file_inter_medium_end},
      {"Inter-SemiBold.otf", canopy_file_inter_semibold, canopy_file_inter_semibold_end},
      {"JetBrainsMono-Regular.ttf", canopy_file_mono_regular, canopy_file_mono_regular_end},
      {"JetBrainsMono-Medium.ttf", canopy_file_mono_medium, canopy_file_mono_medium_end},
      {"JetBrainsMono-SemiBold.ttf", canopy_file_mono_semibold, canopy_file_mono_semibold_end},
  };
  for (const Entry& entry : entries)
    if (entry.name == file_name) return {entry.begin, entry.end};
  throw Error(ErrorKind::unavailable, "No font named " + std::string(file_name) + " is built into this program.");
}

}  // namespace canopy::app
