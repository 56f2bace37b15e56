#include "cuda_backend/objects.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace canopy::cuda {

std::shared_ptr<Memory> WeightArena::allocate(uint64_t bytes, std::string_view name) const {
  return std::make_shared<Memory>(context_, bytes, false, name, MemoryContents::undefined);
}

// Memory may be cut up, or other programs may leave less than a whole block: half as much from then on, down to one
// weight.
std::shared_ptr<Memory> WeightArena::next_block(std::string_view name) {
  for (;;) {
    const BlockRun run = block_runs(std::span(expected_).subspan(next_), most_, kAlignment).front();
    try {
      return allocate(run.bytes, name);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::out_of_memory || run.buffers == 1) throw;
      while (most_ >= run.bytes) most_ /= 2;
    }
  }
}

MemoryShare WeightArena::create(uint64_t bytes, std::string_view name) {
  if (next_ == expected_.size() || expected_[next_] != bytes) return {allocate(bytes, name), 0};
  std::shared_ptr<Memory> block = block_.lock();
  if (block == nullptr || bytes > block->bytes() - std::min(block->bytes(), taken_)) {
    block = next_block(name);
    block_ = block;
    taken_ = 0;
  }
  ++next_;
  const uint64_t offset = taken_;
  taken_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return {std::move(block), offset};
}

namespace {

/// A thread that lays out less takes longer to start.
constexpr uint64_t kBytesOfAThread = 64 << 10;

/// A run of groups of 16 rows of a weight, as it lies in a slot and in the weight.
struct Piece {
  uint32_t first = 0, groups = 0;
};

std::vector<Piece> pieces_of(const TileLayout& tiles, uint64_t slot_bytes) {
  const auto most = static_cast<uint32_t>(std::min<uint64_t>(slot_bytes / tiles.group_bytes(), tiles.groups()));
  std::vector<Piece> pieces;
  for (uint32_t first = 0; first < tiles.groups(); first += most) {
    pieces.push_back({first, std::min(most, tiles.groups() - first)});
  }
  return pieces;
}

/// `largest`: of each group, its largest scale.
LayOutBand group_layout(std::span<const WeightPart> parts, WeightLayout layout, const TileLayout& tiles,
                        const std::vector<Piece>& pieces, std::vector<float>& largest) {
  auto scratch = std::make_shared<std::vector<std::byte>>();
  return [=, &tiles, &pieces, &largest](size_t piece, uint64_t band, std::span<std::byte> slot) {
    const uint32_t group = pieces[piece].first + static_cast<uint32_t>(band);
    const auto to = slot.subspan(band * tiles.group_bytes(), tiles.group_bytes());
    largest[group] = fill_group(parts, layout, tiles, group, to, *scratch);
  };
}

}  // namespace

// ---- slots ----------------------------------------------------------------------------------------------------------

PinnedSlots::PinnedSlots(Context& context, uint64_t slot_bytes) : context_(context) {
  try {
    for (Slot& slot : slots_) {
      slot.memory = std::make_unique<Memory>(context, slot_bytes, true, "uploads", MemoryContents::undefined);
      context.check(context.api().create_event(&slot.copied, kEventNoTiming), "Preparing to copy to the GPU");
    }
  } catch (...) {
    close();
    throw;
  }
}

PinnedSlots::~PinnedSlots() {
  close();
}

void PinnedSlots::close() noexcept {
  const DriverApi& api = context_.api();
  for (Slot& slot : slots_) {
    if (slot.submitted) context_.note(api.wait_event(slot.copied));
    if (slot.copied != nullptr) context_.note(api.destroy_event(slot.copied));
    slot.copied = nullptr;
  }
}

std::span<std::byte> PinnedSlots::slot(uint64_t index) const {
  const Memory& memory = *slots_[index % kUploadSlots].memory;
  return {memory.host(), memory.bytes()};
}

bool PinnedSlots::is_free(uint64_t index) {
  const Slot& slot = slots_[index % kUploadSlots];
  if (!slot.submitted) return true;
  const Result result = context_.api().query_event(slot.copied);
  if (result == kNotReady) return false;
  context_.check(result, "Copying to the GPU");
  return true;
}

void PinnedSlots::wait_until_free(uint64_t index) {
  const Slot& slot = slots_[index % kUploadSlots];
  if (slot.submitted) context_.check(context_.api().wait_event(slot.copied), "Copying to the GPU");
}

void PinnedSlots::submit(uint64_t index, Address to, uint64_t bytes) {
  Slot& slot = slots_[index % kUploadSlots];
  const DriverApi& api = context_.api();
  slot.submitted = true;  // also where it fails on the way: close() must wait
  context_.check(api.copy_to_device(to, slot.memory->host(), bytes, context_.copies()), "Copying to the GPU");
  context_.check(api.record_event(slot.copied, context_.copies(), 0), "Copying to the GPU");
  context_.wait_before_next(slot.copied);
}

// ---- weights --------------------------------------------------------------------------------------------------------

void WeightUpload::expect(std::span<const WeightRequest> requests) {
  std::vector<uint64_t> bytes;
  for (const WeightRequest& request : requests) bytes.push_back(tile_layout(request.parts, request.layout).bytes());
  slots_.reset();
  arena_.reset();
  if (!bytes.empty()) arena_ = std::make_unique<WeightArena>(context_, std::move(bytes));
}

std::unique_ptr<CudaWeight> WeightUpload::make(std::span<const WeightPart> parts, WeightLayout layout,
                                               std::string_view name) {
  const TileLayout tiles = tile_layout(parts, layout);
  auto weight = std::make_unique<CudaWeight>(parts[0].type, tiles);
  WeightArena alone(context_, {});
  weight->memory = (arena_ ? *arena_ : alone).create(tiles.bytes(), name);
  weight->tiles.unit = likely_unit(parts, layout, tiles);
  const float largest = fill(*weight, parts, layout);
  if (!fits_unit(largest)) {
    weight->tiles.unit = unit_for(weight->tiles.unit, largest);
    fill(*weight, parts, layout);
  }
  return weight;
}

float WeightUpload::fill(const CudaWeight& weight, std::span<const WeightPart> parts, WeightLayout layout) {
  const TileLayout& tiles = weight.tiles;
  const uint64_t slot_bytes = std::max(kUploadSlotBytes, tiles.group_bytes());
  if (slots_ == nullptr || slots_->slot_bytes() < slot_bytes) {
    slots_.reset();
    slots_ = std::make_unique<PinnedSlots>(context_, slot_bytes);
  }
  const std::vector<Piece> pieces = pieces_of(tiles, slots_->slot_bytes());
  std::vector<float> largest(tiles.groups());
  UploadWork work;
  for (const Piece& piece : pieces) work.bands.push_back(piece.groups);
  work.bands_of_a_thread = std::max<uint64_t>(1, kBytesOfAThread / tiles.group_bytes());
  work.make_layout = [&] { return group_layout(parts, layout, tiles, pieces, largest); };
  work.send = [&](size_t index, uint64_t slot) {
    const Piece& piece = pieces[index];
    const uint64_t first = piece.first * tiles.group_bytes(), bytes = piece.groups * tiles.group_bytes();
    slots_->submit(slot, weight.memory.address() + first, bytes);
  };
  stream_upload(*slots_, next_slot_, work);
  return std::ranges::max(largest);
}

// ---- the rate of copies ---------------------------------------------------------------------------------------------

double measure_upload(Context& context) {
  constexpr uint64_t uploaded = uint64_t{64} << 20;
  const Memory to(context, uploaded, false, "upload rate", MemoryContents::undefined);
  PinnedSlots slots(context, kUploadSlotBytes);
  for (uint64_t i = 0; i < kUploadSlots; ++i) std::memset(slots.slot(i).data(), 1, kUploadSlotBytes);
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < uploaded / kUploadSlotBytes; ++i) {
      slots.wait_until_free(i);
      slots.submit(i, to.address() + i * kUploadSlotBytes, kUploadSlotBytes);
    }
    for (uint64_t i = 0; i < kUploadSlots; ++i) slots.wait_until_free(i);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(uploaded) / seconds.count() * 1e-9);
  }
  return best;
}

}  // namespace canopy::cuda
