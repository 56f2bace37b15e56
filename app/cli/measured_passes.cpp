#include "app/cli/measured_passes.h"

#include <cmath>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/base/text_encoding.h"
#include "engine/format/json_text.h"

namespace canopy::cli {
namespace {

using nlohmann::json;

constexpr uint64_t kMostBytes = uint64_t{16} << 20;
constexpr size_t kMostPasses = 4096;
constexpr double kWidest = 4096, kLongestMs = 1e9;

/// Numbers above 0, up to `most`.
std::vector<double> numbers(const JsonFields& fields, const char* field, double most) {
  std::vector<double> result;
  for (const json& each : fields.list(field)) {
    const double value = each.is_number() ? each.get<double>() : 0;
    if (!(value > 0 && value <= most)) {
      throw bad_input("The field '" + std::string(field) + "' has " + each.dump(-1, ' ', true).substr(0, 60) +
                      "; allowed: numbers above 0, up to " + std::to_string(static_cast<uint64_t>(most)) + ".");
    }
    result.push_back(value);
  }
  if (result.empty() || result.size() > kMostPasses) {
    throw bad_input("The field '" + std::string(field) + "' has " + std::to_string(result.size()) +
                    " numbers; allowed: 1 to " + std::to_string(kMostPasses) + ".");
  }
  return result;
}

MeasuredPasses passes_of(const json& value) {
  const JsonFields fields(value, "an entry of 'devices'");
  if (const std::string source = fields.text("source"); source != "measured") {
    throw bad_input("The field 'source' is " + quoted_name(source) + "; allowed: 'measured'.");
  }
  MeasuredPasses passes;
  passes.device = fields.text("name");
  passes.shape = fields.text("shape");
  passes.context = fields.u32_or("context", 0);
  passes.ms = numbers(fields, "ms", kLongestMs);
  for (const double width : numbers(fields, "widths", kWidest)) {
    if (width != std::floor(width) || (!passes.widths.empty() && width <= passes.widths.back())) {
      throw bad_input("The field 'widths' has " + std::to_string(width) + "; allowed: ascending whole numbers.");
    }
    passes.widths.push_back(static_cast<uint32_t>(width));
  }
  if (passes.widths.size() != passes.ms.size()) {
    throw bad_input("The field 'ms' has " + std::to_string(passes.ms.size()) + " numbers and 'widths' has " +
                    std::to_string(passes.widths.size()) + "; they must be as many.");
  }
  passes.bandwidth_share = fields.number_or("bandwidth_share", 0);
  if (!(passes.bandwidth_share >= 0 && passes.bandwidth_share <= 1)) {
    throw bad_input("The field 'bandwidth_share' is " + std::to_string(passes.bandwidth_share) + "; allowed: 0 to 1.");
  }
  return passes;
}

}  // namespace

std::vector<MeasuredPasses> read_measured(const std::filesystem::path& path) {
  return with_context(shown(path), [&] {
    const json document = parse_json(read_text_input(path, kMostBytes), "The file");
    std::vector<MeasuredPasses> result;
    for (const json& value : JsonFields(document, "the file").list("devices")) result.push_back(passes_of(value));
    return result;
  });
}

}  // namespace canopy::cli
