# Stands for CMake's module in a cross build: what pkg-config would find is the host's. libraries.cmake has the targets.
set(PkgConfig_FOUND TRUE)
function(pkg_check_modules name)
  if(NOT TARGET PkgConfig::${name})
    message(FATAL_ERROR "There is no library ${name} for Windows (cmake/windows/libraries.cmake).")
  endif()
endfunction()
