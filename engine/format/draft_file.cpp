#include "engine/format/draft_file.h"

#include "engine/base/error.h"
#include "engine/format/model_paths.h"

namespace canopy {

DraftKind draft_kind(const std::filesystem::path& path, const ModelFile* target) {
  if (AssistantFile::is_assistant(path)) return DraftKind::assistant;
  if (EagleFile::is_eagle(path)) return DraftKind::eagle;
  if (DrafterFile::is_drafter(path)) return DraftKind::block;
  const bool is_head = target != nullptr ? MtpFile::is_meant(path, *target) : MtpFile::is_alone(path);
  return is_head ? DraftKind::head : DraftKind::model;
}

DraftFile open_draft_file(const std::filesystem::path& path, DraftKind kind) {
  switch (kind) {
    case DraftKind::block: return DrafterFile::open(path);
    case DraftKind::head: return MtpFile::open(path);
    case DraftKind::eagle: return EagleFile::open(path);
    case DraftKind::assistant: return AssistantFile::open(path);
    case DraftKind::model: break;
  }
  return ModelFile::open(path);
}

std::vector<std::string> check_pair(const ModelFile& target, const DraftFile& drafter) {
  return std::visit([&](const auto& file) { return check_pair(target, file); }, drafter);
}

PairReport describe_pair(const std::filesystem::path& target, const std::filesystem::path& drafter) {
  PairReport report;
  try {
    const ModelFile model = ModelFile::open(target);
    report.kind = draft_kind(drafter, &model);
    const DraftFile file = open_draft_file(drafter, report.kind);
    const std::string name = model_path_name(drafter);
    report.warnings = report.kind == DraftKind::block ? check_pair(model, file)  // which names it
                                                      : with_context(name, [&] { return check_pair(model, file); });
    report.fits = true;
  } catch (const Error& e) {
    report.reason = e.what();
  }
  return report;
}

}  // namespace canopy
