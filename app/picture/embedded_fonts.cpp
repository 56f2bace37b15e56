#include "app/picture/embedded_fonts.h"

#include <string>

#include "engine/base/error.h"

// The assembler copies the files into read-only data. Compiling the same two megabytes as a C array takes seconds and
// gigabytes.
#define CANOPY_EMBED(symbol, file)                       \
  __asm__(                                               \
      ".section .rodata\n"                               \
      ".balign 16\n"                                     \
      ".global canopy_font_" #symbol                     \
      "\n"                                               \
      "canopy_font_" #symbol                             \
      ":\n"                                              \
      ".incbin \"" CANOPY_FONT_DIR "/" file              \
      "\"\n"                                             \
      ".global canopy_font_" #symbol                     \
      "_end\n"                                           \
      "canopy_font_" #symbol                             \
      "_end:\n"                                          \
      ".byte 0\n"                                        \
      ".previous\n");                                    \
  extern "C" const unsigned char canopy_font_##symbol[]; \
  extern "C" const unsigned char canopy_font_##symbol##_end[]

CANOPY_EMBED(inter_regular, "Inter-Regular.otf");
CANOPY_EMBED(inter_medium, "Inter-Medium.otf");
CANOPY_EMBED(inter_semibold, "Inter-SemiBold.otf");
CANOPY_EMBED(mono_regular, "JetBrainsMono-Regular.ttf");
CANOPY_EMBED(mono_medium, "JetBrainsMono-Medium.ttf");
CANOPY_EMBED(mono_semibold, "JetBrainsMono-SemiBold.ttf");

namespace canopy::app {

std::span<const unsigned char> embedded_font(std::string_view file_name) {
  struct Entry {
    std::string_view name;
    const unsigned char *begin, *end;
  };
  const Entry entries[] = {
      {"Inter-Regular.otf", canopy_font_inter_regular, canopy_font_inter_regular_end},
      {"Inter-Medium.otf", canopy_font_inter_medium, canopy_font_inter_medium_end},
      {"Inter-SemiBold.otf", canopy_font_inter_semibold, canopy_font_inter_semibold_end},
      {"JetBrainsMono-Regular.ttf", canopy_font_mono_regular, canopy_font_mono_regular_end},
      {"JetBrainsMono-Medium.ttf", canopy_font_mono_medium, canopy_font_mono_medium_end},
      {"JetBrainsMono-SemiBold.ttf", canopy_font_mono_semibold, canopy_font_mono_semibold_end},
  };
  for (const Entry& entry : entries)
    if (entry.name == file_name) return {entry.begin, entry.end};
  throw Error(ErrorKind::unavailable, "No font named " + std::string(file_name) + " is built into this program.");
}

}  // namespace canopy::app
