# Shared by the scripts in tools/: what must be installed, fetched and built before anything starts.
# Sourced by bash with `set -euo pipefail`; expects `root` (repository) to be set.

# Debian packages to build and run; to test, those of packages_test as well; for slow tests, those of packages_slow; to
# fuzz, those of packages_fuzz; to make packages, those of packages_package; to build for Windows, those of packages_windows.
packages_build=(build-essential cmake ninja-build python3 python3-pip ccache pkg-config ca-certificates
  libvulkan-dev libvulkan-volk-dev libvulkan1 mesa-vulkan-drivers glslang-tools spirv-tools
  libglfw3-dev libpcre2-dev libutf8proc-dev libsentencepiece-dev libabsl-dev nlohmann-json3-dev libcli11-dev libcpp-httplib-dev
  libstb-dev zlib1g-dev libgtest-dev libfontconfig-dev libfreetype-dev libfribidi-dev libharfbuzz-dev libcurl4-openssl-dev)
# Fonts of other scripts: 22 MB to fetch; Chinese, Japanese and Korean are another 57 MB, so only with the slow tests.
packages_test=(xvfb xauth xdotool vulkan-validationlayers chromium clang-format git fonts-noto-core fonts-noto-color-emoji)
packages_windows=(g++-mingw-w64-x86-64-posix libz-mingw-w64-dev)
packages_slow=(fonts-noto-cjk g++-aarch64-linux-gnu qemu-user "${packages_windows[@]}" wine wine64)
packages_fuzz=(clang libclang-rt-dev)
packages_package=(file git zstd)

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
print_help() { sed -n '2,/^set /s/^# \{0,1\}//p' "$1"; } # the comment at the top of a script
die() { printf 'canopy: %s\n' "$*" >&2; exit 1; }

# missing_packages NAME...: prints those that dpkg does not list as installed.
missing_packages() {
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Abbrev}${binary:Package}\n' 2>/dev/null | sed -n 's/^ii *\([^: ]*\).*/\1/p')
  comm -23 <(printf '%s\n' "$@" | sort -u) <(printf '%s\n' "$installed" | sort -u)
}

# install_packages NAME...: installs those that are missing with apt-get; uses neither apt nor the network otherwise.
install_packages() {
  command -v dpkg-query >/dev/null || {
    say "No dpkg here: assuming that what tools/lib/setup.sh lists is installed"
    return 0
  }
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  [[ ${CANOPY_OFFLINE:-0} == 0 ]] ||
    die "missing Debian packages: ${missing[*]}. CANOPY_OFFLINE forbids installing them."
  local sudo=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "missing Debian packages: ${missing[*]}. Install them as root, or install sudo."
    sudo=(sudo)
  fi
  say "Installing Debian packages: ${missing[*]}"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q ||
    die "apt-get update failed (its message is above)."
  # A new machine may be installing security updates at this moment: wait until they are done.
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -q \
    --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install ${missing[*]} (its message is above)."
}

# has_nvidia_driver: whether NVIDIA's driver runs here, or under Windows' subsystem for Linux beside it.
has_nvidia_driver() {
  [[ -e /proc/driver/nvidia/version || -e /usr/lib/wsl/lib/libcuda.so.1 ]]
}

has_nvcc() {
  PATH=$PATH:${CUDA_HOME:+$CUDA_HOME/bin:}${CUDA_PATH:+$CUDA_PATH/bin:}/usr/local/cuda/bin type -P nvcc >/dev/null
}

# 1: the CUDA backend's kernels are built, whatever this machine has (tools/run --cuda, tools/test --all).
cuda_wanted=0

# provide_nvcc PRESET: the compiler of the CUDA kernels, fetched once where there is no toolkit and NVIDIA's driver is, or
# kernels are wanted; fails where it cannot be had. CANOPY_FETCH_NVCC=1: always the fetched one, 0: never.
provide_nvcc() {
  local cache=$root/build/$1/CMakeCache.txt folder
  if [[ ${CANOPY_FETCH_NVCC:-} != 1 ]]; then
    ((cuda_wanted)) || has_nvidia_driver || return 0
    has_nvcc && return 0
    if [[ ${CANOPY_FETCH_NVCC:-} == 0 ]]; then
      ((!cuda_wanted)) || say "There is no nvcc here, and CANOPY_FETCH_NVCC=0 forbids fetching one."
      return $((cuda_wanted))
    fi
  fi
  if ! "$root/tools/fetch_dependencies" --only cuda-compiler; then
    say "Without it NVIDIA GPUs are used through Vulkan, and tests of CUDA kernels are disabled (CANOPY_FETCH_NVCC=0 does not try)."
    return 1
  fi
  folder=$("$root/tools/fetch_dependencies" --print-folder cuda-compiler)
  # A configuration from before looks for a compiler again.
  if [[ -f $cache ]] && ! grep -qxF "CANOPY_NVCC:FILEPATH=$folder/bin/nvcc" "$cache"; then
    rm -f -- "$root/build/$1/build.ninja"
  fi
}

# configure_preset PRESET: configures where needed.
configure_preset() {
  local preset=$1 dir=$root/build/$1 options=()
  # A configuration that was copied from another checkout or not finished cannot be used: configure again.
  if [[ -f $dir/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then
    rm -rf -- "$dir"
  fi
  if ((cuda_wanted)); then
    options=(-DCANOPY_CUDA=ON)
    grep -qsxF 'CANOPY_CUDA:STRING=ON' "$dir/CMakeCache.txt" || rm -f -- "$dir/build.ninja"
  fi
  if [[ ! -f $dir/build.ninja ]]; then
    say "Configuring $dir"
    (cd "$root" && cmake --preset "$preset" "${options[@]}" >&2)
  fi
  # The build files themselves (a new shader, a changed CMakeLists.txt): a dry run would end with them.
  ninja -C "$dir" --quiet build.ninja | sed '/no work to do/d' >&2
}

# build_preset PRESET TARGET...: configures where needed, then builds; prints nothing when there is nothing to do.
build_preset() {
  local dir=$root/build/$1
  configure_preset "$1"
  shift
  # Under its full path build.ninja is no target, so that the dry run goes on to ours.
  if ninja -C "$dir" -f "$dir/build.ninja" -n "$@" | grep 'no work to do' >/dev/null; then
    return 0
  fi
  say "Building ($(nproc) jobs)"
  ninja -C "$dir" "$@" >&2
}
