#pragma once
// What drafts for a model, as a file of whatever kind: told apart, opened, and compared with the model it is to draft
// for.

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "engine/format/assistant_file.h"
#include "engine/format/drafter_file.h"
#include "engine/format/eagle_file.h"
#include "engine/format/model_file.h"
#include "engine/format/mtp_file.h"

namespace canopy {

/// DFlash and its relatives, a head that predicts further tokens, an EAGLE-3 head, an assistant of Gemma 4, a model
/// that drafts token by token: as DraftFile has them, in this order.
enum class DraftKind { block, head, eagle, assistant, model };
using DraftFile = std::variant<DrafterFile, MtpFile, EagleFile, AssistantFile, ModelFile>;

/// What the metadata at `path` say that it is, however damaged the rest is; `model` where they say nothing of drafting,
/// or cannot be read. A model that brings a head is that head to `target`, if it is the same model: then throws what
/// ModelFile::open() throws. Null: it is a model.
DraftKind draft_kind(const std::filesystem::path& path, const ModelFile* target);

/// Opened as this kind. Throws what its open() throws.
DraftFile open_draft_file(const std::filesystem::path& path, DraftKind kind);

/// As check_pair() of its kind.
std::vector<std::string> check_pair(const ModelFile& target, const DraftFile& drafter);

/// Whether a drafter fits a target, found out before anything is loaded, for lists of models.
struct PairReport {
  bool fits = false;
  std::string reason;  // why not: a sentence that names the file at fault where one is; empty where it fits
  std::vector<std::string> warnings;  // unusual properties of the pair, one sentence each
  DraftKind kind = DraftKind::block;  // of the drafter
};

/// The same from paths as ModelFile and open_draft_file() open them. Reads what describes the models, no weights, and
/// needs no device: milliseconds where the files are at hand. Any thread may call it; it does not throw for what is in
/// the files.
PairReport describe_pair(const std::filesystem::path& target, const std::filesystem::path& drafter);

}  // namespace canopy
