#include "app/state/hub_desk.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/hub/hub_cache.h"
#include "engine/hub/pairs.h"

namespace canopy::app {
namespace {

// Somebody waits at the screen for these, so that trouble is said soon; a download may take its time.
constexpr uint32_t kTriesOfQuestion = 2;
constexpr auto kBetweenNews = std::chrono::milliseconds(250);
constexpr size_t kMostProblemBytes = 2048;

/// Requests a stop of its own where one of two is requested.
class EitherStop {
 public:
  EitherStop(const std::stop_token& one, const std::stop_token& other)
      : one_(one, Request{&source_}), other_(other, Request{&source_}) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Request {
    std::stop_source* source;
    void operator()() const { source->request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Request> one_, other_;
};

/// What went wrong, as a sentence for the window.
struct Trouble {
  std::string problem;
  bool cancelled = false, unreachable = false;
};

template <class F>
Trouble trouble_in(F&& work) {
  try {
    work();
    return {};
  } catch (...) {
    const Error error = as_error(std::current_exception());
    return {printable(error.what(), kMostProblemBytes, LineBreaks::keep), error.kind() == ErrorKind::cancelled,
            error.kind() == ErrorKind::unavailable};
  }
}

/// Of the disk that a folder is on or would be made on.
std::optional<uint64_t> free_bytes_at(std::filesystem::path folder) {
  if (folder.empty()) return std::nullopt;
  std::error_code error;
  while (!std::filesystem::exists(folder, error) && folder != folder.parent_path()) folder = folder.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  return error ? std::nullopt : std::optional<uint64_t>(space.available);
}

HubClient client_for_questions(const HubPlaceMaker& place, const std::stop_token& stop) {
  HubPlace here = place();
  here.limits.tries = std::min(here.limits.tries, kTriesOfQuestion);
  return {std::move(here.settings), here.limits, stop};
}

HubContents contents_of(const HubListing& listing, const HubCache& cache) {
  const HubVariants variants = hub_variants(listing.files);
  HubContents contents;
  contents.licence = listing.licence;
  contents.heads = variants.heads;
  contents.pairs = pairs_for(known_pairs(), listing.repo);
  for (const HubVariant& variant : variants.models) {
    const bool twice = std::ranges::count(variants.models, variant.label, &HubVariant::label) > 1;
    HubOffer offer{listing.repo + ":" + (twice ? variant.first : variant.label), variant, 0, {}};
    for (const HubFile& file : variant.files) offer.there += cache.bytes_there(file);
    contents.offers.push_back(std::move(offer));
  }
  return contents;
}

}  // namespace

HubPlace usual_hub_place() {
  return {hub_settings(), HubLimits()};
}

struct HubDesk::Shared {
  HubPlaceMaker place;
  std::mutex mutex;
  std::function<void()> wake;
  std::vector<HubNews> news;
  std::map<uint64_t, std::stop_source> stops;  // of downloads that wait or run

  void tell(HubNews latest) {
    const std::lock_guard lock(mutex);
    news.push_back(std::move(latest));
    if (wake) wake();
  }

  void search(const HubQuestion& question, const std::stop_token& stop) {
    HubSearched answer;
    answer.number = question.number;
    const Trouble trouble = trouble_in(
        [&] { answer.found = client_for_questions(place, stop).search(std::get<SearchHub>(question.what).words); });
    if (trouble.cancelled) return;
    answer.problem = trouble.problem;
    answer.unreachable = trouble.unreachable;
    tell(std::move(answer));
  }

  /// Tells what there is at once, and what it takes when the head of a file has been read.
  void look(const HubQuestion& question, const std::stop_token& stop) {
    HubRead answer;
    answer.number = question.number;
    const Trouble trouble = trouble_in([&] {
      HubClient client = client_for_questions(place, stop);
      const HubListing listing = client.list(std::get<LookIntoRepo>(question.what).repo);
      answer.contents = contents_of(listing, HubCache(client.settings().cache, listing.repo));
      HubContents& contents = answer.contents;
      if (contents.offers.empty()) return;
      contents.weighing = true;
      tell(answer);
      const Trouble unweighed = trouble_in([&] {
        const ModelConfig config = client.config_of(listing, contents.offers.front().variant);
        for (HubOffer& offer : contents.offers)
          offer.weight = weigh(config, offer.variant.bytes(), offer.variant.label, question.here);
      });
      contents.weighing = false;
      contents.unweighed = unweighed.problem;
      if (unweighed.cancelled) throw cancelled(unweighed.problem);
    });
    if (trouble.cancelled) return;
    answer.problem = trouble.problem;
    answer.unreachable = trouble.unreachable;
    tell(std::move(answer));
  }

  void read_pairs_for(const HubHere& here, const std::stop_token& stop) {
    PairsRead answer;
    answer.problem = trouble_in([&] {
                       for (const KnownPair& pair : known_pairs()) {
                         if (stop.stop_requested()) return;
                         answer.pairs.push_back(weigh_pair(pair, here));
                       }
                     }).problem;
    trouble_in([&] {  // where the environment is wrong, the first question says so
      const std::filesystem::path folder = place().settings.cache;
      answer.folder = folder.string();
      answer.free_bytes = free_bytes_at(folder);
    });
    tell(std::move(answer));
  }

  void fetch(const HubFetch& wanted, const std::stop_token& stop) {
    DownloadNews end;
    end.id = wanted.id;
    end.phase = HubDownload::Phase::there;
    const Trouble trouble = trouble_in([&] {
      if (stop.stop_requested()) throw cancelled("It was stopped before it began.");
      tell(DownloadNews{wanted.id, HubDownload::Phase::runs, {}, "", "", false, {}});
      const HubPlace here = place();
      const HubName name = parse_hub_name(wanted.name).value();
      HubClient client(here.settings, here.limits, stop);
      const HubListing listing = client.list(name.repo);
      const HubVariant chosen = choose_variant(name, hub_variants(listing.files)).variant;
      auto told = std::chrono::steady_clock::time_point();
      const std::filesystem::path snapshot =
          client.download(listing, chosen.files, [&](const DownloadProgress& progress) {
            const auto now = std::chrono::steady_clock::now();
            if (now - told < kBetweenNews) return;
            told = now;
            tell(DownloadNews{wanted.id, HubDownload::Phase::runs, progress, "", "", false, {}});
          });
      end.path = (chosen.is_folder() ? snapshot : snapshot / chosen.first).string();
      end.free_bytes = free_bytes_at(here.settings.cache);
    });
    if (!trouble.problem.empty())
      end.phase = trouble.cancelled ? HubDownload::Phase::stopped : HubDownload::Phase::failed;
    end.problem = trouble.cancelled ? "" : trouble.problem;
    end.unreachable = trouble.unreachable;
    {
      const std::lock_guard lock(mutex);
      stops.erase(wanted.id);
    }
    tell(std::move(end));
  }
};

HubDesk::HubDesk(HubPlaceMaker place)
    : shared_(std::make_shared<Shared>()),
      questions_(
          [shared = shared_](const Stoppable& asked, const std::stop_token& stop) {
            const EitherStop either(stop, asked.stop);
            if (std::holds_alternative<SearchHub>(asked.question.what))
              shared->search(asked.question, either.token());
            else
              shared->look(asked.question, either.token());
            return std::monostate();
          },
          Waiting::is_dropped),
      pairs_(
          [shared = shared_](const HubHere& here, const std::stop_token& stop) {
            shared->read_pairs_for(here, stop);
            return std::monostate();
          },
          Waiting::is_dropped),
      downloads_(
          [shared = shared_](const Download& download, const std::stop_token& stop) {
            const EitherStop either(stop, download.stop);
            shared->fetch(download.fetch, either.token());
            return std::monostate();
          },
          Waiting::is_answered) {
  shared_->place = std::move(place);
}

HubDesk::~HubDesk() {
  question_.request_stop();
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = {};
  for (auto& [id, stop] : shared_->stops) stop.request_stop();
}

void HubDesk::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(shared_->mutex);
  shared_->wake = std::move(wake);
}

void HubDesk::start(const HubWish& wish) {
  if (wish.ask || wish.forget_question) question_.request_stop();
  if (wish.ask) {
    question_ = std::stop_source();
    questions_.ask({*wish.ask, question_.get_token()});
  }
  if (wish.pairs) pairs_.ask(*wish.pairs);
  for (const uint64_t id : wish.stop) {
    const std::lock_guard lock(shared_->mutex);
    const auto found = shared_->stops.find(id);
    if (found != shared_->stops.end()) found->second.request_stop();
  }
  for (const HubFetch& each : wish.fetch) {
    std::stop_token stop;
    {
      const std::lock_guard lock(shared_->mutex);
      stop = shared_->stops[each.id].get_token();
    }
    downloads_.ask({each, stop});
  }
}

std::vector<HubNews> HubDesk::take() {
  questions_.take();
  pairs_.take();
  downloads_.take();
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->news, {});
}

}  // namespace canopy::app
