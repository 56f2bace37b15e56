#include "app/state/chat_desk.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <variant>

#include "app/conversation/attached_text.h"
#include "app/conversation/chat_export.h"
#include "app/rounds/reply_trace.h"
#include "app/state/chat_update.h"
#include "engine/base/atomic_file.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/paths.h"

namespace canopy::app {
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
    if (node == nodes.end() || node->message.writing || !node->message.result) continue;
    for (const ReplyPart& part : parts_of(node->message)) rounds_kept_.insert(part.reply_id);
    const std::vector<ReplyToKeep> parts = replies_of(log, node->message);
    if (parts.empty()) continue;
    const auto folder = store_->rounds_of(chat.id);
    const std::string problem = write_reply_trace(folder, static_cast<uint32_t>(node - nodes.begin()), log, parts);
    if (!problem.empty())
      warn(view, "The rounds of a reply are not saved",
           problem + (failing_ ? " Its tree can be seen until the chat is left."
                               : " The chat itself is; its tree can be seen until the chat is left."));
    limit_reply_traces(folder);
  }
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
      view.rounds.live->restore(ids, message->result ? message->result->ar_tokens_per_second : 0, trace);
      rounds_kept_.insert(ids.begin(), ids.end());
    } catch (const Error& e) {
      if (left_out++ == 0) problem = e.what();
    }
  }
  if (view.model && view.rounds.live->fits(*view.model)) update(view.rounds, Event(*view.model));
  if (view.rounds.log == view.rounds.live) update(view.rounds, FollowRounds{});
  if (left_out == 0) return;
  warn(view, "Rounds of this chat cannot be shown",
       problem + (left_out > 1 ? " So it is with " + std::to_string(left_out - 1) + " more." : "") +
           " Its text is whole.");
}

void ChatDesk::open_file(ViewModel& view, Conversation& chat) {
  if (!chat.id.empty()) {
    const auto path = store_->path_of(chat.id);
    file_ = ChatFile::open(path);
    if (file_) {
      // Check that no other window has written to the file since it was read here.
      uint64_t unused = 0;
      const JournalRead now = read_journal(read_small_file(path, kLargestImport), unused);
      if (now.problem.empty() && mark_of(now.conversation) == mark_) return;
      file_.reset();
    }
    view.chat.note = "Another window wrote to this chat: what you add goes to a copy.";
    chat.title = chat.shown_title() + " (copy)";
  }
  mark_ = {};
  rounds_kept_.clear();
  chat.id = store_->new_id(view.chat.now_ms);
  file_ = ChatFile::create(store_->path_of(chat.id));
}

void ChatDesk::write(ViewModel& view, Conversation& chat) {
  if (chat.nodes().empty()) return;
  try {
    // A chat without changes is not opened for writing, so that another window can write to it.
    if (!file_ && !chat.id.empty()) {
      JournalMark mark = mark_;
      if (journal_lines(chat, mark).empty()) return;
    }
    if (!file_) open_file(view, chat);
    JournalMark mark = mark_;
    const std::string lines = journal_lines(chat, mark);
    if (lines.empty()) return;
    unlisted_ |= mark.nodes != mark_.nodes || mark.title != mark_.title;
    file_->append(lines);
    mark_ = std::move(mark);
    failing_ = false;
    if (unlisted_ && !view.busy()) refresh(view);
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
  view.chat.deleted = std::move(deleted);
  view.chat.note = "Chat deleted";
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
      if ((import || exported) && view.chat.files != ChatFiles::closed)
        // No card: the dialog in which the path was typed is still open and shows this.
        view.chat.files_problem = e.what();
      else
        warn(view,
             import     ? "The chat cannot be imported"
             : exported ? "The chat cannot be exported"
             : removed  ? "The chat cannot be deleted"
                        : "The chat cannot be opened",
             e.what());
    }
  }
  keep(view);
}

}  // namespace canopy::app
