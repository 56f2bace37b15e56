#pragma once
// A trace as one input, an archive (archive.h) of its records, whose lengths and checksums are made right: what stands
// in front of the first line is the header, a file's name is the kind of its record.

#include <string>
#include <string_view>

namespace canopy::fuzz {

/// The file of such an archive; an input that begins as a trace does stays as it is.
std::string trace_of(std::string_view input);

}  // namespace canopy::fuzz
