#pragma once
// Files of the sources built into the program. The assembler copies them into read-only data: compiling two megabytes
// as a C array takes seconds and gigabytes.
/// Defines canopy_file_SYMBOL, the bytes of the file, and canopy_file_SYMBOL_end behind them. Use outside of
/// namespaces, with the file's path as a string literal.

#define CANOPY_EMBED_FILE(symbol, path)                  \
  __asm__(                                               \
      ".section .rodata\n"                               \
      ".balign 16\n"                                     \
      ".global canopy_file_" #symbol                     \
      "\n"                                               \
      "canopy_file_" #symbol                             \
      ":\n"                                              \
      ".incbin \"" path                                  \
      "\"\n"                                             \
      ".global canopy_file_" #symbol                     \
      "_end\n"                                           \
      "canopy_file_" #symbol                             \
      "_end:\n"                                          \
      ".byte 0\n"                                        \
      ".previous\n");                                    \
  extern "C" const unsigned char canopy_file_##symbol[]; \
  extern "C" const unsigned char canopy_file_##symbol##_end[]
