// Which MicroTeX this is; in its own build CMake writes this file. Fonts are given to it, not looked for.
#pragma once

#define MICROTEX_VERSION_MAJOR 1
#define MICROTEX_VERSION_MINOR 0
#define MICROTEX_VERSION_PATCH 0
