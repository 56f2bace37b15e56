# canopy_app_library(app_FOLDER [DRAWN] DEPENDS lower ... LINK target ...)
# The library of one folder of the window: every .cpp file in it. DEPENDS names what its files may include, the folders
# below it and libraries of the engine; tools/check_layers.py holds them to it.
#
# DRAWN: the folder is compiled against Dear ImGui. A program links canopy_app_FOLDER, with Dear ImGui, or canopy_app_FOLDER_test,
# the same objects with Dear ImGui hooked for the Test Engine, which must never reach the release program.
#
# Four files are compiled as one: so few that an edit compiles quickly, and shared headers are read only a quarter as
# often.
function(canopy_app_library name)
  cmake_parse_arguments(ARG "DRAWN" "" "DEPENDS;LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(NOT sources)
    add_library(canopy_${name} INTERFACE)
    target_link_libraries(canopy_${name} INTERFACE canopy_flags)
    return()
  endif()
  if(NOT ARG_DRAWN)
    canopy_library(${name} SOURCES ${sources} DEPENDS ${ARG_DEPENDS} LINK ${ARG_LINK})
    canopy_compile_together(canopy_${name} 4)
    return()
  endif()
  set(depends "")
  foreach(each IN LISTS ARG_DEPENDS)
    if(TARGET canopy_${each}_drawing)
      list(APPEND depends ${each}_drawing)
    else()
      list(APPEND depends ${each})
    endif()
  endforeach()
  canopy_library(${name}_drawing SOURCES ${sources} DEPENDS ${depends} LINK ${ARG_LINK})
  canopy_compile_together(canopy_${name}_drawing 4)
  target_link_libraries(canopy_${name}_drawing PUBLIC canopy_imgui_headers canopy_implot)
  if("app_panels" IN_LIST ARG_DEPENDS)
    canopy_precompile(canopy_${name}_drawing window -O1 LINK canopy_imgui_headers canopy_implot)
  endif()
  foreach(flavour "" _test)
    add_library(canopy_${name}${flavour} INTERFACE)
    target_link_libraries(canopy_${name}${flavour} INTERFACE canopy_${name}_drawing canopy_imgui${flavour})
  endforeach()
endfunction()
