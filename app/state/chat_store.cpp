#include "app/state/chat_store.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>
#include <variant>

#include "app/state/chat_update.h"
#include "app/state/conversation.h"
#include "app/state/live_log.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/base/posix.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".jsonl";
constexpr auto kCoarseTime = std::chrono::milliseconds(50);  // more than file systems round times to
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
  known.listing.pinned = chat.pinned;
  known.title = chat.title;
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
  folder_time_ = fs::last_write_time(folder_, error);
  settled_ = !error && fs::file_time_type::clock::now() - folder_time_ > kCoarseTime;
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
    if (a.pinned != b.pinned) return a.pinned;
    return a.changed_ms != b.changed_ms ? a.changed_ms > b.changed_ms : a.id > b.id;
  });
  return found;
}

bool ChatStore::changed() const {
  std::error_code error;
  return !settled_ || fs::last_write_time(folder_, error) != folder_time_;
}

void ChatStore::announce() const {
  std::error_code ignored;  // then other windows learn of it later
  fs::last_write_time(folder_, fs::file_time_type::clock::now(), ignored);
}

std::optional<ChatStore::Label> ChatStore::label_of(const std::string& id) const {
  const auto known = std::ranges::find(known_, id, &Known::id);
  if (known == known_.end()) return std::nullopt;
  return Label{known->title, known->listing.pinned};
}

std::string ChatStore::newest() const {
  const auto time = [](const Known& known) { return std::pair(known.listing.changed_ms, known.id); };
  const auto found = std::ranges::max_element(known_, {}, time);
  return found == known_.end() ? "" : found->id;
}

ChatStore::Loaded ChatStore::whole(const std::string& id, JournalRead read) const {
  read.conversation.id = id;
  return {std::move(read.conversation), "", read.note, rounds_of(id)};
}

std::optional<ChatStore::Loaded> ChatStore::load_whole(const std::string& id, uint64_t& last_id) const {
  try {
    JournalRead read = read_journal(bytes_of(path_of(id)), last_id);
    if (!read.problem.empty()) return std::nullopt;
    return whole(id, std::move(read));
  } catch (const Error&) {
    return std::nullopt;
  }
}

void ChatStore::edit(const std::string& id, const std::function<void(Conversation&)>& change) const {
  const auto mine = ChatFile::open(path_of(id));
  if (!mine) throw bad_input("It is open in another window. Change it there.");
  uint64_t unused = 0;
  std::optional<Loaded> chat = load_whole(id, unused);
  if (!chat) throw bad_input("Its file is damaged. Open the chat to see what can be read of it.");
  JournalMark mark = mark_of(chat->conversation);
  change(chat->conversation);
  mine->append(journal_lines(chat->conversation, mark));
  announce();
}

ChatStore::Loaded ChatStore::load(const std::string& id, uint64_t& last_id) {
  const fs::path path = path_of(id);
  JournalRead read = read_journal(bytes_of(path), last_id);
  if (read.problem.empty()) return whole(id, std::move(read));
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

namespace {

constexpr size_t kLargestImport = size_t{256} << 20;

const ReplySummary* find_reply(const LiveLog& log, uint64_t id) {
  const auto& replies = log.replies();
  const auto found = std::find_if(replies.rbegin(), replies.rend(), [&](const auto& reply) { return reply.id == id; });
  return found != replies.rend() ? &*found : nullptr;
}

TraceReplyEnd end_of(const LiveLog& log, const ReplySummary& reply) {
  TraceReplyEnd end;
  end.reason = reply.reason.value_or(FinishReason::max_tokens);
  end.reply_tokens = reply.first_token ? 1 : 0;
  for (size_t i = reply.first_round; i < reply.first_round + reply.rounds; ++i) {
    end.reply_tokens += log.summary(i).emitted;
    end.decode_ms += log.summary(i).ms.total();
  }
  return end;
}

/// The replies of the log that a message was written in, each with its own text. Empty where one is not in the log.
std::vector<ReplyToKeep> replies_of(const LiveLog& log, const Message& message) {
  std::vector<ReplyToKeep> kept;
  const std::vector<ReplyPart> parts = parts_of(message);
  for (size_t p = 0; p < parts.size(); ++p) {
    const ReplySummary* reply = find_reply(log, parts[p].reply_id);
    if (!reply) return {};
    const size_t begin = p == 0 ? 0 : message.continued[p - 1].text_begin;
    const size_t end = p + 1 == parts.size() ? message.text.size() : message.continued[p].text_begin;
    kept.push_back({reply, end_of(log, *reply)});
    if (begin < end && end <= message.text.size()) kept.back().end.text = message.text.substr(begin, end - begin);
  }
  return kept;
}

bool has_part(const Message& message, uint64_t reply_id) {
  if (message.id == reply_id) return true;
  return std::any_of(message.continued.begin(), message.continued.end(),
                     [&](const Continuation& each) { return each.reply_id == reply_id; });
}

}  // namespace

std::string user_chat_folder(std::string& problem) {
  try {
    return (data_dir() / "chats").string();
  } catch (const Error& e) {
    problem = std::string(e.what()) + " Chats last until the window is closed; export what you need.";
    return "";
  }
}

void ChatDesk::begin(ViewModel& view) {
  if (folder_.empty()) return;
  try {
    store_.emplace(folder_);
    view.chat.kept = true;
    refresh(view);
  } catch (const Error& e) {
    warn(view, "Chats are not saved",
         std::string(e.what()) + " They last until the window is closed; export what you need.");
  }
}

void ChatDesk::reopen(ViewModel& view, const std::string& id) {
  if (!store_) return;
  const std::string wanted = id.empty() ? store_->newest() : id;
  if (!store_->label_of(wanted)) return;
  auto loaded = store_->load_whole(wanted, view.last_id);
  if (!loaded || loaded->conversation.empty()) return;
  Effects unused;  // nothing is written or read yet, so there is nothing to stop
  show(view, std::move(loaded->conversation), unused);
  restore_rounds(view, loaded->rounds);
  view.chat.note = loaded->note;
}

bool ChatDesk::look(ViewModel& view) {
  if (!store_ || !store_->changed()) return false;
  const std::vector<ChatListing> before = view.chat.listings;
  refresh(view);
  bool changed = view.chat.listings != before;
  Conversation& chat = view.messages;
  if (chat.id.empty() || file_) return changed;  // nobody else can change it
  const auto label = store_->label_of(chat.id);
  if (!label) {
    changed |= !gone_;
    say_gone(view);
    return changed;
  }
  gone_ = false;
  adopt(chat, *label);
  return changed;
}

/// Says once that the shown chat was deleted. It stays so until something is added to it.
void ChatDesk::say_gone(ViewModel& view) {
  if (!std::exchange(gone_, true)) view.chat.note = "Another window deleted this chat. What you add brings it back.";
}

/// Takes name and pin that another window gave the shown chat, unless they were changed here and not written yet.
void ChatDesk::adopt(Conversation& chat, const ChatStore::Label& label) {
  if (chat.title == mark_.title) chat.title = label.title;
  if (chat.pinned == mark_.pinned) chat.pinned = label.pinned;
  mark_.title = label.title;
  mark_.pinned = label.pinned;
}

void ChatDesk::keep(ViewModel& view) {
  if (!store_) return;
  write(view, view.messages);
  keep_rounds(view, view.messages, *view.rounds.live);
}

void ChatDesk::keep_rounds(ViewModel& view, const Conversation& chat, const LiveLog& log) {
  if (chat.id.empty()) return;
  const auto& replies = log.replies();
  // The newest replies are the ones that can be new.
  for (size_t i = replies.size(); i-- > 0;) {
    const ReplySummary& reply = replies[i];
    if (reply.rounds == 0 || rounds_kept_.contains(reply.id)) continue;
    const auto& nodes = chat.nodes();
    const auto node =
        std::find_if(nodes.begin(), nodes.end(), [&](const auto& n) { return has_part(n.message, reply.id); });
    if (node == nodes.end()) continue;
    if (node->message.writing) {
      keep_rounds_so_far(view, store_->rounds_of(chat.id), static_cast<uint32_t>(node - nodes.begin()), log,
                         node->message);
      continue;
    }
    if (!node->message.result) continue;
    for (const ReplyPart& part : parts_of(node->message)) rounds_kept_.insert(part.reply_id);
    const std::vector<ReplyToKeep> parts = replies_of(log, node->message);
    if (parts.empty()) continue;
    const auto folder = store_->rounds_of(chat.id);
    const std::string problem = write_reply_trace(folder, static_cast<uint32_t>(node - nodes.begin()), log, parts);
    if (!problem.empty())
      warn(view, "The passes of a reply are not saved",
           problem + (failing_ ? " Its tree can be seen until the chat is left."
                               : " The chat itself is; its tree can be seen until the chat is left."));
    limit_reply_traces(folder);
  }
}

/// Writes the rounds of a reply that is being written about every second, for a program that is killed. The whole trace
/// is written anew, so less often where that takes long. A failure costs nothing yet: the end is written again.
void ChatDesk::keep_rounds_so_far(const ViewModel& view, const fs::path& folder, uint32_t number, const LiveLog& log,
                                  const Message& message) {
  constexpr int64_t kEveryMs = 1000, kTimesAsLong = 50;
  const uint64_t part = parts_of(message).back().reply_id;
  if (growing_ != part) {
    growing_ = part;
    grown_due_ms_ = view.chat.now_ms + kEveryMs;
  }
  if (view.chat.now_ms < grown_due_ms_) return;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<ReplyToKeep> parts = replies_of(log, message);
  if (!parts.empty()) (void)write_reply_trace(folder, number, log, parts);
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
  grown_due_ms_ = view.chat.now_ms + std::max<int64_t>(kEveryMs, kTimesAsLong * took);
}

void ChatDesk::restore_rounds(ViewModel& view, const std::filesystem::path& folder) {
  std::vector<std::pair<const Message*, std::shared_ptr<const TraceReader>>> found;
  std::string problem;
  size_t left_out = 0;
  const auto& nodes = view.messages.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].message.role != Role::assistant) continue;
    try {
      const Message& message = nodes[i].message;
      if (auto trace = open_reply_trace(folder, static_cast<uint32_t>(i), message.text, message.continued.size() + 1))
        found.emplace_back(&nodes[i].message, std::move(trace));
    } catch (const Error& e) {
      if (left_out++ == 0) problem = e.what();
    }
  }
  // Rounds of two models cannot stand side by side, as the ids of their tokens differ: the newest reply decides.
  if (!found.empty()) begin_live_log(view.rounds, nullptr);
  const std::string model = found.empty() ? "" : found.back().second->header().target.file_name;
  for (const auto& [message, trace] : found) {
    if (trace->header().target.file_name != model) continue;
    try {
      std::vector<uint64_t> ids;
      for (const ReplyPart& part : parts_of(*message)) ids.push_back(part.reply_id);
      view.rounds.live->restore(ids, message->result.value_or(ReplyFinished()), trace);
      rounds_kept_.insert(ids.begin(), ids.end());
    } catch (const Error& e) {
      if (left_out++ == 0) problem = e.what();
    }
  }
  if (view.model && view.rounds.live->fits(*view.model)) update(view.rounds, Event(*view.model));
  if (view.rounds.log == view.rounds.live) update(view.rounds, FollowRounds{});
  show_rounds_of_branch(view);
  if (left_out == 0) return;
  warn(view, "Passes of this chat cannot be shown",
       problem + (left_out > 1 ? " So it is with " + std::to_string(left_out - 1) + " more." : "") +
           " Its text is whole.");
}

/// Opens the file of the shown chat, or a new one where that cannot be. little: all that is new is its name, its pin or
/// the path on show, for which no copy is made: then there may be no file.
void ChatDesk::open_file(ViewModel& view, Conversation& chat, bool little) {
  std::error_code error;
  const auto path = store_->path_of(chat.id);
  if (!chat.id.empty() && !fs::exists(path, error)) {
    if (little) return say_gone(view);
    view.chat.note = "Another window deleted this chat: it is kept as a new one.";
  } else if (!chat.id.empty()) {
    file_ = ChatFile::open(path);
    if (file_) {
      // Check that no other window has written to the file since it was read here. A name, a pin and the path on show
      // are taken over.
      uint64_t unused = 0;
      const JournalRead now = read_journal(read_small_file(path, kLargestImport), unused);
      JournalMark read = mark_of(now.conversation);
      adopt(chat, {read.title, read.pinned});
      mark_.leaf = read.leaf;
      if (now.problem.empty() && read == mark_) return;
      file_.reset();
    } else if (little) {
      if (chat.title != mark_.title || chat.pinned != mark_.pinned)
        view.chat.note = "This chat is open in another window. Change it there.";
      chat.title = mark_.title;
      chat.pinned = mark_.pinned;
      return;
    }
    view.chat.note = "Another window wrote to this chat: what you add goes to a copy.";
    chat.title = chat.shown_title() + " (copy)";
  }
  mark_ = {};
  gone_ = false;
  rounds_kept_.clear();
  chat.id = store_->new_id(view.chat.now_ms);
  file_ = ChatFile::create(store_->path_of(chat.id));
}

void ChatDesk::write(ViewModel& view, Conversation& chat) {
  if (chat.nodes().empty()) return;
  try {
    // A chat without changes is not opened for writing, so that another window can write to it.
    bool little = false;
    if (!file_ && !chat.id.empty()) {
      JournalMark mark = mark_;
      if (journal_lines(chat, mark).empty()) return;
      mark.title = mark_.title;
      mark.pinned = mark_.pinned;
      mark.leaf = mark_.leaf;
      little = mark == mark_;
    }
    if (!file_) open_file(view, chat, little);
    if (!file_) return;
    JournalMark mark = mark_;
    const std::string lines = journal_lines(chat, mark);
    if (lines.empty()) return;
    unlisted_ |= mark.nodes != mark_.nodes || mark.title != mark_.title || mark.pinned != mark_.pinned;
    file_->append(lines);
    mark_ = std::move(mark);
    failing_ = false;
    if (!unlisted_ || view.busy()) return;
    store_->announce();
    refresh(view);
  } catch (const Error& e) {
    if (!std::exchange(failing_, true))
      warn(view, "The chat is not saved",
           std::string(e.what()) + " It stays here until the window is closed, and saving is tried again.");
  }
}

void ChatDesk::close(ViewModel& view, Conversation& closed, const LiveLog& rounds) {
  if (store_) {
    write(view, closed);
    keep_rounds(view, closed, rounds);
  }
  file_.reset();
  rounds_kept_.clear();
  mark_ = {};
  gone_ = false;
}

void ChatDesk::refresh(ViewModel& view) {
  if (!store_) return;
  view.chat.listings = store_->list(view.chat.search);
  unlisted_ = false;
}

void ChatDesk::show(ViewModel& view, Conversation next, Effects& effects) {
  Effects shown = show_conversation(view, std::move(next));
  if (shown.closed) close(view, *shown.closed, *shown.closed_rounds);
  for (Command& each : shown.engine) effects.engine.push_back(std::move(each));
  mark_ = view.messages.id.empty() ? JournalMark{} : mark_of(view.messages);
  refresh(view);
}

void ChatDesk::remove(ViewModel& view, const std::string& id, Effects& effects) {
  const auto& all = view.chat.listings;
  const auto listing = std::find_if(all.begin(), all.end(), [&](const ChatListing& l) { return l.id == id; });
  std::optional<ChatListing> deleted;
  if (listing != all.end()) deleted = *listing;
  if (view.messages.id == id) show(view, Conversation{}, effects);
  store_->remove(id);
  effects.engine.push_back(ForgetReplies{id});
  view.chat.deleted = std::move(deleted);
  view.chat.note = "Chat deleted";
  refresh(view);
}

/// Changes a chat that is not on show; update() has changed the one that is.
void ChatDesk::change(ViewModel& view, const std::string& id, const std::function<void(Conversation&)>& how) {
  if (!store_ || id.empty() || id == view.messages.id) return;
  store_->edit(id, how);
  refresh(view);
}

void ChatDesk::attach(ViewModel& view, const std::vector<std::string>& paths) {
  constexpr size_t kMostSaid = 3;
  auto& files = view.chat.attachments;
  std::vector<std::string> problems, left_out;
  for (const std::string& path : paths) {
    try {
      if (files.size() >= kMostAttachments) {
        left_out.push_back(file_name(path));
        continue;
      }
      Attachment file = read_attachment(path);
      const auto same = [&](const Attachment& each) { return each.name == file.name && each.text == file.text; };
      if (std::ranges::any_of(files, same)) throw bad_input("\"" + file.name + "\" is attached already.");
      files.push_back(std::move(file));
    } catch (const Error& e) {
      problems.push_back(e.what());
    }
  }
  std::string& said = view.chat.attach_problem;  // shown by the composer
  said.clear();
  if (!left_out.empty())
    said = "A question can have " + std::to_string(kMostAttachments) + " files; left out: " + listed(left_out) + ".";
  for (size_t i = 0; i < std::min(problems.size(), kMostSaid); ++i) said += (said.empty() ? "" : " ") + problems[i];
  if (problems.size() > kMostSaid) said += " So it is with " + std::to_string(problems.size() - kMostSaid) + " more.";
}

void ChatDesk::command(ViewModel& view, const ChatCommand& command, Effects& effects) {
  if (const auto* open = std::get_if<OpenChat>(&command)) {
    if (!store_ || open->id == view.messages.id) return;
    ChatStore::Loaded loaded = store_->load(open->id, view.last_id);
    show(view, std::move(loaded.conversation), effects);
    restore_rounds(view, loaded.rounds);
    if (!loaded.damage.empty()) warn(view, "A chat's file is damaged", loaded.damage);
    if (!loaded.note.empty()) view.chat.note = loaded.note;
  } else if (const auto* remove_chat = std::get_if<DeleteChat>(&command)) {
    if (store_) remove(view, remove_chat->id, effects);
  } else if (std::holds_alternative<UndoDelete>(command)) {
    if (!store_ || !view.chat.deleted) return;
    store_->restore(view.chat.deleted->id);
    view.chat.deleted.reset();
    view.chat.note.clear();
    refresh(view);
  } else if (const auto* name = std::get_if<RenameChat>(&command)) {
    change(view, name->id, [&](Conversation& chat) { chat.title = name->title; });
  } else if (const auto* pin = std::get_if<PinChat>(&command)) {
    change(view, pin->id, [&](Conversation& chat) { chat.pinned = pin->pinned; });
  } else if (const auto* file = std::get_if<AttachFile>(&command)) {
    attach(view, {file->path});
  } else if (const auto* search = std::get_if<SearchChats>(&command)) {
    view.chat.search = search->text;
    refresh(view);
  } else if (const auto* out = std::get_if<ExportChat>(&command)) {
    const bool markdown = out->format == ExportFormat::markdown;
    require_not_in_use(view, out->path);
    write_file_atomically(out->path, markdown ? markdown_of(view.conversation()) : json_of(view.conversation()),
                          PipeWithoutReader::refuse);
    view.chat.note = "Saved " + file_name(out->path) + " in " + std::filesystem::path(out->path).parent_path().string();
    view.chat.files = ChatFiles::closed;
  } else if (const auto* in = std::get_if<ImportChat>(&command)) {
    show(view, conversation_from(read_small_file(in->path, kLargestImport), view.last_id), effects);
    view.chat.note = "Imported " + file_name(in->path);
    view.chat.files = ChatFiles::closed;
  }
}

void ChatDesk::run(ViewModel& view, const UiCommand& command, Effects& effects) {
  if (effects.closed) close(view, *effects.closed, *effects.closed_rounds);
  if (const auto* chat = std::get_if<ChatCommand>(&command)) {
    try {
      this->command(view, *chat, effects);
    } catch (const Error& e) {
      const bool import = std::holds_alternative<ImportChat>(*chat),
                 exported = std::holds_alternative<ExportChat>(*chat);
      const bool removed = std::holds_alternative<DeleteChat>(*chat);
      const bool changed = std::holds_alternative<RenameChat>(*chat) || std::holds_alternative<PinChat>(*chat);
      refresh(view);  // another window may have been first
      if ((import || exported) && view.chat.files != ChatFiles::closed)
        // No card: the dialog in which the path was typed is still open and shows this.
        view.chat.files_problem = e.what();
      else
        warn(view,
             import     ? "The chat cannot be imported"
             : exported ? "The chat cannot be exported"
             : removed  ? "The chat cannot be deleted"
             : changed  ? "The chat cannot be changed"
                        : "The chat cannot be opened",
             e.what());
    }
  }
  keep(view);
}

}  // namespace canopy::app
