#include "app/conversation/chat_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>

#include "app/conversation/chat_json.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/text/utf8.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".jsonl";
constexpr auto kTrashKept = std::chrono::hours(24 * 30);
constexpr size_t kMaxFile = size_t{1} << 30;  // bytes; larger files are not read
constexpr size_t kExcerptBefore = 24, kExcerptAfter = 60;

Error cannot(const fs::path& path, const std::string& what, int error) {
  return bad_input("The chat " + shown(path) + " cannot be " + what + ": " + std::strerror(error) + ".");
}

std::string bytes_of(const fs::path& path) {
  std::error_code ignored;
  if (fs::file_size(path, ignored) == 0) return "";
  return read_small_file(path, kMaxFile);
}

void rename_new(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (fs::exists(to, error)) throw bad_input("The chat " + shown(to) + " is there already.");
  fs::rename(from, to, error);
  if (error) throw bad_input("The chat " + shown(from) + " cannot be moved: " + error.message() + ".");
}

/// Moves a chat's rounds, if it has any. A failure costs them and not the chat, so it is no error.
void move_rounds(const fs::path& from, const fs::path& to) {
  std::error_code ignored;
  if (fs::exists(from, ignored)) fs::rename(from, to, ignored);
}

fs::path rounds_beside(fs::path chat) {
  return chat.replace_extension(".rounds");
}

/// A line of text around the match at byte `at`, cut between characters.
std::string excerpt(const std::string& text, size_t at, size_t length) {
  size_t from = at > kExcerptBefore ? at - kExcerptBefore : 0, to = std::min(text.size(), at + length + kExcerptAfter);
  while (from > 0 && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) --from;
  while (to < text.size() && (static_cast<unsigned char>(text[to]) & 0xC0) == 0x80) ++to;
  std::string out = text.substr(from, to - from);
  std::replace(out.begin(), out.end(), '\n', ' ');
  return (from > 0 ? "\u2026" : "") + out;
}

void forget_old(const fs::path& trash) {
  std::error_code error;
  const auto limit = fs::file_time_type::clock::now() - kTrashKept;
  for (const auto& entry : fs::directory_iterator(trash, error))
    if (entry.path().extension() == kEnding && fs::last_write_time(entry.path(), error) < limit && !error &&
        fs::remove(entry.path(), error))
      fs::remove_all(rounds_beside(entry.path()), error);
}

}  // namespace

ChatFile::~ChatFile() {
  ::close(file_);
}

std::unique_ptr<ChatFile> ChatFile::create(const fs::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) throw cannot(path, "saved", errno);
  ::flock(file, LOCK_EX | LOCK_NB);  // cannot fail: no other window knows of the new file yet
  return std::unique_ptr<ChatFile>(new ChatFile(path, file));
}

std::unique_ptr<ChatFile> ChatFile::open(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (file < 0) throw cannot(path, "saved", errno);
  std::unique_ptr<ChatFile> opened(new ChatFile(path, file));
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return nullptr;
  char last = '\n';
  const off_t size = ::lseek(file, 0, SEEK_END);
  if (size > 0 && ::pread(file, &last, 1, size - 1) != 1) throw cannot(path, "read", errno);
  opened->torn_ = last != '\n';
  return opened;
}

void ChatFile::append(std::string_view lines) {
  std::string bytes(torn_ ? kResume : std::string_view());
  bytes += lines;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) throw cannot(path_, "saved", errno);
    done += static_cast<size_t>(wrote);
    torn_ = done < bytes.size();
  }
}

ChatStore::ChatStore(fs::path folder) : folder_(std::move(folder)) {
  for (const fs::path& each : {folder_, folder_ / "trash", folder_ / "damaged"}) {
    std::error_code error;
    if (fs::create_directories(each, error)) fs::permissions(each, fs::perms::owner_all, error);
    if (!fs::is_directory(each, error))
      throw bad_input("The folder " + shown(each) + " for chats cannot be made: " + error.message() + ".");
  }
  forget_old(folder_ / "trash");
}

ChatStore::Known ChatStore::read(const fs::path& path) const {
  Known known;
  known.id = path.stem().string();
  uint64_t unused = 0;
  std::string bytes;
  try {
    bytes = bytes_of(path);
  } catch (const Error&) {
    // An unreadable file stays in the list: opening it reports what is wrong.
  }
  const JournalRead read = read_journal(bytes, unused);
  const Conversation& chat = read.conversation;
  known.listing.id = known.id;
  known.listing.title = chat.nodes().empty() && chat.title.empty() ? "Chat that cannot be read" : chat.shown_title();
  known.listing.messages = chat.size();
  known.text = chat.title;
  for (const auto& node : chat.nodes()) {
    known.text += "\n" + node.message.text;
    known.listing.changed_ms = std::max(known.listing.changed_ms, node.message.created_ms);
  }
  known.folded = FoldedText(known.text);
  return known;
}

std::vector<ChatListing> ChatStore::list(const std::string& search) {
  std::vector<Known> now;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() != kEnding) continue;
    const auto time = fs::last_write_time(entry.path(), error);
    const auto size = fs::file_size(entry.path(), error);
    if (error) continue;  // the file was removed in the meantime
    const std::string id = entry.path().stem().string();
    auto old = std::find_if(known_.begin(), known_.end(), [&](const Known& k) { return k.id == id; });
    const bool same = old != known_.end() && old->time == time && old->size == size;
    now.push_back(same ? std::move(*old) : read(entry.path()));
    now.back().time = time;
    now.back().size = size;
  }
  known_ = std::move(now);
  std::vector<ChatListing> found;
  const FoldedText wanted(search);
  const bool all = wanted.folded().empty();
  for (const Known& known : known_) {
    const auto hit = known.folded.find(wanted);
    if (!all && !hit) continue;
    found.push_back(known.listing);
    if (hit) found.back().excerpt = excerpt(known.text, hit->begin, hit->end - hit->begin);
  }
  std::sort(found.begin(), found.end(), [](const ChatListing& a, const ChatListing& b) {
    return a.changed_ms != b.changed_ms ? a.changed_ms > b.changed_ms : a.id > b.id;
  });
  return found;
}

ChatStore::Loaded ChatStore::load(const std::string& id, uint64_t& last_id) {
  const fs::path path = path_of(id);
  JournalRead read = read_journal(bytes_of(path), last_id);
  if (read.problem.empty()) {
    read.conversation.id = id;
    return {std::move(read.conversation), "", read.note, rounds_of(id)};
  }
  fs::path aside = folder_ / "damaged" / path.filename();
  std::error_code ignored;
  for (int n = 2; fs::exists(aside, ignored); ++n)
    aside = folder_ / "damaged" / (id + "-" + std::to_string(n) + kEnding);
  rename_new(path, aside);
  move_rounds(rounds_of(id), rounds_beside(aside));
  const size_t count = read.conversation.nodes().size();
  return {std::move(read.conversation),
          read.problem + " The file is now " + shown(aside) + ", unchanged; " + std::to_string(count) +
              (count == 1 ? " message" : " messages") + " could be read from it.",
          "", rounds_beside(aside)};
}

std::string ChatStore::new_id(int64_t now_ms) const {
  static std::mt19937 random{std::random_device{}()};
  std::string time = time_text(now_ms).substr(0, 19);
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  std::replace(time.begin(), time.end(), 'T', '-');
  constexpr const char* kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::error_code ignored;
  while (true) {
    std::string id = time + "-";
    for (int i = 0; i < 6; ++i) id += kDigits[random() % 36];
    if (!fs::exists(path_of(id), ignored)) return id;
  }
}

void ChatStore::remove(const std::string& id) {
  const fs::path path = path_of(id), trash = folder_ / "trash" / path.filename();
  const auto mine = ChatFile::open(path);
  if (!mine) throw bad_input("It is open in another window. Close it there first.");
  rename_new(path, trash);
  move_rounds(rounds_of(id), rounds_beside(trash));
  std::error_code ignored;
  fs::last_write_time(trash, fs::file_time_type::clock::now(), ignored);  // the month in the trash begins today
}

void ChatStore::restore(const std::string& id) {
  rename_new(folder_ / "trash" / (id + kEnding), path_of(id));
  move_rounds(rounds_beside(folder_ / "trash" / (id + kEnding)), rounds_of(id));
}

}  // namespace canopy::app
