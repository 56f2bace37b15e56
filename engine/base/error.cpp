#include "engine/base/error.h"

namespace canopy {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_input: return "bad input";
    case ErrorKind::out_of_memory: return "out of memory";
    case ErrorKind::device_lost: return "device lost";
    case ErrorKind::unavailable: return "unavailable";
    case ErrorKind::cancelled: return "cancelled";
  }
  return "error";
}

}  // namespace canopy
