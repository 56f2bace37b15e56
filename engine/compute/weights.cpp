#include "engine/compute/weights.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "engine/base/error.h"

namespace canopy {

WeightExtent joined_extent(std::span<const WeightPart> parts, WeightLayout layout) {
  if (parts.empty()) throw bad_input("A weight needs at least one part.");
  for (size_t i = 0; layout == WeightLayout::paired && i < parts.size(); i += 2) {
    if (i + 1 < parts.size() && parts[i].rows == parts[i + 1].rows) continue;
    throw bad_input("A paired weight needs two parts of the same number of rows, or several such pairs.");
  }
  WeightExtent extent{0, parts[0].cols};
  uint64_t rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const WeightPart& part = parts[i];
    const std::string which = "Part " + std::to_string(i) + " of a weight";
    if (part.type != parts[0].type || part.cols != parts[0].cols) {
      throw bad_input(which + " is " + to_string(part.type) + " with " + std::to_string(part.cols) +
                      " columns; the first is " + to_string(parts[0].type) + " with " + std::to_string(parts[0].cols) +
                      ": all must agree.");
    }
    if (part.rows == 0 || part.cols == 0 || part.cols % block_size(part.type).elements != 0) {
      throw bad_input(which + " has shape [" + std::to_string(part.rows) + ", " + std::to_string(part.cols) +
                      "]; rows must be at least 1 and columns a multiple of " +
                      std::to_string(block_size(part.type).elements) + ".");
    }
    if (!part.data.empty() && part.data.size() != row_bytes(part) * part.rows) {
      throw bad_input(which + " has " + std::to_string(part.data.size()) + " bytes; its shape takes " +
                      std::to_string(row_bytes(part) * part.rows) + ".");
    }
    rows += part.rows;
  }
  if (rows > 0x7FFFFFFFu) throw bad_input("A weight has " + std::to_string(rows) + " rows; at most 2147483647 fit.");
  extent.rows = static_cast<uint32_t>(rows);
  return extent;
}

JoinedRow joined_row(std::span<const WeightPart> parts, WeightLayout layout, uint32_t row) {
  const uint32_t together = layout == WeightLayout::paired ? 2 : 1;  // parts whose rows alternate
  uint32_t part = 0;
  for (; row >= parts[part].rows * together; part += together) row -= parts[part].rows * together;
  return {part + row % together, row / together};
}

RowFetcher::RowFetcher(std::span<const WeightPart> parts, WeightLayout layout)
    : parts_(parts), layout_(layout), row_bytes_(row_bytes(parts[0])), pieces_(parts.size()) {}

void RowFetcher::fetch(uint32_t begin, uint32_t end) {
  uint32_t start = 0;  // of the part, or of the pair that it is in
  for (uint32_t p = 0; p < parts_.size(); ++p) {
    const uint32_t rows = parts_[p].rows * together();
    // Rows of this part among the first `joined` of its pair, or of itself.
    const auto rows_before = [&](uint32_t joined) { return (joined + together() - 1 - p % together()) / together(); };
    Piece& piece = pieces_[p];
    piece.first = rows_before(std::clamp(begin, start, start + rows) - start);
    piece.end = rows_before(std::clamp(end, start, start + rows) - start);
    if (piece.end > piece.first) {
      piece.data = read_rows(parts_[p], piece.first, piece.end - piece.first, piece.scratch).data();
    }
    if (p % together() == together() - 1) start += rows;
  }
}

const std::byte* RowFetcher::row(uint32_t row) const {
  const JoinedRow from = joined_row(parts_, layout_, row);
  return pieces_[from.part].data + (from.row - pieces_[from.part].first) * row_bytes_;
}

std::vector<BlockRun> block_runs(std::span<const uint64_t> buffers, uint64_t most, uint64_t alignment) {
  std::vector<BlockRun> runs;
  for (const uint64_t bytes : buffers) {
    const uint64_t share = (bytes + alignment - 1) / alignment * alignment;
    if (runs.empty() || share > most - std::min(most, runs.back().bytes)) runs.emplace_back();
    runs.back().bytes += share;
    ++runs.back().buffers;
  }
  return runs;
}

namespace {

/// The threads that lay out, and the one that sends what is laid out.
class UploadStream {
 public:
  UploadStream(UploadSlots& slots, uint64_t first_slot, const UploadWork& work)
      : slots_(slots), first_slot_(first_slot), work_(work), left_(work.bands) {}

  // On the thread that the slots belong to. The others end before it returns or throws.
  void run() {
    std::vector<std::jthread> threads;
    const Ending ending{*this};  // before the threads are joined
    for (uint64_t wanted = thread_count(); threads.size() < wanted;) {
      try {
        threads.emplace_back([this] { lay_out_all(); });
      } catch (const std::system_error&) {
        if (threads.empty()) throw;
        break;  // fewer threads do it too
      }
    }
    for (size_t piece = 0; piece < work_.bands.size(); ++piece) {
      open_slots(piece);
      if (!wait_until_laid_out(piece)) std::rethrow_exception(failure_);
      work_.send(piece, first_slot_ + piece);
    }
  }

 private:
  struct Ending {
    UploadStream& stream;
    ~Ending() { stream.stop(); }
  };

  uint64_t thread_count() const {
    uint64_t bands = 0;
    for (const uint64_t each : work_.bands) bands += each;
    return std::clamp<uint64_t>(bands / work_.bands_of_a_thread, 1, std::max(1u, std::thread::hardware_concurrency()));
  }

  // Lets the threads write to all slots that are free; there is one at least, for `piece`.
  void open_slots(size_t piece) {
    const size_t end = std::min<size_t>(work_.bands.size(), piece + kUploadSlots);
    size_t open = opened_;
    while (open < end && slots_.is_free(first_slot_ + open)) ++open;
    if (open == piece) {
      slots_.wait_until_free(first_slot_ + open);
      ++open;
    }
    const std::lock_guard lock(mutex_);
    opened_ = open;
    slots_opened_.notify_all();
  }

  bool wait_until_laid_out(size_t piece) {
    std::unique_lock lock(mutex_);
    laid_out_.wait(lock, [&] { return left_[piece] == 0 || failure_; });
    return !failure_;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    slots_opened_.notify_all();
  }

  // The next band that nobody has taken, once its slot is open; false when there is none.
  bool take(size_t& piece, uint64_t& band) {
    std::unique_lock lock(mutex_);
    if (next_piece_ < work_.bands.size() && next_band_ == work_.bands[next_piece_]) {
      ++next_piece_;
      next_band_ = 0;
    }
    if (next_piece_ == work_.bands.size()) return false;
    piece = next_piece_;
    band = next_band_++;
    slots_opened_.wait(lock, [&] { return piece < opened_ || stopped_; });
    return !stopped_;
  }

  void lay_out_all() {
    try {
      const LayOutBand lay_out = work_.make_layout();
      size_t piece = 0;
      for (uint64_t band = 0; take(piece, band);) {
        lay_out(piece, band, slots_.slot(first_slot_ + piece));
        const std::lock_guard lock(mutex_);
        if (--left_[piece] == 0) laid_out_.notify_one();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stopped_ = true;
      slots_opened_.notify_all();
      laid_out_.notify_one();
    }
  }

  UploadSlots& slots_;
  const uint64_t first_slot_;
  const UploadWork& work_;

  std::mutex mutex_;  // of what follows
  std::condition_variable slots_opened_, laid_out_;
  std::vector<uint64_t> left_;  // bands of each piece that are not laid out yet
  size_t next_piece_ = 0;
  uint64_t next_band_ = 0;
  size_t opened_ = 0;  // pieces whose slots may be written
  bool stopped_ = false;
  std::exception_ptr failure_;
};

}  // namespace

void stream_upload(UploadSlots& slots, uint64_t& next_slot, const UploadWork& work) {
  const uint64_t first = next_slot;
  next_slot += work.bands.size();
  UploadStream(slots, first, work).run();
}

}  // namespace canopy
