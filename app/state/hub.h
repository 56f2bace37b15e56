#pragma once
// Models of a hub in the window: what was searched for and found, what a repository has, pairs that are known to fit,
// and downloads. Pure; the threads that ask the hub are in hub_desk.h. Nothing is asked without a click.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/state/hub_fit.h"
#include "app/state/model_finder.h"
#include "app/state/settings.h"
#include "engine/hub/hub_client.h"
#include "engine/hub/hub_files.h"

namespace canopy::app {

struct ViewModel;

/// The small model that can be fetched where none came with the program: a folder of safetensors, Apache-2.0.
inline constexpr const char* kSmallModel = "HuggingFaceTB/SmolLM2-135M-Instruct";
inline constexpr uint64_t kSmallModelBytes = 275'000'000;  // about: its weights, its tokenizer

/// A model of a repository at one quantization.
struct HubOffer {
  std::string name;  // that fetches it, as HubName::text()
  HubVariant variant;
  uint64_t there = 0;  // bytes of it that were fetched before
  HubWeight weight;    // known a little later than the rest
};

/// What a repository has.
struct HubContents {
  std::string licence;  // empty: it does not say
  std::vector<HubOffer> offers;
  std::vector<HubFile> heads;    // for guesses, each to be fetched on its own
  std::vector<KnownPair> pairs;  // with drafters that are known to fit it
  bool weighing = false;         // what fits is being found out
  std::string unweighed;         // why it cannot be told, as a sentence; else empty
};

/// One download, or one that was stopped and can go on.
struct HubDownload {
  enum class Phase {
    waits,  // for those before it
    runs,
    stopped,
    failed,
    there,
  };
  uint64_t id = 0;
  std::string name;     // HubName::text()
  std::string drafter;  // that was fetched for it, likewise; empty: none
  Phase phase = Phase::waits;
  DownloadProgress progress;
  std::string problem;  // why it failed, as a sentence
  std::string path;     // to be opened, once it is there
  bool is_under_way() const { return phase == Phase::waits || phase == Phase::runs; }
};

struct HubState {
  std::string words;  // that were searched for last
  bool searching = false, searched = false;
  std::vector<HubFound> found;
  std::string search_problem;

  std::string repo;  // that is looked into; empty: none
  bool reading = false;
  std::optional<HubContents> contents;
  std::string repo_problem;

  std::vector<PairOffer> pairs;
  std::string pairs_problem;
  std::string folder;                  // where downloads go
  std::optional<uint64_t> free_bytes;  // of its disk
  bool unreachable = false;            // the hub did not answer when it was asked last

  std::vector<HubDownload> downloads;  // in the order in which they were asked for
  uint64_t asked = 0;                  // number of the last question; answers to older ones are dropped

  bool downloading() const;
};

// The commands of the user.

struct SearchHub {
  std::string words;
};
struct LookIntoRepo {
  std::string repo;  // empty: back to what was found
};
struct FetchModel {
  std::string name;     // HubName::text()
  std::string drafter;  // likewise, to be fetched behind it; empty: none
};
struct StopFetching {  // what came stays
  uint64_t id = 0;     // 0: all
};
struct GoOnFetching {
  uint64_t id = 0;
};
struct ForgetDownload {  // takes it off the list, and nothing from the disk
  uint64_t id = 0;
};
struct OpenWithDrafter {  // opens a model, and leaves the page
  std::string path;
  std::string drafter;  // path; empty: the usual one
};
struct LookAtPairs {};  // what is known without the network: the pairs, and the room on the disk

using HubCommand = std::variant<SearchHub, LookIntoRepo, FetchModel, StopFetching, GoOnFetching, ForgetDownload,
                                OpenWithDrafter, LookAtPairs>;

// What the threads are asked for, and what they say.

struct HubQuestion {
  uint64_t number = 0;
  std::variant<SearchHub, LookIntoRepo> what;
  HubHere here;
};

struct HubSearched {
  uint64_t number = 0;
  std::vector<HubFound> found;
  std::string problem;
  bool unreachable = false;
};
struct HubRead {  // what a repository has, first without its weights
  uint64_t number = 0;
  HubContents contents;
  std::string problem;
  bool unreachable = false;
};
struct PairsRead {
  std::vector<PairOffer> pairs;
  std::string problem;
  std::string folder;
  std::optional<uint64_t> free_bytes;
};
struct DownloadNews {
  uint64_t id = 0;
  HubDownload::Phase phase = HubDownload::Phase::runs;
  DownloadProgress progress;  // while it runs
  std::string path, problem;
  bool unreachable = false;
  std::optional<uint64_t> free_bytes;
};
using HubNews = std::variant<HubSearched, HubRead, PairsRead, DownloadNews>;

/// A download for the thread.
struct HubFetch {
  uint64_t id = 0;
  std::string name;
};

/// What a command asks of the threads.
struct HubWish {
  std::optional<HubQuestion> ask = {};
  bool forget_question = false;  // its answer is not needed any more
  std::optional<HubHere> pairs = {};
  std::vector<HubFetch> fetch = {};
  std::vector<uint64_t> stop = {};
};

/// Applies a command; `last_id` numbers downloads. OpenWithDrafter is the window's.
HubWish update(HubState& state, const HubCommand& command, const HubHere& here, uint64_t& last_id);

/// Applies what a thread said. Returns the download that has just ended by it, well or not; null where none has.
const HubDownload* update(HubState& state, HubNews news);

/// The device that a model would be opened on, with the memory that the loaded one would give back.
HubHere hub_here(const ViewModel& view);

/// The download of that name that is there; null where there is none.
const HubDownload* fetched(const HubState& state, const std::string& name);

/// The path of a known drafter for a model that is called so ("Qwen/Qwen3-8B-GGUF:Q4_K_M"), among the models of this
/// computer; empty where none is there.
std::string drafter_there(const HubState& state, const std::vector<FoundModel>& found, const std::string& model);

/// "1.2 of 4.7 GB, 31 MB/s, 1 min 50 s left", "waits for the one before it", "stopped; what came stays".
std::string download_words(const HubDownload& download);
/// In [0, 1]; negative where it is not known.
float download_share(const HubDownload& download);

// Downloads that have not come to their end, as settings.json keeps them.

std::vector<UnfinishedDownload> unfinished(const HubState& state);
/// Lists them as stopped.
void restore(HubState& state, const std::vector<UnfinishedDownload>& kept, uint64_t& last_id);

}  // namespace canopy::app
