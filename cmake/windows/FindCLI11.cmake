# Its target comes from libraries.cmake.
if(TARGET CLI11::CLI11)
  set(CLI11_FOUND TRUE)
  set(CLI11_VERSION_STRING 7.88.1)
  set(CLI11_VERSION 7.88.1)
endif()
