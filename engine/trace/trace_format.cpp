#include "engine/trace/trace_format.h"

#include "engine/base/error.h"
#include "engine/trace/trace_bytes.h"
#include "engine/trace/trace_checksum.h"

namespace canopy::trace {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

void append_prologue(std::string& bytes) {
  const size_t start = bytes.size();
  bytes += magic;
  ByteWriter out(bytes);
  out.fixed(major_version);
  out.fixed(minor_version);
  out.fixed(crc32c(bytes_of(std::string_view(bytes).substr(start))));
}

void check_prologue(Reader& reader) {
  if (reader.remaining() < magic.size()) throw bad_input("It is no trace: it is too short.");
  const std::string_view begin = reader.text(magic.size(), "the magic");
  if (begin.starts_with('{'))
    throw bad_input(
        "It is no trace but JSON: canopy-cli sweep --show reads sweeps, trace what-if --costs calibrations.");
  if (begin != magic) throw bad_input("It is no trace: it does not begin like one.");
  if (reader.remaining() < prologue_bytes - magic.size()) throw bad_input("It ends before the header of a trace.");
  const auto versions = reader.bytes(4, "the version");
  std::string checked(magic);
  checked.append(reinterpret_cast<const char*>(versions.data()), versions.size());
  if (reader.read<uint32_t>("the checksum of the version") != crc32c(bytes_of(checked))) {
    throw bad_input("Its version is damaged: the checksum behind it does not match.");
  }
  Reader fields(versions);
  const auto major = fields.read<uint16_t>("the major version");
  const auto minor = fields.read<uint16_t>("the minor version");
  if (major == major_version) return;
  throw bad_input("It is a trace of format " + std::to_string(major) + "." + std::to_string(minor) +
                  "; this version of Canopy reads format " + std::to_string(major_version) + "." +
                  (major > major_version ? " Use a newer Canopy." : ""));
}

void append_record(std::string& bytes, Kind kind, std::string_view payload) {
  if (payload.size() > max_payload_bytes) {
    throw bad_input("A record of " + std::to_string(payload.size()) + " bytes is too long for a trace; at most " +
                    std::to_string(max_payload_bytes) + " are allowed.");
  }
  std::string checked;
  checked.reserve(payload.size() + frame_bytes);
  ByteWriter out(checked);
  out.fixed(static_cast<uint32_t>(payload.size()));
  out.byte(static_cast<uint8_t>(kind));
  checked += payload;
  ByteWriter(bytes).fixed(crc32c(bytes_of(checked)));
  bytes += checked;
}

std::optional<Record> next_record(Reader& reader) {
  if (reader.remaining() < frame_bytes) return std::nullopt;
  Reader ahead = reader;
  const auto checksum = ahead.read<uint32_t>("the checksum of a record");
  Reader checked = ahead;
  const auto length = ahead.read<uint32_t>("the length of a record");
  const auto kind = static_cast<Kind>(ahead.read<uint8_t>("the kind of a record"));
  if (length > max_payload_bytes || length > ahead.remaining()) return std::nullopt;
  const auto payload = ahead.bytes(length, "a record");
  if (crc32c(checked.bytes(frame_bytes - sizeof checksum + length, "a record")) != checksum) return std::nullopt;
  reader = ahead;
  return Record{kind, payload};
}

}  // namespace canopy::trace
