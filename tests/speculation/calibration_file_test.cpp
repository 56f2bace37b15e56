// Calibration files: what was saved is read back, and a file with anything else is refused with a reason.

#include "engine/speculation/calibration.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

using nlohmann::json;

const CalibrationKey key = {.device = "8c1f-22",
                            .driver = "llvmpipe 22.3.6",
                            .model = "smol 5b3a",
                            .drafter = "dflash 91",
                            .quantization = "Q4_1",
                            .kv_type = "f16",
                            .variants = "rows 4, lanes 8"};

CostTable some_table() {
  CostTable table(16);
  for (uint32_t width = 1; width <= 6; ++width) table.set_verify(width, 512, 1.0 / 3 * width + 10);
  table.set_verify(4, 64, 11.25);
  table.set_draft(1, 512, 4.0000000001);
  table.set_draft(16, 512, 5);
  table.set_other(1, 0.02);
  table.set_other(64, 0);
  return table;
}

void expect_same(const CostTable& a, const CostTable& b) {
  EXPECT_EQ(a.tile(), b.tile());
  EXPECT_EQ(a.verify_points(), b.verify_points());
  EXPECT_EQ(a.draft_points(), b.draft_points());
  EXPECT_EQ(a.other_points(), b.other_points());
}

class CalibrationFile : public testing::Test {
 protected:
  test::TempFolder folder;
  std::filesystem::path path = calibration_path(folder.path(), key);

  void save() { ASSERT_EQ(save_calibration(folder.path(), key, some_table()), ""); }

  std::string text() const {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void write(const std::string& content) const { std::ofstream(path, std::ios::binary) << content; }

  LoadedCalibration load() const { return load_calibration(folder.path(), key); }

  // Checks that loading does not throw and gives no table, and that the note names the file and the reason.
  void expect_refused(const std::string& why) const {
    const LoadedCalibration loaded = load();
    EXPECT_FALSE(loaded.table);
    EXPECT_NE(loaded.note.find(path.filename().string()), std::string::npos) << loaded.note;
    EXPECT_NE(loaded.note.find(why), std::string::npos) << "expected: " << why << "\nactual:   " << loaded.note;
    EXPECT_EQ(loaded.note.back(), '.');
  }

  void change(const std::function<void(json&)>& edit) const {
    json file = json::parse(text());
    edit(file);
    write(file.dump());
  }

  // Changes the table and keeps the hash right, as a faulty program might write it.
  void change_table(const std::function<void(json&)>& edit) {
    save();
    change([&](json& file) {
      edit(file["table"]);
      const std::string content = file["table"].dump();
      char hash[17];
      std::snprintf(hash, sizeof hash, "%016llx",
                    static_cast<unsigned long long>(damage_hash(std::as_bytes(std::span(content)))));
      file["hash"] = hash;
    });
  }
};

TEST_F(CalibrationFile, WhatWasSavedComesBack) {
  EXPECT_FALSE(load().table);
  EXPECT_EQ(load().note, "") << "nothing is wrong when there is no file yet";
  save();
  const LoadedCalibration loaded = load();
  EXPECT_EQ(loaded.note, "");
  ASSERT_TRUE(loaded.table);
  expect_same(*loaded.table, some_table());
}

TEST_F(CalibrationFile, SaysWhenItWasMeasuredAndBesideWhat) {
  CostTable table = some_table();
  table.set_under({1'700'000'000'123, 0.42});
  ASSERT_EQ(save_calibration(folder.path(), key, table), "");
  ASSERT_TRUE(load().table) << load().note;
  EXPECT_EQ(load().table->under(), table.under());
  EXPECT_TRUE(load().table->under().under_load());
  // Files of before have neither.
  change([](json& file) { file.erase("measured_ms"), file.erase("used_by_others"); });
  ASSERT_TRUE(load().table) << load().note;
  EXPECT_EQ(load().table->under(), MeasuredUnder{});
  EXPECT_FALSE(load().table->under().under_load());
  change([](json& file) { file["measured_ms"] = -1, file["used_by_others"] = 7; });
  ASSERT_TRUE(load().table) << "the times hold all the same";
  EXPECT_EQ(load().table->under(), MeasuredUnder{});
}

TEST_F(CalibrationFile, ASecondSaveReplacesTheFirst) {
  save();
  CostTable other;
  other.set_verify(1, 1, 2);
  ASSERT_EQ(save_calibration(folder.path(), key, other), "");
  expect_same(load().table.value(), other);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1);
}

TEST_F(CalibrationFile, EachKeyHasItsOwnFile) {
  save();
  for (const auto field :
       {&CalibrationKey::device, &CalibrationKey::driver, &CalibrationKey::model, &CalibrationKey::drafter,
        &CalibrationKey::quantization, &CalibrationKey::kv_type, &CalibrationKey::variants}) {
    CalibrationKey other = key;
    other.*field += "x";
    EXPECT_NE(calibration_path(folder.path(), other), path);
    EXPECT_FALSE(load_calibration(folder.path(), other).table);
  }
}

TEST_F(CalibrationFile, AnythingElseInTheKeyIsRefused) {
  // A file with another key under this name: by a collision of hashes, or because it was copied from elsewhere.
  const std::vector<std::pair<std::string, std::string>> fields = {{"device", "another device"},
                                                                   {"driver", "another version of the driver"},
                                                                   {"model", "another model"},
                                                                   {"drafter", "another drafter"},
                                                                   {"kv_type", "another type of K/V"},
                                                                   {"quantization", "another quantization"},
                                                                   {"variants", "another choice of kernels"}};
  for (const auto& [field, why] : fields) {
    save();
    change([&key = field](json& file) { file["key"][key] = "other"; });
    expect_refused(why + (field == "kv_type" ? " cache (\"other\")" : " (\"other\")"));
    save();
    change([&key = field](json& file) { file["key"].erase(key); });
    expect_refused(field);
  }
}

TEST_F(CalibrationFile, AKernelThatWasTunedAnewMakesItWorthless) {
  CalibrationKey tuned = key;
  const auto load_tuned = [&](const char* choices) {
    tuned.tuned = choices;
    return load_calibration(folder.path(), tuned);
  };
  tuned.tuned = "Q4_1 576x1536 x1 (4 rows, 8 lanes, split 1); Q4_1 576x1536 x4 (8 rows, 8 lanes, split 1)";
  EXPECT_EQ(calibration_path(folder.path(), tuned), path);  // the tuning is not part of the name
  ASSERT_EQ(save_calibration(folder.path(), tuned, some_table()), "");
  EXPECT_TRUE(load().table);  // before any product was tuned
  EXPECT_TRUE(load_tuned("Q4_1 576x1536 x4 (8 rows, 8 lanes, split 1); F16 64x64 x1 (4 rows, 8 lanes, split 2)").table);
  const LoadedCalibration refused = load_tuned("Q4_1 576x1536 x4 (16 rows, 8 lanes, split 1)");
  EXPECT_FALSE(refused.table);
  EXPECT_NE(refused.note.find("'Q4_1 576x1536 x4': (8 rows, 8 lanes, split 1), now (16 rows, 8 lanes, split 1)"),
            std::string::npos)
      << refused.note;
  for (const char* damaged : {"", "; ", ";;", " (", "x", "; (; )", "Q4_1 576x1536 x4"}) {
    change([&](json& file) { file["tuned"] = damaged; });
    EXPECT_TRUE(load_tuned("Q4_1 576x1536 x4 (16 rows, 8 lanes, split 1)").table) << damaged;
  }
}

TEST_F(CalibrationFile, OtherFormatsAndVersionsAreRefused) {
  save();
  change([](json& file) { file["version"] = 2; });
  expect_refused("its format is version 2, this program reads version 1");
  save();
  change([](json& file) { file["format"] = "canopy-trace"; });
  expect_refused("it is no calibration");
  save();
  change([](json& file) { file.erase("version"); });
  expect_refused("version");
  write("[]");
  expect_refused("must be a JSON object");
  write("");
  expect_refused("is not used");
  write("null");
  expect_refused("is not used");
  write("\xff\xfe\x00garbage");
  expect_refused("is not used");
}

TEST_F(CalibrationFile, EveryTruncationIsRefused) {
  save();
  const std::string whole = text();
  ASSERT_EQ(whole.back(), '\n');
  EXPECT_NO_THROW(parse_calibration(whole, key));
  for (size_t bytes = 0; bytes + 1 < whole.size(); ++bytes) {
    ASSERT_NE(test::error_of([&] { parse_calibration(whole.substr(0, bytes), key); }), "") << bytes << " bytes";
  }
  write(whole.substr(0, whole.size() / 2));
  expect_refused("is not used");
}

TEST_F(CalibrationFile, EveryChangedBitIsRefusedOrChangesNothing) {
  save();
  const std::string whole = text();
  int unharmed = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      try {
        expect_same(parse_calibration(changed, key), some_table());
        ++unharmed;  // white space
      } catch (const Error& e) {
        ASSERT_EQ(e.kind(), ErrorKind::bad_input);
      }
    }
  }
  EXPECT_LT(unharmed, static_cast<int>(whole.size()));
}

TEST_F(CalibrationFile, AChangedTimeIsDamage) {
  save();
  change([](json& file) { file["table"]["verify"][0][2] = 12.5; });
  expect_refused("its content is damaged");
}

TEST_F(CalibrationFile, AbsurdValuesAreRefused) {
  change_table([](json& table) { table["verify"][0][2] = 12.5; });
  ASSERT_TRUE(load().table) << "a table with the right hash is read: " << load().note;

  for (const json& bad : {json(0), json(-1.5), json(1e30), json(nullptr), json("1"), json::array()}) {
    change_table([&](json& table) { table["verify"][0][2] = bad; });
    expect_refused("is not used");
    change_table([&](json& table) { table["draft"][1][2] = bad; });
    expect_refused("is not used");
    if (bad == 0) continue;  // the other times of a round may be 0
    change_table([&](json& table) { table["other"][1][1] = bad; });
    expect_refused("is not used");
  }
  change_table([](json& table) { table["verify"][2][2] = -3; });
  expect_refused("-3.000000 ms; more than 0");
  for (const json& bad : {json(-1), json(1.5), json(1u << 30), json(UINT64_MAX), json("7"), json(nullptr)}) {
    for (const size_t place : {0u, 1u}) {
      change_table([&](json& table) { table["verify"][3][place] = bad; });
      expect_refused("entry 3 of \"verify\" has the number " + bad.dump());
    }
  }
  change_table([](json& table) { table["verify"][0][0] = 0; });
  expect_refused("a width of 0 rows");
  change_table([](json& table) { table["verify"][0] = {1, 2}; });
  expect_refused("entry 0 of \"verify\" is no list");
  change_table([](json& table) { table["verify"] = json::array(); });
  expect_refused("it holds no measured pass");
  change_table([](json& table) { table["verify"] = json(9000, {1, 1, 1}); });
  expect_refused("9000 entries");
  change_table([](json& table) { table.erase("draft"); });
  expect_refused("draft");
  for (const json& bad : {json(0), json(5000), json(-4), json("16")}) {
    change_table([&](json& table) { table["tile"] = bad; });
    expect_refused("tile");
  }
  // Values that JSON cannot express.
  for (const std::string bad : {"NaN", "Infinity", "1e999"}) {
    save();
    std::string content = text();
    content.replace(content.find("11.25"), 5, bad);
    write(content);
    expect_refused("is not used");
  }
}

TEST_F(CalibrationFile, ReadsNothingThatIsNoSmallFile) {
  std::filesystem::create_directory(path);
  expect_refused("it is no readable file");
  std::filesystem::remove(path);
  write(std::string((1 << 20) + 1, ' '));
  expect_refused("more than 1048576 bytes");
}

TEST_F(CalibrationFile, DeepNestingIsRefused) {
  write(std::string(100000, '['));
  expect_refused("is not used");
}

TEST_F(CalibrationFile, AFolderThatCannotBeWrittenIsANote) {
  const auto file = folder.write("file", "x");
  const std::string note = save_calibration(file / "below", key, some_table());
  EXPECT_NE(note.find("The calibration was not saved: "), std::string::npos) << note;
  EXPECT_FALSE(load_calibration(file / "below", key).table);
}

TEST_F(CalibrationFile, KeysWithAnyBytesAreKept) {
  CalibrationKey odd = key;
  odd.model = "a\"b\\c\n\x01\xff" + std::string(3000, 'm');
  ASSERT_EQ(save_calibration(folder.path(), odd, some_table()), "");
  EXPECT_TRUE(load_calibration(folder.path(), odd).table);
  odd.model.back() = 'n';
  EXPECT_FALSE(load_calibration(folder.path(), odd).table);
}

TEST_F(CalibrationFile, ForElsewhereIsReadWithoutItsKey) {
  const std::filesystem::path sent = folder.path() / "sent.json";
  write_calibration(sent, key, some_table());
  const ForeignCalibration read = read_calibration(sent);
  expect_same(read.table, some_table());
  EXPECT_EQ(read.key.driver, key.driver);
  EXPECT_EQ(read.key.model, key.model);
  // The file of a launch is such a file, too.
  save();
  expect_same(read_calibration(path).table, some_table());
}

TEST_F(CalibrationFile, ForElsewhereIsRefusedByNameWhateverIsWrong) {
  save();
  const std::string whole = text();
  for (size_t bytes = 0; bytes + 2 < whole.size(); ++bytes) {
    EXPECT_THROW(parse_foreign_calibration(whole.substr(0, bytes)), Error) << bytes << " bytes";
  }
  change([](json& file) { file["table"]["verify"][0][2] = 0.5; });
  test::expect_error("damaged", [&] { read_calibration(path); });
  test::expect_error(path.filename().string(), [&] { read_calibration(path); });
}

TEST_F(CalibrationFile, WhatWasLearntIsReadBackAndNothingElse) {
  EXPECT_EQ(load_learnt(folder.path(), key), std::nullopt);
  const std::string learnt("bytes\n\0\nof any kind", 18);
  ASSERT_EQ(save_learnt(folder.path(), key, learnt), "");
  EXPECT_EQ(load_learnt(folder.path(), key), learnt);
  CalibrationKey other = key;
  other.drafter = "another";
  EXPECT_EQ(load_learnt(folder.path(), other), std::nullopt);
  std::filesystem::path file = path;
  file.replace_extension(".learnt");
  std::string text;
  {
    std::ifstream stream(file, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(stream), {});
  }
  for (size_t size = 0; size < text.size(); ++size) {
    std::ofstream(file, std::ios::binary) << text.substr(0, size);
    EXPECT_EQ(load_learnt(folder.path(), key), std::nullopt) << size;
  }
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(file, std::ios::binary) << damaged;
    EXPECT_EQ(load_learnt(folder.path(), key), std::nullopt) << at;
  }
}

}  // namespace
}  // namespace canopy
