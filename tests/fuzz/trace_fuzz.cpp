// Traces: the file, its records, its rounds, their statistics, their exports. The input is the file; or, where it does
// not begin like one, an archive of records (trace_archive.h).

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "engine/trace/trace_export.h"
#include "engine/trace/trace_format.h"
#include "engine/trace/trace_reader.h"
#include "engine/trace/trace_records.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/trace_archive.h"

namespace canopy::fuzz {
namespace {

std::string encoded(const RoundRecord& record) {
  std::string bytes;
  encode(record, bytes);
  return bytes;
}

void check_round(const RoundRecord& record) {
  validate(record);
  const std::string bytes = encoded(record);
  Reader reader(bytes_of(bytes));
  require(encoded(decode_round_record(reader)) == bytes, "a round is read back as it is written");
  const DraftedPart part = drafted_part(record);
  require(part.tokens <= record.emitted.size() && part.tokens < record.width, "drafted tokens are of the tree");
  require(part.last_node == 0 || part.last_node < record.nodes.size(), "the last drafted token is a node's");
  validate(redacted(record));
}

void check_statistics(const RoundStatistics& statistics, uint64_t rounds) {
  require(statistics.rounds() == rounds, "every round counts once");
  uint64_t counted = 0;
  for (const auto& [accepted, count] : statistics.accepted_histogram()) counted += count;
  require(counted == rounds, "the histogram sums to the rounds");
  for (const DepthCounts& counts : statistics.by_depth()) {
    require(counts.accepted <= counts.offered && counts.offered <= rounds, "no more is accepted than was offered");
  }
  require(nlohmann::json::accept(to_json(statistics).dump()), "statistics are JSON");
}

/// Reads all rounds; returns whether that was possible.
bool read_rounds(const TraceReader& trace) {
  RoundStatistics statistics;
  uint64_t read = 0;
  for (size_t i = 0; i < trace.rounds(); ++i) {
    require(trace.reply_of(i) < trace.replies().size(), "every round has its reply");
    accepted([&] {
      const RoundRecord record = trace.round(i);
      check_round(record);
      statistics.add(record);
      ++read;
    });
  }
  check_statistics(statistics, read);
  return read == trace.rounds();
}

void read_all(const TraceReader& trace, uint64_t size) {
  require(trace.whole_bytes() <= size, "whole records lie in the file");
  require(trace.notice().empty() == (trace.whole_bytes() == size), "a file that is not whole is told");
  size_t rounds = 0;
  for (const TraceReply& reply : trace.replies()) {
    require(reply.first_round == rounds, "replies follow each other");
    rounds += reply.rounds;
  }
  require(rounds == trace.rounds(), "every round belongs to one reply");
  for (uint32_t token = 0; token < 256; ++token) {
    if (const trace::Piece* piece = trace.piece(token)) touch(piece->bytes);
  }
  const bool readable = read_rounds(trace);
  std::ostringstream json, csv;
  require(accepted([&] { export_json(trace, json); }) == readable, "what can be read can be exported");
  require(accepted([&] { export_csv(trace, csv); }) == readable, "what can be read can be exported");
  require(!readable || nlohmann::json::accept(json.str()), "an export is JSON");
}

}  // namespace

void run(std::string_view input) {
  static ScratchFile file;
  const std::string bytes = trace_of(input);
  file.write(bytes);
  accepted([&] { read_all(TraceReader::open(file.path()), bytes.size()); });
}

}  // namespace canopy::fuzz
