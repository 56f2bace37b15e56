#include "app/state/hub.h"

#include <algorithm>

#include "app/state/view_model.h"
#include "engine/base/figures.h"

namespace canopy::app {
namespace {

HubDownload* download_of(HubState& state, uint64_t id) {
  const auto found = std::ranges::find(state.downloads, id, &HubDownload::id);
  return found == state.downloads.end() ? nullptr : &*found;
}

/// Lists a download, or goes on with the one of that name. Nothing where it is under way or there.
void list_download(HubState& state, const std::string& name, const std::string& drafter, HubWish& wish,
                   uint64_t& last_id) {
  if (!parse_hub_name(name)) return;
  const auto known = std::ranges::find(state.downloads, name, &HubDownload::name);
  if (known == state.downloads.end()) {
    state.downloads.push_back({++last_id, name, drafter, HubDownload::Phase::waits, {}, "", ""});
    wish.fetch.push_back({last_id, name});
    return;
  }
  if (!drafter.empty()) known->drafter = drafter;
  if (known->is_under_way() || known->phase == HubDownload::Phase::there) return;
  known->id = ++last_id;  // what its last attempt still says is not about this one
  known->phase = HubDownload::Phase::waits;
  known->problem.clear();
  wish.fetch.push_back({known->id, name});
}

void stop_downloads(HubState& state, uint64_t id, HubWish& wish) {
  for (HubDownload& each : state.downloads) {
    if ((id != 0 && each.id != id) || !each.is_under_way()) continue;
    each.phase = HubDownload::Phase::stopped;
    each.progress.waiting.clear();
    wish.stop.push_back(each.id);
  }
}

HubWish question_of(HubState& state, std::variant<SearchHub, LookIntoRepo> what, const HubHere& here) {
  HubWish wish;
  wish.ask = HubQuestion{++state.asked, std::move(what), here};
  return wish;
}

std::string without_choice(const std::string& name) {
  return name.substr(0, name.find(':'));
}

void take_news(HubState& state, HubSearched news) {
  if (news.number != state.asked) return;
  state.searching = false;
  state.searched = true;
  state.found = std::move(news.found);
  state.search_problem = std::move(news.problem);
  state.unreachable = news.unreachable;
}

void take_news(HubState& state, HubRead news) {
  if (news.number != state.asked) return;
  state.reading = false;
  state.repo_problem = std::move(news.problem);
  state.unreachable = news.unreachable;
  if (state.repo_problem.empty())
    state.contents = std::move(news.contents);
  else
    state.contents.reset();
}

void take_news(HubState& state, PairsRead news) {
  state.pairs = std::move(news.pairs);
  state.pairs_problem = std::move(news.problem);
  state.folder = std::move(news.folder);
  state.free_bytes = news.free_bytes;
}

const HubDownload* take_news(HubState& state, DownloadNews news) {
  if (news.free_bytes) state.free_bytes = news.free_bytes;
  HubDownload* download = download_of(state, news.id);
  // What was stopped may have been done before the wish reached it.
  const bool stopped = download != nullptr && download->phase == HubDownload::Phase::stopped;
  if (download == nullptr || (stopped && news.phase != HubDownload::Phase::there)) return nullptr;
  if (news.phase == HubDownload::Phase::runs) {
    download->phase = news.phase;
    download->progress = std::move(news.progress);
    if (download->progress.total > 0) state.unreachable = false;
    return nullptr;
  }
  download->phase = news.phase;
  download->problem = std::move(news.problem);
  download->path = std::move(news.path);
  if (news.phase != HubDownload::Phase::stopped) state.unreachable = news.unreachable;
  return news.phase == HubDownload::Phase::stopped ? nullptr : download;
}

}  // namespace

bool HubState::downloading() const {
  return std::ranges::any_of(downloads, &HubDownload::is_under_way);
}

HubWish update(HubState& state, const HubCommand& command, const HubHere& here, uint64_t& last_id) {
  HubWish wish;
  if (const auto* search = std::get_if<SearchHub>(&command)) {
    if (search->words.find_first_not_of(' ') == std::string::npos) return wish;
    state.words = search->words;
    state.repo.clear();
    state.contents.reset();
    state.repo_problem.clear();
    state.reading = false;
    state.searching = true;
    return question_of(state, *search, here);
  }
  if (const auto* look = std::get_if<LookIntoRepo>(&command)) {
    state.repo = look->repo;
    state.contents.reset();
    state.repo_problem.clear();
    state.searching = false;
    state.reading = !look->repo.empty();
    if (state.reading) return question_of(state, *look, here);
    ++state.asked;  // an answer that is on its way is not wanted any more
    wish.forget_question = true;
  }
  if (const auto* wanted = std::get_if<FetchModel>(&command)) {
    list_download(state, wanted->name, wanted->drafter, wish, last_id);
    if (!wanted->drafter.empty()) list_download(state, wanted->drafter, "", wish, last_id);
  }
  if (const auto* which = std::get_if<StopFetching>(&command)) stop_downloads(state, which->id, wish);
  if (const auto* which = std::get_if<GoOnFetching>(&command)) {
    if (const HubDownload* download = download_of(state, which->id))
      list_download(state, std::string(download->name), "", wish, last_id);
  }
  if (const auto* which = std::get_if<ForgetDownload>(&command)) {
    stop_downloads(state, which->id == 0 ? UINT64_MAX : which->id, wish);
    std::erase_if(state.downloads, [&](const HubDownload& each) { return each.id == which->id; });
  }
  if (std::holds_alternative<LookAtPairs>(command)) wish.pairs = here;
  return wish;
}

const HubDownload* update(HubState& state, HubNews news) {
  return std::visit(Cases{
                        [&](DownloadNews& each) { return take_news(state, std::move(each)); },
                        [&](auto& each) -> const HubDownload* {
                          take_news(state, std::move(each));
                          return nullptr;
                        },
                    },
                    news);
}

HubHere hub_here(const ViewModel& view) {
  HubHere here;
  const bool loaded = view.model && view.model_state != ModelState::none && view.models.memory.budget > 0;
  const DeviceChoice* device = nullptr;
  for (const DeviceChoice& each : view.devices) {
    const bool chosen = view.device_selector.empty() ? each.preferred : each.selector == view.device_selector;
    if (each.usable && (chosen || (device == nullptr && view.device_selector.empty()))) device = &each;
  }
  if (device != nullptr) {
    here = {device->name, device->memory_bytes, is_on_processor(device->type)};
  }
  if (loaded && (device == nullptr || view.model->device == device->name)) {
    here.device = view.model->device;
    here.available = after_release(view.models.memory).available;
    here.processor = is_on_processor(view.model->device_type);
  }
  return here;
}

const HubDownload* fetched(const HubState& state, const std::string& name) {
  const auto found = std::ranges::find_if(state.downloads, [&](const HubDownload& each) {
    return each.name == name && each.phase == HubDownload::Phase::there;
  });
  return found == state.downloads.end() ? nullptr : &*found;
}

std::string drafter_there(const HubState& state, const std::vector<FoundModel>& found, const std::string& model) {
  std::vector<KnownPair> pairs;
  for (const PairOffer& each : state.pairs) pairs.push_back(each.pair);
  for (const KnownPair& pair : pairs_for(pairs, without_choice(model))) {
    if (pair.drafter.repo.empty()) continue;
    if (const HubDownload* download = fetched(state, pair.drafter.repo)) return download->path;
    const auto there = std::ranges::find_if(found, [&](const FoundModel& each) {
      return each.problem.empty() && without_choice(each.name) == pair.drafter.repo;
    });
    if (there != found.end()) return there->path;
  }
  return "";
}

std::string download_words(const HubDownload& download) {
  const DownloadProgress& progress = download.progress;
  switch (download.phase) {
    case HubDownload::Phase::waits: return "Waits for the download before it";
    case HubDownload::Phase::there: return "It is there";
    case HubDownload::Phase::failed: return download.problem;
    case HubDownload::Phase::stopped:
      return (progress.total > 0 ? "Stopped at " + canopy::progress_figures(progress.done, progress.total, true, -1)
                                 : std::string("Stopped")) +
             "; it goes on from there";
    case HubDownload::Phase::runs: break;
  }
  if (progress.total == 0) return "Asking the hub";
  std::string words = canopy::progress_figures(progress.done, progress.total, true, -1);
  if (!progress.waiting.empty()) return words + "; " + progress.waiting;
  if (progress.bytes_per_second > 0)
    words += ", " + byte_figures(static_cast<uint64_t>(progress.bytes_per_second)) + "/s";
  if (progress.seconds_left) words += ", " + duration_figures(*progress.seconds_left) + " left";
  return words;
}

float download_share(const HubDownload& download) {
  if (download.phase == HubDownload::Phase::there) return 1;
  if (download.progress.total == 0) return -1;
  return static_cast<float>(static_cast<double>(download.progress.done) / static_cast<double>(download.progress.total));
}

std::vector<UnfinishedDownload> unfinished(const HubState& state) {
  std::vector<UnfinishedDownload> kept;
  for (const HubDownload& each : state.downloads)
    if (each.phase != HubDownload::Phase::there && kept.size() < kKeptDownloads)
      kept.push_back({each.name, each.drafter});
  return kept;
}

void restore(HubState& state, const std::vector<UnfinishedDownload>& kept, uint64_t& last_id) {
  for (const UnfinishedDownload& each : kept)
    state.downloads.push_back({++last_id, each.name, each.drafter, HubDownload::Phase::stopped, {}, "", ""});
}

}  // namespace canopy::app
