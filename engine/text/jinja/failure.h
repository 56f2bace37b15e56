#pragma once

#include <stdexcept>

namespace canopy::jinja {

/// An error inside the interpreter: a full sentence without the place. It leaves this folder as an Error that names the
/// template and the line.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace canopy::jinja
