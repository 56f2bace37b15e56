#pragma once
// Replies of a loaded model recorded into a trace, and the drafts behind every token that are added to a finished one,
// so that a re-run (engine/whatif) finds a draft wherever another tree would have ended a round.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "engine/session/engine.h"
#include "engine/speculation/draft_source.h"
#include "engine/trace/trace_reader.h"
#include "engine/trace/trace_writer.h"

namespace canopy {

// Replies of a loaded model, recorded into a trace file.

/// What a trace says of a loaded model; the writer adds version and time.
TraceHeader trace_header(const Engine& model);

/// What it says of a request.
TraceReplyBegin trace_begin(std::span<const uint32_t> prompt, const ReplySettings& settings);

class ReplyTrace {
 public:
  /// Throws what TraceWriter throws. The model must outlive it.
  ReplyTrace(const std::filesystem::path& path, const Engine& model, bool redact = false);

  /// Writes a reply of the model and records it. A disk that fails ends the recording, not the reply.
  Reply record(std::span<const uint32_t> prompt, ReplySettings settings, ReplyCallbacks callbacks);

  /// Records a reply that was written otherwise. started, drafting: as its callbacks told them; none where they did
  /// not.
  void add(std::span<const uint32_t> prompt, const ReplySettings& settings, const std::optional<ReplyStart>& started,
           const std::optional<TraceDrafting>& drafting, const Reply& reply);

  /// Why recording stopped, as a sentence; empty while all is well.
  const std::string& problem() const { return writer_.problem(); }
  uint64_t bytes() const { return writer_.bytes(); }
  uint64_t rounds() const { return writer_.rounds(); }

  /// Flushes the file to the disk and closes it; so does the destructor.
  void finish() { writer_.finish(); }

 private:
  const Engine& model_;
  TraceWriter writer_;
};

// Drafts behind every root of a finished text: a pass over the text leaves the hidden states of all its positions, and
// the drafter drafts from each. So a re-run of a recording (engine/whatif) finds a draft wherever another tree would
// have ended a round.

struct DenseCallbacks {
  std::function<void(uint64_t done, uint64_t total)> progress;  // tokens of the texts
  std::stop_token stop;
};

/// Calls take(committed, draft) for each root of `text` from position `first` on that another token follows and that
/// can be drafted from; in ascending order. The text is read as a prompt is, behind what is resident of it before
/// `first`. Throws bad_input without a drafter, for a text beyond the context and for tokens outside the vocabulary,
/// device_lost, and cancelled.
void draft_behind_every_root(const Engine& model, std::span<const uint32_t> text, uint32_t first,
                             const std::function<void(uint32_t committed, const BlockDraft&)>& take,
                             const DenseCallbacks& callbacks = {});

struct DenseReport {
  uint32_t replies = 0;       // that got drafts
  uint32_t dense_before = 0;  // that had them already
  uint64_t added = 0;         // drafts
  uint64_t compared = 0;      // with a recorded draft behind the same root
  uint64_t same = 0;          // of these: bit for bit
  uint64_t bytes = 0;         // that the file has grown by
};

/// Adds the missing drafts to a trace; it goes on where an earlier, interrupted run has ended. The trace stays readable
/// throughout. Throws what draft_behind_every_root() and TraceWriter throw, and bad_input where the model or the
/// drafter is not the recorded one, for a redacted trace, and for one without a reply.
DenseReport densify(const Engine& model, const std::filesystem::path& path, const DenseCallbacks& callbacks = {});

}  // namespace canopy
