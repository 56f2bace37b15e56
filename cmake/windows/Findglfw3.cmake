# Its target comes from libraries.cmake.
if(TARGET glfw)
  set(glfw3_FOUND TRUE)
  set(glfw3_VERSION 3.3.8)
endif()
