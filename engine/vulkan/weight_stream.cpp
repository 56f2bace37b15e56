#include "engine/vulkan/weight_stream.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "engine/vulkan/weight_repack.h"

namespace canopy::vk {
namespace {

/// The threads that pack, and the one that submits what is packed.
class Stream {
 public:
  Stream(UploadRing& ring, uint64_t first_slot, std::span<const WeightPart> parts, WeightLayout layout,
         const std::vector<StreamPiece>& pieces)
      : ring_(ring), first_slot_(first_slot), parts_(parts), layout_(layout), pieces_(pieces) {
    for (const StreamPiece& piece : pieces) left_.push_back(piece.layout.bands());
  }

  // On the context's thread. The packing threads end before it returns or throws.
  void run() {
    std::vector<std::jthread> threads;
    const Ending ending{*this};  // before the threads are joined
    for (uint64_t wanted = thread_count(); threads.size() < wanted;) {
      try {
        threads.emplace_back([this] { pack_all(); });
      } catch (const std::system_error&) {
        if (threads.empty()) throw;
        break;  // fewer threads do it too
      }
    }
    for (size_t piece = 0; piece < pieces_.size(); ++piece) {
      open_slots(piece);
      if (!wait_until_packed(piece)) std::rethrow_exception(failure_);
      submit(piece);
    }
  }

 private:
  struct Ending {
    Stream& stream;
    ~Ending() { stream.stop(); }
  };

  uint64_t thread_count() const {
    uint64_t bands = 0;
    for (const StreamPiece& piece : pieces_) bands += piece.layout.bands();
    const uint64_t useful = bands / bands_of_a_thread(pieces_[0].layout);
    return std::clamp<uint64_t>(useful, 1, std::max(1u, std::thread::hardware_concurrency()));
  }

  // Lets the threads write to all slots that are free; there is one at least, for `piece`.
  void open_slots(size_t piece) {
    const size_t end = std::min(pieces_.size(), piece + UploadRing::kSlots);
    size_t open = opened_;
    while (open < end && ring_.is_free(first_slot_ + open)) ++open;
    if (open == piece) {
      ring_.wait_until_free(first_slot_ + open);
      ++open;
    }
    const std::lock_guard lock(mutex_);
    opened_ = open;
    slots_opened_.notify_all();
  }

  bool wait_until_packed(size_t piece) {
    std::unique_lock lock(mutex_);
    packed_.wait(lock, [&] { return left_[piece] == 0 || failure_; });
    return !failure_;
  }

  void submit(size_t index) {
    const StreamPiece& piece = pieces_[index];
    const WeightShardLayout& layout = piece.layout;
    std::vector<SlotCopy> copies = {{0, piece.units, piece.unit_offset, layout.unit_bytes}};
    if (piece.scales != nullptr) {
      copies.push_back({layout.unit_bytes, piece.scales, piece.scale_offset, layout.scale_bytes});
    }
    ring_.submit(first_slot_ + index, copies);
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    slots_opened_.notify_all();
  }

  // The next band that nobody has taken, once its slot is open; false when there is none.
  bool take(size_t& piece, uint64_t& band) {
    std::unique_lock lock(mutex_);
    if (next_piece_ < pieces_.size() && next_band_ == pieces_[next_piece_].layout.bands()) {
      ++next_piece_;
      next_band_ = 0;
    }
    if (next_piece_ == pieces_.size()) return false;
    piece = next_piece_;
    band = next_band_++;
    slots_opened_.wait(lock, [&] { return piece < opened_ || stopped_; });
    return !stopped_;
  }

  void pack_all() {
    try {
      const PackBand packer = band_packer(parts_, layout_);
      size_t piece = 0;
      for (uint64_t band = 0; take(piece, band);) {
        pack(packer, piece, band);
        const std::lock_guard lock(mutex_);
        if (--left_[piece] == 0) packed_.notify_one();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stopped_ = true;
      slots_opened_.notify_all();
      packed_.notify_one();
    }
  }

  void pack(const PackBand& packer, size_t index, uint64_t band) {
    const WeightShardLayout& layout = pieces_[index].layout;
    const std::span<std::byte> slot = ring_.slot(first_slot_ + index);
    const auto words = [&](uint64_t start, uint64_t bytes) {
      return std::span(reinterpret_cast<uint32_t*>(slot.data() + start + band * bytes), bytes / 4);
    };
    packer(layout, band, words(0, layout.band_unit_bytes()), words(layout.unit_bytes, layout.band_scale_bytes()));
  }

  UploadRing& ring_;
  const uint64_t first_slot_;
  const std::span<const WeightPart> parts_;
  const WeightLayout layout_;
  const std::vector<StreamPiece>& pieces_;

  std::mutex mutex_;  // of what follows
  std::condition_variable slots_opened_, packed_;
  std::vector<uint64_t> left_;  // bands of each piece that are not packed yet
  size_t next_piece_ = 0;
  uint64_t next_band_ = 0;
  size_t opened_ = 0;  // pieces whose slots may be written
  bool stopped_ = false;
  std::exception_ptr failure_;
};

}  // namespace

void stream(UploadRing& ring, uint64_t& next_slot, std::span<const WeightPart> parts, WeightLayout layout,
            const std::vector<StreamPiece>& pieces) {
  const uint64_t first = next_slot;
  next_slot += pieces.size();
  Stream(ring, first, parts, layout, pieces).run();
}

}  // namespace canopy::vk
