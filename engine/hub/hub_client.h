#pragma once
// A hub that speaks Hugging Face's interface: what a repository holds, search, and downloads into the shared cache.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/model_config.h"
#include "engine/hub/hub_files.h"
#include "engine/hub/transfers.h"

namespace canopy {

/// Where models are fetched from and kept, as Hugging Face's tools take it from the environment.
struct HubSettings {
  std::string endpoint;         // $HF_ENDPOINT, or https://huggingface.co; without a slash at its end
  std::string token;            // $HF_TOKEN; sent to the endpoint alone, and over plain http only on this machine
  std::filesystem::path cache;  // hub_cache_folder()
  bool offline = false;         // $HF_HUB_OFFLINE
};
/// Throws bad_input for an HF_ENDPOINT that is no address and a token that cannot be one.
HubSettings hub_settings();

struct HubLimits {
  TransferLimits transfer;
  uint32_t tries = 5;           // of one part, before giving up
  double first_wait_s = 1;      // before the second try; doubled each time
  double longest_wait_s = 300;  // that a server may ask for
  uint32_t connections = 4;
  uint64_t part_bytes = uint64_t{8} << 20;  // that a connection fetches at a time
};

struct HubListing {
  std::string repo;
  std::string revision;  // that was asked for: "main"
  std::string commit;
  std::string licence;  // as the repository says; empty where it does not
  std::vector<HubFile> files;
};

struct HubFound {
  std::string repo;
  uint64_t downloads = 0;  // of the last month, as the hub counts
  uint64_t likes = 0;
  std::string licence;  // empty: not told
  bool gguf = false;    // has GGUF files
  bool gated = false;   // its terms must be accepted there
};

struct DownloadProgress {
  std::string file;                    // that is being fetched; its name alone
  uint64_t done = 0, total = 0;        // bytes of all files
  double bytes_per_second = 0;         // 0: not known yet
  std::optional<double> seconds_left;  // likewise
  std::string waiting;                 // why nothing comes at the moment, as a sentence; else empty
};

/// Asks one hub. Belongs to one thread. Everything throws bad_input for what is wrong or not there, with what to do;
/// unavailable where the hub does not answer, answers nonsense or refuses; cancelled within a moment of `stop`.
class HubClient {
 public:
  HubClient(HubSettings settings, const HubLimits& limits, std::stop_token stop = {});

  const HubSettings& settings() const { return settings_; }

  /// What a repository holds at a branch, tag or commit.
  HubListing list(const std::string& repo, const std::string& revision = "main");

  /// Repositories with these words in their names, the most fetched first.
  std::vector<HubFound> search(const std::string& words, uint32_t most = 20);

  /// The first bytes of a file, at most `most`: what its head says can be read before it is fetched.
  std::string beginning(const HubListing& listing, const HubFile& file, uint64_t most);

  /// The sizes of a model that is not fetched, from its config.json or the head of its first GGUF file. Throws
  /// bad_input, as for an architecture that is not known.
  ModelConfig config_of(const HubListing& listing, const HubVariant& variant);

  /// Fetches files into the cache and shows them in its snapshot; those that are there are not fetched again. What was
  /// fetched when it fails or is stopped stays, and the next call goes on from there. Returns the snapshot.
  std::filesystem::path download(const HubListing& listing, std::span<const HubFile> files,
                                 const std::function<void(const DownloadProgress&)>& progress = {});

 private:
  class FileDownload;
  struct Answer {
    AnswerHead head;
    std::string body;
  };

  /// The answer to a request of the hub's interface, with redirects followed and trouble waited out.
  Answer ask(const std::string& url, const std::string& what, uint64_t most_bytes, const std::string& range = "");
  std::string token_for(const std::string& url) const;
  std::string file_url(const HubListing& listing, const HubFile& file) const;
  void require_online(const std::string& what) const;
  /// Sleeps, and throws cancelled.
  void pause(double seconds, const std::function<void(double left)>& told = {}) const;
  void require_going() const;
  /// Seconds to wait before another try, by the answer or the number of tries. Throws where it is too long.
  double wait_before(uint32_t tries, const AnswerHead& head) const;
  [[noreturn]] void refuse_status(const AnswerHead& head, const std::string& what, const std::string& repo) const;

  HubSettings settings_;
  HubLimits limits_;
  std::stop_token stop_;
  Transfers transfers_;
};

}  // namespace canopy
