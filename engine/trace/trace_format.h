#pragma once
// The bytes of a trace (docs/traces.md): the frame around its records with their checksums, rounds and drafts as
// records, every field exactly, and the texts of tokens, which it keeps beside them.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/speculation/draft_source.h"
#include "engine/speculation/round_record.h"

namespace canopy {

// CRC-32C (Castagnoli; polynomial 0x1EDC6F41, reflected, as in RFC 3720): finds every single flipped bit and every
// burst of up to 32 in a record.

uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace canopy

namespace canopy::trace {

// The bytes around the records of a trace (docs/traces.md, "The file"). All numbers are little-endian.
//
//   prologue   magic [8], major u16, minor u16, CRC-32C u32 of those 12 bytes
//   record     CRC-32C u32 of what follows, length u32, kind u8, payload [length]; the first is the header

constexpr std::string_view magic = "CanopyTr";
constexpr uint16_t major_version = 1;  // a reader refuses a newer one
constexpr uint16_t minor_version = 3;  // a newer one adds kinds of records, or fields at the end of known ones
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

/// The id that stands for a wrong guess of another chat's words in what is kept and shared (without_other_chats()), and
/// what is read in its place. No vocabulary is as large.
constexpr uint32_t other_chats_token = std::numeric_limits<uint32_t>::max() - 1;
constexpr std::string_view other_chats_words = "(from another chat)";

}  // namespace canopy::trace

namespace canopy {

// A draft as bytes and back, every logit exactly (docs/traces.md, "A draft").

/// Appends the draft. Throws bad_input naming what is wrong with one that no tree could be built of: a list that is not
/// as long as its count, logits that are not finite or not in order.
void encode(const KeptDraft& draft, std::string& bytes);

/// Reads a draft. Throws bad_input as encode(), and when the bytes end too early.
KeptDraft decode_kept_draft(Reader& reader);

// A RoundRecord as bytes and back, every field exactly (docs/traces.md, "A round").

/// Appends the record, which must be valid.
void encode(const RoundRecord& record, std::string& bytes);

/// Reads a record. Throws bad_input when the bytes end too early, a value is out of range, or validate() refuses the
/// record. Bytes after the known fields, which a later minor version may add, are left unread.
RoundRecord decode_round_record(Reader& reader);

// The texts of tokens by id, from a loaded model's tokenizer or from a trace.

class Tokenizer;
class TraceReader;

/// Immutable: any thread may ask at any time. Views stay valid as long as this lives.
class TokenTexts {
 public:
  virtual ~TokenTexts() = default;

  /// Bytes of a token, which are not always whole characters, and whether it is a control token. Nothing for a token
  /// outside the vocabulary or without a text in the trace (a redacted trace has no texts).
  virtual std::optional<trace::Piece> find(uint32_t token) const = 0;
};

/// The texts of a tokenizer or of a trace. The result shares ownership of its source; nothing is copied.
std::shared_ptr<const TokenTexts> token_texts(std::shared_ptr<const Tokenizer> tokenizer);
std::shared_ptr<const TokenTexts> token_texts(std::shared_ptr<const TraceReader> trace);

}  // namespace canopy
