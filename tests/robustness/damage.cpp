#include "tests/robustness/damage.h"

#include <cstdlib>
#include <fstream>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace canopy::test {
namespace {

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

uint64_t stride_from_environment() {
  const char* text = std::getenv("CANOPY_ROBUSTNESS_STRIDE");
  return text == nullptr ? 1 : std::max(1ul, std::strtoul(text, nullptr, 10));
}

std::string Damages::apply(uint64_t index) const {
  if (is_cut(index)) return whole_.substr(0, index);
  std::string flipped = whole_;
  flipped[byte(index)] = static_cast<char>(flipped[byte(index)] ^ (1 << bit(index)));
  return flipped;
}

std::string Damages::describe(uint64_t index) const {
  if (is_cut(index)) return "cut to " + std::to_string(index) + " bytes";
  const uint64_t at = byte(index);
  return "bit " + std::to_string(bit(index)) + " of byte " + std::to_string(at) + " flipped (in '" +
         printable(whole_.substr(at < 12 ? 0 : at - 12, 24)) + "')";
}

std::string fault_of_refusal(const std::string& message, const std::string& name) {
  if (message.find(name) == std::string::npos) return "the message does not name " + name + ": " + message;
  if (!message.ends_with('.')) return "the message is no sentence: " + message;
  if (printable(message, message.size() + 1) != message) return "the message is not printable: " + printable(message);
  if (message.size() > 4000) return "the message has " + std::to_string(message.size()) + " bytes";
  return "";
}

IsolatedTotals load_every_damage(const Damages& damages, const DamagedLoad& load) {
  return use_every_damage(damages,
                          {load.model, load.file, load.judge_refusal, [&](uint64_t index, const std::string& bytes) {
                             return load.judge_load(index, bytes, load_whole(load.model));
                           }});
}

IsolatedTotals use_every_damage(const Damages& damages, const DamagedUse& seed) {
  IsolatedCases cases;
  cases.count = damages.count();
  cases.stride = stride_from_environment();
  cases.describe = [&](uint64_t index) { return seed.file.filename().string() + ", " + damages.describe(index); };
  cases.run = [&](uint64_t index) -> CaseResult {
    const std::string bytes = damages.apply(index);
    write_file(seed.file, bytes);
    try {
      return {true, seed.use(index, bytes)};
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::bad_input) return {false, "the error is of another kind: " + std::string(e.what())};
      std::string fault = fault_of_refusal(e.what(), seed.model.filename().string());
      if (fault.empty() && seed.judge_refusal) fault = seed.judge_refusal(index, e.what());
      return {false, fault};
    }
  };
  const IsolatedTotals totals = run_isolated(cases);
  write_file(seed.file, damages.whole());
  return totals;
}

}  // namespace canopy::test
