// Downloads of a hub's files: several connections fetch parts of a file, which are written in order, so that what is on
// the disk is always its beginning and any program can go on from there.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/text.h"
#include "engine/hub/hub_cache.h"
#include "engine/hub/hub_client.h"

namespace canopy {
namespace {

using DownloadClock = std::chrono::steady_clock;

double seconds_since(DownloadClock::time_point start) {
  return std::chrono::duration<double>(DownloadClock::now() - start).count();
}

/// "bytes 0-99/1234" -> {0, 1234}; nothing for what is none.
struct ContentRange {
  uint64_t first = 0, whole = 0;
};
std::optional<ContentRange> content_range(const AnswerHead& head) {
  const std::string* text = head.header("content-range");
  if (text == nullptr) return std::nullopt;
  unsigned long long first = 0, last = 0, whole = 0;
  if (std::sscanf(text->c_str(), "bytes %llu-%llu/%llu", &first, &last, &whole) != 3) return std::nullopt;
  return ContentRange{first, whole};
}

/// The ETag of an answer, without its quotes and the mark of a weak one.
std::string plain_etag(const std::string& text) {
  std::string_view tag = text;
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"') tag = tag.substr(1, tag.size() - 2);
  return std::string(tag);
}

}  // namespace

/// The digest that names a file: SHA-256 has 64 digits; Git's is of a head with the length, then the bytes.
class FileDigest {
 public:
  explicit FileDigest(const HubFile& file) : is_large_(file.digest.size() == 64) {
    if (is_large_) return;
    const std::string head = "blob " + std::to_string(file.bytes);
    add(std::as_bytes(std::span(head.c_str(), head.size() + 1)));
  }
  void add(std::span<const std::byte> bytes) {
    if (is_large_) {
      large_.add(bytes);
    } else {
      small_.add(bytes);
    }
  }
  std::string text() const { return is_large_ ? hex_digits(large_.digest()) : hex_digits(small_.digest()); }

 private:
  bool is_large_;
  Sha256 large_;
  Sha1 small_;
};

/// One file, from what is there of it to its blob.
class HubClient::FileDownload {
 public:
  using Told = std::function<void(uint64_t there, const std::string& waiting)>;

  FileDownload(HubClient& client, const HubListing& listing, const HubFile& file, BlobWriter& blob, Told told)
      : client_(client),
        listing_(listing),
        file_(file),
        blob_(blob),
        told_(std::move(told)),
        digest_(file),
        hub_url_(client.file_url(listing, file)) {}
  FileDownload(const FileDownload&) = delete;
  FileDownload& operator=(const FileDownload&) = delete;
  ~FileDownload() { drop_parts(); }

  void run() {
    bool began_with_foreign_bytes = blob_.size() > 0;
    blob_.read([&](std::span<const std::byte> bytes) {
      client_.require_going();
      digest_.add(bytes);
    });
    for (;;) {
      fetch_rest();
      if (digest_.text() == file_.digest) return blob_.finish();
      // What an earlier download left may have been of something else: once more from its beginning.
      begin_anew();
      if (!std::exchange(began_with_foreign_bytes, false)) break;
    }
    throw Error(ErrorKind::unavailable,
                "The file " + quoted_name(file_.path) + " came whole, but its " +
                    (file_.digest.size() == 64 ? "SHA-256" : "digest") +
                    " is not the one that the hub lists: it was damaged or exchanged on the way. Nothing of it was "
                    "kept; try again.");
  }

 private:
  struct Part {
    uint64_t next = 0, end = 0;  // bytes of the file that are still to come
    std::string data;            // that came and is not written yet
    std::string url;
    uint64_t transfer = 0;  // 0: none is under way
    uint64_t asked_from = 0;
    int redirects = 0;
    uint32_t tries = 0;
    DownloadClock::time_point not_before{};
    bool checked = false;  // the head of its answer
    bool is_whole() const { return next >= end; }
  };

  void fetch_rest() {
    try {
      while (blob_.size() < file_.bytes) {
        client_.require_going();
        plan_parts();
        start_parts();
        std::vector<TransferEnd> ends;
        if (client_.transfers_.active() == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        } else {
          ends = client_.transfers_.wait(0.1);
        }
        for (const TransferEnd& end : ends) finish(end);
        write_front();
        tell();
      }
    } catch (...) {
      write_front_quietly();
      drop_parts();
      throw;
    }
    drop_parts();
  }

  /// As many parts as may be in memory: those under way, and as many that wait for an earlier one.
  void plan_parts() {
    const size_t most = ranges_ ? size_t{2} * client_.limits_.connections : 1;
    uint64_t from = parts_.empty() ? blob_.size() : parts_.back().end;
    while (parts_.size() < most && from < file_.bytes) {
      const uint64_t end = ranges_ ? std::min(file_.bytes, from + client_.limits_.part_bytes) : file_.bytes;
      parts_.emplace_back();
      parts_.back().next = from;
      parts_.back().end = end;
      from = end;
    }
  }

  size_t under_way() const {
    return static_cast<size_t>(std::ranges::count_if(parts_, [](const Part& part) { return part.transfer != 0; }));
  }

  void start_parts() {
    // The first one alone finds out where the file is and whether parts of it can be asked for.
    const size_t most = source_.empty() ? 1 : client_.limits_.connections;
    for (Part& part : parts_) {
      if (under_way() >= most) return;
      if (part.is_whole() || part.transfer != 0) continue;
      if (DownloadClock::now() < part.not_before) {
        if (source_.empty()) return;
        continue;
      }
      start(part);
    }
  }

  void start(Part& part) {
    if (part.url.empty()) part.url = source_.empty() ? hub_url_ : source_;
    part.asked_from = part.next;
    part.checked = false;
    TransferRequest request{part.url, client_.token_for(part.url), "", ""};
    if (ranges_) {
      request.range = std::to_string(part.next) + "-" + std::to_string(part.end - 1);
      request.if_range = etag_;
    }
    part.transfer = client_.transfers_.start(
        request,
        [this, &part](const AnswerHead& head, std::span<const std::byte> bytes) { return take(part, head, bytes); });
  }

  /// Bytes of a part as they come.
  bool take(Part& part, const AnswerHead& head, std::span<const std::byte> bytes) {
    if (head.status != 200 && head.status != 206) return true;  // words about an error; not kept
    if (!std::exchange(part.checked, true) && !check_head(part, head)) return false;
    if (bytes.size() > part.end - part.next)
      throw Error(ErrorKind::unavailable, "The server sends more of " + quoted_name(file_.path) + " than the " +
                                              std::to_string(file_.bytes) + " bytes that the hub lists.");
    part.data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    part.next += bytes.size();
    return true;
  }

  /// False: everything begins anew.
  bool check_head(Part& part, const AnswerHead& head) {
    const std::string* etag = head.header("etag");
    const bool is_strong = etag != nullptr && !etag->starts_with("W/");
    if (head.status == 206) {
      const auto range = content_range(head);
      if (!range || range->first != part.asked_from || range->whole != file_.bytes)
        throw wrong_length(range ? range->whole : 0);
      if (!etag_.empty() && etag != nullptr && *etag != etag_) return begin_again_ = true, false;
      if (is_strong && etag_.empty()) etag_ = *etag;
    } else {
      const std::string* length = head.header("content-length");
      if (length != nullptr && *length != std::to_string(file_.bytes))
        throw wrong_length(std::strtoull(length->c_str(), nullptr, 10));
      if (ranges_) {
        // Either the file is another than when its first part came, or the server sends no parts.
        begin_again_ = true;
        ranges_ = !etag_.empty();
        return false;
      }
    }
    source_ = part.url;
    return true;
  }

  Error wrong_length(uint64_t sent) const {
    return Error(ErrorKind::unavailable, "The server has " + std::to_string(sent) + " bytes of " +
                                             quoted_name(file_.path) + ", and the hub lists " +
                                             std::to_string(file_.bytes) + "; the file is not fetched.");
  }

  void finish(const TransferEnd& end) {
    const auto found = std::ranges::find(parts_, end.id, &Part::transfer);
    if (found == parts_.end()) return;  // of parts that were given up meanwhile
    Part& part = *found;
    part.transfer = 0;
    check_listed(end.head);
    if (begin_again_) {
      begin_again_ = false;
      if (++restarts_ > client_.limits_.tries)
        throw Error(ErrorKind::unavailable, "The file " + quoted_name(file_.path) +
                                                " changes on the server while it is fetched; try again later.");
      return begin_anew();
    }
    const int status = end.head.status;
    if (end.how == TransferEnd::How::wrong) throw Error(ErrorKind::unavailable, end.problem);
    if (end.how == TransferEnd::How::whole && is_redirect(status)) {
      if (++part.redirects > kMostRedirects)
        throw Error(ErrorKind::unavailable, "The hub leads on and on when asked for " + quoted_name(file_.path) + ".");
      part.url = redirected(part.url, end.head);
      return;
    }
    const bool is_well = end.how == TransferEnd::How::whole && (status == 200 || status == 206);
    if (part.checked && part.is_whole()) return;
    if (is_well || end.how == TransferEnd::How::cut || is_worth_another_try(status)) return try_again(part, end);
    if (status == 416) return begin_anew_once(end);
    // An address that was led to holds for some time only; the hub knows a new one.
    if (part.url != hub_url_ && part.tries + 1 < client_.limits_.tries) {
      ++part.tries;
      source_.clear();
      part.url.clear();
      part.redirects = 0;
      return;
    }
    client_.refuse_status(end.head, "file " + quoted_name(file_.path), listing_.repo);
  }

  /// The hub says which content it means; another than the one that is wanted is not fetched.
  void check_listed(const AnswerHead& head) const {
    const std::string* linked = head.header("x-linked-etag");
    if (linked != nullptr && plain_etag(*linked) != file_.digest)
      throw Error(ErrorKind::unavailable, "The file " + quoted_name(file_.path) +
                                              " was changed on the hub since its files were listed; try again.");
  }

  void try_again(Part& part, const TransferEnd& end) {
    if (++part.tries >= client_.limits_.tries) {
      const std::string status = std::to_string(end.head.status);
      const std::string problem = !end.problem.empty() ? end.problem
                                  : part.checked ? "The transfer of " + quoted_name(file_.path) + " ends too early."
                                                 : "The server answers with the status " + status + " when asked for " +
                                                       quoted_name(file_.path) + ".";
      throw Error(ErrorKind::unavailable, problem + " It was tried " + std::to_string(part.tries) +
                                              " times; what came so far stays, and the same command goes on with it.");
    }
    const double wait = client_.wait_before(part.tries, end.head);
    waits_until_ =
        DownloadClock::now() + std::chrono::duration_cast<DownloadClock::duration>(std::chrono::duration<double>(wait));
    part.not_before = waits_until_;
    part.url.clear();
    part.redirects = 0;
    if (!ranges_) begin_anew();
  }

  void begin_anew_once(const TransferEnd& end) {
    if (++restarts_ > 1) client_.refuse_status(end.head, "file " + quoted_name(file_.path), listing_.repo);
    begin_anew();
  }

  void begin_anew() {
    // A pause that was asked for holds for the new part, too.
    const Part before = parts_.empty() ? Part() : parts_.front();
    drop_parts();
    blob_.clear();
    digest_ = FileDigest(file_);
    source_.clear();
    etag_.clear();
    plan_parts();
    if (parts_.empty()) return;
    parts_.front().tries = before.tries;
    parts_.front().not_before = before.not_before;
  }

  void drop_parts() {
    for (const Part& part : parts_)
      if (part.transfer != 0) client_.transfers_.drop(part.transfer);
    parts_.clear();
  }

  /// Writes what came of the first part, and of those behind it as far as they are whole.
  void write_front() {
    while (!parts_.empty()) {
      Part& part = parts_.front();
      // Taken out first: what a full disk took of it must not be written once more.
      const std::string data = std::exchange(part.data, {});
      const auto bytes = std::as_bytes(std::span(data));
      blob_.append(bytes);
      digest_.add(bytes);
      if (!part.is_whole() || part.transfer != 0) return;
      parts_.pop_front();
    }
  }

  void write_front_quietly() noexcept {
    try {
      write_front();
    } catch (...) {  // the first problem is the one to tell
    }
  }

  void tell() {
    constexpr std::chrono::milliseconds between(100);
    if (DownloadClock::now() - told_at_ < between) return;
    told_at_ = DownloadClock::now();
    uint64_t there = blob_.size();
    for (const Part& part : parts_) there += part.data.size();
    std::string waiting;
    const double left = std::chrono::duration<double>(waits_until_ - DownloadClock::now()).count();
    if (left > 0 && under_way() == 0) waiting = "The server is busy; trying again in " + duration_figures(left);
    told_(there, waiting);
  }

  HubClient& client_;
  const HubListing& listing_;
  const HubFile& file_;
  BlobWriter& blob_;
  Told told_;
  FileDigest digest_;
  const std::string hub_url_;
  std::string source_;  // where the hub leads to; empty: not known
  std::string etag_;    // of the file there
  bool ranges_ = true;  // that the server sends parts
  bool begin_again_ = false;
  uint32_t restarts_ = 0;
  DownloadClock::time_point waits_until_{}, told_at_{};
  std::deque<Part> parts_;  // in the order of the file; a deque, as their sinks point at them
};

std::filesystem::path HubClient::download(const HubListing& listing, std::span<const HubFile> files,
                                          const std::function<void(const DownloadProgress&)>& progress) {
  const HubCache cache(settings_.cache, listing.repo);
  DownloadProgress now;
  std::map<std::string, uint64_t> there;  // bytes by digest, as a repository may have a file twice
  uint64_t missing = 0;
  for (const HubFile& file : files) {
    check_hub_path(file.path);
    if (!there.emplace(file.digest, cache.bytes_there(file)).second) continue;
    now.total += file.bytes;
    missing += file.bytes - there[file.digest];
  }
  if (missing > 0) require_online("files of " + byte_figures(missing));
  cache.require_room(missing);

  const auto start = DownloadClock::now();
  RemainingTime remaining;
  const auto tell = [&](const HubFile& file, uint64_t bytes, const std::string& waiting) {
    there[file.digest] = bytes;
    now.file = file.path.substr(file.path.rfind('/') + 1);
    now.done = 0;
    for (const auto& [digest, count] : there) now.done += count;
    now.waiting = waiting;
    now.seconds_left = remaining.update(seconds_since(start), now.done, now.total);
    now.bytes_per_second =
        now.seconds_left && *now.seconds_left > 0 ? static_cast<double>(now.total - now.done) / *now.seconds_left : 0;
    if (progress) progress(now);
  };
  for (const HubFile& file : files) {
    if (cache.has(file)) continue;
    BlobWriter blob(cache, file, stop_, [&] {
      tell(file, cache.bytes_there(file), "Another program is fetching this file; waiting for it");
    });
    if (blob.done()) continue;
    FileDownload(*this, listing, file, blob, [&](uint64_t bytes, const std::string& waiting) {
      tell(file, bytes, waiting);
    }).run();
    tell(file, file.bytes, "");
  }
  // All at once at the end, so that a snapshot never shows a part of a model.
  for (const HubFile& file : files) cache.show(listing.commit, file);
  if (listing.revision != listing.commit) cache.note_commit(listing.revision, listing.commit);
  return cache.snapshot(listing.commit);
}

}  // namespace canopy
