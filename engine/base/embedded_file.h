#pragma once
// Files of the sources built into the program. The assembler copies them into read-only data: compiling two megabytes
// as a C array takes seconds and gigabytes.

#ifdef _WIN32
#define CANOPY_READ_ONLY_DATA ".section .rdata,\"dr\"\n"
#define CANOPY_AFTER_DATA ".text\n"
#else
#define CANOPY_READ_ONLY_DATA ".section .rodata\n"
#define CANOPY_AFTER_DATA ".previous\n"
#endif

/// Defines canopy_file_SYMBOL, the bytes of the file, and canopy_file_SYMBOL_end behind them. Use outside of
/// namespaces, with the file's path as a string literal.

#define CANOPY_EMBED_FILE(symbol, path)                  \
  __asm__(CANOPY_READ_ONLY_DATA                          \
          ".balign 16\n"                                 \
          ".global canopy_file_" #symbol                 \
          "\n"                                           \
          "canopy_file_" #symbol                         \
          ":\n"                                          \
          ".incbin \"" path                              \
          "\"\n"                                         \
          ".global canopy_file_" #symbol                 \
          "_end\n"                                       \
          "canopy_file_" #symbol                         \
          "_end:\n"                                      \
          ".byte 0\n" CANOPY_AFTER_DATA);                \
  extern "C" const unsigned char canopy_file_##symbol[]; \
  extern "C" const unsigned char canopy_file_##symbol##_end[]
