#include "engine/hub/hub_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <system_error>
#include <thread>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/files.h"
#include "engine/base/posix.h"
#include "engine/base/text.h"
#include "engine/format/config_gguf.h"
#include "engine/format/config_hf.h"
#include "engine/format/gguf.h"
#include "engine/format/json_text.h"
#include "engine/hub/hub_cache.h"

namespace canopy {
namespace {

constexpr const char* kHuggingFace = "https://huggingface.co";
constexpr uint64_t kMostListBytes = uint64_t{16} << 20;  // of one page
constexpr int kMostPages = 50;
constexpr size_t kMostRepoFiles = 20'000;
constexpr uint64_t kMostFileBytes = uint64_t{1} << 50;

std::string hub_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_yes(std::string_view value) {
  const std::string text = ascii_upper(value);
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<uint64_t> whole_number(std::string_view text) {
  uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Seconds of a Retry-After header, which is a number or a date.
std::optional<double> asked_wait(const AnswerHead& head) {
  const std::string* text = head.header("retry-after");
  if (text == nullptr) return std::nullopt;
  if (const auto seconds = whole_number(*text)) return static_cast<double>(*seconds);
  const time_t date = curl_getdate(text->c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return std::max(0.0, std::difftime(date, std::time(nullptr)));
}

/// The address of the next page in a Link header: <https://…>; rel="next".
std::string next_page(const AnswerHead& head) {
  const std::string* link = head.header("link");
  if (link == nullptr || link->find("rel=\"next\"") == std::string::npos) return "";
  const size_t begin = link->find('<'), end = link->find('>');
  return begin == std::string::npos || end == std::string::npos || end < begin
             ? ""
             : link->substr(begin + 1, end - begin - 1);
}

uint64_t file_size_of(const JsonFields& fields) {
  const nlohmann::json& size = fields.at("size");
  if (!size.is_number_unsigned() || size.get<uint64_t>() > kMostFileBytes)
    throw bad_input("The field \"size\" of " + fields.what() + " is " + printable(size.dump()) +
                    "; a whole number of bytes is allowed.");
  return size.get<uint64_t>();
}

/// An entry of a tree; its digest is the SHA-256 of a file in large storage, else Git's name of it.
HubFile tree_file(const JsonFields& fields) {
  HubFile file;
  file.path = fields.text("path");
  check_hub_path(file.path);
  file.bytes = file_size_of(fields);
  if (const nlohmann::json* lfs = fields.object("lfs")) {
    const JsonFields large(*lfs, "\"lfs\" of " + fields.what());
    file.digest = large.text("oid");
    file.bytes = file_size_of(large);
    if (file.digest.starts_with("sha256:")) file.digest.erase(0, 7);
    if (!is_hex(file.digest, 64)) throw bad_input("The field \"oid\" of " + large.what() + " is no SHA-256.");
  } else {
    file.digest = fields.text("oid");
    if (!is_hex(file.digest, 40)) throw bad_input("The field \"oid\" of " + fields.what() + " is no digest of Git.");
  }
  return file;
}

/// The licence among "license:apache-2.0" and other tags.
std::string licence_of(const JsonFields& fields) {
  const nlohmann::json* tags = fields.find("tags");
  if (tags == nullptr || !tags->is_array()) return "";
  constexpr std::string_view start = "license:";
  for (const nlohmann::json& tag : *tags)
    if (tag.is_string() && tag.get_ref<const std::string&>().starts_with(start))
      return printable(tag.get_ref<const std::string&>().substr(start.size()), 64);
  return "";
}

/// What a body that is no answer of a hub makes an error of: the hub's, not the user's.
template <class F>
auto read_answer(const std::string& what, F&& read) {
  try {
    return read();
  } catch (const Error& e) {
    throw Error(ErrorKind::unavailable, "The hub's answer about " + what + " cannot be used: " + e.what());
  }
}

/// A file in the folder for temporary ones whose beginning is given and whose rest, as long as it is, takes no room.
class SparseFile {
 public:
  SparseFile(const std::string& start, uint64_t bytes) : SparseFile() {
    write_file_atomically(path_, start);
    std::error_code error;
    std::filesystem::resize_file(path_, bytes, error);
  }
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;
  ~SparseFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  SparseFile() : path_(made()) {}

  static std::filesystem::path made() {
    std::error_code error;
    const NewFile file = make_private_file(std::filesystem::temp_directory_path(error), "canopy-head", ".gguf");
    if (error || file.descriptor < 0)
      throw bad_input("No temporary file can be made; TMPDIR names the folder for such files.");
    ::close(file.descriptor);
    return file.path;
  }

  std::filesystem::path path_;
};

/// A transfer must not outlive what its sink writes to.
struct DropAtEnd {
  Transfers& transfers;
  uint64_t id;
  ~DropAtEnd() { transfers.drop(id); }
};

void check_revision(const std::string& revision) {
  check_hub_path(revision);
  if (revision.front() == '-') throw bad_input(quoted_name(revision) + " is no name of a branch, tag or commit.");
}

}  // namespace

HubSettings hub_settings() {
  HubSettings settings;
  settings.endpoint = hub_variable("HF_ENDPOINT");
  if (settings.endpoint.empty()) settings.endpoint = kHuggingFace;
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  with_context("HF_ENDPOINT", [&] { url_origin(settings.endpoint); });
  settings.token = hub_variable("HF_TOKEN");
  if (std::ranges::any_of(settings.token, [](unsigned char c) { return c <= 32 || c >= 127; }))
    throw bad_input("HF_TOKEN has a character that no token has, such as a space or a line break.");
  settings.cache = hub_cache_folder();
  settings.offline = is_yes(hub_variable("HF_HUB_OFFLINE"));
  return settings;
}

HubClient::HubClient(HubSettings settings, const HubLimits& limits, std::stop_token stop)
    : settings_(std::move(settings)), limits_(limits), stop_(std::move(stop)), transfers_(limits.transfer) {}

std::string HubClient::token_for(const std::string& url) const {
  const UrlOrigin origin = url_origin(url);
  const bool hidden = origin.scheme == "https" || is_this_machine(origin.host);
  return hidden && origin == url_origin(settings_.endpoint) ? settings_.token : "";
}

std::string HubClient::file_url(const HubListing& listing, const HubFile& file) const {
  return settings_.endpoint + "/" + url_escaped(listing.repo, true) + "/resolve/" + url_escaped(listing.commit) + "/" +
         url_escaped(file.path, true);
}

void HubClient::require_online(const std::string& what) const {
  if (settings_.offline) throw Error(ErrorKind::unavailable, "HF_HUB_OFFLINE forbids to ask the hub for " + what + ".");
}

void HubClient::require_going() const {
  if (stop_.stop_requested())
    throw cancelled("The download was stopped; what came so far stays, and the same command goes on with it.");
}

void HubClient::pause(double seconds, const std::function<void(double left)>& told) const {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    require_going();
    const double left = seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (left <= 0) return;
    if (told) told(left);
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, 0.1)));
  }
}

double HubClient::wait_before(uint32_t tries, const AnswerHead& head) const {
  const double own = limits_.first_wait_s * static_cast<double>(1u << std::min(tries - 1, 10u));
  const double wait = asked_wait(head).value_or(std::min(own, 60.0));
  if (wait <= limits_.longest_wait_s) return wait;
  throw Error(ErrorKind::unavailable, "The hub asks to wait for " + duration_figures(wait) +
                                          " before the next request (status " + std::to_string(head.status) +
                                          "); try again later.");
}

void HubClient::refuse_status(const AnswerHead& head, const std::string& what, const std::string& repo) const {
  const std::string* code = head.header("x-error-code");
  const std::string kind = code != nullptr ? *code : "";
  const std::string page = settings_.endpoint + "/" + repo;
  const std::string token = settings_.token.empty()
                                ? "set HF_TOKEN to a token of an account that may read it"
                                : "the token in HF_TOKEN must be one of an account that may read it";
  if (!repo.empty() && (kind == "GatedRepo" || head.status == 403))
    throw bad_input(repo + " is gated or forbidden (status " + std::to_string(head.status) + "): accept its terms at " +
                    page + ", and " + token + ".");
  if (kind == "RevisionNotFound") throw bad_input(repo + " has no branch, tag or commit of that name.");
  if (!repo.empty() && (kind == "RepoNotFound" || head.status == 401))
    throw bad_input("The hub knows no public repository " + quoted_name(repo) + " (status " +
                    std::to_string(head.status) + "): check its name; if it is private, " + token + ".");
  if (head.status == 404) throw bad_input("The hub has no " + what + " (status 404).");
  throw Error(ErrorKind::unavailable,
              "The hub answers with the status " + std::to_string(head.status) + " when asked for " + what + ".");
}

ModelConfig HubClient::config_of(const HubListing& listing, const HubVariant& variant) {
  constexpr uint64_t most_config = uint64_t{16} << 20;
  const auto find = [&](const std::string& path) {
    const auto found = std::ranges::find(listing.files, path, &HubFile::path);
    return found == listing.files.end() ? std::string() : beginning(listing, *found, most_config);
  };
  if (variant.is_folder()) return read_hf_config(find("config.json"), find("generation_config.json"));
  const auto file = std::ranges::find(listing.files, variant.first, &HubFile::path);
  if (file == listing.files.end()) throw bad_input(listing.repo + " has no file " + quoted_name(variant.first) + ".");
  // The vocabulary stands before the tensors and takes most of the head; that of the largest has some 30 MB.
  for (const uint64_t most : {uint64_t{8} << 20, uint64_t{64} << 20}) {
    const SparseFile head(beginning(listing, *file, most), file->bytes);
    try {
      return read_gguf_config(GgufFile::open_alone(head.path()));
    } catch (const Error&) {
      if (most >= file->bytes || most > (uint64_t{8} << 20)) throw;
    }
  }
  throw bad_input("The head of " + quoted_name(variant.first) + " is too long.");
}

HubClient::Answer HubClient::ask(const std::string& first_url, const std::string& what, uint64_t most_bytes,
                                 const std::string& range) {
  require_online(what);
  std::string url = first_url;
  uint32_t tries = 0;
  for (int redirects = 0;;) {
    Answer answer;
    bool too_long = false;
    const uint64_t id =
        transfers_.start({url, token_for(url), range, ""}, [&](const AnswerHead&, std::span<const std::byte> bytes) {
          too_long = answer.body.size() + bytes.size() > most_bytes;
          if (!too_long) answer.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          return !too_long;
        });
    const DropAtEnd dropped{transfers_, id};
    std::vector<TransferEnd> ends;
    while (ends.empty()) {
      require_going();
      ends = transfers_.wait(0.1);
    }
    const TransferEnd& end = ends.front();
    answer.head = end.head;
    if (end.how == TransferEnd::How::wrong) throw Error(ErrorKind::unavailable, end.problem);
    if (too_long && !range.empty() && end.head.status == 200) return answer;  // it knows no ranges; the front will do
    if (too_long)
      throw Error(ErrorKind::unavailable, "The hub's answer about " + what + " is longer than " +
                                              byte_figures(most_bytes) + ", which is not allowed.");
    if (end.how == TransferEnd::How::cut || is_worth_another_try(end.head.status)) {
      if (++tries >= limits_.tries) {
        if (end.how == TransferEnd::How::cut) throw Error(ErrorKind::unavailable, end.problem);
        refuse_status(end.head, what, "");
      }
      pause(wait_before(tries, end.head));
      continue;
    }
    if (is_redirect(end.head.status)) {
      if (++redirects > kMostRedirects)
        throw Error(ErrorKind::unavailable, "The hub leads on and on when asked for " + what + ".");
      url = redirected(url, end.head);
      continue;
    }
    return answer;
  }
}

HubListing HubClient::list(const std::string& repo, const std::string& revision) {
  const std::optional<HubName> name = parse_hub_name(repo);
  if (!name || !name->choice.empty())
    throw bad_input(quoted_name(repo) + " is no name of a repository; a name is OWNER/REPO.");
  check_revision(revision);
  HubListing listing;
  listing.repo = repo;
  listing.revision = revision;
  const std::string at = settings_.endpoint + "/api/models/" + url_escaped(repo, true);
  const Answer about = ask(at + "/revision/" + url_escaped(revision), "model " + quoted_name(repo), kMostListBytes);
  if (about.head.status != 200) refuse_status(about.head, "model " + quoted_name(repo), repo);
  read_answer(quoted_name(repo), [&] {
    const nlohmann::json root = parse_json(about.body, "the answer");
    const JsonFields fields(root, "the answer");
    listing.commit = fields.text("sha");
    if (!is_hex(listing.commit, 40)) throw bad_input("The field \"sha\" is no commit.");
    listing.licence = licence_of(fields);
    return 0;
  });
  std::string page = at + "/tree/" + url_escaped(listing.commit) + "?recursive=true";
  for (int pages = 0; !page.empty(); ++pages) {
    if (pages >= kMostPages) throw Error(ErrorKind::unavailable, "The list of files of " + repo + " has no end.");
    const Answer tree = ask(page, "list of files of " + quoted_name(repo), kMostListBytes);
    if (tree.head.status != 200) refuse_status(tree.head, "list of files of " + quoted_name(repo), repo);
    read_answer("the files of " + quoted_name(repo), [&] {
      const nlohmann::json root = parse_json(tree.body, "the list");
      if (!root.is_array()) throw bad_input("It is no list.");
      for (size_t i = 0; i < root.size(); ++i) {
        const JsonFields entry(root[i], "entry " + std::to_string(i));
        if (entry.text("type") == "file") listing.files.push_back(tree_file(entry));
      }
      if (listing.files.size() > kMostRepoFiles)
        throw bad_input("It has more than " + std::to_string(kMostRepoFiles) + " files.");
      return 0;
    });
    const std::string next = next_page(tree.head);
    page = next.empty() ? "" : url_behind(page, next);
  }
  return listing;
}

std::vector<HubFound> HubClient::search(const std::string& words, uint32_t most) {
  const std::string url = settings_.endpoint + "/api/models?search=" + url_escaped(words) +
                          "&sort=downloads&direction=-1&limit=" + std::to_string(most);
  const Answer answer = ask(url, "search for " + quoted_name(words), kMostListBytes);
  if (answer.head.status != 200) refuse_status(answer.head, "search for " + quoted_name(words), "");
  return read_answer("the search", [&] {
    const nlohmann::json root = parse_json(answer.body, "the answer");
    if (!root.is_array()) throw bad_input("It is no list.");
    std::vector<HubFound> found;
    for (size_t i = 0; i < root.size() && found.size() < most; ++i) {
      const JsonFields entry(root[i], "entry " + std::to_string(i));
      HubFound each;
      each.repo = entry.text("id");
      if (!parse_hub_name(each.repo)) continue;  // repositories of an old kind, without an owner
      const auto number = [&](const char* field) {
        const nlohmann::json* value = entry.find(field);
        return value != nullptr && value->is_number_unsigned() ? value->get<uint64_t>() : 0;
      };
      each.downloads = number("downloads");
      each.likes = number("likes");
      each.licence = licence_of(entry);
      const nlohmann::json* gated = entry.find("gated");  // false, "auto" or "manual"
      each.gated = gated != nullptr && !(gated->is_boolean() && !gated->get<bool>());
      if (const nlohmann::json* tags = entry.find("tags"); tags != nullptr && tags->is_array())
        each.gguf = std::ranges::find(*tags, nlohmann::json("gguf")) != tags->end();
      found.push_back(std::move(each));
    }
    return found;
  });
}

std::string HubClient::beginning(const HubListing& listing, const HubFile& file, uint64_t most) {
  const uint64_t bytes = std::min(most, file.bytes);
  if (bytes == 0) return "";
  const std::string what = "file " + quoted_name(file.path);
  Answer answer = ask(file_url(listing, file), what, bytes, "0-" + std::to_string(bytes - 1));
  if (answer.head.status != 200 && answer.head.status != 206) refuse_status(answer.head, what, listing.repo);
  return std::move(answer.body);
}

}  // namespace canopy
