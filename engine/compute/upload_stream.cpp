#include "engine/compute/upload_stream.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace canopy {
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
