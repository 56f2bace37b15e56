# What `cmake --install` puts where, in three components: canopy, canopy-cuda (where kernels are built) and
# canopy-model-smollm2; and what CPack makes Debian packages of them from (tools/package).
#
# Nothing that is installed names a path of this machine: programs look for what comes with them beside themselves
# (find_asset in engine/base/files.h), so an installed folder may be moved as a whole.

set(CANOPY_PACKAGE_VERSION "${PROJECT_VERSION}" CACHE STRING "Version of packages, which upgrades go by")
set(CANOPY_PACKAGE_RELEASE 1 CACHE STRING "What stands behind it in the version of Debian packages: 1~deb12")
set(CANOPY_MODEL_FILE "" CACHE FILEPATH "The default model for the package canopy-model-smollm2; empty: no such package")
set(CANOPY_ZSH_DIR share/zsh/site-functions CACHE STRING "Where zsh looks for completions, below the prefix")
mark_as_advanced(CANOPY_PACKAGE_VERSION CANOPY_PACKAGE_RELEASE CANOPY_MODEL_FILE CANOPY_ZSH_DIR)

set(packaging "${PROJECT_SOURCE_DIR}/packaging")
set(made "${PROJECT_BINARY_DIR}/packaging") # at installation

# canopy_install(COMPONENT DESTINATION FILE...)
function(canopy_install component destination)
  install(FILES ${ARGN} DESTINATION "${destination}" COMPONENT ${component})
endfunction()

# ---- canopy

set(programs canopy-cli)
if(TARGET canopy)
  list(PREPEND programs canopy)
endif()
install(TARGETS ${programs} RUNTIME DESTINATION bin COMPONENT canopy)
if(NOT WIN32 AND NOT APPLE)
  # The portable archive has libraries there. As RPATH, not RUNPATH, it holds for the libraries of libraries, too.
  set_target_properties(${programs} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/canopy")
  foreach(program IN LISTS programs)
    target_link_options(${program} PRIVATE LINKER:--disable-new-dtags)
  endforeach()
endif()

install(DIRECTORY assets/demos assets/prompts assets/sweeps DESTINATION share/canopy COMPONENT canopy)
canopy_install(canopy share/canopy assets/pairs.json)
canopy_install(canopy share/doc/canopy THIRD_PARTY.md assets/fonts/OFL-Inter.txt assets/fonts/OFL-JetBrainsMono.txt)
install(FILES LICENSE DESTINATION share/doc/canopy RENAME copyright COMPONENT canopy)

if(WIN32) # the program holds its libraries
  set(licences pcre2/LICENCE utf8proc/LICENSE.md curl/COPYING freetype/docs/FTL.TXT harfbuzz/COPYING fribidi/COPYING)
  if(TARGET canopy)
    list(APPEND licences glfw/LICENSE.md)
    install(FILES "${canopy_maths_font_dir}/GUST-FONT-LICENSE.txt" DESTINATION share/doc/canopy/licences RENAME latinmodern-math COMPONENT canopy)
    set(external "${canopy_gui_dir}/external")
    foreach(licence imgui/imgui/LICENSE.txt implot/implot/LICENSE imgui_microtex/MicroTeX/LICENSE imgui_rich_md/imgui_rich_md/external/md4c/LICENSE.md)
      get_filename_component(name "${licence}" DIRECTORY)
      get_filename_component(name "${name}" NAME)
      install(FILES "${external}/${licence}" DESTINATION share/doc/canopy/licences RENAME ${name} COMPONENT canopy)
    endforeach()
  endif()
  foreach(licence IN LISTS licences)
    get_filename_component(name "${licence}" DIRECTORY)
    string(REGEX REPLACE "/.*" "" name "${name}")
    install(FILES "${CANOPY_WINDOWS_LIBRARIES}/${licence}" DESTINATION share/doc/canopy/licences RENAME ${name} COMPONENT canopy)
  endforeach()
  foreach(package libcli11-dev nlohmann-json3-dev libcpp-httplib-dev libz-mingw-w64 mingw-w64-common g++-mingw-w64-x86-64-posix libvulkan-volk-dev)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION share/doc/canopy/licences RENAME ${package} COMPONENT canopy)
  endforeach()
endif()

# Manual pages and completions are what the programs themselves say.
if(NOT CMAKE_CROSSCOMPILING)
  file(MAKE_DIRECTORY "${made}")
  foreach(program IN LISTS programs)
    foreach(text man bash zsh fish)
      set(option --completions ${text})
      set(file "${program}.${text}")
      if(text STREQUAL "man")
        set(option --man)
        set(file "${program}.1")
      endif()
      list(JOIN option " " option)
      install(CODE "execute_process(COMMAND \"$<TARGET_FILE:${program}>\" ${option} OUTPUT_FILE \"${made}/${file}\" COMMAND_ERROR_IS_FATAL ANY)"
        COMPONENT canopy)
    endforeach()
    canopy_install(canopy share/man/man1 "${made}/${program}.1")
    canopy_install(canopy share/fish/vendor_completions.d "${made}/${program}.fish")
    install(FILES "${made}/${program}.bash" DESTINATION share/bash-completion/completions RENAME ${program} COMPONENT canopy)
    install(FILES "${made}/${program}.zsh" DESTINATION "${CANOPY_ZSH_DIR}" RENAME _${program} COMPONENT canopy)
  endforeach()
endif()

if(TARGET canopy AND NOT WIN32)
  string(TIMESTAMP CANOPY_PACKAGE_DATE "%Y-%m-%d" UTC) # SOURCE_DATE_EPOCH, where it is set
  configure_file("${packaging}/canopy.metainfo.xml.in" "${made}/canopy.metainfo.xml" @ONLY)
  canopy_install(canopy share/metainfo "${made}/canopy.metainfo.xml")
  canopy_install(canopy share/applications "${packaging}/canopy.desktop")
  install(FILES "${packaging}/canopy-mime.xml" DESTINATION share/mime/packages RENAME canopy.xml COMPONENT canopy)
  canopy_install(canopy share/icons/hicolor/scalable/apps "${packaging}/icons/canopy.svg")
  foreach(size 16 22 24 32 48 64 128 256 512)
    install(FILES "${packaging}/icons/canopy-${size}.png" DESTINATION share/icons/hicolor/${size}x${size}/apps
      RENAME canopy.png COMPONENT canopy)
  endforeach()
endif()
set(CPACK_COMPONENTS_ALL canopy)

# ---- canopy-cuda

if(NOT CUDA_MISSING)
  canopy_install(canopy-cuda lib/canopy "${CANOPY_CUDA_FATBIN}")
  install(FILES LICENSE DESTINATION share/doc/canopy-cuda RENAME copyright COMPONENT canopy-cuda)
  list(APPEND CPACK_COMPONENTS_ALL canopy-cuda)
endif()

# ---- canopy-model-smollm2, with the drafter that was trained for it

canopy_install(canopy-model-smollm2 share/canopy assets/smollm2-135m-dflash.gguf)
if(CANOPY_MODEL_FILE)
  if(NOT EXISTS "${CANOPY_MODEL_FILE}")
    message(FATAL_ERROR "CANOPY_MODEL_FILE is ${CANOPY_MODEL_FILE}, which is not there; tools/fetch_dependencies --print-model names it.")
  endif()
  canopy_install(canopy-model-smollm2 share/canopy/models "${CANOPY_MODEL_FILE}")
  install(FILES "${packaging}/model-copyright" DESTINATION share/doc/canopy-model-smollm2 RENAME copyright
    COMPONENT canopy-model-smollm2)
  list(APPEND CPACK_COMPONENTS_ALL canopy-model-smollm2)
endif()

# ---- Debian packages

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME canopy)
set(CPACK_PACKAGE_VENDOR "The Canopy authors")
set(CPACK_PACKAGE_CONTACT "The Canopy authors")
set(CPACK_PACKAGE_VERSION "${CANOPY_PACKAGE_VERSION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE "${CANOPY_PACKAGE_RELEASE}")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_THREADS 0)
foreach(component IN ITEMS canopy canopy-cuda canopy-model-smollm2)
  string(TOUPPER "${component}" key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${component})
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION science)
endforeach()

# Libraries that are linked are found by dpkg-shlibdeps. Vulkan's loader is opened, if it is there, at run time.
set(CPACK_DEBIAN_CANOPY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CANOPY_PACKAGE_DEPENDS libvulkan1)
set(CPACK_DEBIAN_CANOPY_PACKAGE_RECOMMENDS
  "canopy-model-smollm2, mesa-vulkan-drivers | vulkan-icd, ca-certificates, zenity | kdialog")
set(CPACK_DEBIAN_CANOPY_PACKAGE_SUGGESTS "canopy-cuda, fonts-noto-core, fonts-noto-cjk, fonts-noto-color-emoji")
set(CPACK_COMPONENT_CANOPY_DESCRIPTION [[chat with language models and watch how they guess ahead
Canopy runs language models on GPUs, by Vulkan or CUDA, and on the processor,
and shows how they write: a tree of continuations is guessed, the model reads
it in one pass, and the text is the one that plain decoding writes.
This package has the window (canopy) and the command line (canopy-cli).]])

set(CPACK_DEBIAN_CANOPY-CUDA_PACKAGE_DEPENDS "canopy (= ${CANOPY_PACKAGE_VERSION}-${CANOPY_PACKAGE_RELEASE})")
set(CPACK_COMPONENT_CANOPY-CUDA_DESCRIPTION [[kernels of Canopy for NVIDIA GPUs
With these and NVIDIA's driver Canopy computes by CUDA. Without them it uses
such a GPU by Vulkan.]])

set(CPACK_DEBIAN_CANOPY-MODEL-SMOLLM2_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_CANOPY-MODEL-SMOLLM2_PACKAGE_ENHANCES canopy)
set(CPACK_COMPONENT_CANOPY-MODEL-SMOLLM2_DESCRIPTION [[the default model of Canopy: SmolLM2-135M-Instruct
A small language model as a GGUF file with weights of 4 bits, and a drafter that was trained
for it.]])
include(CPack)
