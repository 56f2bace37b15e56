# A cross build for 64-bit Windows with Debian's g++-mingw-w64-x86-64-posix; its tests run under Wine. Programs need no library
# that Windows does not have.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_CROSSCOMPILING_EMULATOR "${CMAKE_CURRENT_LIST_DIR}/windows/wine")
# Libraries are those of the target alone. Packages that are headers only are found by modules beside this file.
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}/windows")
set(CANOPY_CUDA OFF CACHE STRING "Kernels for NVIDIA GPUs are not built for Windows yet")
# struct stat of 64 bits, and gmtime_r. GCC does not align the stack of Win64 to the 32 and 64 bytes of its vector registers
# (bug 54412), so the assembler (2.40 or later) makes every move of them one that needs no alignment. GCC also warns wrongly
# of strings of wchar_t, whose copies MinGW's header has inline.
set(CMAKE_C_FLAGS_INIT "-D_FILE_OFFSET_BITS=64 -D_POSIX_THREAD_SAFE_FUNCTIONS -DNOMINMAX -DWIN32_LEAN_AND_MEAN")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -Wa,-muse-unaligned-vector-move -Wno-stringop-overread")
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
