#pragma once
// The bytes around the records of a trace (docs/traces.md, "The file"). All numbers are little-endian.
//
//   prologue   magic [8], major u16, minor u16, CRC-32C u32 of those 12 bytes
//   record     CRC-32C u32 of what follows, length u32, kind u8, payload [length]; the first is the header

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/reader.h"

namespace canopy::trace {

constexpr std::string_view magic = "CanopyTr";
constexpr uint16_t major_version = 1;  // a reader refuses a newer one
constexpr uint16_t minor_version = 1;  // a newer one adds kinds of records, or fields at the end of known ones
constexpr size_t prologue_bytes = 16;
constexpr size_t frame_bytes = 9;                  // of a record, around its payload
constexpr uint32_t max_payload_bytes = 16u << 20;  // a prompt of a million tokens takes 7 MB
constexpr std::string_view extension = ".canopytrace";

enum class Kind : uint8_t {
  header = 1,
  pieces = 2,  // the texts of tokens that later records use
  reply_begin = 3,
  prefill = 4,
  round = 5,
  reply_end = 6,
  drafting = 7,  // since 1.1, before a reply's first round
  draft = 8,     // since 1.1, of a root of any reply so far
  dense = 9,     // since 1.1, behind the drafts of all of a reply's roots
};

void append_prologue(std::string& bytes);

/// Reads the prologue. Throws bad_input naming the reason when the file is not a trace or has a newer major version.
void check_prologue(Reader& reader);

/// Throws bad_input for a payload above the limit.
void append_record(std::string& bytes, Kind kind, std::string_view payload);

struct Record {
  Kind kind = Kind::header;  // may be a value that this version does not know
  std::span<const std::byte> payload;

  std::string_view text() const { return {reinterpret_cast<const char*>(payload.data()), payload.size()}; }
};

/// Reads the next record. Returns nothing, and leaves the reader where it was, when no whole record follows.
std::optional<Record> next_record(Reader& reader);

/// A token as a replay shows it.
struct Piece {
  std::string_view bytes;  // not always whole characters
  bool control = false;    // belongs to the prompt's structure, not to the text
};

}  // namespace canopy::trace
