// What does not run here, in the code, in errors and in docs/using.md.

#include "engine/format/other_models.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "engine/base/error.h"
#include "engine/format/architecture.h"
#include "tests/base/expect_error.h"

namespace canopy {
namespace {

using test::error_of;

TEST(OtherModels, AreRefusedWithWhatToGetInstead) {
  for (const OtherModel& each : other_models()) {
    SCOPED_TRACE(each.name);
    const std::string message = error_of([&] { architecture_by_name(each.name); });
    EXPECT_NE(message.find("'" + std::string(each.name) + "' (" + std::string(each.models) + ") is not supported. " +
                           std::string(advice_on(each.kind)) + " Supported are: llama ("),
              std::string::npos)
        << message;
    if (each.class_start.empty()) continue;
    const std::string class_name = std::string(each.class_start) + "ForCausalLM";
    EXPECT_EQ(find_other_model(class_name), &each);
    EXPECT_NE(error_of([&] { architecture_by_class(class_name); }).find("(" + std::string(each.models) + ")"),
              std::string::npos);
  }
  EXPECT_EQ(find_other_model("no such model"), nullptr);
  EXPECT_EQ(find_other_model(""), nullptr);
}

TEST(OtherModels, StandInTheManualByKind) {
  std::map<OtherModel::Kind, std::string> names;
  for (const OtherModel& each : other_models()) {
    std::string& list = names[each.kind];
    list +=
        (list.empty() ? "" : ", ") + std::string("`") + std::string(each.name) + "` (" + std::string(each.models) + ")";
  }
  std::ifstream file(std::string(CANOPY_SOURCE_DIR) + "/docs/using.md");
  const std::string manual{std::istreambuf_iterator<char>(file), {}};
  for (const auto& [kind, list] : names) {
    const std::string row = "| " + list + " | " + std::string(advice_on(kind)) + " |\n";
    EXPECT_NE(manual.find(row), std::string::npos) << "docs/using.md lacks the row\n" << row;
  }
}

}  // namespace
}  // namespace canopy
