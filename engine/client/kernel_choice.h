#pragma once
// Which kernels a device is opened with, named as on the command line.

#include <optional>
#include <string_view>

namespace canopy {

enum class KernelChoice {
  automatic,  // the device's own
  matrix,     // matrix cores for each warp or subgroup by itself: the same texts, to compare speeds
  matrix_i8,  // matrix cores in 8-bit integers: activations are rounded to 8 bits, so that texts are others
};

constexpr std::string_view to_string(KernelChoice choice) {
  switch (choice) {
    case KernelChoice::automatic: return "auto";
    case KernelChoice::matrix: return "matrix";
    case KernelChoice::matrix_i8: return "matrix_i8";
  }
  return "";
}

/// The choice of that name, or nothing.
constexpr std::optional<KernelChoice> kernel_choice_from(std::string_view name) {
  for (const KernelChoice choice : {KernelChoice::automatic, KernelChoice::matrix, KernelChoice::matrix_i8}) {
    if (to_string(choice) == name) return choice;
  }
  return std::nullopt;
}

/// Of the option --kernels.
inline constexpr const char* kKernelChoiceHelp =
    "Kernels of the products: auto takes the device's own, matrix those for matrix cores, which on Hopper are slower "
    "than its own, matrix_i8 those for matrix cores in 8-bit integers, where the device has them: activations are "
    "rounded to 8 bits, so that texts are others than by default";

}  // namespace canopy
