#include "app/rounds/round_spill.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <span>

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

std::shared_ptr<const int> shared_descriptor(int descriptor) {
  return {new int(descriptor), [](const int* file) {
            close(*file);
            delete file;
          }};
}

}  // namespace

std::shared_ptr<const RoundRecord> SpilledRound::read() const {
  if (!file_) return nullptr;
  std::string bytes(end_ - begin_, '\0');
  if (!read_all(*file_, bytes, begin_)) return nullptr;
  try {
    Reader reader(std::as_bytes(std::span(bytes)));
    return std::make_shared<const RoundRecord>(decode_round_record(reader));
  } catch (const Error&) {
    return nullptr;
  }
}

bool RoundSpill::open() {
  if (file_ || failed_) return !failed_;
  try {
    if (folder_.empty()) folder_ = cache_dir();
    std::string name = (folder_ / "rounds-XXXXXX").string();
    const int descriptor = mkostemp(name.data(), O_CLOEXEC);
    if (descriptor >= 0) {
      unlink(name.c_str());
      file_ = shared_descriptor(descriptor);
    }
  } catch (const Error&) {  // the cache folder cannot be written to
  }
  failed_ = !file_;
  return !failed_;
}

void RoundSpill::append(const RoundRecord& record) {
  if (!open()) return;
  const uint64_t offset = ends_.empty() ? 0 : ends_.back();
  bytes_.clear();
  encode(record, bytes_);
  if (write_all(*file_, bytes_, offset)) {
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
  return recent_.get(index, [&] { return find(index).read(); });
}

SpilledRound RoundSpill::find(size_t index) const {
  SpilledRound round;
  if (index >= ends_.size()) return round;
  round.begin_ = index == 0 ? 0 : ends_[index - 1];
  round.end_ = ends_[index];
  if (round.begin_ < round.end_) round.file_ = file_;
  return round;
}

}  // namespace canopy::app
