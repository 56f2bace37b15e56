#include "app/rounds/round_spill.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/trace/round_record_codec.h"

namespace canopy::app {
namespace {

bool write_all(int descriptor, const std::string& bytes, uint64_t offset) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = pwrite(descriptor, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

bool read_all(int descriptor, std::string& bytes, uint64_t offset) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = pread(descriptor, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

RoundSpill::RoundSpill(RoundSpill&& other) noexcept
    : folder_(std::move(other.folder_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      failed_(other.failed_),
      ends_(std::move(other.ends_)) {}

RoundSpill::~RoundSpill() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool RoundSpill::open() {
  if (descriptor_ >= 0 || failed_) return !failed_;
  try {
    if (folder_.empty()) folder_ = cache_dir();
    std::string name = (folder_ / "rounds-XXXXXX").string();
    descriptor_ = mkostemp(name.data(), O_CLOEXEC);
    if (descriptor_ >= 0) unlink(name.c_str());
  } catch (const Error&) {  // the cache folder cannot be written to
  }
  failed_ = descriptor_ < 0;
  return !failed_;
}

void RoundSpill::append(const RoundRecord& record) {
  if (!open()) return;
  const uint64_t offset = ends_.empty() ? 0 : ends_.back();
  bytes_.clear();
  encode(record, bytes_);
  if (write_all(descriptor_, bytes_, offset)) {
    ends_.push_back(offset + bytes_.size());
  } else {
    failed_ = true;
  }
}

void RoundSpill::skip() {
  if (!failed_) ends_.push_back(ends_.empty() ? 0 : ends_.back());
}

std::shared_ptr<const RoundRecord> RoundSpill::read(size_t index) const {
  if (index >= ends_.size()) return nullptr;
  return recent_.get(index, [&]() -> std::shared_ptr<const RoundRecord> {
    const uint64_t begin = index == 0 ? 0 : ends_[index - 1];
    if (begin == ends_[index]) return nullptr;
    std::string bytes(ends_[index] - begin, '\0');
    if (!read_all(descriptor_, bytes, begin)) return nullptr;
    try {
      Reader reader(std::as_bytes(std::span(bytes)));
      return std::make_shared<const RoundRecord>(decode_round_record(reader));
    } catch (const Error&) {
      return nullptr;
    }
  });
}

}  // namespace canopy::app
